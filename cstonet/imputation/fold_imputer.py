"""Imputation while networks train: candidates from the covariates, weighed by the networks.

Each row with gaps gets candidate completions from the graphical model π(X_mis | X_obs). A network
weighs them by its likelihoods of the row's treatment and outcome (and, for values missing not at
random, of what is missing), which makes them a sample of

    π(X_mis | X_obs, A, Y, R) ∝ π(X_mis | X_obs) p(A | X) p(Y | A, X) p(R | A, X).

While a network trains, rows move among their candidates inside the kernel. Between the networks of
a fold, the graphical model is estimated again from covariates completed by such draws, and gives
new candidates: stochastic EM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.imputation.candidates import (
    CandidatePool,
    ImputationModel,
    candidate_likelihood,
    choose,
)
from cstonet.imputation.conditionals import CovariateModel, Entries
from cstonet.imputation.gap_data import GapData
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.noise import FreshNoise
from cstonet.imputation.regressions import FloatArray
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.streams import Stream

# Rounds of draw and refit before the first network, which know the covariates only.
_WARM_UP = 3
# For the model of what is missing: completions per row, and rounds per network.
_COMPLETIONS, _ROUNDS = 5, 3


class FoldImputer:
    """Imputation while the networks of one fold are searched for and trained.

    Parameters
    ----------
    data
        Shared by all folds, start values in the gaps.
    gaps
        What is missing.
    place
        The fold's rows, random streams and threads. Only rows trained on are completed here.
    model
        How to draw what is missing.

    Attributes
    ----------
    data
        As last completed.
    model
        As last estimated.
    """

    def __init__(
        self, data: TrainingData, gaps: GapData, place: Workplace, model: ImputationModel
    ) -> None:
        self.data = data
        self.model = model
        self._base = data
        self._gaps = gaps
        self._threads, self._stop = place.threads, place.stop
        self._rng = Stream.TRAINING_IMPUTATIONS.generator(place.seed, place.split.index)
        self._noise = FreshNoise(self._rng)
        self._rows = place.split.known
        trained = np.zeros(data.covariates.rows, dtype=bool)
        trained[self._rows] = True
        self._entries = Entries.of(gaps.variables, trained)
        everything = gaps.entries
        self._here = trained[everything.rows][everything.row]
        self._shared = _core.Gaps(everything.first, everything.column, data.covariates.columns)
        columns = np.unique(everything.column)
        start = data.covariates.gather(everything.rows, columns)
        self._values = start[everything.row, np.searchsorted(columns, everything.column)]

    @classmethod
    def fit(cls, data: TrainingData, gaps: GapData, place: Workplace) -> FoldImputer:
        """An imputer that has seen the fold's covariates, before any network was trained."""
        rows, stop = place.split.known, place.stop
        covariates = CovariateModel.select(
            gaps.variables,
            data.in_memory,
            rows,
            given=gaps.neighbours,
            limit=gaps.limit,
            threads=place.threads,
            stop=stop,
        )
        imputer = cls(data, gaps, place, ImputationModel(covariates, None))
        everything = np.ones(len(imputer._entries.row), dtype=bool)
        for _ in range(_WARM_UP):
            imputer._redraw(everything)
            imputer.model = ImputationModel(imputer._refitted(), None)
        if gaps.mechanism == "mnar":
            missingness = MissingnessModel.start(
                gaps.variables, data.treatment, imputer.data.in_memory, rows, stop
            )
            imputer.model = ImputationModel(imputer.model.covariates, missingness)
        return imputer

    def draw(self, inputs: NDArray[np.int64]) -> CandidatePool:
        """New candidates of the rows trained on, for a network that reads these covariates."""
        # What the network does not read has no likelihood, and stays as it was last drawn; unless
        # its being missing tells something.
        mark = self._entries.marked(self._gaps.whole(inputs))
        if self.model.missingness is not None:
            mark[:] = True
        covariates, entries = self.data.in_memory, self._entries.only(mark)
        values = self.model.covariates.draw(
            covariates, entries, self._gaps.candidates, self._noise, self._stop
        )
        log_weight = self.model.log_weight(covariates, entries, values, self._stop)
        return CandidatePool(mark, entries, values, log_weight, covariates.columns)

    def update(
        self, pool: CandidatePool, networks: Sequence[TrainedNetwork], *, last: bool = False
    ) -> TrainingData:
        """Complete the covariates as networks see them that were trained on a pool.

        Parameters
        ----------
        pool
            The latest that was drawn.
        networks
            Of the structure search, or the fold's own.
        last
            Whether no further network will train.

        Returns
        -------
        TrainingData
            With the completed covariates.
        """
        likelihood = candidate_likelihood(
            networks, self.data, pool.entries, pool.values, self._threads
        )
        missingness, log_weight = self.model.missingness, pool.log_weight
        if missingness is not None:
            covariates = self.data.in_memory
            if last:
                missingness = missingness.extended(
                    covariates, self._rows, self._threads, self._stop
                )
                log_weight = self._weigh(pool, missingness)
            for _ in range(_ROUNDS):
                index = choose(likelihood + log_weight, _COMPLETIONS, self._rng)
                missingness = missingness.refit(
                    covariates, self._rows, pool.entries, pool.chosen(index), self._stop
                )
                log_weight = self._weigh(pool, missingness)
        index = choose(likelihood + log_weight, 1, self._rng)[:, 0]
        self._complete(pool.mark, pool.chosen(index))
        self._redraw(~pool.mark)
        self.model = ImputationModel(self._refitted(), missingness)
        return self.data

    def _weigh(self, pool: CandidatePool, missingness: MissingnessModel) -> FloatArray:
        """Log of p(R | A, X) at the candidates of a pool, shape (g, K)."""
        model = ImputationModel(self.model.covariates, missingness)
        return model.log_weight(self.data.in_memory, pool.entries, pool.values, self._stop)

    def _redraw(self, mark: NDArray[np.bool_]) -> None:
        """Draw marked entries of the fold from the covariates alone."""
        if mark.any():
            entries = self._entries.only(mark)
            drawn = self.model.covariates.draw(
                self.data.in_memory, entries, 1, self._noise, self._stop
            )
            self._complete(mark, drawn[:, 0])

    def _complete(self, mark: NDArray[np.bool_], values: NDArray[np.float32]) -> None:
        here = np.flatnonzero(self._here)
        self._values[here[mark]] = values
        covariates = _core.completed(self._base.in_memory, self._shared, self._values)
        self.data = dataclasses.replace(self._base, covariates=covariates)

    def _refitted(self) -> CovariateModel:
        return self.model.covariates.refit(self.data.in_memory, self._rows, self._stop)
