"""From nuisances to effects: the clip, the AIPW scores, the variance. No network in sight."""

from cstonet.estimators.aipw import Effects, aipw_scores, estimate_effects
from cstonet.estimators.imputations import (
    Imputations,
    contrast_freedom,
    joint_freedom,
    missing_information,
    pooled_effects,
)
from cstonet.estimators.leading import led_by
from cstonet.estimators.linear_omission import LinearOmission
from cstonet.estimators.mediation import (
    MediationEffects,
    MediationNuisances,
    estimate_mediation,
    mediation_scores,
)
from cstonet.estimators.nuisances import (
    Clipped,
    Nuisances,
    clip_propensity,
    inverse_probability_residuals,
)
from cstonet.estimators.paths import (
    Estimates,
    PathNuisances,
    estimate_mediator_effects,
    estimate_paths,
)
from cstonet.estimators.repetitions import CrossFit, effects_over_repetitions
from cstonet.estimators.targets import TARGETS, Target, estimate_target
from cstonet.estimators.variance import VARIANCE_KINDS, PomCovariance, VarianceKind

__all__ = [
    "Nuisances",
    "Clipped",
    "clip_propensity",
    "inverse_probability_residuals",
    "aipw_scores",
    "VarianceKind",
    "VARIANCE_KINDS",
    "PomCovariance",
    "Effects",
    "estimate_effects",
    "Imputations",
    "pooled_effects",
    "missing_information",
    "contrast_freedom",
    "joint_freedom",
    "CrossFit",
    "effects_over_repetitions",
    "Target",
    "TARGETS",
    "estimate_target",
    "led_by",
    "LinearOmission",
    "MediationNuisances",
    "MediationEffects",
    "mediation_scores",
    "estimate_mediation",
    "Estimates",
    "PathNuisances",
    "estimate_paths",
    "estimate_mediator_effects",
]
