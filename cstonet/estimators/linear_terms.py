"""Covariates that stay out of the weights: the outcome is cleared of what they explain linearly.

A covariate z that was found to explain the treatment and not the outcome has at most a small
effect on the outcome. In the propensities it would multiply weights, and with them the variance;
left out altogether its small effect would bias the estimate. So it gets a slope: the residuals
y - μ̂_A(x) are regressed on arms and z with weights 1/p̂_A(x), and γ̂'(z - z̄) joins the outcome
model. With everything linear this is the double selection of Belloni, Chernozhukov and Hansen. It
costs what a regression on z costs, and γ̂ is in the influence function, because the weights do not
balance z. The slopes are the same in all arms; where small effects of z differ between arms, they
are removed on average over equally large arms. The covariates of the outcome are among the z, too:
otherwise a z that is correlated with them would stand in for what μ̂ gets wrong about them, and the
estimate would no longer be right if only the propensities are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cstonet.blocks import row_blocks
from cstonet.errors import NumericalError
from cstonet.estimators.nuisances import (
    Columns,
    FloatArray,
    IntArray,
    Nuisances,
    clip_propensity,
    over_probability,
)

# Directions of z with less than this share of the largest variance have no slope of their own.
_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearTerms:
    """Slopes of the linear terms, and how every unit's residual enters them.

    The terms themselves are computed block by block when they are needed.

    Attributes
    ----------
    columns : (n, k)
        z.
    center, scale : (k,) float64
        z̄, and the spread that the terms z - z̄ are in units of.
    received : (n,) int
        Treatments as codes.
    weights : (n,) float64
        Those of the regression, w_i / p̂_A(x_i).
    slopes : (k,) float64
        γ̂, one slope for all arms.
    inverse : (L + k, k) float64
        γ̂ - γ is the mean over units of weight times residual times (arms, terms) @ inverse.
    residual : (n,) float64
        What arms and z leave of y - μ̂_A(x).
    inflation : float
        √(n / (n - fitted numbers)), by which residuals are smaller than errors.
    """

    columns: Columns
    center: FloatArray
    scale: FloatArray
    received: IntArray
    weights: FloatArray
    slopes: FloatArray
    inverse: FloatArray
    residual: FloatArray
    inflation: float

    def pull(self, rows: slice) -> FloatArray:
        """What the terms add to the outcome model of some units, shape (m,)."""
        part: FloatArray = self._terms(rows) @ self.slopes
        return part

    def imbalance(self, rows: slice, weights: FloatArray) -> FloatArray:
        """Share of some units (m,) in the mean of terms times weights (m, c), shape (k, c)."""
        part: FloatArray = self._terms(rows).T @ weights / len(self.weights)
        return part

    def shift(self, rows: slice, imbalance: FloatArray) -> FloatArray:
        """What γ̂ takes from the weights of an estimator, for some units, shape (m, c).

        Parameters
        ----------
        rows : slice
            The units.
        imbalance : (k, c) float64
            The mean over all units of terms times weights of the residuals in c estimates.

        Returns
        -------
        (m, c) float64
            The weights minus these balance z: their mean with each term is zero.
        """
        leverage = (self.regressors(rows) * self.weights[rows, None]) @ self.inverse
        shift: FloatArray = leverage @ imbalance
        return shift

    def influence(self, rows: slice, imbalance: FloatArray) -> FloatArray:
        """Part of the estimates' influence values that comes from γ̂, shape (m, c)."""
        part: FloatArray = -self.shift(rows, imbalance) * self.residual[rows, None]
        return part

    def regressors(self, rows: slice) -> FloatArray:
        """Indicators of the arms, and the terms, of some units, shape (m, L + k)."""
        levels = len(self.inverse) - len(self.slopes)
        arms = np.equal(self.received[rows, None], np.arange(levels))
        return np.column_stack([arms, self._terms(rows)])

    def _terms(self, rows: slice) -> FloatArray:
        return (self.columns[rows] - self.center) / self.scale


def linear_terms(nuisances: Nuisances, clip: float) -> LinearTerms | None:
    """Fit the linear terms of the outcome model.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    clip : float
        Distance to keep the propensities from 0 and 1.

    Returns
    -------
    LinearTerms or None
        None if there is no covariate to adjust for.
    """
    z = nuisances.linear
    if z is None or z.shape[1] == 0:
        return None
    n, counted, levels = nuisances.n, nuisances.unit_weights, nuisances.n_levels
    center, scale = _units(z, counted)
    weights, residual = np.empty(n), np.empty(n)
    width = levels + z.shape[1]
    gram, moment = np.zeros((width, width)), np.zeros(width)
    for rows in row_blocks(n):
        codes = nuisances.treatment[rows]
        clipped = clip_propensity(nuisances.propensity[rows], clip).values
        indicators = np.equal(codes[:, None], np.arange(levels))
        weights[rows] = over_probability(indicators, counted[rows, None], clipped).sum(axis=1)
        expected = np.take_along_axis(nuisances.mu[rows], codes[:, None], axis=1)[:, 0]
        residual[rows] = nuisances.y[rows] - expected
        regressors = np.column_stack([indicators, (z[rows] - center) / scale])
        weighted = regressors * weights[rows, None]
        gram += weighted.T @ regressors
        moment += weighted.T @ residual[rows]
    inverse = np.asarray(
        np.linalg.pinv(gram / n, rcond=_RANK_TOLERANCE, hermitian=True), dtype=np.float64
    )
    coefficients = inverse @ moment / n
    found = LinearTerms(
        columns=z,
        center=center,
        scale=scale,
        received=nuisances.treatment,
        weights=weights,
        slopes=coefficients[levels:],
        inverse=inverse[:, levels:],
        residual=residual,
        inflation=_inflation(gram / n, int(np.count_nonzero(counted))),
    )
    for rows in row_blocks(n):
        residual[rows] -= found.regressors(rows) @ coefficients
    return found


def _units(z: Columns, counted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and spreads of columns (n, k) with weights of mean one; a constant has the spread 1."""
    n, blocks = len(counted), list(row_blocks(len(counted)))
    center = np.asarray(sum(counted[rows] @ z[rows] for rows in blocks) / n)
    spread = np.sqrt(sum(counted[rows] @ (z[rows] - center) ** 2 for rows in blocks) / n)
    return center, np.asarray(np.where(spread > 0, spread, 1.0))


def _inflation(gram: FloatArray, units: int) -> float:
    """How much smaller residuals are than errors, of a regression with this matrix (r, r)."""
    rank = np.linalg.matrix_rank(gram, tol=_RANK_TOLERANCE * gram.max(), hermitian=True)
    left = units - int(rank)
    if left < units / 2:
        raise NumericalError(
            f"{units - left} slopes and arms for {units} units: too many covariates were found for "
            "the treatment to adjust for them by linear terms. Use more units or fewer covariates, "
            "or SearchOptions.adjust='union'."
        )
    return float(np.sqrt(units / left))
