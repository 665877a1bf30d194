"""All networks of a fit: how they are trained over the folds, and what they have in common."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.crossfit.fold import Fold, Folds
from cstonet.crossfit.splits import make_splits
from cstonet.crossfit.training import FoldJob
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import AnyDesign
from cstonet.data.units import Units
from cstonet.imputation.gap_data import GapData, gap_data, observed_scaling
from cstonet.network.mixture import EVEN_MIXTURE, Mixture
from cstonet.network.prediction import RowArrays, averaged, put_together
from cstonet.network.scaling import Scaling, column_scaling
from cstonet.network.spec import NetworkSpec, causal_network
from cstonet.network.training_data import Split, TrainingData
from cstonet.search.scope import SearchScope
from cstonet.search.search import Move
from cstonet.settings.plan import Plan

P = TypeVar("P", bound=RowArrays)


class NetworkSet(ABC):
    """What results ask of the networks behind them, be they of one kind or of several."""

    @property
    @abstractmethod
    def n_nonzero(self) -> int:
        """Weights that were kept, averaged over the chosen networks."""

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """Weights of the unpruned network on all covariates that may enter it."""

    @property
    @abstractmethod
    def trace(self) -> pd.DataFrame:
        """Training history: one row per fold, start and epoch."""

    @property
    @abstractmethod
    def search(self) -> pd.DataFrame:
        """One row per move of the structure search; empty without one."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if parts of it disagree in shape, as those of a wrong file may."""


@dataclass(frozen=True)
class FittedNetworks(NetworkSet):
    """The networks of all folds, and the units they work in.

    Attributes
    ----------
    plan
        What was done, in numbers.
    folds
        Those of every repetition of the cross-fitting, one after the other.
    covariates
        Names of the columns that the networks read.
    x_scaling, y_units
        Standardisation of these columns and of the outcome.
    threads
        Threads to predict with.
    spec
        The unpruned network on all covariates that may enter it.
    gaps
        What is missing in the covariates; None if nothing is.
    mixture
        How much linear parts, networks beside them and networks alone count.
    """

    plan: Plan
    folds: tuple[Fold, ...]
    covariates: tuple[str, ...]
    x_scaling: Scaling
    y_units: Units
    threads: int
    spec: NetworkSpec
    gaps: GapData | None = None
    mixture: Mixture = EVEN_MIXTURE

    @property
    def failures(self) -> tuple[str, ...]:
        """Why networks were given up."""
        return tuple(failure for fold in self.folds for failure in fold.failures)

    @property
    def rescues(self) -> tuple[str, ...]:
        """Why networks were trained with smaller steps than planned."""
        return tuple(rescue for fold in self.folds for rescue in fold.rescues)

    @property
    def n_starts(self) -> int:
        """Networks that converged, over all folds; those of the search are not counted."""
        return sum(len(fold.starts) + len(fold.beside) for fold in self.folds)

    @property
    def n_weights(self) -> int:
        """Weights of the unpruned network on all covariates that may enter it."""
        return self.spec.n_weights

    @property
    def n_nonzero(self) -> int:
        """Kept weights, averaged over the chosen networks."""
        return round(float(np.mean([net.nonzero for fold in self.folds for net in fold.networks])))

    @property
    def trace(self) -> pd.DataFrame:
        """Training history: one row per fold, start and epoch."""
        return pd.concat([fold.trace for fold in self.folds], ignore_index=True)

    @property
    def search(self) -> pd.DataFrame:
        """One row per move of the structure search; empty without one."""
        columns = [field.name for field in dataclasses.fields(Move)]
        moves = [dataclasses.asdict(move) for fold in self.folds for move in fold.moves]
        frame = pd.DataFrame(moves, columns=columns)
        frame["covariate"] = [self.covariates[move["covariate"]] for move in moves]
        return frame

    @cached_property
    def bic(self) -> pd.DataFrame:
        """BIC of every (fold, start), and whether it was chosen."""
        return pd.DataFrame(
            [
                {
                    "fold": net.fold,
                    "start": net.start,
                    "bic": net.bic,
                    "nonzero": net.nonzero,
                    "chosen": any(net is chosen for chosen in fold.networks),
                }
                for fold in self.folds
                for net in fold.starts
            ]
        )

    def check(self) -> None:
        """Raise ValueError if parts of it disagree in shape, as those of a wrong file may."""
        p = len(self.covariates)
        self.x_scaling.check(p)
        for fold in self.folds:
            fold.check(p)

    def over_folds(self, n: int, predict: Callable[[Fold, NDArray[np.int64]], P]) -> P:
        """What the folds say of n new rows, averaged, block by block.

        Parameters
        ----------
        n
            Number of rows.
        predict
            What a fold says of some of them, each by itself.
        """

        def parts() -> Iterator[tuple[NDArray[np.int64], P]]:
            # Without rows, too, the folds are asked: their answer has the right shapes.
            for block in row_blocks(max(n, 1)):
                rows = np.arange(n)[block]
                yield rows, averaged([predict(fold, rows) for fold in self.folds])

        return put_together(parts(), n)


def found_covariates(folds: Folds) -> NDArray[np.int64]:
    """Covariates that a model of these folds uses or found, ascending, shape (k,)."""
    linear = [np.array(fold.adjustment.linear, dtype=np.int64) for fold in folds]
    inputs = [net.inputs for fold in folds for net in fold.networks]
    return np.unique(np.concatenate([*inputs, *linear]))


def train_networks(
    design: AnyDesign, plan: Plan, workforce: Workforce, scope: SearchScope | None = None
) -> tuple[FittedNetworks, TrainingData]:
    """Train the networks of treatment and outcome in every fold.

    Parameters
    ----------
    design, plan
        The data, and what to do.
    workforce
        Threads, and who is told about the progress.
    scope
        What the structure search may do, by default everything.

    Returns
    -------
    networks, data
        The networks, and the rows as they see them, which results do not keep.
    """
    x_scaling = column_scaling(design.X, plan.outlier_limit, design.weights)
    if design.gaps is not None:
        x_scaling = observed_scaling(x_scaling, design)
    y_units = Units.of(design.y, design.family, design.weights)
    visible = np.column_stack([design.treatment.visible(), y_units.standardise(design.y)])
    data = TrainingData(
        covariates=x_scaling.dataset(design.X, plan.pack_bytes),
        visible=visible.astype(np.float32),
        weights=design.unit_weights.astype(np.float32),
        families=(design.family,),
    )
    network = causal_network(plan.network)
    scope = SearchScope() if scope is None else scope
    gaps = gap_data(design, plan, x_scaling)
    job = FoldJob(
        data=data,
        plan=plan,
        network=network,
        working=None if plan.search_network is None else causal_network(plan.search_network),
        training=plan.training,
        scope=dataclasses.replace(scope, always=kept_places(design, plan) + scope.always),
        gaps=gaps,
    )
    fitted = FittedNetworks(
        plan=plan,
        folds=tuple(workforce.run([job.on(split) for split in splits_of(design, plan)])),
        covariates=design.covariates,
        x_scaling=x_scaling,
        y_units=y_units,
        threads=workforce.threads,
        spec=network,
        gaps=gaps,
    )
    return fitted, data


def kept_places(design: AnyDesign, plan: Plan) -> tuple[int, ...]:
    """Columns of X that all models hold because the user said so."""
    return tuple(design.covariates.index(name) for name in plan.keep)


def splits_of(design: AnyDesign, plan: Plan) -> tuple[Split, ...]:
    """The rows of every fold of every repetition.

    Raises
    ------
    OneArmedError
        If whole clusters leave a fold without enough units of an arm to train on.
    """
    splits = make_splits(
        design.strata,
        folds=plan.folds,
        repeats=plan.repeats,
        validation_fraction=plan.validation_fraction,
        seed=plan.seed,
        trainable=design.unit_weights > 0,
        clusters=design.clusters,
    )
    if design.clusters is not None:
        for split in splits:
            design.treatment.check_training(split.fit, str(design.cluster_name))
    return splits
