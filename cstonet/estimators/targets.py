"""Effects among the treated, the controls, or the units that could have received either.

Each is the effect in a population whose density at x is that of the data times h(p(x)), p(x) being
the vector of treatment probabilities:

====  ==========================  =======================================
ATE   h = Σ_k p_k = 1             everyone
ATT   h = p_b                     units that received b
ATC   h = p_a                     units that received a
ATO   h = p_a p_b / (p_a + p_b)   overlap: units likely to receive a or b
====  ==========================  =======================================

Every h is homogeneous of degree one, h = Σ_k p_k ∂h/∂p_k, so in the efficient influence function
the term of h and that of estimating p merge into g_i = ∂h/∂p_k at k = A_i:

    IF_i = { g_i (τ(x_i) - τ_h) + h(x_i) [1(A_i=b)(y_i-μ_b)/p_b - 1(A_i=a)(y_i-μ_a)/p_a] } / E g.

Setting its mean to zero gives the estimator. For the ATE it is equation (1) of the paper; for ATT
and ATC the usual doubly robust ones. p are the probabilities of the weights: the overlap of the ATO
is that given the covariates in these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import mean_square
from cstonet.estimators.linear_terms import LinearTerms, linear_terms
from cstonet.estimators.nuisances import (
    Clip,
    FloatArray,
    Nuisances,
    arm_weights,
    inverse_probability_residuals,
    over_probability,
)
from cstonet.estimators.unit_blocks import UnitBlock, unit_blocks
from cstonet.estimators.variance import WeightSpread

Target: TypeAlias = Literal["ATE", "ATT", "ATC", "ATO"]
TARGETS: tuple[Target, ...] = get_args(Target)


def estimate_target(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: Clip, name: str
) -> Effects:
    """Effect of one level against another in a target population.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances of n units.
    target : {"ATE", "ATT", "ATC", "ATO"}
        The population.
    contrast : (b, a)
        Codes of the two levels; the effect is that of b against a.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    name : str
        What to call the effect.

    Returns
    -------
    Effects
        The one effect, with the variance of its influence function.
    """
    look = _FirstLook.at(nuisances, target, contrast, clip)
    n, linear, share = nuisances.n, look.linear, look.share
    estimate = look.total / share
    influence, errors = np.empty(n), np.empty(n)
    spread = WeightSpread(1, nuisances.clusters)
    for units in unit_blocks(nuisances, clip, linear):
        tilted = _Tilted.of(units, target, *contrast)
        weights = tilted.contrasted
        signal = units.unit_weights * tilted.received * (tilted.tau - estimate)
        residual = error = tilted.residual
        if linear is not None:
            weights = weights - linear.shift(units.rows, look.imbalance)
            residual, error = linear.residual[units.rows], linear.error[units.rows]
            signal = signal + linear.held(units.rows, look.imbalance)[:, 0]
        influence[units.rows] = (signal + weights[:, 0] * residual) / share
        errors[units.rows] = (signal + weights[:, 0] * error) / share
        spread.add(weights)
    variance = float(mean_square(errors, nuisances.clusters)) / n
    if linear is not None:
        variance += float(linear.missed(look.imbalance)[0, 0]) / share**2
    return Effects(
        names=(name,),
        n_contrasts=1,
        estimates=np.array([estimate]),
        covariance=np.array([[variance]]),
        influence=influence[:, None],
        n_clipped=look.n_clipped,
        clip=clip,
        variance_kind="influence",
        freedom=spread.freedom(),
    )


def total_weights(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: Clip
) -> FloatArray:
    """Weights of the outcomes in an effect, as `estimate_target` has them, shape (n,).

    Those of b sum to one and those of a to minus one. Linear terms see to that; without them the
    sums are about that.
    """
    look = _FirstLook.at(nuisances, target, contrast, clip)
    weights = np.empty(nuisances.n)
    for units in unit_blocks(nuisances, clip, look.linear):
        part = _Tilted.of(units, target, *contrast).contrasted
        if look.linear is not None:
            part = part - look.linear.shift(units.rows, look.imbalance)
        weights[units.rows] = part[:, 0]
    total: FloatArray = weights / (nuisances.n * look.share)
    return total


def population_density(
    propensity: FloatArray, target: Target, contrast: tuple[int, int]
) -> FloatArray:
    """h(p(x_i)), how much a unit counts in a target population, but for a factor; shape (n,).

    Parameters
    ----------
    propensity : (n, L) float64
        Probabilities of the levels.
    target, contrast
        See `estimate_target`.
    """
    return _tilt(propensity, target, *contrast)[0]


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """What an effect is made of at n units: what the outcome model leaves, and what weighs it.

    The effect is linear in the outcome regression μ, E[g (μ_b - μ_a)] / E g, and so is E[α μ_A] for
    one α, its Riesz representer.

    Attributes
    ----------
    residual : (n,) float64
        y_i - μ̂_A(x_i), linear terms included.
    representer : (n,) float64
        α: h(x_i) / p_b(x_i) for units that received b, -h(x_i) / p_a(x_i) for those of a, over E g.
    moment : (n,) float64
        What the effect makes of α in place of μ; its mean is that of α².
    expected : (n,) float64
        E[α² | x_i] by the propensities: a mean of α² without the noise of who received what.
    share : (n,) float64
        g_i / E g, of weighted mean one.
    """

    residual: FloatArray
    representer: FloatArray
    moment: FloatArray
    expected: FloatArray
    share: FloatArray


def target_regression(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: Clip
) -> Regression:
    """Residuals and Riesz representer of an effect, see `estimate_target`.

    The population of the ATO is taken as h describes it: g = h.
    """
    b, a = contrast
    residual, representer, moment, expected, share = np.empty((5, nuisances.n))
    linear = _FirstLook.at(nuisances, target, contrast, clip).linear
    for units in unit_blocks(nuisances, clip, linear):
        density, gradient = _tilt(units.propensity, target, b, a)
        own = np.take_along_axis(gradient, units.treatment[:, None], axis=1)[:, 0]
        own = density if target == "ATO" else own
        mu = np.take_along_axis(units.mu, units.treatment[:, None], axis=1)[:, 0]
        by_arm = over_probability(units.received, density[:, None], units.propensity)
        inverse = 1 / units.propensity[:, b] + 1 / units.propensity[:, a]
        residual[units.rows], share[units.rows] = units.y - mu, own
        representer[units.rows] = by_arm[:, b] - by_arm[:, a]
        moment[units.rows] = own * density * inverse
        expected[units.rows] = density**2 * inverse
    mean = float(np.mean(nuisances.unit_weights * share))
    return Regression(
        residual=residual,
        representer=representer / mean,
        moment=moment / mean**2,
        expected=expected / mean**2,
        share=share / mean,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _FirstLook:
    """What a first pass over the units tells.

    Attributes
    ----------
    linear : LinearTerms or None
        The linear terms.
    share, total : float
        E g, and the mean of the scores.
    imbalance : (width, 1) float64
        What the slopes have to make up for.
    n_clipped : int
        Units whose probabilities were clipped.
    """

    linear: LinearTerms | None
    share: float
    total: float
    imbalance: FloatArray
    n_clipped: int

    @classmethod
    def at(
        cls, nuisances: Nuisances, target: Target, contrast: tuple[int, int], clip: Clip
    ) -> _FirstLook:
        """Look at all units."""
        b, a = contrast
        n, weights = nuisances.n, None
        if target != "ATE":
            weights = np.empty(n)
            for units in unit_blocks(nuisances, clip):
                weights[units.rows] = np.abs(_Tilted.of(units, target, b, a).contrasted[:, 0])
        linear = linear_terms(nuisances, clip, weights)
        n_clipped, share, total = 0, 0.0, 0.0
        imbalance = np.zeros((0 if linear is None else linear.width, 1))
        for units in unit_blocks(nuisances, clip, linear):
            tilted = _Tilted.of(units, target, b, a)
            n_clipped += units.n_clipped
            share += float(np.sum(units.unit_weights * tilted.received))
            total += float(np.sum(units.unit_weights * tilted.score))
            if linear is not None:
                compared = np.zeros((len(tilted.received), nuisances.n_levels, 1))
                compared[:, b, 0] = units.unit_weights * tilted.received
                compared[:, a, 0] = -compared[:, b, 0]
                imbalance += linear.moments(units.rows, tilted.contrasted)
                imbalance -= linear.expected(units.rows, compared)
        return cls(linear, share / n, total / n, imbalance / n, n_clipped)


@dataclass(frozen=True, slots=True, eq=False)
class _Tilted:
    """What the effect in a population is made of, for m units.

    Attributes
    ----------
    received : (m,) float64
        g_i: the derivative of h with respect to the probability of what the unit received.
    tau, score : (m,) float64
        τ(x_i), and g_i τ(x_i) plus h(x_i) times the weighted residuals.
    contrasted : (m, 1) float64
        Weights of the residuals, but for the factor 1 / E g.
    residual : (m,) float64
        What the outcome model leaves of y under the treatment received.
    """

    received: FloatArray
    tau: FloatArray
    score: FloatArray
    contrasted: FloatArray
    residual: FloatArray

    @classmethod
    def of(cls, units: UnitBlock, target: Target, b: int, a: int) -> _Tilted:
        """Look at a block of units."""
        density, gradient = _tilt(units.propensity, target, b, a)
        received = np.take_along_axis(gradient, units.treatment[:, None], axis=1)[:, 0]
        residuals = inverse_probability_residuals(units, units.propensity)
        by_arm = arm_weights(units, units.propensity)
        tau = units.mu[:, b] - units.mu[:, a]
        return cls(
            received=received,
            tau=tau,
            score=received * tau + density * (residuals[:, b] - residuals[:, a]),
            contrasted=(density * (by_arm[:, b] - by_arm[:, a]))[:, None],
            residual=units.y - np.take_along_axis(units.mu, units.treatment[:, None], axis=1)[:, 0],
        )


def _tilt(p: FloatArray, target: Target, b: int, a: int) -> tuple[FloatArray, FloatArray]:
    """h(p), shape (n,), and its partial derivatives, shape (n, L)."""
    if target == "ATE":
        return np.ones(len(p)), np.ones_like(p)
    gradient = np.zeros_like(p)
    if target == "ATO":
        pair = p[:, a] + p[:, b]
        gradient[:, a], gradient[:, b] = (p[:, b] / pair) ** 2, (p[:, a] / pair) ** 2
        return p[:, a] * p[:, b] / pair, gradient
    level = b if target == "ATT" else a
    gradient[:, level] = 1.0
    return p[:, level], gradient
