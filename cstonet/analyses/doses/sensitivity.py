"""Sensitivity of the average marginal effect to omitted confounders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cstonet.analyses.results import CausalResults
from cstonet.analyses.strength import (
    Benchmarks,
    Yardsticks,
    benchmarks_by,
    gains_of,
    strengths_of,
)
from cstonet.data.design import Design
from cstonet.data.treatment import Dose
from cstonet.data.variables import block_family
from cstonet.estimators import Effects, effects_over_repetitions, led_by
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.omitted_variables import Gains, dose_bias_scale, dose_model_variances
from cstonet.network.links import link_of
from cstonet.reporting.sensitivity import Sensitivity


class SensitivityOfDoses(CausalResults):
    """What omitted confounders could do to the average slope in a dose.

    Attributes
    ----------
    dose_nuisances : DoseNuisances
        Nuisances averaged over the repetitions of the cross-fitting.
    """

    design: Design[Dose]
    dose_nuisances: DoseNuisances
    _alone: tuple[DoseNuisances, ...]

    def sensitivity(
        self,
        name: str | None = None,
        *,
        benchmarks: Benchmarks = True,
        alpha: float = 0.05,
        n_jobs: int = -1,
        progress: object = None,
    ) -> Sensitivity:
        """How strong an omitted confounder would have to be to change the conclusion.

        Bounds of Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022), see
        :mod:`cstonet.estimators.omitted_variables`.

        Parameters
        ----------
        name : str, optional
            "AME".
        benchmarks : bool or "refit"
            How strong an omitted confounder is that matters as much as each selected covariate: by
            penalised regressions of outcome and dose with and without it
            (:mod:`cstonet.analyses.strength`), which compare ν² as if the dose were homoscedastic;
            "refit" repeats the fit without it; False: none.
        alpha : float
            One minus the level of confidence limits and of `robustness_value_ci`, two-sided.
        n_jobs, progress
            Of refits, see :meth:`cstonet.CausalStoNet.fit`.

        Returns
        -------
        Sensitivity
            `robustness_value`, `robustness_value_ci`, `benchmarks`, `bounds`; print it.
        """
        self.effect(name, alpha=alpha)  # or the error that says what there is
        clip = self.effects.single_clip

        def estimate(nuisances: DoseNuisances) -> Effects:
            scale = dose_bias_scale(nuisances, clip=clip)
            effect = estimate_marginal_effect(nuisances, clip=clip)
            return led_by([effect], scale, nuisances.clusters)

        joint = effects_over_repetitions(
            estimate(self.dose_nuisances), [estimate(one) for one in self._alone]
        )
        strengths = strengths_of(
            self,
            benchmarks,
            refitted=_variances,
            regressed=lambda terms: self._gains(terms, float(joint.estimates[1])),
            n_jobs=n_jobs,
            progress=progress,
        )
        return Sensitivity.of(
            self.effects,
            joint,
            strengths=strengths,
            outcome=self.design.outcome_name,
            treatment=self.design.treatment_name,
            alpha=alpha,
            benchmarks_by=benchmarks_by(benchmarks),
        )

    def _gains(
        self, terms: Mapping[str, tuple[int, ...]], residual_variance: float
    ) -> dict[str, Gains]:
        """What each term gains, by penalised regressions."""
        nuisances = self.dose_nuisances
        dose = self.design.treatment.units.standardise(nuisances.dose)
        sticks = Yardsticks.of(
            self.design.X,
            terms,
            dose[:, None],
            nuisances.unit_weights,
            nuisances.fold,
            self.plan.seed,
        )
        y, own = nuisances.y[sticks.rows], dose[sticks.rows]
        link = link_of(block_family(self.design.family))

        def variances(without: str | None) -> tuple[float, float]:
            left = y - sticks.outcome(y, link, without)
            surprise = own - sticks.treated(own, "identity", without)
            return (
                float(np.average(left**2, weights=sticks.weights)),
                1 / float(np.average(surprise**2, weights=sticks.weights)),
            )

        return gains_of(terms, variances, residual_variance)


def _variances(results: CausalResults) -> tuple[float, float]:
    """σ² and ν² of a fit."""
    assert isinstance(results, SensitivityOfDoses)
    return dose_model_variances(results.dose_nuisances)
