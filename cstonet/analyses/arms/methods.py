"""The methods section of a comparison of arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstonet.analyses.arms.wording import clip_label, direction, leading_estimand, population
from cstonet.estimators.support import COUNTERPART
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
    "Both models adjust for the outcome's covariates; those found for the treatment alone enter "
    "the weights only if a lenient test says that they may matter to the outcome."
)
_SLOPES = (
    " Residuals of the outcome model were regressed on arms and covariates with the same weights "
    "(all covariates if there are four effective rows for each coefficient, otherwise those found "
    "by a model; those found have slopes by arm if every arm has ten effective rows for each), and "
    "what this explains joined the outcome model, so that the estimator's total weights balance "
    "these covariates but for what a ridge leaves. It shrinks the slopes as if they were drawn "
    "with {spread} standard errors of a common slope; their error is in the influence function, "
    "and the remaining imbalance counts in the variance with slopes of that size that have no "
    "common sign. Effects of the covariates that are linear and, unless a model found the "
    "covariate, alike in all arms are thus removed to the largest part, whatever the propensities "
    "are."
)
_BACKBONE = (
    "Linear parts. Beside the networks, every fold has penalised regressions of treatment "
    "(logistic, on the covariates of its weights) and outcome (on arms, all covariates, at most "
    "200 of those not found, and products with arms), with penalties chosen on held-out rows, and "
    "a network that learned what they leave. Predictions mix the three on the scale of the linear "
    "predictor, with weights chosen by the out-of-fold likelihood: treatment {treatment}, outcome "
    "{outcome} (linear part, network beside it, networks alone)."
)
_AT_HAND = (
    " Of covariates that stay in their partitions, only those that a model found take part in "
    "support, linear parts and slopes."
)
_UNION = "Both models adjust for the covariates found for either."
_OWN = "Each model adjusts for the covariates found for it."
_TARGETED = (
    "The {name} is the effect {population}; its estimator solves the equation of its own efficient "
    "influence function, with the same nuisances, and its standard error is from the empirical "
    "variance of that function and what the slopes leave."
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
            _backbone_paragraph(results),
            _estimator_paragraph(results),
            clipping_paragraph(results),
            _support_paragraph(results),
            variance_paragraph(design, effects, plan),
            missing_paragraph(design),
            software_paragraph(plan, results.version),
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
    effects, levels = results.effects, results.arms.levels
    within = f"clipped to {clip_label(effects.clip, len(levels))}"
    if len(levels) > 2 and isinstance(effects.clip, tuple):
        bounds = zip(effects.clip, levels, strict=True)
        each = ", ".join(f"{bound:.2g} ({level})" for bound, level in bounds)
        within = f"kept at or above {each}"
    return (
        f"Overlap. Propensities were {within}, which changed those of {effects.n_clipped} of "
        f"{results.nobs} units."
    )


def _backbone_paragraph(results: ArmsResults) -> str:
    """Linear parts and how they are mixed with networks; empty without them."""
    if not results.plan.backbone:
        return ""
    mixture = results.networks.mixture
    treatment, outcome = (
        " / ".join(f"{weight:.2f}" for weight in weights)
        for weights in (mixture.treatment, mixture.outcome)
    )
    return _BACKBONE.format(treatment=treatment, outcome=outcome)


def _support_paragraph(results: ArmsResults) -> str:
    """Who has counterparts, and what is added to intervals where many have none."""
    given = "all covariates" if results.plan.backbone else "the covariates of the weights"
    text = (
        f"Support. A unit has a counterpart in an arm if its out-of-fold probability of it, given "
        f"{given}, is at least {COUNTERPART:.0%} of the arm's share; "
        f"{results.lost_share:.1%} of the units that the {leading_estimand(results)} asks about "
        "lack one."
    )
    if results.effects.bias is not None and results.effects.bias[0] > 0:
        text += (
            " Intervals include what extrapolation to them could hide: the effect is taken to "
            "change per unit of the log-odds of treatment beyond the region with counterparts by "
            "no more than the slope of the doubly robust scores in these log-odds within it, plus "
            "two standard errors."
        )
    if not results.in_memory:
        text += _AT_HAND
    return text


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
    if results.plan.adjusts_by_slopes:
        text += _SLOPES.format(spread=f"{results.plan.slope_ridge**-0.5:.1f}")
    if name != "ATE":
        text += " " + _TARGETED.format(name=name, population=population(arms, name))
    return text
