"""Mediator by mediator: what the treatment does to each, and what of its effect goes through each.

The share of one mediator among several is not a natural effect: that would need to know how the
mediators act on each other. The interventional indirect effect (Vansteelandt and Daniel 2017) needs
no such knowledge. It compares two worlds in which everybody is treated and the other mediators are
drawn from their law under treatment, while mediator j is drawn, apart from them, from its own law
under treatment in one world and under control in the other:

    path_j = θ_j(1) - θ_j(0),   θ_j(a) = E ∫∫ μ_1(m,x) f_j(m_j|a,x) f_-j(m_-j|1,x) dm.

With a single mediator it is the NIE. The paths of several need not add up to the NIE, which also
counts how the mediators' dependence and interplay change with the treatment. The score of θ_j(a) is

    1(A=1)/p_1 · f_j(M_j|a,x)/f(M_j|M_-j,1,x) · (y - μ_1(M,x))
    + 1(A=a)/p_a · (own_j - both_ja) + 1(A=1)/p_1 · (rest_ja - both_ja) + both_ja,

where own_j averages μ_1 over the other mediators at the unit's own M_j, rest_ja over mediator j at
the unit's other mediators, and both_ja over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cstonet.estimators.aipw import estimate_effects
from cstonet.estimators.clusters import mean_square
from cstonet.estimators.mediation import MediationNuisances, freedom_by_arms
from cstonet.estimators.nuisances import FloatArray, Nuisances, clip_propensity, mean_one
from cstonet.estimators.repetitions import variance_over_repetitions


@dataclass(frozen=True, slots=True)
class PathNuisances:
    """What the paths of J mediators need beside the nuisances of the effects.

    Parameters
    ----------
    ratio : (n, 2, J) float64
        f_j(M_j|a,x) / f(M_j|M_-j,1,x), entry [i, a, j].
    own : (n, J) float64
        Mean of μ̂_1 over the other mediators under treatment, at the unit's own mediator j.
    rest : (n, 2, J) float64
        Mean of μ̂_1 over mediator j under a, at the unit's other mediators.
    both : (n, 2, J) float64
        Mean of μ̂_1 over mediator j under a and the others under treatment.
    """

    ratio: FloatArray
    own: FloatArray
    rest: FloatArray
    both: FloatArray


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates (J,) with standard errors (J,), and degrees of freedom (J,) if clusters are few."""

    values: FloatArray
    errors: FloatArray
    freedom: FloatArray | None = None

    def over_repetitions(self, singles: Sequence[Estimates]) -> Estimates:
        """The same estimates, with the errors of a single repetition of the cross-fitting.

        Parameters
        ----------
        singles : sequence of Estimates
            Estimates from each repetition by itself.
        """
        variance = variance_over_repetitions(
            self.values, [(single.values, single.errors**2) for single in singles]
        )
        return Estimates(self.values, np.sqrt(variance), self.freedom)


def estimate_paths(
    nuisances: MediationNuisances, paths: PathNuisances, *, clip: float
) -> Estimates:
    """Interventional indirect effect through each of J mediators.

    Parameters
    ----------
    nuisances : MediationNuisances
        Data and (out-of-fold) nuisances of n units.
    paths : PathNuisances
        The further nuisances.
    clip : float
        Distance of the propensities from 0 and 1. Density ratios are held below 1/clip - 1, the
        largest odds that probabilities at this distance have.
    """
    p = clip_propensity(nuisances.propensity, clip).values
    largest = 1 / clip - 1 if clip > 0 else np.inf
    received = np.equal(nuisances.treatment[:, None], np.arange(2)) / p
    treated, noise = received[:, 1, None, None], (nuisances.y - nuisances.mu[:, 1])[:, None, None]
    scores = (
        treated * np.minimum(paths.ratio, largest) * noise
        + received[:, :, None] * (paths.own[:, None, :] - paths.both)
        + treated * (paths.rest - paths.both)
        + paths.both
    )
    weights = mean_one(nuisances.weights, len(scores))
    difference = scores[:, 1] - scores[:, 0]
    values: FloatArray = weights @ difference / len(scores)
    influence = weights[:, None] * (difference - values)
    variance = mean_square(influence, nuisances.clusters) / len(scores)
    return Estimates(values, np.sqrt(variance), freedom_by_arms(nuisances, p, len(values)))


def estimate_mediator_effects(
    nuisances: MediationNuisances, mediators: FloatArray, means: FloatArray, *, clip: float
) -> Estimates:
    """Average effect of the treatment on each of J mediators, by AIPW.

    Parameters
    ----------
    nuisances : MediationNuisances
        Treatments, propensities and weights of n units.
    mediators : (n, J) float64
        The mediators.
    means : (n, 2, J) float64
        Their (out-of-fold) regressions on the covariates under each treatment.
    clip : float
        Distance of the propensities from 0 and 1.
    """
    effects = [
        estimate_effects(
            Nuisances(
                y=mediators[:, j],
                treatment=nuisances.treatment,
                mu=means[:, :, j],
                propensity=nuisances.propensity,
                weights=nuisances.weights,
                fold=nuisances.fold,
                clusters=nuisances.clusters,
            ),
            levels=(0, 1),
            clip=clip,
            variance="influence",
        )
        for j in range(mediators.shape[1])
    ]
    return Estimates(
        np.array([effect.estimates[0] for effect in effects]),
        np.array([effect.standard_errors[0] for effect in effects]),
        freedom_by_arms(
            nuisances, clip_propensity(nuisances.propensity, clip).values, len(effects)
        ),
    )
