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

from typing import Literal, TypeAlias, get_args

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.linear_terms import linear_terms, with_terms
from cstonet.estimators.nuisances import (
    FloatArray,
    Nuisances,
    arm_weights,
    clip_propensity,
    inverse_probability_residuals,
)

Target: TypeAlias = Literal["ATE", "ATT", "ATC", "ATO"]
TARGETS: tuple[Target, ...] = get_args(Target)


def estimate_target(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: float, name: str
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
    clip : float
        Distance to keep the propensities from 0 and 1.
    name : str
        What to call the effect.

    Returns
    -------
    Effects
        The one effect, with the variance of its influence function.
    """
    b, a = contrast
    clipped = clip_propensity(nuisances.propensity, clip)
    linear = linear_terms(nuisances, clipped.values)
    nuisances = with_terms(nuisances, linear)
    density, gradient = _tilt(clipped.values, target, b, a)
    # g_i: the derivative with respect to the probability of what the unit received.
    received = np.take_along_axis(gradient, nuisances.treatment[:, None], axis=1)[:, 0]
    weights = nuisances.unit_weights
    share = float(np.mean(weights * received))
    residuals = inverse_probability_residuals(nuisances, clipped.values)
    tau = nuisances.mu[:, b] - nuisances.mu[:, a]
    score = received * tau + density * (residuals[:, b] - residuals[:, a])
    estimate = float(np.mean(weights * score)) / share
    influence: FloatArray = weights * (score - received * estimate) / share
    errors = influence
    if linear is not None:
        by_arm = arm_weights(nuisances, clipped.values)
        contrasted = density * (by_arm[:, b] - by_arm[:, a]) / share
        influence = influence + linear.influence(contrasted[:, None])[:, 0]
        signal = weights * received * (tau - estimate) / share
        errors = signal + linear.inflation * (influence - signal)
    variance = float(np.mean(errors**2)) / nuisances.n
    return Effects(
        names=(name,),
        n_contrasts=1,
        estimates=np.array([estimate]),
        covariance=np.array([[variance]]),
        influence=influence[:, None],
        n_clipped=clipped.n_clipped,
        clip=clip,
        variance_kind="influence",
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
