"""Imputations of every row by models that did not train on it.

The candidates of :mod:`cstonet.imputation.candidates` are drawn and weighed once more, for the rows
that a fold held out and by that fold's networks. What is chosen are the M imputations behind the
effects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.imputation.candidates import ImputationModel, candidate_likelihood, choose
from cstonet.imputation.conditionals import Entries
from cstonet.imputation.gap_data import GapData
from cstonet.imputation.noise import FreshNoise
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training_data import Split, TrainingData
from cstonet.streams import Stream


class ImputedFold(Protocol):
    """What imputations ask of a fold."""

    @property
    def split(self) -> Split:
        """Its rows."""

    @property
    def networks(self) -> tuple[TrainedNetwork, ...]:
        """Its chosen networks."""

    @property
    def imputation(self) -> ImputationModel | None:
        """How it imputes."""


def impute(
    folds: Sequence[ImputedFold],
    data: TrainingData,
    gaps: GapData,
    *,
    imputations: int,
    seed: int,
    threads: int,
) -> NDArray[np.float32]:
    """Draw the missing covariates of every row by models that did not train on it.

    Parameters
    ----------
    folds
        Of all repetitions of the cross-fitting.
    data
        Covariates with start values in the gaps, treatment and outcome.
    gaps
        What is missing, e entries.
    imputations
        Number M of imputations; the repetitions take turns in drawing them.
    seed, threads
        As for training.

    Returns
    -------
    (e, M) float32
        Standardised values of the missing entries.
    """
    entries = gaps.entries
    repeats = 1 + max(fold.split.repetition for fold in folds)
    values = np.empty((len(entries.row), imputations), dtype=np.float32)
    inputs = np.concatenate([net.inputs for fold in folds for net in fold.networks])
    used = entries.marked(gaps.whole(inputs))
    for fold in folds:
        mine = np.arange(fold.split.repetition, imputations, repeats)
        held_out = np.zeros(data.covariates.rows, dtype=bool)
        held_out[fold.split.test] = True
        here = held_out[entries.rows][entries.row]
        if here.any() and len(mine):
            drawer = _HeldOut(fold, data, gaps, seed, threads)
            values[np.ix_(here, mine)] = drawer.draw(here, used, len(mine))
    return values


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """Imputations of the rows that one fold held out, by its own models."""

    fold: ImputedFold
    data: TrainingData
    gaps: GapData
    seed: int
    threads: int

    def draw(
        self, here: NDArray[np.bool_], used: NDArray[np.bool_], count: int
    ) -> NDArray[np.float32]:
        """So many imputations of the entries `here` (e,), of which networks read those `used`."""
        model, entries, data = self.fold.imputation, self.gaps.entries, self.data
        if model is None:
            raise ValueError("the networks were fitted without imputation")
        rng = Stream.IMPUTATIONS.generator(self.seed, self.fold.split.index)
        noise = FreshNoise(rng)
        # First all entries once; then those that a network reads, as often as there are
        # candidates. If being missing tells something, all of them are weighed.
        once = model.covariates.draw(data.in_memory, entries.only(here), 1, noise)[:, 0]
        every = np.zeros(len(entries.row), dtype=np.float32)
        every[here] = once
        covariates = completed(data.in_memory, entries, every)
        read = here & (used | (model.missingness is not None))
        pool = entries.only(read)
        drawn = model.covariates.draw(covariates, pool, self.gaps.candidates, noise)
        as_drawn = dataclasses.replace(data, covariates=covariates)
        weight = candidate_likelihood(self.fold.networks, as_drawn, pool, drawn, self.threads)
        weight += model.log_weight(covariates, pool, drawn)
        index = choose(weight, count, rng)
        values = np.repeat(once[:, None], count, axis=1)
        values[read[here]] = drawn[np.arange(len(drawn))[:, None], index[pool.row]]
        return values


def completed(data: _core.Dataset, entries: Entries, values: NDArray[np.float32]) -> _core.Dataset:
    """The covariates with values (e,) in their missing entries."""
    gaps = _core.Gaps(entries.first, entries.column, data.columns)
    return _core.completed(data, gaps, np.ascontiguousarray(values, dtype=np.float32))
