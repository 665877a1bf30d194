"""Twins of data with arms: treatments drawn by the propensities, outcomes by the regressions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.analyses.twins import OutcomeLaw, Twin, resampled
from cstonet.data.design import Design
from cstonet.data.treatment import Arms
from cstonet.estimators import Target, clip_propensity
from cstonet.estimators.clusters import cluster_sums
from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.estimators.targets import population_density


@dataclass(frozen=True, slots=True, eq=False)
class ArmsWorld:
    """A world in which the nuisances of a fit are true.

    Attributes
    ----------
    design
        The data of the fit.
    targets
        Estimands of the fit's contrasts, those that lead first.
    mu, propensity : (n, L) float64
        Expected outcomes, and probabilities of the arms as the estimator has them: clipped; where
        clusters were treated, their means over the cluster.
    law
        How outcomes vary around these.
    clusters : (n,) int or None
        Codes of the clusters.
    together : bool
        Whether all units of a cluster receive the same.
    """

    design: Design[Arms]
    targets: tuple[Target, ...]
    mu: FloatArray
    propensity: FloatArray
    law: OutcomeLaw
    clusters: IntArray | None
    together: bool = False

    @classmethod
    def of(cls, results: ArmsEffects) -> ArmsWorld:
        """The world of a fit: nuisances out of fold, averaged over repetitions and imputations."""
        nuisances, design = results.nuisances, results.design
        mu = np.clip(nuisances.mu, 0.0, 1.0) if design.family == "binomial" else nuisances.mu
        leading = results.plan.estimand
        propensity = clip_propensity(nuisances.propensity, results.effects.clip).values
        together = _treated_together(nuisances.clusters, design.treatment.codes)
        if nuisances.clusters is not None and together:
            propensity = _cluster_means(propensity, nuisances.unit_weights, nuisances.clusters)
        return cls(
            design=design,
            targets=("ATE",) if leading == "ATE" else (leading, "ATE"),
            mu=mu,
            propensity=propensity,
            law=OutcomeLaw.of(
                design.family,
                nuisances.y,
                mu,
                nuisances.treatment,
                nuisances.unit_weights,
                nuisances.clusters,
            ),
            clusters=nuisances.clusters,
            together=together,
        )

    def twin(self, rng: np.random.Generator) -> Twin:
        """The same units with other treatments and outcomes, and the effects in their world."""
        codes = self._treatments(rng)
        mean = np.take_along_axis(self.mu, codes[:, None], axis=1)[:, 0]
        design = dataclasses.replace(
            self.design,
            treatment=dataclasses.replace(self.design.treatment, codes=codes),
            y=self.law.draw(mean, codes, rng),
        )
        return Twin(design, self._truths(resampled(self.design.unit_weights, self.clusters, rng)))

    def _treatments(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Codes (n,), drawn unit by unit, or cluster by cluster where clusters were treated."""
        chosen = rng.random(len(self.mu))
        if self.clusters is not None and self.together:
            chosen = chosen[np.unique(self.clusters, return_inverse=True)[1]]
        bounds = np.cumsum(self.propensity[:, :-1], axis=1)
        codes: NDArray[np.int64] = (chosen[:, None] >= bounds).sum(axis=1).astype(np.int64)
        return codes

    def _truths(self, weights: FloatArray) -> FloatArray:
        """Contrasts with the reference in each target population, then means; by weights (n,)."""
        levels = self.mu.shape[1]
        contrasts = []
        for target in self.targets:
            for b in range(1, levels):
                counted = weights * population_density(self.propensity, target, (b, 0))
                effect = counted @ (self.mu[:, b] - self.mu[:, 0]) / counted.sum()
                contrasts.append(effect)
        return np.array([*contrasts, *(weights @ self.mu / weights.sum())])


def _treated_together(clusters: IntArray | None, codes: IntArray) -> bool:
    """Whether the units of every cluster received the same."""
    if clusters is None:
        return False
    pairs = np.unique(np.column_stack([clusters, codes]), axis=0)
    return len(pairs) == len(np.unique(clusters))


def _cluster_means(values: FloatArray, weights: FloatArray, clusters: IntArray) -> FloatArray:
    """Weighted means of values (n, k) over the units' clusters, plain ones without weight."""
    _, own = np.unique(clusters, return_inverse=True)
    weightless = cluster_sums(weights[:, None], clusters)[own] == 0
    each = np.where(weightless, 1.0, weights[:, None])
    means: FloatArray = cluster_sums(each * values, clusters) / cluster_sums(each, clusters)
    return means[own]
