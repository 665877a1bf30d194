"""What repeated cross-fitting means for a standard error: one rule for every estimate.

Nuisances that are averaged over repetitions weight units more evenly than those of any one, and
the variance of their influence function is too small by as much. So it is taken from each
repetition, averaged, and what the repetitions differ by is added (Chernozhukov and others 2018).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.imputations import Imputations, pooled_effects, with_within
from cstonet.estimators.nuisances import FloatArray, Nuisances


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """What effects are estimated from: one repetition of the cross-fitting, or their average.

    Parameters
    ----------
    nuisances : Nuisances
        (Out-of-fold) nuisances of all units.
    imputations : Imputations or None
        Those of units with missing covariates, at each imputation.
    """

    nuisances: Nuisances
    imputations: Imputations | None = None

    @property
    def mean(self) -> Nuisances:
        """The nuisances, averaged over imputations."""
        if self.imputations is None:
            return self.nuisances
        return self.imputations.averaged(self.nuisances)

    def effects(self, estimate: Callable[[Nuisances], Effects]) -> Effects:
        """Effects of these nuisances, pooled over their imputations."""
        if self.imputations is None:
            return estimate(self.nuisances)
        return pooled_effects(estimate, self.nuisances, self.imputations)


def variance_over_repetitions(
    estimates: FloatArray, singles: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Mean over the repetitions of variance and squared distance from the estimates.

    Parameters
    ----------
    estimates : (k,) float64
        Estimates from averaged nuisances.
    singles : sequence of (estimates, variance)
        Each repetition by itself: its estimates (k,), and their variances (k,) or covariance
        (k, k).

    Returns
    -------
    (k,) or (k, k) float64
        As the variances are given.
    """
    parts = []
    for single, variance in singles:
        gap = single - estimates
        parts.append(variance + (np.outer(gap, gap) if variance.ndim == 2 else gap**2))
    mean: FloatArray = np.mean(parts, axis=0)
    return mean


def effects_over_repetitions(effects: Effects, singles: Sequence[Effects]) -> Effects:
    """The same estimates, with the covariance of a single repetition of the cross-fitting.

    Parameters
    ----------
    effects : Effects
        Estimates from averaged nuisances.
    singles : sequence of Effects
        Those of each repetition by itself; if there are none, nothing changes.

    Returns
    -------
    Effects
        Where covariates were imputed, the rule holds for the covariance within imputations; that
        between them remains.
    """
    if not singles:
        return effects
    within = variance_over_repetitions(
        effects.estimates, [(single.estimates, _within(single)) for single in singles]
    )
    if effects.between is None:
        return dataclasses.replace(effects, covariance=within)
    return with_within(effects, within)


def _within(effects: Effects) -> FloatArray:
    """The covariance without what imputations add, shape (k, k)."""
    return effects.covariance if effects.between is None else effects.covariance - effects.between
