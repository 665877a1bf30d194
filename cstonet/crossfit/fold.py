"""A fold of the cross-fitting: its rows, what was found and trained on them; predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.imputation.candidates import ImputationModel
from cstonet.network.backbone import Backbone
from cstonet.network.prediction import RowArrays, put_together
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training_data import Split
from cstonet.search.inclusion import Inclusion
from cstonet.search.scope import Adjustment
from cstonet.search.search import Move

P = TypeVar("P", bound=RowArrays)
# Epochs of a start that a condensed history has.
_MOST_EPOCHS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One fold of one repetition.

    Attributes
    ----------
    split
        Its rows, and its place among the others.
    adjustment
        What the search found, and how its covariates are adjusted for.
    networks
        The chosen networks, whose predictions are averaged.
    starts
        Every start that converged.
    failures
        Why others, or that beside the linear parts, were given up.
    trace
        One row per start and epoch.
    moves
        Steps of the structure search.
    backbone, beside
        Linear parts of treatment and outcome, and the chosen networks that learned what these
        leave; None, and none.
    imputation
        How missing covariates are drawn; None if there are none.
    inclusion
        How probable it is that covariates belong to the models; None if the fold cannot tell.
    rescues
        Why networks, some of the search among them, were trained with smaller steps than planned.
    """

    split: Split
    adjustment: Adjustment
    networks: tuple[TrainedNetwork, ...]
    starts: tuple[TrainedNetwork, ...]
    failures: tuple[str, ...]
    trace: pd.DataFrame
    moves: tuple[Move, ...]
    backbone: Backbone | None = None
    beside: tuple[TrainedNetwork, ...] = ()
    imputation: ImputationModel | None = None
    inclusion: Inclusion | None = None
    rescues: tuple[str, ...] = ()

    def check(self, covariates: int) -> None:
        """Raise ValueError unless its networks are of so many covariates."""
        for net in {id(n): n for n in (*self.starts, *self.networks, *self.beside)}.values():
            net.check(covariates)
        if self.backbone is not None:
            self.backbone.check(covariates)

    def condensed(self) -> Fold:
        """The same with a history that shows its course, for files that are to be small.

        At most 100 epochs of each start, evenly, in single precision; and without the covariates'
        probabilities, whose means are in the table of the selection.
        """
        starts = [name for name in ("start", "stage") if name in self.trace]
        place = self.trace.groupby(starts).cumcount()
        last = self.trace.groupby(starts).cumcount(ascending=False)
        step = -(-(place + last + 1) // _MOST_EPOCHS)
        thin = self.trace[(place % step == 0) | (last == 0)]
        narrow = {name: np.float32 for name in thin if thin[name].dtype == np.float64}
        trace = thin.astype(narrow).reset_index(drop=True)
        return replace(self, trace=trace, inclusion=None)

    @property
    def repetition(self) -> int:
        """Which repetition of the cross-fitting it belongs to."""
        return self.split.repetition

    @property
    def number(self) -> int:
        """Which of that repetition's folds it is."""
        return self.split.number


Folds = Sequence[Fold]


def by_repetition(folds: Folds) -> list[tuple[Fold, ...]]:
    """The folds of each repetition of the cross-fitting."""
    return [tuple(group) for _, group in groupby(folds, key=lambda fold: fold.repetition)]


def fold_labels(folds: Folds) -> NDArray[np.unsignedinteger]:
    """Fold of every row in one repetition, whose folds are given; shape (n,)."""
    return folds[0].split.deal.labels


def out_of_fold(
    folds: Folds,
    predict: Callable[[Fold, NDArray[np.int64]], P],
    rows: NDArray[np.int64] | None = None,
) -> list[P]:
    """Predictions of the training rows, each from a fold that did not train on it.

    Parameters
    ----------
    folds
        Of all repetitions.
    predict
        What a fold says of some rows, each by itself; asked about so many at a time.
    rows : (m,), optional
        The rows wanted, by default all.

    Returns
    -------
    list
        One prediction per repetition, of the rows in their order.
    """
    return [_by_its_folds(group, predict, rows) for group in by_repetition(folds)]


def _by_its_folds(
    folds: Folds,
    predict: Callable[[Fold, NDArray[np.int64]], P],
    rows: NDArray[np.int64] | None,
) -> P:
    """The prediction of one repetition, put where it belongs part by part."""
    labels = fold_labels(folds)
    asked = labels if rows is None else labels[rows]

    def parts() -> Iterator[tuple[NDArray[np.int64], P]]:
        for fold in folds:
            places = np.flatnonzero(asked == fold.number)
            # A fold without such rows is asked all the same: its answer has the right shapes.
            for block in row_blocks(max(len(places), 1)):
                here = places[block]
                yield here, predict(fold, here if rows is None else rows[here])

    return put_together(parts(), len(asked))
