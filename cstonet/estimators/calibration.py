"""Calibration of predicted effects: whether units with larger ones have larger effects.

The best linear predictor of the effect given its out-of-fold prediction τ̂(x) (Chernozhukov,
Demirer, Duflo and Fernández-Val 2018; grf's `test_calibration`) is

    E[Γ | τ̂] = α τ̄ + β (τ̂ - τ̄_k),

with Γ the doubly robust score, τ̄ the mean prediction and τ̄_k that of the unit's fold, see
:mod:`cstonet.estimators.ranking` for why. α is one if predictions are right on average, β if they
differ between units by as much as effects do; β is zero if they say nothing about who gains.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.pseudo_outcomes import effect_scores

# A spread of predictions below this share of the predictions themselves is rounding.
_ROUNDING = 1e-10


def within_folds(values: FloatArray, weights: FloatArray, fold: IntArray) -> FloatArray:
    """Values (n,) less the weighted mean of their fold; exactly zero where a fold is constant."""
    _, codes = np.unique(fold, return_inverse=True)
    sizes = np.bincount(codes, weights)
    means = np.bincount(codes, weights * values) / np.where(sizes > 0, sizes, 1.0)
    centred = values - means[codes]
    spread, size = np.zeros(len(sizes)), np.zeros(len(sizes))
    np.maximum.at(spread, codes, np.abs(centred))
    np.maximum.at(size, codes, np.abs(values))
    varies = spread > _ROUNDING * size
    return np.where(varies[codes], centred, 0.0)


def estimate_calibration(nuisances: Nuisances, contrast: tuple[int, int], *, clip: Clip) -> Effects:
    """Coefficients of the best linear predictor of effects.

    Parameters
    ----------
    nuisances : Nuisances
        Data and out-of-fold nuisances of n units.
    contrast : (b, a)
        Codes of the two levels; the prediction is μ̂_b(x) - μ̂_a(x), without slopes.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.

    Returns
    -------
    Effects
        "mean" α and "differential" β, with the variance of their influence functions. α is NaN if
        predictions are zero on average, β if they do not vary within any fold.
    """
    b, a = contrast
    weights, scores = nuisances.unit_weights, effect_scores(nuisances, contrast, clip)
    predicted = nuisances.mu[:, b] - nuisances.mu[:, a]
    level, average = float(np.mean(weights * predicted)), float(np.mean(weights * scores))
    direction = within_folds(predicted, weights, nuisances.fold)
    centred = within_folds(scores, weights, nuisances.fold)
    information = float(np.mean(weights * direction**2))
    estimates, influence = np.full(2, np.nan), np.full((nuisances.n, 2), np.nan)
    if level != 0:
        estimates[0] = average / level
        influence[:, 0] = weights * (scores - average) / level
    if information > 0:
        slope = float(np.mean(weights * direction * centred)) / information
        estimates[1] = slope
        influence[:, 1] = weights * direction * (centred - slope * direction) / information
    names = "mean", "differential"
    counted = np.column_stack([weights, weights])
    return Effects.of_influence(
        names, estimates, influence, nuisances.clusters, clip, counted=counted
    )
