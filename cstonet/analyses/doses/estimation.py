"""From trained networks to the nuisances of doses, and from these to the marginal effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.analyses.doses.prediction import predict_doses_out_of_fold
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import by_repetition, fold_labels
from cstonet.data.design import Design
from cstonet.data.treatment import Dose
from cstonet.data.units import Footing
from cstonet.data.variables import counted
from cstonet.estimators import Effects
from cstonet.estimators.dispersion import Dispersion, fit_dispersion
from cstonet.estimators.dose_nuisances import DoseNuisances, dose_grid
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.nuisances import IntArray
from cstonet.estimators.repetitions import effects_over_repetitions
from cstonet.estimators.residual_density import fit_residual_density
from cstonet.network.forward import DosePrediction
from cstonet.network.prediction import averaged
from cstonet.network.training_data import TrainingData
from cstonet.search.selection import Selection, select
from cstonet.settings.plan import Plan

# Covariates of the treatment model on which the dose's variance may depend, strongest first.
_MOST_COVARIATES = 20


@dataclass(frozen=True, slots=True, eq=False)
class DoseModels:
    """Nuisances of the training rows, averaged over repetitions of the cross-fitting and of each.

    Attributes
    ----------
    average
        Averaged over the repetitions.
    dispersion
        How the variance of the dose was found.
    repetitions
        Nuisances of each.
    selection
        The covariates selected, on some of which the variance may depend.
    """

    average: DoseNuisances
    dispersion: Dispersion
    repetitions: tuple[DoseNuisances, ...]
    selection: Selection


@dataclass(frozen=True, slots=True, eq=False)
class DoseEstimates:
    """The average marginal effect, and the same from each repetition alone."""

    effects: Effects
    singles: tuple[Effects, ...]


def dose_models(design: Design[Dose], fitted: FittedNetworks, data: TrainingData) -> DoseModels:
    """Nuisances out of fold.

    Parameters
    ----------
    design, fitted, data
        The data, and what training made of them.
    """
    treatment = design.treatment
    selection = select(design.covariates, fitted.folds, kept=fitted.plan.keep)
    dose, rows = treatment.values, np.arange(len(design.y))
    grid = dose_grid(counted(dose, design.weights))
    doses = np.column_stack([dose, np.broadcast_to(grid, (len(dose), len(grid)))])
    covariates = data.covariates.gather(rows, dispersion_covariates(selection.table))
    weights = design.unit_weights
    footing = Footing.of(dose.min(keepdims=True), dose.max(keepdims=True))

    def models(prediction: DosePrediction, fold: IntArray) -> tuple[DoseNuisances, Dispersion]:
        mean = prediction.mean
        # The square lets the spread be smallest, or largest, at doses in the middle.
        seen = footing.seen(mean)
        features = np.column_stack([covariates, seen, (seen - seen.mean()) ** 2])
        dispersion = fit_dispersion(dose - mean, features, weights, fold)
        nuisances = DoseNuisances(
            y=design.y,
            dose=dose,
            mu=prediction.mu[:, 0],
            slope=prediction.slope[:, 0],
            mean=mean,
            variance=dispersion.values,
            residual_density=fit_residual_density(
                (dose - mean) / np.sqrt(dispersion.values), weights
            ),
            grid=grid,
            mu_grid=prediction.mu[:, 1:],
            weights=design.weights,
            fold=fold,
            spread_terms=dispersion.terms,
            clusters=design.clusters,
        )
        return nuisances, dispersion

    predictions = predict_doses_out_of_fold(fitted, treatment.units, data.covariates, doses)
    folds = [fold_labels(group) for group in by_repetition(fitted.folds)]
    singles = [models(*each) for each in zip(predictions, folds, strict=True)]
    average, dispersion = singles[0]
    if len(singles) > 1:
        average, dispersion = models(averaged(predictions), folds[0])
    repetitions = tuple(single for single, _ in singles)
    return DoseModels(average, dispersion, repetitions, selection)


def estimate_doses(plan: Plan, models: DoseModels) -> DoseEstimates:
    """The average marginal effect."""
    singles = tuple(
        estimate_marginal_effect(one, clip=plan.single_clip) for one in models.repetitions
    )
    if len(singles) == 1:
        return DoseEstimates(singles[0], singles)
    effects = estimate_marginal_effect(models.average, clip=plan.single_clip)
    return DoseEstimates(effects_over_repetitions(effects, singles), singles)


def dispersion_covariates(selection: pd.DataFrame) -> NDArray[np.int64]:
    """Positions of the covariates selected for the treatment, strongest first."""
    chosen = np.flatnonzero(selection["treatment"])
    strength = selection["treatment_strength"].to_numpy()[chosen]
    order = np.argsort(-strength, kind="stable")[:_MOST_COVARIATES]
    return chosen[order].astype(np.int64)
