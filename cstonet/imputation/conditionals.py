"""The graphical model π(X_mis | X_obs): a regression per incomplete covariate, and draws from it.

A number is normal given its neighbours, as in a Gaussian graphical model; levels have log-odds that
are linear in theirs. Everything is in the network's standardised units.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.gaps import CovariateGaps
from cstonet.imputation.noise import Noise, NoiseSource
from cstonet.imputation.regressions import (
    FloatArray,
    Regression,
    Stop,
    Target,
    features_of,
    level_probabilities,
    poll,
    select_features,
)
from cstonet.network.scaling import Scaling

# Sweeps of the Gibbs sampler where a row has several gaps; strongly correlated columns that are
# missing together need many. One gap alone needs one draw.
SWEEPS = 30
# Numbers held at once while candidates are drawn.
_DRAWN_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An incomplete column in standardised units.

    Attributes
    ----------
    columns : (c,)
        The covariates that code it.
    levels : (L, c) or None
        Their values at each level; None for a number.
    missing : (n,)
        Rows without a value.
    raw_levels : (L, c) or None
        The levels in the units of the data.
    """

    columns: NDArray[np.int64]
    levels: FloatArray | None
    missing: NDArray[np.bool_]
    raw_levels: FloatArray | None = None

    def codes(self, values: FloatArray) -> NDArray[np.int64]:
        """Level of each row from the covariates (m, c) that code it: the nearest."""
        if self.levels is None:
            raise ValueError("a number has no levels")
        nearest = np.zeros(len(values), dtype=np.int64)
        smallest = np.full(len(values), np.inf)
        for code, level in enumerate(self.levels):
            distance = ((values - level) ** 2).sum(axis=1)
            nearest[distance < smallest] = code
            smallest = np.minimum(smallest, distance)
        return nearest

    def target(self, values: FloatArray, observed: NDArray[np.bool_]) -> Target:
        """What its regression explains, given the covariates (m, c) that code it."""
        barred = tuple(self.columns.tolist())
        if self.levels is None:
            return Target(values[:, 0], None, observed, barred)
        codes = self.codes(values).astype(np.float64)
        return Target(codes, len(self.levels), observed, barred)


def standardised_variables(gaps: CovariateGaps, scaling: Scaling) -> tuple[Variable, ...]:
    """The incomplete columns of a design as the network sees them."""
    variables = []
    for variable in gaps.variables:
        columns = np.array(variable.columns, dtype=np.int64)
        levels = None
        if variable.levels is not None:
            levels = (variable.levels - scaling.center[columns]) * scaling.inverse_scale[columns]
            levels = np.clip(levels, -scaling.limit, scaling.limit)
        variables.append(Variable(columns, levels, variable.missing, variable.levels))
    return tuple(variables)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The missing entries of some rows, row by row.

    Attributes
    ----------
    rows : (g,)
        The rows that have any, ascending.
    first : (n + 1,)
        Entries of row i are first[i], …, first[i + 1] - 1.
    row, column : (e,)
        Of each entry: position of its row in `rows`, and covariate.
    """

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    @classmethod
    def of(cls, variables: Sequence[Variable], among: NDArray[np.bool_]) -> Entries:
        """The entries of the rows marked in `among` (n,)."""
        columns = np.concatenate([variable.columns for variable in variables])
        missing = np.column_stack(
            [np.repeat(v.missing[:, None] & among[:, None], len(v.columns), 1) for v in variables]
        )
        order = np.argsort(columns)
        row, place = np.nonzero(missing[:, order])
        counts = missing.sum(axis=1)
        rows = np.flatnonzero(counts)
        position = np.zeros(len(among), dtype=np.int64)
        position[rows] = np.arange(len(rows))
        return cls(
            rows=rows.astype(np.int64),
            first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            row=position[row],
            column=columns[order][place].astype(np.int64),
        )

    def marked(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Entries in some of the covariates, shape (e,)."""
        return np.isin(self.column, columns)

    def only(self, mark: NDArray[np.bool_]) -> Entries:
        """Some of the entries, marked in (e,)."""
        n = len(self.first) - 1
        counts = np.bincount(self.rows[self.row[mark]], minlength=n)
        rows = np.flatnonzero(counts)
        return Entries(
            rows=rows.astype(np.int64),
            first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            row=np.searchsorted(rows, self.rows[self.row[mark]]).astype(np.int64),
            column=self.column[mark],
        )


@dataclass(frozen=True, slots=True, eq=False)
class CovariateModel:
    """π(X_mis | X_obs): a regression for each incomplete variable.

    Attributes
    ----------
    variables, regressions
        The variables and their regressions, in the same order.
    limit
        Standardised values stay within ± this.
    """

    variables: tuple[Variable, ...]
    regressions: tuple[Regression, ...]
    limit: float

    @classmethod
    def select(
        cls,
        variables: tuple[Variable, ...],
        data: _core.Dataset,
        rows: NDArray[np.int64],
        *,
        given: Mapping[int, tuple[int, ...]],
        limit: float,
        threads: int,
        stop: Stop | None = None,
    ) -> CovariateModel:
        """Find the neighbours of each variable and fit its regression.

        Parameters
        ----------
        data, rows
            Covariates with start values in the gaps, and the rows to learn from. Only rows in
            which a variable was observed speak about its neighbours.
        given
            Neighbours, as covariates, of variables (by number) for which they are known.
        stop
            Called now and then; may raise to stop.
        """
        targets = []
        for variable in variables:
            values = data.gather(rows, variable.columns).astype(np.float64)
            targets.append(variable.target(values, ~variable.missing[rows]))
        open_ = [t for t in range(len(variables)) if t not in given]
        found = dict(
            zip(
                open_,
                select_features(data, rows, [targets[t] for t in open_], threads, stop),
                strict=True,
            )
        )
        regressions = []
        for t, target in enumerate(targets):
            features = np.array(given[t], dtype=np.int64) if t in given else found[t]
            coefficients, spread = target.fit(features_of(data, rows, features), stop=stop)
            regressions.append(Regression(features, coefficients, spread))
        return cls(variables, tuple(regressions), limit)

    def refit(
        self, data: _core.Dataset, rows: NDArray[np.int64], stop: Stop | None = None
    ) -> CovariateModel:
        """The same neighbourhoods with coefficients from completed covariates."""
        regressions = []
        everywhere = np.ones(len(rows), dtype=bool)
        for variable, old in zip(self.variables, self.regressions, strict=True):
            values = data.gather(rows, variable.columns).astype(np.float64)
            target = variable.target(values, everywhere)
            x = features_of(data, rows, old.features)
            coefficients, spread = target.fit(x, start=old.coefficients, stop=stop)
            regressions.append(Regression(old.features, coefficients, spread))
        return CovariateModel(self.variables, tuple(regressions), self.limit)

    def on_rows(self, missing: NDArray[np.bool_]) -> CovariateModel:
        """The same model for other rows, with values missing as in (m, number of variables)."""
        variables = tuple(
            dataclasses.replace(variable, missing=gaps)
            for variable, gaps in zip(self.variables, missing.T, strict=True)
        )
        return CovariateModel(variables, self.regressions, self.limit)

    def draw(
        self,
        data: _core.Dataset,
        entries: Entries,
        draws: int,
        noise: NoiseSource,
        stop: Stop | None = None,
    ) -> NDArray[np.float32]:
        """Completions of the rows with gaps, from the observed covariates alone.

        Parameters
        ----------
        data
            Covariates; what stands in the gaps is where the Gibbs sampler begins.
        entries
            The gaps, e of them.
        draws
            Completions per row.
        noise
            Where randomness comes from: fresh for every row, or the same for all.
        stop
            Called now and then; may raise to stop.

        Returns
        -------
        (e, draws)
            Values of the missing entries.
        """
        values = np.empty((len(entries.row), draws), dtype=np.float32)
        columns = np.unique(entries.column)
        place = np.searchsorted(columns, entries.column)
        start = data.gather(entries.rows, columns).astype(np.float64)
        parts = {
            number: part
            for number, pair in enumerate(zip(self.variables, self.regressions, strict=True))
            if (part := _Part.of(*pair, data, entries, columns)) is not None
        }
        gaps = np.zeros(len(entries.rows), dtype=np.int64)
        for part in parts.values():
            gaps[part.rows] += 1
        # Where one variable is missing, all that it depends on is known: the last draw is exact.
        crowded = {number: part.among(gaps > 1) for number, part in parts.items()}
        steps = [
            (number, part, left)
            for left in reversed(range(1, SWEEPS))
            for number, part in crowded.items()
            if len(part.rows) > 0
        ] + [(number, part, 0) for number, part in parts.items()]
        at_once = max(1, _DRAWN_AT_ONCE // max(start.size, 1))
        for first in range(0, draws, at_once):
            now = slice(first, min(first + at_once, draws))
            work = np.repeat(start[None], now.stop - first, axis=0)
            for number, part, left in steps:
                poll(stop)
                part.draw(work, noise.at(number, left, now), self.limit)
            values[:, now] = work[:, entries.row, place].T
        return values


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One variable's step of the Gibbs sampler, on the rows where it is missing.

    `base` is the part of the predictor that does not change: intercept and complete covariates.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    base: FloatArray
    moving: NDArray[np.int64]
    slopes: FloatArray
    levels: FloatArray | None
    spread: float | None

    @classmethod
    def of(
        cls,
        variable: Variable,
        regression: Regression,
        data: _core.Dataset,
        entries: Entries,
        columns: NDArray[np.int64],
    ) -> _Part | None:
        if not np.isin(variable.columns, columns).all():
            return None
        rows = entries.row[entries.column == variable.columns[0]]
        moves = np.isin(regression.features, columns)
        fixed = regression.features[~moves]
        slopes = regression.coefficients[1:]
        known = data.gather(entries.rows[rows], fixed).astype(np.float64)
        return cls(
            rows=rows,
            places=np.searchsorted(columns, variable.columns),
            base=regression.coefficients[0] + known @ slopes[~moves],
            moving=np.searchsorted(columns, regression.features[moves]),
            slopes=slopes[moves],
            levels=variable.levels,
            spread=regression.spread,
        )

    def among(self, wanted: NDArray[np.bool_]) -> _Part:
        """The step on some of the rows only, marked among all that have gaps, shape (g,)."""
        kept = wanted[self.rows]
        return dataclasses.replace(self, rows=self.rows[kept], base=self.base[kept])

    def draw(self, work: FloatArray, noise: Noise, limit: float) -> None:
        """Draw the variable anew in each completion of `work`, shape (draws, g, columns)."""
        neighbours = work[:, self.rows[:, None], self.moving]
        predictor = self.base + neighbours @ self.slopes
        if self.levels is None:
            error = noise.normal(predictor.shape[:2]) * (self.spread or 0.0)
            drawn = np.clip(predictor[..., 0] + error, -limit, limit)[..., None]
        else:
            reached = np.cumsum(level_probabilities(predictor), axis=-1)
            u = noise.uniform(predictor.shape[:2])[..., None]
            codes = np.minimum((u > reached).sum(axis=-1), len(self.levels) - 1)
            drawn = self.levels[codes]
        work[:, self.rows[:, None], self.places] = drawn
