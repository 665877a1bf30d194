"""From trained networks to the nuisances of arms, and from these to effects."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.prediction import (
    Prediction,
    assignment_probabilities,
    predict_out_of_fold,
)
from cstonet.crossfit.fitted import FittedNetworks, found_covariates
from cstonet.crossfit.fold import Folds, by_repetition, fold_labels
from cstonet.data.design import Design
from cstonet.data.matrix import is_partitioned
from cstonet.data.treatment import Arms
from cstonet.estimators import (
    CrossFit,
    Effects,
    Imputations,
    Nuisances,
    Target,
    effects_over_repetitions,
    estimate_effects,
    estimate_target,
    led_by,
)
from cstonet.estimators.linear_terms import ROWS_PER_SLOPE
from cstonet.estimators.support import Overlap, hidden_bias, hidden_bias_of_mean
from cstonet.imputation.held_out import completed, impute
from cstonet.network.prediction import averaged
from cstonet.network.scaling import StandardisedColumns
from cstonet.network.training_data import TrainingData
from cstonet.settings.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class ArmsNuisances:
    """Nuisances of the training rows.

    Attributes
    ----------
    average
        Averaged over the repetitions of the cross-fitting.
    repetitions
        Those of each.
    overlap
        Who has a counterpart in which arm, given all covariates.
    """

    average: CrossFit
    repetitions: tuple[CrossFit, ...]
    overlap: Overlap


@dataclass(frozen=True, slots=True, eq=False)
class ArmsEstimates:
    """Effects, and the same from each repetition of the cross-fitting alone."""

    effects: Effects
    singles: tuple[Effects, ...]


def arms_nuisances(
    design: Design[Arms], plan: Plan, fitted: FittedNetworks, data: TrainingData
) -> ArmsNuisances:
    """Out-of-fold nuisances of every repetition and of their average.

    Parameters
    ----------
    design, plan
        The data and the plan.
    fitted, data
        What training made of them.
    """
    predictions = predict_out_of_fold(fitted, data.covariates)
    groups = by_repetition(fitted.folds)
    imputed: Imputations | None = None
    alone: Sequence[Imputations | None] = [None] * len(predictions)
    if fitted.gaps is not None:
        imputed, alone = _imputations(fitted, data, plan)

    def nuisances(prediction: Prediction, folds: Folds, labels: Folds) -> Nuisances:
        found = found_covariates(folds)
        n, p = design.X.shape
        # Columns that no estimate can afford slopes for need not be looked at.
        few = is_partitioned(design.X) or p > n / ROWS_PER_SLOPE
        columns = found if few else np.arange(p)
        # Not those that training packed, so that no copy of the covariates outlives it.
        linear = StandardisedColumns(fitted.x_scaling, design.X, columns)
        return Nuisances(
            y=design.y,
            treatment=design.treatment.codes,
            mu=prediction.mu,
            propensity=prediction.propensity,
            weights=design.weights,
            fold=fold_labels(labels),
            linear=linear if plan.adjusts_by_slopes else None,
            found=np.flatnonzero(np.isin(columns, found)),
            ridge=plan.slope_ridge,
            clusters=design.clusters,
        )

    average = nuisances(averaged(predictions), fitted.folds, groups[0])
    assigned = assignment_probabilities(
        fitted, data.covariates, predictions, average.treatment, design.weights
    )
    return ArmsNuisances(
        overlap=Overlap.of(assigned, average),
        average=CrossFit(average, imputed),
        repetitions=tuple(
            CrossFit(nuisances(prediction, folds, folds), own)
            for prediction, folds, own in zip(predictions, groups, alone, strict=True)
        ),
    )


def estimate_arms(design: Design[Arms], plan: Plan, nuisances: ArmsNuisances) -> ArmsEstimates:
    """Average treatment effects and potential-outcome means, after the estimand asked for."""
    arms, clip = design.treatment, plan.clip

    def estimate(one: Nuisances) -> Effects:
        effects = estimate_effects(
            one, levels=arms.levels, clip=clip, variance=plan.variance, kind=arms.kind
        )
        if plan.estimand == "ATE":
            return effects
        leading = [
            estimate_target(one, plan.estimand, (b, 0), clip=clip, name=name)
            for b, name in enumerate(contrast_names(plan.estimand, arms), start=1)
        ]
        return led_by(leading, effects, one.clusters)

    singles = tuple(
        repetition.effects(estimate).without_influence() for repetition in nuisances.repetitions
    )
    effects = effects_over_repetitions(nuisances.average.effects(estimate), singles)
    return ArmsEstimates(with_hidden_bias(effects, plan, arms, nuisances), singles)


def with_hidden_bias(effects: Effects, plan: Plan, arms: Arms, nuisances: ArmsNuisances) -> Effects:
    """The effects, with what extrapolation could hide of each where support is lost."""
    levels, mean, overlap = len(arms.levels), nuisances.average.mean, nuisances.overlap
    targets: tuple[Target, ...] = ("ATE",)
    if plan.estimand != "ATE":
        targets = (plan.estimand, "ATE")
    contrasts = [
        hidden_bias(overlap, mean, target, (b, 0)) for target in targets for b in range(1, levels)
    ]
    means = [hidden_bias_of_mean(overlap, mean, b, 0) for b in range(1, levels)]
    reference = max(hidden_bias_of_mean(overlap, mean, 0, b) for b in range(1, levels))
    bias = np.array([*contrasts, reference, *means])
    return dataclasses.replace(effects, bias=bias) if bias.any() else effects


def contrast_names(target: str, arms: Arms) -> list[str]:
    """Names of the contrasts of all levels with the reference: "ATT", or "ATT[b-a]" of each."""
    reference, *others = arms.levels
    if arms.kind == "binary":
        return [target]
    return [f"{target}[{other}-{reference}]" for other in others]


def _imputations(
    fitted: FittedNetworks, data: TrainingData, plan: Plan
) -> tuple[Imputations, list[Imputations]]:
    """Nuisances of rows with gaps at each imputation: averaged over repetitions, and of each."""
    if fitted.gaps is None:
        raise ValueError("the covariates have no gaps")
    entries = fitted.gaps.entries
    values: NDArray[np.float32] = impute(
        fitted.folds,
        data,
        fitted.gaps,
        imputations=plan.imputations,
        seed=plan.seed,
        threads=fitted.threads,
    )
    each = [
        predict_out_of_fold(fitted, completed(data.in_memory, entries, values[:, m]), entries.rows)
        for m in range(plan.imputations)
    ]

    def collected(predictions: Sequence[Prediction]) -> Imputations:
        return Imputations(
            rows=entries.rows,
            mu=np.stack([prediction.mu for prediction in predictions]),
            propensity=np.stack([prediction.propensity for prediction in predictions]),
            values=values,
        )

    average = collected([averaged(predictions) for predictions in each])
    # All have the same imputations, so that what repetitions differ by is no noise of imputing.
    return average, [collected(alone) for alone in zip(*each, strict=True)]
