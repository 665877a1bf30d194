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
        Expected outcomes, and probabilities of the arms as the estimator has them: clipped.
    law
        How outcomes vary around these.
    clusters : (n,) int or None
        Codes of the clusters.
    """

    design: Design[Arms]
    targets: tuple[Target, ...]
    mu: FloatArray
    propensity: FloatArray
    law: OutcomeLaw
    clusters: IntArray | None

    @classmethod
    def of(cls, results: ArmsEffects) -> ArmsWorld:
        """The world of a fit: nuisances out of fold, averaged over repetitions and imputations."""
        nuisances, design = results.nuisances, results.design
        mu = np.clip(nuisances.mu, 0.0, 1.0) if design.family == "binomial" else nuisances.mu
        leading = results.plan.estimand
        return cls(
            design=design,
            targets=("ATE",) if leading == "ATE" else (leading, "ATE"),
            mu=mu,
            propensity=clip_propensity(nuisances.propensity, results.effects.clip).values,
            law=OutcomeLaw.of(
                design.family,
                nuisances.y,
                mu,
                nuisances.treatment,
                nuisances.unit_weights,
                nuisances.clusters,
            ),
            clusters=nuisances.clusters,
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
        if self.clusters is not None:
            _, own = np.unique(self.clusters, return_inverse=True)
            pairs = np.unique(np.column_stack([own, self.design.treatment.codes]), axis=0)
            if len(pairs) == own.max() + 1:
                chosen = chosen[: len(pairs)][own]
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
