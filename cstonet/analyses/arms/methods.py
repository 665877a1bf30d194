"""The methods section of a comparison of arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstonet.analyses.arms.wording import clip_label, direction, leading_estimand, population
from cstonet.reporting.methods import (
    methods_text,
    missing_paragraph,
    model_paragraph,
    selection_paragraph,
    software_paragraph,
    training_paragraph,
    variance_paragraph,
)

if TYPE_CHECKING:
    from cstonet.analyses.arms.comparisons import ComparedArms
    from cstonet.analyses.arms.results import ArmsResults
    from cstonet.settings.plan import Plan

_LINEAR = (
    "Both models adjust for the outcome's covariates. Those found for the treatment alone are "
    "adjusted for by linear terms, which the estimator removes from outcomes and outcome model, "
    "and enter the weights only if a lenient test says that they may matter to the outcome."
)
_UNION = "Both models adjust for the covariates found for either."
_OWN = "Each model adjusts for the covariates found for it."
_TARGETED = (
    "The {name} is the effect {population}; its estimator solves the equation of its own efficient "
    "influence function, with the same nuisances, and its standard error is from the empirical "
    "variance of that function."
)


def arms_methods(results: ArmsResults) -> str:
    """All of it."""
    design, plan, effects = results.design, results.plan, results.effects
    return methods_text(
        [
            model_paragraph(design, plan),
            selection_paragraph(
                plan,
                kept=results.kept,
                adjusted=adjusted_for(plan),
                explained="the treatment or the outcome",
            ),
            training_paragraph(plan),
            _estimator_paragraph(results),
            clipping_paragraph(results),
            variance_paragraph(effects, plan),
            missing_paragraph(design),
            software_paragraph(plan),
        ]
    )


def adjusted_for(plan: Plan, union: str = _UNION) -> str:
    """How the covariates found are adjusted for; empty without a search."""
    if plan.search is None:
        return ""
    if plan.adjusts_linearly:
        return _LINEAR
    return union if plan.unites_supports else _OWN


def clipping_paragraph(results: ComparedArms) -> str:
    """Where propensities were bounded, and how often."""
    effects = results.effects
    bounds = clip_label(effects.clip, len(results.arms.levels))
    within = f"to {bounds}" if bounds.startswith("[") else f"at {bounds}"
    return (
        f"Overlap. Propensities were clipped {within}, which changed those of "
        f"{effects.n_clipped} of {results.nobs} units."
    )


def _estimator_paragraph(results: ArmsResults) -> str:
    """What is estimated, and how."""
    arms, name = results.arms, leading_estimand(results)
    measure = "risks" if results.design.family == "binomial" else "mean outcomes"
    text = (
        f"Estimator. Potential {measure} under every level of {arms.name}, and the average "
        f"treatment effects (ATE, {direction(arms)}), were estimated by augmented inverse "
        "probability weighting (AIPW), which is consistent if either the outcome model or the "
        "treatment model is."
    )
    if name != "ATE":
        text += " " + _TARGETED.format(name=name, population=population(arms, name))
    return text
