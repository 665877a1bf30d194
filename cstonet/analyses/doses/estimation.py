"""From trained networks to the nuisances and the marginal effect of a continuous treatment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import _core
from cstonet.analyses.doses.networks import (
    DosePrediction,
    mean_dose_prediction,
    predict_doses_out_of_fold,
)
from cstonet.crossfit.training import fold_numbers
from cstonet.data.design import Design
from cstonet.data.roles import counted
from cstonet.estimators import Effects
from cstonet.estimators.dispersion import Dispersion, fit_dispersion
from cstonet.estimators.dose_nuisances import DoseNuisances, dose_grid
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.repetitions import effects_over_repetitions
from cstonet.estimators.residual_density import fit_residual_density
from cstonet.network.trained import FittedNetworks
from cstonet.settings.plan import Plan

# Covariates of the treatment model on which the dose's variance may depend, strongest first.
_MOST_COVARIATES = 20


@dataclass(frozen=True, slots=True)
class DoseEstimates:
    """All that the results of a continuous treatment are made of.

    Parameters
    ----------
    nuisances : DoseNuisances
        Averaged over the repetitions of the cross-fitting.
    dispersion : Dispersion
        How the variance of the dose was found.
    effects : Effects
        The AME.
    repetitions : tuple of Effects
        The same from each repetition alone.
    alone : tuple of DoseNuisances
        Nuisances of each repetition.
    """

    nuisances: DoseNuisances
    dispersion: Dispersion
    effects: Effects
    repetitions: tuple[Effects, ...]
    alone: tuple[DoseNuisances, ...]


def estimate_doses(
    design: Design,
    dose: FloatArray,
    plan: Plan,
    networks: FittedNetworks,
    data: _core.Dataset,
    selection: pd.DataFrame,
) -> DoseEstimates:
    """Nuisances out of fold, and the average marginal effect.

    Parameters
    ----------
    design, dose, plan, networks, data
        The data with their doses (n,), the plan, and what training made of them.
    selection
        The selection table, which says on which covariates the dose depends.
    """
    grid = dose_grid(counted(dose, design.weights))
    doses = np.column_stack([dose, np.broadcast_to(grid, (len(dose), len(grid)))])
    fold = fold_numbers(networks.splits, plan.folds, len(dose))
    covariates = data.gather(np.arange(len(dose)), dispersion_covariates(selection))
    weights = np.ones(len(dose)) if design.weights is None else design.weights

    def estimate(prediction: DosePrediction) -> tuple[DoseNuisances, Dispersion, Effects]:
        mean = prediction.mean
        # The square lets the spread be smallest, or largest, at doses in the middle.
        features = np.column_stack([covariates, mean, (mean - mean.mean()) ** 2])
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
        )
        return nuisances, dispersion, estimate_marginal_effect(nuisances, clip=plan.clip)

    predictions = predict_doses_out_of_fold(networks, data, doses)
    singles = [estimate(prediction) for prediction in predictions]
    alone, _, repetitions = zip(*singles, strict=True)
    if len(singles) == 1:
        return DoseEstimates(*singles[0], repetitions, alone)
    nuisances, dispersion, effects = estimate(mean_dose_prediction(predictions))
    effects = effects_over_repetitions(effects, repetitions)
    return DoseEstimates(nuisances, dispersion, effects, repetitions, alone)


def dispersion_covariates(selection: pd.DataFrame) -> NDArray[np.int64]:
    """Positions of the covariates selected for the treatment, strongest first."""
    chosen = np.flatnonzero(selection["treatment"])
    strength = selection["treatment_strength"].to_numpy()[chosen]
    order = np.argsort(-strength, kind="stable")[:_MOST_COVARIATES]
    return chosen[order].astype(np.int64)
