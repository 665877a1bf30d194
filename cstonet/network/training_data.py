"""The data as training sees them: covariates of the kernel, visible units, row weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.variables import Family


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What the training of every fold shares.

    Attributes
    ----------
    covariates
        As the kernel reads them.
    visible : (n, units)
        Treatment as L-1 dummies or as a standardised dose, and standardised outcome (or outcomes).
    weights : (n,)
        Row weights.
    families
        Of the outcomes, which are the last columns of ``visible``.
    """

    covariates: _core.Dataset
    visible: NDArray[np.float32]
    weights: NDArray[np.float32]
    families: tuple[Family, ...]

    @property
    def treatment(self) -> NDArray[np.float64]:
        """Treatment as dummies of all levels but the reference, or as a dose, shape (n, L-1)."""
        return self.visible[:, : -len(self.families)].astype(np.float64)

    @property
    def outcome(self) -> NDArray[np.float64]:
        """Standardised outcomes, shape (n, outcomes)."""
        return self.visible[:, -len(self.families) :].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows of one fold: trained on, held out within training, and left for prediction.

    Attributes
    ----------
    index
        Position among the folds of all repetitions, from 0: the key of its random numbers.
    repetition, number
        The same in two parts: which repetition of the cross-fitting, which of its folds.
    fit, validation, test
        The rows, ascending.
    """

    index: int
    repetition: int
    number: int
    fit: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.int64]:
        """Rows that models of the fold may look at, ascending: fitted and validation rows."""
        return np.sort(np.concatenate([self.fit, self.validation]))


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
