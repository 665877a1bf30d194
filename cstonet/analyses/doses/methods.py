"""The methods section of a fit with a continuous treatment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstonet.reporting.methods import (
    methods_text,
    model_paragraph,
    selection_paragraph,
    software_paragraph,
    training_paragraph,
    variance_paragraph,
)
from cstonet.reporting.numbers import plain, pvalue

if TYPE_CHECKING:
    from cstonet.analyses.doses.results import DoseResults

_UNION = "Both models adjust for the covariates found for either."


def dose_methods(results: DoseResults) -> str:
    """All of it."""
    design, plan, effects = results.design, results.plan, results.effects
    return methods_text(
        [
            model_paragraph(design, plan),
            selection_paragraph(
                plan,
                kept=results.kept,
                adjusted=_UNION if plan.unites_supports else "",
                explained="the treatment or the outcome",
            ),
            training_paragraph(plan),
            density_paragraph(results),
            _estimator_paragraph(results),
            variance_paragraph(design, effects, plan),
            software_paragraph(plan, results.version),
        ]
    )


def density_paragraph(results: DoseResults) -> str:
    """What was assumed and found about the dose given the covariates."""
    facts, dispersion = results.dose_facts, results.dispersion
    name = results.design.treatment_name
    variance = "a variance that depends on them" if dispersion.heteroscedastic else "one variance"
    shape = "gaussian residuals" if facts.gaussian else "residuals of a shape that was estimated"
    return (
        f"Treatment model. Given the covariates, {name} has {variance} and {shape} (p-values of "
        f"the tests of one variance and of gaussian residuals: {pvalue(dispersion.pvalue)}, "
        f"{pvalue(facts.gaussian_pvalue)}); they explain {facts.explained:.0%} of its variance."
    )


def _estimator_paragraph(results: DoseResults) -> str:
    """What is estimated, and how."""
    design, effects = results.design, results.effects
    risk = "risk" if design.family == "binomial" else "mean outcome"
    return (
        f"Estimator. The average marginal effect (AME), the change of the {risk} per unit of "
        f"{design.treatment_name} if every unit received slightly more than it did, was estimated "
        "by its doubly robust score, which is consistent if either the outcome model or the "
        "density of the dose is. The dose-response curve is a doubly robust local linear estimate "
        "(Kennedy et al. 2017) with weights f(a)/f(a|x), in which f(a|x) was kept above "
        f"{plain(effects.single_clip)} f(a); that changed those of {effects.n_clipped} of "
        f"{results.nobs} units."
    )
