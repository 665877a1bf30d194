"""The effect along a covariate v: E[τ(X) | v], a regression of doubly robust scores on a spline.

The scores Γ_ib - Γ_ia have the conditional mean τ(x_i), so that their regression on functions of v
is that of the effect itself (Semenova and Chernozhukov 2021). The functions are a natural cubic
spline, linear beyond its outer knots, with as many coefficients as knots. What is estimated is the
best such spline, and its intervals are those of the regression, with residuals of every unit, or
cluster, for themselves.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import influence_covariance
from cstonet.estimators.nuisances import Clip, FloatArray, Nuisances, clip_propensity
from cstonet.estimators.pseudo_outcomes import effect_scores

# Shares of the units below the knots.
_KNOTS = (0.05, 0.35, 0.65, 0.95)


def effect_curve(
    nuisances: Nuisances,
    values: FloatArray,
    at: FloatArray,
    contrast: tuple[int, int],
    *,
    clip: Clip,
) -> Effects:
    """Effects at points along a covariate.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    values : (n,) float64
        The covariate.
    at : (k,) float64
        Where the effect is wanted.
    contrast : (b, a)
        Codes of the two levels.
    clip : float, or L of them
        Least propensities.

    Returns
    -------
    Effects
        One for each point, named by its number.
    """
    weights, n = nuisances.unit_weights, nuisances.n
    scores = effect_scores(nuisances, contrast, clip)
    counted = values[weights > 0]
    knots = np.unique(np.quantile(counted, _KNOTS))
    basis, points = spline_basis(values, knots), spline_basis(at, knots)
    inverse = np.linalg.pinv(basis.T @ (weights[:, None] * basis) / n, hermitian=True)
    slopes = inverse @ (basis.T @ (weights * scores)) / n
    residuals = weights * (scores - basis @ slopes)
    influence = (residuals[:, None] * basis) @ (inverse @ points.T)
    return Effects(
        names=tuple(str(k) for k in range(len(at))),
        n_contrasts=len(at),
        estimates=points @ slopes,
        covariance=influence_covariance(influence, nuisances.clusters),
        influence=influence,
        n_clipped=clip_propensity(nuisances.propensity, clip).n_clipped,
        clip=clip,
        variance_kind="influence",
    )


def smooth(
    values: FloatArray, response: FloatArray, weights: FloatArray, at: FloatArray
) -> FloatArray:
    """Mean of a response along values, by the same spline; shape (k,) at k points."""
    knots = np.unique(np.quantile(values[weights > 0], _KNOTS))
    root = np.sqrt(weights)
    basis = spline_basis(values, knots) * root[:, None]
    slopes = np.linalg.lstsq(basis, root * response, rcond=None)[0]
    curve: FloatArray = spline_basis(at, knots) @ slopes
    return curve


def spline_basis(values: FloatArray, knots: FloatArray) -> FloatArray:
    """Natural cubic splines with K knots: 1, v, and K - 2 that are linear outside; shape (n, K).

    With d_j(v) = ((v - t_j)³₊ - (v - t_K)³₊) / (t_K - t_j), the latter are d_j - d_{K-1}.
    Values are taken from the first knot in units of the knots' range, which keeps the columns
    comparable.
    """
    K = len(knots)
    if K < 2:
        # Nearly all values are one: a line is all that can be told.
        return np.column_stack([np.ones(len(values)), values - knots[0]])
    length = knots[-1] - knots[0]
    v, t = (values - knots[0]) / length, (knots - knots[0]) / length

    def bent(j: int) -> FloatArray:
        above, end = np.maximum(v - t[j], 0.0) ** 3, np.maximum(v - t[-1], 0.0) ** 3
        curve: FloatArray = (above - end) / (t[-1] - t[j])
        return curve

    curved = [bent(j) - bent(K - 2) for j in range(K - 2)]
    return np.column_stack([np.ones(len(v)), v, *curved])
