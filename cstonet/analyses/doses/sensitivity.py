"""Sensitivity of the average marginal effect to omitted confounders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstonet.analyses.results import CausalResults
from cstonet.analyses.strength import (
    Benchmarks,
    Yardsticks,
    benchmark_terms,
    benchmarks_by,
    check_benchmarks,
    gains_by_refits,
    gains_of,
    strengths_table,
)
from cstonet.data.variables import block_family
from cstonet.estimators import Effects, effects_over_repetitions, led_by
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.omitted_variables import Gains, dose_bias_scale, dose_model_variances
from cstonet.network.links import link_of
from cstonet.reporting.sensitivity import Sensitivity

if TYPE_CHECKING:
    from cstonet.analyses.doses.results import DoseResults


def dose_sensitivity(
    results: DoseResults, benchmarks: Benchmarks, alpha: float, n_jobs: int, progress: object
) -> Sensitivity:
    """Robustness values, bounds and benchmarks, see `DoseResults.sensitivity`."""
    clip = results.effects.single_clip

    def joint(nuisances: DoseNuisances) -> Effects:
        scale = dose_bias_scale(nuisances, clip=clip)
        effect = estimate_marginal_effect(nuisances, clip=clip)
        return led_by([effect], scale, nuisances.clusters)

    effects = effects_over_repetitions(
        joint(results.dose_nuisances), [joint(alone) for alone in results._alone]
    )
    gains: dict[str, Gains] = {}
    if check_benchmarks(benchmarks):
        results._check_in_memory("sensitivity(benchmarks=...)")
        terms = benchmark_terms(results.selection, results.design.spec)
        if benchmarks == "refit":
            gains = gains_by_refits(results, terms, _variances, n_jobs, progress)
        else:
            gains = _gains(results, terms, float(effects.estimates[1]))
    return Sensitivity.of(
        results.effects,
        effects,
        strengths=strengths_table(gains),
        outcome=results.design.outcome_name,
        treatment=results.design.treatment_name,
        alpha=alpha,
        benchmarks_by=benchmarks_by(benchmarks),
    )


def _variances(results: CausalResults) -> tuple[float, float]:
    """σ² and ν² of a fit."""
    from cstonet.analyses.doses.results import DoseResults

    assert isinstance(results, DoseResults)
    return dose_model_variances(results.dose_nuisances)


def _gains(
    results: DoseResults, terms: dict[str, tuple[int, ...]], residual_variance: float
) -> dict[str, Gains]:
    """What each term gains, by penalised regressions."""
    nuisances, units = results.dose_nuisances, results.design.treatment.units
    dose = units.standardise(nuisances.dose)
    sticks = Yardsticks.of(
        results.design.X,
        terms,
        dose[:, None],
        nuisances.unit_weights,
        nuisances.fold,
        results.plan.seed,
    )
    y, own = nuisances.y[sticks.rows], dose[sticks.rows]
    link = link_of(block_family(results.design.family))

    def variances(without: str | None) -> tuple[float, float]:
        left = y - sticks.outcome(y, link, without)
        surprise = own - sticks.treated(own, "identity", without)
        return (
            float(np.average(left**2, weights=sticks.weights)),
            1 / float(np.average(surprise**2, weights=sticks.weights)),
        )

    return gains_of(terms, variances, residual_variance)
