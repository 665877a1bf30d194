"""Augmented inverse probability weighting: equation (1) of the paper, level by level."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cstonet.estimators.clusters import cluster_freedom, influence_covariance
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.nuisances import (
    Clip,
    FloatArray,
    IntArray,
    Nuisances,
    Units,
    arm_weights,
    inverse_probability_residuals,
)
from cstonet.estimators.unit_blocks import unit_blocks
from cstonet.estimators.variance import PomCovariance, VarianceKind, WeightSpread


@dataclass(frozen=True, slots=True)
class Effects:
    """Estimated effects with their joint covariance.

    Parameters
    ----------
    names : tuple of str, length k
        "ATE", then "POM[level]" for every level of the treatment. If it is multilevel,
        "ATE[b-a]" for every level b against the reference a in place of "ATE".
    n_contrasts : int
        How many of the effects are contrasts. They come first, means last.
    estimates : (k,) float64
        Point estimates.
    covariance : (k, k) float64
        Joint covariance of the estimates. It is singular: ATEs are differences of means.
    influence : (n, k) float64
        Influence values, (0, k) where they were dropped; each column averages to zero. Where
        cross-fitting is repeated, those of averaged nuisances, whose variance is smaller than that
        of the estimates.
    n_clipped : int
        Units whose propensity was clipped.
    clip : float, or one per level
        The least propensities.
    variance_kind : {"paper", "influence"}
        Where the covariance of one repetition comes from.
    missing_information : (k,) float64 or None
        Where covariates were imputed: the fraction of each estimate's information that is missing.
    freedom : (k,) float64 or None
        Degrees of freedom, where covariates were imputed or few units decide an estimate; None:
        estimates are taken for normal.
    bias : (k,) float64 or None
        Where support is lost: how far extrapolation could have moved each estimate, at most.
    between : (k, k) float64 or None
        Where covariates were imputed: the part (1 + 1/M) B of the covariance that comes from the
        differences between the M imputations.
    imputations, n_counted : int
        Their number M, and that of the units with positive weight; 0 where nothing was imputed.
    """

    names: tuple[str, ...]
    n_contrasts: int
    estimates: FloatArray
    covariance: FloatArray
    influence: FloatArray
    n_clipped: int
    clip: Clip
    variance_kind: VarianceKind
    missing_information: FloatArray | None = None
    freedom: FloatArray | None = None
    bias: FloatArray | None = None
    between: FloatArray | None = None
    imputations: int = 0
    n_counted: int = 0

    @classmethod
    def of_influence(
        cls,
        names: Sequence[str],
        estimates: FloatArray,
        influence: FloatArray,
        clusters: IntArray | None,
        clip: Clip,
        *,
        n_contrasts: int | None = None,
        counted: FloatArray | None = None,
    ) -> Effects:
        """Estimates whose covariance is that of their influence values.

        Parameters
        ----------
        names, estimates, influence, clip
            See the class.
        clusters : (n,) int or None
            Codes of the clusters that units belong to.
        n_contrasts : int, optional
            How many of them are contrasts; by default all.
        counted : (n, k) float64, optional
            How much every unit counts in each: where clusters are few, their degrees of freedom
            follow.
        """
        return cls(
            names=tuple(names),
            n_contrasts=len(names) if n_contrasts is None else n_contrasts,
            estimates=estimates,
            covariance=influence_covariance(influence, clusters),
            influence=influence,
            n_clipped=0,
            clip=clip,
            variance_kind="influence",
            freedom=None if counted is None else cluster_freedom(counted, clusters),
        )

    @property
    def single_clip(self) -> float:
        """The least propensity or density, of analyses that have one for all."""
        if isinstance(self.clip, tuple):
            raise ValueError("every level has a least propensity of its own")
        return self.clip

    def without_influence(self) -> Effects:
        """The same without its n influence values, where only estimates and errors are wanted."""
        return dataclasses.replace(self, influence=np.empty((0, len(self.names))))

    @property
    def standard_errors(self) -> FloatArray:
        """Square roots of the variances, shape (k,)."""
        # Rounding can leave the variance of a difference a hair below zero.
        errors: FloatArray = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return errors


def aipw_scores(units: Units, propensity: FloatArray) -> FloatArray:
    """Doubly robust score of every unit for every potential-outcome mean.

    Parameters
    ----------
    units : Nuisances, or a block of their units
        Data and nuisances of n units.
    propensity : (n, L) float64
        Clipped probabilities, see `clip_propensity`.

    Returns
    -------
    (n, L) float64
        1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i) + μ̂_a(x_i). Column a averages to μ̂_a; for a binary
        treatment column 1 minus column 0 is the summand of equation (1).
    """
    return units.mu + inverse_probability_residuals(units, propensity)


def estimate_effects(
    nuisances: Nuisances,
    *,
    levels: Sequence[object],
    clip: Clip,
    variance: VarianceKind,
    kind: Literal["binary", "multilevel"] = "binary",
) -> Effects:
    """Average treatment effects and potential-outcome means.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances.
    levels : sequence of length L
        Labels of the treatment codes 0, …, L-1, for the names. The first is the reference.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    variance : {"paper", "influence"}
        Covariance estimator, see `PomCovariance`; with clusters always "influence".
    kind : {"binary", "multilevel"}
        Decides the names of the contrasts; a multilevel treatment may have two levels.

    Returns
    -------
    Effects
        The contrasts with the reference, then the means, with their joint covariance.
    """
    if len(levels) != nuisances.n_levels:
        raise ValueError(f"{len(levels)} labels for {nuisances.n_levels} treatment levels")
    if kind == "binary" and len(levels) != 2:
        raise ValueError("the ATE needs a treatment with exactly two levels")
    if nuisances.clusters is not None:
        variance = "influence"
    # Every effect is a linear map of the means: differences with the first, then themselves.
    identity = np.eye(len(levels))
    contrasts = np.vstack([identity[1:] - identity[0], identity])
    means = _potential_outcome_means(nuisances, contrasts, clip=clip, variance=variance)
    reference, *others = levels
    ates = ["ATE"] if kind == "binary" else [f"ATE[{other}-{reference}]" for other in others]
    return Effects(
        names=(*ates, *(f"POM[{level}]" for level in levels)),
        n_contrasts=len(ates),
        estimates=contrasts @ means.values,
        covariance=contrasts @ means.covariance @ contrasts.T,
        influence=means.influence,
        n_clipped=means.n_clipped,
        clip=clip,
        variance_kind=variance,
        freedom=means.freedom,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Means:
    """Potential-outcome means (L,), their covariance (L, L), influence and degrees of freedom."""

    values: FloatArray
    covariance: FloatArray
    influence: FloatArray
    freedom: FloatArray | None
    n_clipped: int


def _potential_outcome_means(
    nuisances: Nuisances, contrasts: FloatArray, *, clip: Clip, variance: VarianceKind
) -> _Means:
    """The means, in two passes over blocks of units: what they are, and how units move them.

    Parameters
    ----------
    contrasts : (k, L) float64
        Combinations of the means whose influence values (n, k) are wanted.
    """
    n, levels = nuisances.n, nuisances.n_levels
    linear = linear_terms(nuisances, clip)
    n_clipped, total = 0, np.zeros(levels)
    imbalance = np.zeros((0 if linear is None else linear.width, levels))
    for units in unit_blocks(nuisances, clip, linear):
        n_clipped += units.n_clipped
        total += units.unit_weights @ aipw_scores(units, units.propensity)
        if linear is not None:
            imbalance += linear.moments(units.rows, arm_weights(units, units.propensity))
            everyone = units.unit_weights[:, None, None] * np.eye(levels)
            imbalance -= linear.expected(units.rows, everyone)
    means, imbalance = total / n, imbalance / n
    covariance, influence = (
        PomCovariance(variance, levels, nuisances.clusters),
        np.empty((n, len(contrasts))),
    )
    spread = WeightSpread(len(contrasts), nuisances.clusters)
    for units in unit_blocks(nuisances, clip, linear):
        signal = units.unit_weights[:, None] * (units.mu - means)
        weights = arm_weights(units, units.propensity)
        residual = error = units.y[:, None] - units.mu
        held = np.zeros_like(weights)
        if linear is not None:
            weights = weights - linear.shift(units.rows, imbalance)
            residual, error = linear.residual[units.rows, None], linear.error[units.rows, None]
            held = linear.held(units.rows, imbalance)
        covariance.add(signal, weights * error + held)
        influence[units.rows] = (signal + weights * residual + held) @ contrasts.T
        spread.add(weights @ contrasts.T)
    value = covariance.value(n)
    if linear is not None:
        value = value + linear.missed(imbalance)
    return _Means(means, value, influence, spread.freedom(), n_clipped)
