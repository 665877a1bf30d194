"""Covariance of the potential-outcome means: the paper's plug-in, or the scores' own."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from cstonet.errors import OptionError
from cstonet.estimators.nuisances import FloatArray, Nuisances, inverse_probability_residuals

VarianceKind: TypeAlias = Literal["paper", "influence"]
VARIANCE_KINDS: tuple[VarianceKind, ...] = get_args(VarianceKind)


def pom_covariance(
    nuisances: Nuisances,
    propensity: FloatArray,
    means: FloatArray,
    influence: FloatArray,
    *,
    kind: VarianceKind,
) -> FloatArray:
    """Estimate the covariance matrix of the potential-outcome means.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units and L levels.
    propensity : (n, L) float64
        Clipped probabilities, those behind `means`.
    means : (L,) float64
        Estimated means μ̂_a.
    influence : (n, L) float64
        Influence values of the means.
    kind : {"paper", "influence"}
        "paper" is V̂ of the appendix (proof of Theorem 2): the outcome noise plus the variation of
        μ̂_a(x). "influence" is the second moment of the influence values, which also counts the
        covariance of these two terms; it vanishes only where the outcome model is right.

    Returns
    -------
    (L, L) float64
        Covariance of the estimators, that is, already divided by n.
    """
    if kind == "paper":
        return _paper_covariance(nuisances, propensity, means)
    if kind == "influence":
        return _second_moment(influence) / nuisances.n
    raise OptionError(f"variance must be one of {', '.join(VARIANCE_KINDS)}, not {kind!r}")


def _paper_covariance(
    nuisances: Nuisances, propensity: FloatArray, means: FloatArray
) -> FloatArray:
    """V̂/n of the appendix, for all pairs of levels.

    With unit weights w_i = 1 the entries are, E_n being the average over units,

    - V_aa = E_n[1(A=a) (y - μ̂_a(x))² / p̂_a(x)²] + E_n[(μ̂_a(x) - μ̂_a)²],
    - V_ab = E_n[(μ̂_a(x) - μ̂_a)(μ̂_b(x) - μ̂_b)],

    so that V_11 + V_00 - 2 V_01 is the paper's V̂_τ. A weighted mean has w_i f_i in place of f_i,
    hence w_i² inside every E_n.
    """
    weights = nuisances.unit_weights[:, None]
    noise = weights * inverse_probability_residuals(nuisances, propensity)
    signal = weights * (nuisances.mu - means)
    # A unit receives one treatment: the noise of different levels has no cross term.
    return (np.diag(np.mean(noise**2, axis=0)) + _second_moment(signal)) / nuisances.n


def _second_moment(values: FloatArray) -> FloatArray:
    """E_n[v vᵀ] of the rows v of `values`."""
    moment: FloatArray = values.T @ values / len(values)
    return moment
