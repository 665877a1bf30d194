"""New rows with gaps: completions drawn from what is observed, weighed by what is missing.

For a new row neither treatment nor outcome are taken for known. Its missing covariates follow

    π(X_mis | X_obs, R) ∝ π(X_mis | X_obs) Σ_a p(A = a | X) p(R | A = a, X),

and the sum is constant if values are missing at random. Where they are not, being missing tells
something about the value, as it does in training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from cstonet import _core
from cstonet.data.treatment import level_dummies
from cstonet.imputation.candidates import ImputationModel
from cstonet.imputation.conditionals import SWEEPS, Entries
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.noise import SharedNoise
from cstonet.imputation.regressions import FloatArray
from cstonet.streams import Stream


@dataclass(frozen=True, slots=True, eq=False)
class CompletedRows:
    """K completions of rows with gaps by the model of one fold.

    What is drawn for a row depends on that row alone: all rows share their random numbers.

    Attributes
    ----------
    data
        Covariates, with anything in the gaps.
    entries
        The gaps.
    values : (e, K)
        Draws for them, given what is observed of the row.
    missingness
        The model of what is missing, for these rows; None if they are missing at random.
    """

    data: _core.Dataset
    entries: Entries
    values: NDArray[np.float32]
    missingness: MissingnessModel | None

    @classmethod
    def draw(
        cls,
        model: ImputationModel,
        data: _core.Dataset,
        missing: NDArray[np.bool_],
        draws: int,
        seed: tuple[int, int],
    ) -> CompletedRows:
        """Draw completions.

        Parameters
        ----------
        model
            How the fold imputes.
        data
            Covariates of m rows, with anything in the gaps.
        missing : (m, number of incomplete variables)
            Where the gaps are.
        draws
            Completions K per row.
        seed
            That of the fit, and the number of the fold.
        """
        covariates = model.covariates.on_rows(missing)
        entries = Entries.of(covariates.variables, np.ones(len(missing), dtype=bool))
        noise = SharedNoise((Stream.NEW_ROWS, *seed), sweeps=SWEEPS, draws=draws)
        return cls(
            data=data,
            entries=entries,
            values=covariates.draw(data, entries, draws, noise),
            missingness=None if model.missingness is None else model.missingness.on_rows(missing),
        )

    def each(self) -> Iterator[_core.Dataset]:
        """The covariates at one completion after the other."""
        gaps = _core.Gaps(self.entries.first, self.entries.column, self.data.columns)
        for values in self.values.T:
            yield _core.completed(self.data, gaps, np.ascontiguousarray(values))

    def weights(self, propensity: FloatArray) -> FloatArray:
        """Weights (g, K) of the completions of the g rows with gaps; each row's sum to one.

        Parameters
        ----------
        propensity : (K, g, L)
            Treatment probabilities at each completion.
        """
        draws, rows, levels = propensity.shape
        if self.missingness is None:
            return np.full((rows, draws), 1 / draws)
        arms = level_dummies(levels)
        log_probability = np.stack(
            [
                self.missingness.under(arm).log_probability(self.data, self.entries, self.values)
                for arm in arms
            ]
        )
        # Probabilities (L, g, K), which a softmax may have rounded to zero.
        treated = np.maximum(propensity.transpose(2, 1, 0), np.finfo(float).tiny)
        weights: FloatArray = softmax(logsumexp(np.log(treated) + log_probability, axis=0), axis=1)
        return weights
