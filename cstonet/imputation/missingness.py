"""What is missing, given treatment and covariates: p(R | A, X) for values missing not at random.

R_v = 1 where variable v is missing. Each is a logistic regression on the treatment, on the variable
itself, and on covariates that score tests find. The outcome is no feature: Y ⟂ R | A, X is what
identifies the model (paper, section "Some Variants").
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from cstonet import _core
from cstonet.imputation.conditionals import Entries, Variable
from cstonet.imputation.regressions import (
    FloatArray,
    Regression,
    Stop,
    Target,
    features_of,
    fit_softmax,
    poll,
    select_features,
)


@dataclass(frozen=True, slots=True, eq=False)
class MissingnessModel:
    """A logistic regression per incomplete variable; its features are the treatment's, then X's."""

    variables: tuple[Variable, ...]
    treatment: FloatArray
    regressions: tuple[Regression, ...]

    @classmethod
    def start(
        cls,
        variables: tuple[Variable, ...],
        treatment: FloatArray,
        data: _core.Dataset,
        rows: NDArray[np.int64],
        stop: Stop | None = None,
    ) -> MissingnessModel:
        """Missingness that depends on the treatment and on the variable itself.

        Other covariates come in later, by `extended`. As long as imputations do not yet know that
        missingness depends on the variable itself, its neighbours would stand in for it.

        Parameters
        ----------
        treatment : (n, L - 1)
            Dummies of the treatment.
        data, rows
            Completed covariates, and the rows to learn from.
        stop
            Called now and then; may raise to stop.
        """
        model = cls(variables, treatment, ())
        return model._fitted(data, rows, [variable.columns for variable in variables], stop)

    def extended(
        self,
        data: _core.Dataset,
        rows: NDArray[np.int64],
        threads: int,
        stop: Stop | None = None,
    ) -> MissingnessModel:
        """The model with those other covariates that score tests find in completed ones."""
        features = select_features(data, rows, self._targets(rows), threads, stop)
        return self._fitted(data, rows, features, stop)

    def _fitted(
        self,
        data: _core.Dataset,
        rows: NDArray[np.int64],
        features: list[NDArray[np.int64]],
        stop: Stop | None,
    ) -> MissingnessModel:
        regressions = []
        for target, chosen in zip(self._targets(rows), features, strict=True):
            x = features_of(data, rows, chosen, target.extra)
            coefficients, _ = target.fit(x, stop=stop)
            regressions.append(Regression(chosen, coefficients, None))
        return MissingnessModel(self.variables, self.treatment, tuple(regressions))

    def _targets(self, rows: NDArray[np.int64]) -> list[Target]:
        return [
            Target(
                variable.missing[rows].astype(np.float64),
                2,
                np.ones(len(rows), dtype=bool),
                forced=tuple(variable.columns.tolist()),
                extra=self.treatment[rows],
            )
            for variable in self.variables
        ]

    def refit(
        self,
        data: _core.Dataset,
        rows: NDArray[np.int64],
        entries: Entries,
        drawn: NDArray[np.float32],
        stop: Stop | None = None,
    ) -> MissingnessModel:
        """The same features with coefficients from several completions.

        Parameters
        ----------
        data, rows
            Covariates and the rows to learn from.
        entries, drawn : (e, d)
            Gaps of these rows, and d equally probable values for each. A row with gaps counts d
            times, with weight 1/d.
        """
        draws = drawn.shape[1]
        complete = np.setdiff1d(rows, entries.rows)
        everyone = np.concatenate([complete, *[entries.rows] * draws])
        weights = np.ones(len(everyone))
        weights[len(complete) :] = 1 / draws
        regressions = []
        for variable, old in zip(self.variables, self.regressions, strict=True):
            x = features_of(data, everyone, old.features, self.treatment[everyone])
            extra = self.treatment.shape[1]
            for number, column in enumerate(old.features):
                of_column = entries.column == column
                for d in range(draws):
                    at = len(complete) + d * len(entries.rows) + entries.row[of_column]
                    x[at, extra + number] = drawn[of_column, d]
            codes = variable.missing[everyone].astype(np.int64)
            coefficients = fit_softmax(
                x, codes, 2, start=old.coefficients, weights=weights, stop=stop
            )
            regressions.append(Regression(old.features, coefficients, None))
        return MissingnessModel(self.variables, self.treatment, tuple(regressions))

    def on_rows(self, missing: NDArray[np.bool_]) -> MissingnessModel:
        """The same model for other rows, with values missing as in (m, number of variables).

        Their treatments are zeros, the reference; see `under`.
        """
        variables = tuple(
            dataclasses.replace(variable, missing=gaps)
            for variable, gaps in zip(self.variables, missing.T, strict=True)
        )
        treatment = np.zeros((len(missing), self.treatment.shape[1]))
        return MissingnessModel(variables, treatment, self.regressions)

    def under(self, treatment: FloatArray) -> MissingnessModel:
        """The same model with one treatment, given as dummies (L - 1,), in every row."""
        everywhere = np.tile(treatment, (len(self.treatment), 1))
        return MissingnessModel(self.variables, everywhere, self.regressions)

    def log_probability(
        self,
        data: _core.Dataset,
        entries: Entries,
        values: NDArray[np.float32],
        stop: Stop | None = None,
    ) -> FloatArray:
        """Log of p(R_i | A_i, x) of the rows with gaps at each of their candidates.

        Parameters
        ----------
        data
            Covariates, with anything in the gaps.
        entries, values : (e, K)
            The gaps, and candidates for them.

        Returns
        -------
        (g, K)
        """
        total = np.zeros((len(entries.rows), values.shape[1]))
        extra = self.treatment[entries.rows]
        for variable, regression in zip(self.variables, self.regressions, strict=True):
            poll(stop)
            x = features_of(data, entries.rows, regression.features, extra)
            slopes = regression.coefficients[:, 0]
            predictor = np.repeat((slopes[0] + x @ slopes[1:])[:, None], values.shape[1], axis=1)
            for number, column in enumerate(regression.features, start=extra.shape[1]):
                of_column = entries.column == column
                row = entries.row[of_column]
                # An entry occurs once per row, so that this adds to every row at most once.
                change = values[of_column] - x[row, number][:, None]
                predictor[row] += slopes[1 + number] * change
            sign = np.where(variable.missing[entries.rows], 1.0, -1.0)[:, None]
            total += log_expit(sign * predictor)
        return total
