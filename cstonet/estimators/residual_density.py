"""The density g of a dose's standardised residuals r = (A - m(x)) / sqrt(v(x)).

What the estimators need of it is its score ψ = -(log g)', because the Riesz representer of the
marginal effect is ψ(r) / sqrt(v(x)). So ψ is what is fitted, and g follows by integration. By
parts, E[ψ h] = E[h'] for every smooth h, hence ψ minimises E[ψ² - 2ψ'] (score matching): for ψ in
a space of natural cubic splines that is a small linear system. With two knots the spline is a line
and the density gaussian; more knots are used if a test rejects that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc

from cstonet.estimators.nuisances import FloatArray

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

# Level of the test for a density that is not gaussian.
LEVEL = 0.01
# Knots of the spline, as quantiles of the residuals.
_KNOTS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
# Least distance of two knots in standard deviations: a dose that many units share has them close.
_CLOSEST = 0.1
# Beyond the last knots the score is a line that does not fall, and at least this large: the
# density then decays however far out it is asked for.
_LEAST_SCORE = 0.1
# Points, and reach beyond the data in standard deviations, of the integral that normalises g.
_POINTS, _REACH = 4001, 4.0


@dataclass(frozen=True, slots=True)
class ScoreMatching:
    """How a score ψ, given by k values at knots, depends on n units.

    Parameters
    ----------
    score, slope : (n,) float64
        ψ(r_i), and ψ'(r_i).
    basis : (n, k) float64
        Derivatives of the units' scores in the k values.
    influence : (n, k) float64
        Influence values of the k values.
    stretch : (n, k) float64
        n times their derivatives in log v(x_i), by which a unit's residual shrinks.
    """

    score: FloatArray
    slope: FloatArray
    basis: FloatArray
    influence: FloatArray
    stretch: FloatArray


@dataclass(frozen=True, slots=True)
class ResidualDensity:
    """A density by the values of its score at the knots of a natural cubic spline.

    Parameters
    ----------
    knots, scores : (k,) float64
        Where the score is given, ascending, and its values there.
    log_constant : float
        Logarithm of what makes the density integrate to one.
    gaussian : bool
        Whether the score is a line.
    pvalue : float
        Of the hypothesis that the density is gaussian.
    estimated : bool
        Whether the scores come from data, and have sampling errors.
    """

    knots: FloatArray
    scores: FloatArray
    log_constant: float
    gaussian: bool
    pvalue: float
    estimated: bool = True

    @classmethod
    def standard_normal(cls) -> ResidualDensity:
        """The standard normal density, whose score is r."""
        ends = np.array([-1.0, 1.0])
        return cls(ends, ends, -0.5 * (math.log(2 * math.pi) + 1), True, 1.0, estimated=False)

    def score(self, r: FloatArray) -> FloatArray:
        """ψ(r), any shape."""
        spline, inside = self._spline(), np.clip(r, *self._ends())
        low, high = self._tails()
        values: FloatArray = spline(inside)
        values = np.where(r < self.knots[0], low[0] + low[1] * (r - self.knots[0]), values)
        return np.where(r > self.knots[-1], high[0] + high[1] * (r - self.knots[-1]), values)

    def matching(self, r: FloatArray, weights: FloatArray) -> ScoreMatching:
        """How ψ depends on its values at the knots, and these on the units.

        Parameters
        ----------
        r : (n,) float64
            The standardised residuals that the density was fitted to.
        weights : (n,) float64
            Row weights with mean one.
        """
        values, slopes = _basis(r, self.knots)
        score, slope = values @ self.scores, slopes @ self.scores
        splines = _natural_spline(self.knots, np.eye(len(self.knots)))
        curvatures = splines(np.clip(r, *self._ends()), 2)
        inverse = np.linalg.pinv((values * weights[:, None]).T @ values / len(r), hermitian=True)
        # Score matching solves mean(h ψ - h') = 0 for every h of the basis, at r = ê / sqrt(v).
        moments = slopes - values * score[:, None]
        stretched = slopes * score[:, None] + values * slope[:, None] - curvatures
        return ScoreMatching(
            score=score,
            slope=slope,
            basis=values,
            influence=(weights[:, None] * moments) @ inverse,
            stretch=((0.5 * weights * r)[:, None] * stretched) @ inverse,
        )

    def density(self, r: FloatArray) -> FloatArray:
        """g(r), any shape."""
        log_density: FloatArray = self.log_constant - self._potential(r)
        return np.exp(log_density)

    def _potential(self, r: FloatArray) -> FloatArray:
        """The integral of ψ from the first knot to r."""
        if self.gaussian:  # a line, much faster without a spline
            (first, last), (low, high) = self._ends(), self.scores
            slope, beyond = (high - low) / (last - first), r - first
            quadratic: FloatArray = beyond * (low + 0.5 * slope * beyond)
            return quadratic
        integral: FloatArray = self._spline().antiderivative()(np.clip(r, *self._ends()))
        below, above = np.minimum(r - self.knots[0], 0.0), np.maximum(r - self.knots[-1], 0.0)
        for (value, slope), beyond in zip(self._tails(), (below, above), strict=True):
            integral = integral + beyond * (value + 0.5 * slope * beyond)
        return integral

    def _spline(self) -> CubicSpline:
        return _natural_spline(self.knots, self.scores)

    def _ends(self) -> tuple[float, float]:
        return float(self.knots[0]), float(self.knots[-1])

    def _tails(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Value at the first and at the last knot of the lines beyond them, and their slopes."""
        slopes = self._spline()(np.array(self._ends()), 1)
        low = (min(float(self.scores[0]), -_LEAST_SCORE), max(float(slopes[0]), 0.0))
        high = (max(float(self.scores[-1]), _LEAST_SCORE), max(float(slopes[1]), 0.0))
        return low, high


def fit_residual_density(r: FloatArray, weights: FloatArray) -> ResidualDensity:
    """Fit the density of standardised residuals, gaussian unless a test rejects that.

    Parameters
    ----------
    r : (n,) float64
        Standardised residuals.
    weights : (n,) float64
        Row weights with mean one.
    """
    counted = r[weights > 0]
    knots = _apart(np.quantile(counted, _KNOTS))
    line = np.array([-1.0, 1.0])
    scores = _match(r, weights, line)
    pvalue = _stein_test(r, weights, scores, knots) if len(knots) > 2 else 1.0
    gaussian = not pvalue < LEVEL
    if not gaussian:
        line, scores = knots, _match(r, weights, knots)
    unnormalised = ResidualDensity(line, scores, 0.0, gaussian, pvalue)
    grid = np.linspace(counted.min() - _REACH, counted.max() + _REACH, _POINTS)
    potential = unnormalised._potential(grid)
    # The smallest potential is taken out before the exponential, which could overflow.
    shift = float(potential.min())
    mass = float(np.trapezoid(np.exp(shift - potential), grid))
    return ResidualDensity(line, scores, shift - math.log(mass), gaussian, pvalue)


def _apart(values: FloatArray) -> FloatArray:
    """Ascending values without those that hardly differ from one before: knots must not."""
    kept = [float(values[0])]
    for value in values[1:]:
        if value - kept[-1] > _CLOSEST:
            kept.append(float(value))
    return np.array(kept)


def _natural_spline(knots: FloatArray, values: FloatArray) -> CubicSpline:
    from scipy.interpolate import CubicSpline  # not at the top: only doses pay for loading it

    return CubicSpline(knots, values, bc_type="natural")


def _basis(r: FloatArray, knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Natural splines that are one at a knot and zero at the others, and their slopes, (n, k)."""
    splines = _natural_spline(knots, np.eye(len(knots)))
    inside = np.clip(r, knots[0], knots[-1])
    slopes: FloatArray = splines(inside, 1)
    values: FloatArray = splines(inside) + slopes * (r - inside)[:, None]
    return values, slopes


def _match(r: FloatArray, weights: FloatArray, knots: FloatArray) -> FloatArray:
    """Score at the knots by score matching: E[ψ h] = E[h'] for every h of the basis."""
    values, slopes = _basis(r, knots)
    moments = (values * weights[:, None]).T @ values
    return np.asarray(np.linalg.lstsq(moments, weights @ slopes, rcond=1e-12)[0], np.float64)


def _stein_test(r: FloatArray, weights: FloatArray, line: FloatArray, knots: FloatArray) -> float:
    """P-value of the hypothesis that the score is a line, against splines with these knots.

    If it is, E[ψ h - h'] = 0 for every h. The splines are cleared of lines, for which the fit makes
    it so, and the products are studentised by their own second moments.
    """
    values, slopes = _basis(r, knots)
    lines = np.column_stack([np.ones(len(r)), r])
    root = np.sqrt(weights)[:, None]
    coefficients = np.linalg.lstsq(root * lines, root * values, rcond=None)[0]
    values, slopes = values - lines @ coefficients, slopes - coefficients[1]
    score = _basis(r, np.array([-1.0, 1.0]))[0] @ line
    products = weights[:, None] * (score[:, None] * values - slopes)
    # The basis holds two lines, so two of its directions are nothing.
    spreads, vectors = np.linalg.eigh(products.T @ products)
    spreads, vectors = spreads[2:], vectors[:, 2:]
    total = products.sum(axis=0) @ vectors
    return float(chdtrc(len(spreads), np.sum(total**2 / spreads)))
