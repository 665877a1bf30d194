"""Augmented inverse probability weighting: equation (1) of the paper, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cstonet.estimators.nuisances import (
    FloatArray,
    Nuisances,
    clip_propensity,
    inverse_probability_residuals,
)
from cstonet.estimators.variance import VarianceKind, pom_covariance


@dataclass(frozen=True, slots=True)
class Effects:
    """Estimated effects with their joint covariance.

    Parameters
    ----------
    names : tuple of str, length k
        "ATE", then "POM[level]" for every level of the treatment.
    estimates : (k,) float64
        Point estimates.
    covariance : (k, k) float64
        Joint covariance of the estimates. It is singular: the ATE is a difference of means.
    influence : (n, k) float64
        Influence values; each column averages to zero.
    n_clipped : int
        Units whose propensity was clipped.
    clip : float
        Distance the propensities were kept from 0 and 1.
    variance_kind : {"paper", "influence"}
        Where the covariance comes from.
    """

    names: tuple[str, ...]
    estimates: FloatArray
    covariance: FloatArray
    influence: FloatArray
    n_clipped: int
    clip: float
    variance_kind: VarianceKind

    @property
    def standard_errors(self) -> FloatArray:
        """Square roots of the variances, shape (k,)."""
        # Rounding can leave the variance of a difference a hair below zero.
        errors: FloatArray = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return errors


def aipw_scores(nuisances: Nuisances, propensity: FloatArray) -> FloatArray:
    """Doubly robust score of every unit for every potential-outcome mean.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    propensity : (n, L) float64
        Clipped probabilities, see `clip_propensity`.

    Returns
    -------
    (n, L) float64
        1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i) + μ̂_a(x_i). Column a averages to μ̂_a; for a binary
        treatment column 1 minus column 0 is the summand of equation (1).
    """
    return nuisances.mu + inverse_probability_residuals(nuisances, propensity)


def estimate_effects(
    nuisances: Nuisances,
    *,
    levels: Sequence[object],
    clip: float,
    variance: VarianceKind,
) -> Effects:
    """Average treatment effect and potential-outcome means of a binary treatment.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances.
    levels : sequence of length 2
        Labels of the treatment codes 0 and 1, for the names of the means.
    clip : float
        Distance to keep the propensities from 0 and 1.
    variance : {"paper", "influence"}
        Covariance estimator, see `pom_covariance`.

    Returns
    -------
    Effects
        "ATE", "POM[levels[0]]", "POM[levels[1]]" with their joint covariance.
    """
    if len(levels) != 2 or nuisances.n_levels != 2:
        raise ValueError("the ATE needs a treatment with exactly two levels")
    clipped = clip_propensity(nuisances.propensity, clip)
    scores = aipw_scores(nuisances, clipped.values)
    weights = nuisances.unit_weights
    means: FloatArray = weights @ scores / nuisances.n
    influence: FloatArray = weights[:, None] * (scores - means)
    covariance = pom_covariance(nuisances, clipped.values, means, influence, kind=variance)

    # Every effect is a linear map of the two means: (ATE, POM[0], POM[1]).
    contrasts = np.array([[-1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    return Effects(
        names=("ATE", *(f"POM[{level}]" for level in levels)),
        estimates=contrasts @ means,
        covariance=contrasts @ covariance @ contrasts.T,
        influence=influence @ contrasts.T,
        n_clipped=clipped.n_clipped,
        clip=clip,
        variance_kind=variance,
    )
