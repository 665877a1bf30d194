"""The data as training sees them: covariates of the kernel, visible units, row weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.variables import Family
from cstonet.network.covariates import Covariates, at_hand


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What the training of every fold shares.

    Attributes
    ----------
    covariates
        Standardised; in memory, as the kernel reads them.
    visible : (n, units)
        Treatment as L-1 dummies or as a standardised dose, and standardised outcome (or outcomes).
    weights : (n,)
        Row weights.
    families
        Of the outcomes, which are the last columns of ``visible``.
    """

    covariates: Covariates
    visible: NDArray[np.float32]
    weights: NDArray[np.float32]
    families: tuple[Family, ...]

    @property
    def in_memory(self) -> _core.Dataset:
        """The covariates of a fit that imputes some of them, which it must have at hand."""
        return at_hand(self.covariates)

    @property
    def treatment(self) -> NDArray[np.float64]:
        """Treatment as dummies of all levels but the reference, or as a dose, shape (n, L-1)."""
        return self.visible[:, : -len(self.families)].astype(np.float64)

    @property
    def outcome(self) -> NDArray[np.float64]:
        """Standardised outcomes, shape (n, outcomes)."""
        return self.visible[:, -len(self.families) :].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Deal:
    """How one repetition of the cross-fitting deals the rows to its folds.

    Attributes
    ----------
    labels : (n,) of unsigned int
        Fold of every row, in the smallest type that has room for it: all that a fit keeps of its
        rows, since lists of them would outweigh the predictions.
    folds
        Number of folds; one fold trains on the rows that it predicts.
    trainable : (n,) of bool, or None
        Rows that may be trained on; None: all.
    """

    labels: NDArray[np.unsignedinteger]
    folds: int
    trainable: NDArray[np.bool_] | None = None

    def known(self, number: int) -> NDArray[np.int64]:
        """Rows that a fold may train on, ascending."""
        known = self.labels != number if self.folds > 1 else np.ones(len(self.labels), dtype=bool)
        if self.trainable is not None:
            known &= self.trainable
        return np.flatnonzero(known)

    def held_out(self, number: int) -> NDArray[np.int64]:
        """Rows that a fold predicts, ascending."""
        return np.flatnonzero(self.labels == number)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows of one fold: trained on, held out within training, and left for prediction.

    The lists of rows are made when they are asked for: who needs one repeatedly keeps it meanwhile.

    Attributes
    ----------
    index
        Position among the folds of all repetitions, from 0: the key of its random numbers.
    repetition, number
        The same in two parts: which repetition of the cross-fitting, which of its folds.
    deal
        The fold of every row, in this repetition.
    marks : bits, or None
        Which of the known rows are validation rows, eight to a byte; None: none.
    """

    index: int
    repetition: int
    number: int
    deal: Deal
    marks: NDArray[np.uint8] | None = None

    @property
    def known(self) -> NDArray[np.int64]:
        """Rows that models of the fold may look at, ascending: fitted and validation rows."""
        return self.deal.known(self.number)

    @property
    def fit(self) -> NDArray[np.int64]:
        """Rows that networks are fitted to, ascending."""
        known = self.known
        return known if self.marks is None else known[~self._marked(len(known))]

    @property
    def validation(self) -> NDArray[np.int64]:
        """Known rows that measure the noise, ascending."""
        known = self.known
        return known[:0] if self.marks is None else known[self._marked(len(known))]

    @property
    def test(self) -> NDArray[np.int64]:
        """Rows that are predicted, ascending."""
        return self.deal.held_out(self.number)

    def _marked(self, count: int) -> NDArray[np.bool_]:
        return np.unpackbits(self.marks, count=count).view(bool)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Workplace:
    """Where the networks of one fold are trained: its rows, its random streams, its threads.

    Attributes
    ----------
    split
        The fold's rows.
    seed
        That of the fit.
    network_id
        Which of the fit's networks these are: an analysis with several gives each its own streams.
    threads
        Threads to use.
    stop
        Called now and then with what was done; may raise to stop.
    """

    split: Split
    seed: int
    network_id: int
    threads: int
    stop: Callable[[int], object] | None = None
