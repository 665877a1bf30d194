"""The methods section of a mediation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstonet.analyses.arms.methods import adjusted_for, clipping_paragraph
from cstonet.analyses.arms.wording import direction
from cstonet.reporting.methods import (
    methods_text,
    model_paragraph,
    selection_paragraph,
    software_paragraph,
    training_paragraph,
    variance_paragraph,
)
from cstonet.reporting.numbers import plain

if TYPE_CHECKING:
    from cstonet.analyses.mediation.results import MediationResults

_UNION = (
    "Treatment and outcome models adjust for the covariates found for either, the mediators' "
    "model for those found for any."
)
_ASSUMED = (
    "Assumptions. Sequential ignorability: the covariates leave no common cause of treatment and "
    "outcome, of treatment and mediators, or of mediators and outcome, and no common cause of the "
    "latter two is itself changed by the treatment. No data can confirm this."
)


def mediation_methods(results: MediationResults) -> str:
    """All of it."""
    design, plan, effects = results.design, results.plan, results.effects
    mediators = f", {len(results.mediators)} mediators"
    return methods_text(
        [
            model_paragraph(design, plan, mediators),
            selection_paragraph(
                plan,
                kept=results.kept,
                adjusted=adjusted_for(plan, _UNION),
                explained="the treatment, a mediator or the outcome",
            ),
            training_paragraph(plan),
            _estimator_paragraph(results),
            _ASSUMED,
            f"{clipping_paragraph(results)} {_ratios(results)}",
            variance_paragraph(design, effects, plan),
            software_paragraph(plan, results.version),
        ]
    )


def _estimator_paragraph(results: MediationResults) -> str:
    """What is estimated, and how."""
    return (
        f"Estimator. The total effect ({direction(results.arms)}) and its parts, the natural "
        "direct and the natural indirect effect through all mediators, were estimated by the "
        "multiply robust estimator of the efficient influence function. The effect of the "
        "treatment on each mediator is doubly robust; the path through it is the interventional "
        "indirect effect, the change of the mean outcome under treatment if this mediator alone "
        "were drawn from its law under treatment instead of control. Paths need not add up to the "
        "natural indirect effect."
    )


def _ratios(results: MediationResults) -> str:
    """Which density ratios were bounded."""
    clip, bounded = results.effects.single_clip, results.estimated.n_bounded
    return (
        "Density ratios of the mediators were bounded where the treatment probability given the "
        f"mediators left [{plain(clip)}, {plain(1 - clip)}]: for {bounded} of {results.nobs} units."
    )
