"""Sensitivity of effects of arms to omitted confounders, with covariates as benchmarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from cstonet.analyses.arms.effects import ArmsEffects
from cstonet.analyses.results import CausalResults
from cstonet.analyses.strength import (
    Benchmarks,
    Yardsticks,
    benchmarks_by,
    gains_of,
    strengths_of,
)
from cstonet.data.variables import block_family
from cstonet.errors import NotAvailableError
from cstonet.estimators import Effects, Nuisances, Target, estimate_target, led_by
from cstonet.estimators.combinations import combined
from cstonet.estimators.omitted_variables import Gains, bias_scale, model_variances
from cstonet.estimators.support import hidden_bias
from cstonet.network.links import link_of
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.ratios import Ratio
from cstonet.reporting.sensitivity import Sensitivity


class SensitivityOfArms(ArmsEffects):
    """What omitted confounders could do to the effects of a treatment with levels."""

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

        Bounds of Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022), "Long story short:
        omitted variable bias in causal machine learning"; see
        :mod:`cstonet.estimators.omitted_variables`. Robustness values are strengths in outcome and
        treatment alike; bounds have standard errors of their own.

        Parameters
        ----------
        name : str, optional
            The effect, by default the one that leads; "ATE", "ATT", "ATC", "ATO", of a multilevel
            treatment for two of its levels, such as "ATE[b-a]".
        benchmarks : bool or "refit"
            How strong an omitted confounder is that matters as much as each covariate that was
            selected or kept (indicators of one column together, at most the thirty strongest). By
            default from penalised regressions with and without the covariate, measured on rows that
            they have not seen (:mod:`cstonet.analyses.strength`); "refit" repeats the whole fit
            without it, once for each; False: none.
        alpha : float
            One minus the level of confidence limits and of `robustness_value_ci`, two-sided.
        n_jobs, progress
            Of refits, see :meth:`cstonet.CausalStoNet.fit`.

        Returns
        -------
        Sensitivity
            `robustness_value`, `robustness_value_ci`, `benchmarks`, `bounds`, `evalue`; print it.

        Raises
        ------
        NotAvailableError
            If the fit has no such effect, or is to be repeated and nobody knows how.
        """
        check_alpha(alpha)
        if name is None:
            name = self.effect(alpha=alpha).name
        if name.startswith("POM["):
            raise NotAvailableError(
                f"sensitivity() is about effects, and {name!r} is a mean: ask for "
                f"{self.effects.names[0]!r}."
            )
        target, contrast = self._target(name)
        joint = self._with_scale(name)
        strengths = strengths_of(
            self,
            benchmarks,
            refitted=lambda refit: _variances(refit, name),
            regressed=lambda terms: self._gains(target, contrast, terms, float(joint.estimates[1])),
            n_jobs=n_jobs,
            progress=progress,
        )
        binary = target == "ATE" and bool(np.isin(self.design.y, (0.0, 1.0)).all())
        return Sensitivity.of(
            self._alone(name),
            joint,
            strengths=strengths,
            risk_ratio=self._risk_ratio(name, alpha) if binary else None,
            outcome=self.design.outcome_name,
            treatment=self.design.treatment_name,
            alpha=alpha,
            benchmarks_by=benchmarks_by(benchmarks),
        )

    def _alone(self, name: str) -> Effects:
        """One effect, with its degrees of freedom and what extrapolation could hide."""
        names = self.effects.names
        if name in names:
            return combined(self.effects, name, np.eye(len(names))[names.index(name)])
        target, contrast = self._target(name)
        effects = self._effects_by(
            lambda nuisances: estimate_target(
                nuisances, target, contrast, clip=self.effects.clip, name=name
            )
        )
        bias = hidden_bias(self._cross_fits.overlap, self.nuisances, target, contrast)
        return dataclasses.replace(effects, bias=np.array([bias])) if bias > 0 else effects

    def _with_scale(self, name: str) -> Effects:
        """The effect, σ² and ν², with their joint covariance."""
        target, contrast = self._target(name)
        clip = self.effects.clip

        def estimate(nuisances: Nuisances) -> Effects:
            effect = estimate_target(nuisances, target, contrast, clip=clip, name=name)
            scale = bias_scale(nuisances, target, contrast, clip=clip)
            return led_by([effect], scale, nuisances.clusters)

        return self._effects_by(estimate)

    def _risk_ratio(self, name: str, alpha: float) -> Ratio | None:
        """The risk ratio of the levels that an ATE compares; None if a risk is not above zero."""
        try:
            ratio = self.effect(name.replace("ATE", "RR", 1), alpha=alpha)
        except NotAvailableError:
            return None
        return ratio if isinstance(ratio, Ratio) else None

    def _gains(
        self,
        target: Target,
        contrast: tuple[int, int],
        terms: Mapping[str, tuple[int, ...]],
        residual_variance: float,
    ) -> dict[str, Gains]:
        """What each term gains, by penalised regressions."""
        nuisances, levels = self.nuisances, len(self.arms.levels)
        sticks = Yardsticks.of(
            self._complete_covariates(),
            terms,
            nuisances.received[:, 1:].astype(np.float64),
            nuisances.unit_weights,
            nuisances.fold,
            self.plan.seed,
        )
        y, codes = nuisances.y[sticks.rows], nuisances.treatment[sticks.rows]
        link = link_of(block_family(self.design.family))

        def variances(without: str | None) -> tuple[float, float]:
            mu = sticks.outcome(y, link, without)
            # Of two levels, one regression tells both probabilities.
            each = [
                sticks.treated((codes == level).astype(np.float64), "logit", without)
                for level in range(int(levels == 2), levels)
            ]
            p = np.column_stack([1 - each[0], each[0]] if levels == 2 else each)
            regressions = Nuisances(
                y=y,
                treatment=codes,
                mu=np.repeat(mu[:, None], levels, axis=1),
                propensity=p / p.sum(axis=1, keepdims=True),
                weights=sticks.weights,
                fold=sticks.parts,
            )
            return model_variances(regressions, target, contrast, clip=self.effects.clip)

        return gains_of(terms, variances, residual_variance)


def _variances(results: CausalResults, name: str) -> tuple[float, float]:
    """σ² and ν² of a fit."""
    assert isinstance(results, SensitivityOfArms)
    target, contrast = results._target(name)
    return model_variances(results.nuisances, target, contrast, clip=results.effects.clip)
