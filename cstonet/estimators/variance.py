"""Covariance of the potential-outcome means: the paper's plug-in, or the scores' own."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from cstonet.errors import OptionError
from cstonet.estimators.nuisances import FloatArray

VarianceKind: TypeAlias = Literal["paper", "influence"]
VARIANCE_KINDS: tuple[VarianceKind, ...] = get_args(VarianceKind)


def pom_covariance(signal: FloatArray, noise: FloatArray, *, kind: VarianceKind) -> FloatArray:
    """Estimate the covariance matrix of the potential-outcome means.

    Parameters
    ----------
    signal : (n, L) float64
        w_i (μ̂_a(x_i) - μ̂_a): how the outcome regressions of the units vary around the means.
    noise : (n, L) float64
        w_i 1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i), and what estimated slopes of linear terms add.
        Signal and noise together are the influence values of the means.
    kind : {"paper", "influence"}
        "paper" is V̂ of the appendix (proof of Theorem 2): the outcome noise plus the variation of
        μ̂_a(x). With E_n the average over units and unit weights w_i = 1,

        - V_aa = E_n[1(A=a) (y - μ̂_a(x))² / p̂_a(x)²] + E_n[(μ̂_a(x) - μ̂_a)²],
        - V_ab = E_n[(μ̂_a(x) - μ̂_a)(μ̂_b(x) - μ̂_b)],

        so that V_11 + V_00 - 2 V_01 is the paper's V̂_τ: a unit receives one treatment, and the
        noise of different levels has no cross term, except where they share slopes. "influence" is
        the second moment of the influence values, which also counts the covariance of signal and
        noise; it vanishes only where the outcome model is right.

    Returns
    -------
    (L, L) float64
        Covariance of the estimators, that is, already divided by n.
    """
    n = len(signal)
    if kind == "paper":
        return (_second_moment(signal) + _second_moment(noise)) / n
    if kind == "influence":
        return _second_moment(signal + noise) / n
    raise OptionError(f"variance must be one of {', '.join(VARIANCE_KINDS)}, not {kind!r}")


def _second_moment(values: FloatArray) -> FloatArray:
    """E_n[v vᵀ] of the rows v of `values`."""
    moment: FloatArray = values.T @ values / len(values)
    return moment
