"""Covariance of the potential-outcome means: the paper's plug-in, or the scores' own."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from cstonet.errors import OptionError
from cstonet.estimators.clusters import cluster_freedom, influence_covariance, spread_freedom
from cstonet.estimators.nuisances import FloatArray, IntArray

VarianceKind: TypeAlias = Literal["paper", "influence"]
VARIANCE_KINDS: tuple[VarianceKind, ...] = get_args(VarianceKind)


class PomCovariance:
    """Estimate of the covariance matrix of the potential-outcome means, units added in blocks.

    Parameters
    ----------
    kind : {"paper", "influence"}
        "paper" is V̂ of the appendix (proof of Theorem 2): the outcome noise plus the variation of
        μ̂_a(x). With E_n the average over units and unit weights w_i = 1,

        - V_aa = E_n[1(A=a) (y - μ̂_a(x))² / p̂_a(x)²] + E_n[(μ̂_a(x) - μ̂_a)²],
        - V_ab = E_n[(μ̂_a(x) - μ̂_a)(μ̂_b(x) - μ̂_b)],

        so that V_11 + V_00 - 2 V_01 is the paper's V̂_τ: a unit receives one treatment, and the
        noise of different levels has no cross term, except where they share slopes. "influence" is
        the second moment of the influence values, which also counts the covariance of signal and
        noise; it vanishes only where the outcome model is right.
    levels : int
        Number L of means.
    clusters : (n,) int, optional
        Codes of the clusters of the units, in the order in which these are added. Signal and noise
        of neighbours may then go together in any way: the covariance is that of the influence
        values' sums over clusters, whatever the kind.
    """

    def __init__(self, kind: VarianceKind, levels: int, clusters: IntArray | None = None) -> None:
        if kind not in VARIANCE_KINDS:
            raise OptionError(f"variance must be one of {', '.join(VARIANCE_KINDS)}, not {kind!r}")
        self._kind = kind
        # Sums of v vᵀ over units: of signal and of noise, or of both together.
        self._moments = np.zeros((2 if kind == "paper" else 1, levels, levels))
        self._clusters = clusters
        self._influence: list[FloatArray] = []

    def add(self, signal: FloatArray, noise: FloatArray) -> None:
        """Add m units.

        Parameters
        ----------
        signal : (m, L) float64
            w_i (μ̂_a(x_i) - μ̂_a): how the outcome regressions of the units vary around the means.
        noise : (m, L) float64
            w_i 1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i), and what estimated slopes of linear terms
            add. Signal and noise together are the influence values of the means.
        """
        if self._clusters is not None:
            self._influence.append(signal + noise)
            return
        parts = (signal, noise) if self._kind == "paper" else (signal + noise,)
        for moment, values in zip(self._moments, parts, strict=True):
            moment += values.T @ values

    def value(self, n: int) -> FloatArray:
        """Covariance (L, L) of the estimators after n units, that is, already divided by n."""
        if self._clusters is not None:
            return influence_covariance(np.concatenate(self._influence), self._clusters)
        covariance: FloatArray = (self._moments / n).sum(axis=0) / n
        return covariance


class WeightSpread:
    """Over how many units the errors behind c estimates are spread, units added in blocks.

    With weights v_i of independent errors of one variance, the variance that is estimated by
    Σ v_i² e_i² has (Σ v_i²)² / Σ v_i⁴ degrees of freedom (Satterthwaite), less one for a mean. In
    an arm of nine these are eight, however large the other arm is.

    Parameters
    ----------
    estimates : int
        Their number c.
    clusters : (n,) int, optional
        Codes of the clusters of the units, in the order in which these are added: the errors are
        then spread over clusters, see `cluster_freedom`.
    """

    def __init__(self, estimates: int, clusters: IntArray | None = None) -> None:
        self._squares, self._fourths = np.zeros(estimates), np.zeros(estimates)
        self._clusters = clusters
        self._weights: list[FloatArray] = []

    def add(self, weights: FloatArray) -> None:
        """Add m units with weights (m, c)."""
        if self._clusters is not None:
            self._weights.append(weights)
            return
        squares = weights**2
        self._squares += squares.sum(axis=0)
        self._fourths += (squares**2).sum(axis=0)

    def freedom(self) -> FloatArray | None:
        """Degrees of freedom (c,), at least one; None if all are many."""
        if self._clusters is not None:
            return cluster_freedom(np.concatenate(self._weights), self._clusters)
        return spread_freedom(self._squares, self._fourths)
