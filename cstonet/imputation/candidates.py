"""Candidates of missing covariates: drawn from the covariates, weighed by the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.imputation.conditionals import CovariateModel, Entries
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.regressions import FloatArray, Stop
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training_data import TrainingData


@dataclass(frozen=True, slots=True, eq=False)
class ImputationModel:
    """All that draws of missing covariates need besides networks."""

    covariates: CovariateModel
    missingness: MissingnessModel | None

    def log_weight(
        self,
        data: _core.Dataset,
        entries: Entries,
        values: NDArray[np.float32],
        stop: Stop | None = None,
    ) -> FloatArray:
        """Log of p(R | A, X) at candidates (e, K), shape (g, K); zero if missing at random."""
        if self.missingness is None:
            return np.zeros((len(entries.rows), values.shape[1]))
        return self.missingness.log_probability(data, entries, values, stop)


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePool:
    """Candidates that a network of a fold is trained on.

    Attributes
    ----------
    mark : (fold's entries,)
        Which of the fold's missing entries they are for.
    entries
        These entries, e of them in g rows.
    values : (e, K)
        The candidates.
    log_weight : (g, K)
        Their weights beside the networks' likelihoods.
    columns
        Number of covariates.
    """

    mark: NDArray[np.bool_]
    entries: Entries
    values: NDArray[np.float32]
    log_weight: FloatArray
    columns: int

    @property
    def candidates(self) -> _core.Candidates:
        """As the kernel reads them."""
        return _core.Candidates(
            self.entries.first,
            self.entries.column,
            self.columns,
            self.values,
            self.log_weight.astype(np.float32),
        )

    def chosen(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """The entries at candidates (g,) or (g, k) of their rows, shape (e,) or (e, k)."""
        entry = np.arange(len(self.values))
        own = index[self.entries.row]
        return self.values[entry if own.ndim == 1 else entry[:, None], own]


def candidate_likelihood(
    networks: Sequence[TrainedNetwork],
    data: TrainingData,
    entries: Entries,
    values: NDArray[np.float32],
    threads: int,
) -> FloatArray:
    """Log-likelihood of treatment and outcome of rows with gaps at candidates (e, K).

    Returns
    -------
    (g, K)
        Of the mixture of the networks.
    """
    candidates = _core.Candidates(
        entries.first,
        entries.column,
        data.covariates.columns,
        values,
        np.zeros((len(entries.rows), values.shape[1]), dtype=np.float32),
    )
    parts = np.stack(
        [
            _core.candidate_log_likelihood(
                net.spec,
                list(net.weights),
                list(net.biases),
                net.inputs,
                data.in_memory,
                candidates,
                data.visible,
                [1.0, net.variance],
                threads,
            )
            for net in networks
        ]
    ).astype(np.float64)
    mixture: FloatArray = np.logaddexp.reduce(parts, axis=0) - np.log(len(networks))
    return mixture


def choose(log_weight: FloatArray, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Candidates drawn with these weights, shape (g, draws), from log weights (g, K).

    The draws of a row are spread evenly over its distribution (systematic resampling), in random
    order, so that few of them represent it well.
    """
    rows, candidates = log_weight.shape
    reached = np.cumsum(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), axis=1)
    reached /= reached[:, -1:]
    grid = rng.permuted((np.arange(draws) + rng.random((rows, 1))) / draws, axis=1)
    # Rows end to end on one axis, where one search finds all.
    shift = np.arange(rows)[:, None]
    found = np.searchsorted((reached + shift).ravel(), grid + shift) - shift * candidates
    chosen: NDArray[np.int64] = np.clip(found, 0, candidates - 1)
    return chosen
