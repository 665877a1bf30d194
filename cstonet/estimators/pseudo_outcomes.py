"""Doubly robust scores of an effect: one number per unit that stands for its effect.

With Γ_ia = μ̂_a(x_i) + 1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i), the difference Γ_ib - Γ_ia has the
conditional mean τ(x_i) if either nuisance is right. Whatever is asked about effects that differ
between units (by group, along a covariate, under a rule of treatment) can be asked of these scores
as of an outcome: means and regressions of them are means and regressions of τ (Robins and Rotnitzky
1995; Semenova and Chernozhukov 2021).
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.aipw import aipw_scores
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.nuisances import Clip, FloatArray, Nuisances
from cstonet.estimators.unit_blocks import unit_blocks


def arm_scores(nuisances: Nuisances, clip: Clip) -> FloatArray:
    """Doubly robust score of every unit for its outcome under every level.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances of n units; where they have slopes, these are part of the
        outcome model.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.

    Returns
    -------
    (n, L) float64
        Γ_ia, in the units of the outcome. Weights of the units are not in it.
    """
    scores = np.empty((nuisances.n, nuisances.n_levels))
    for units in unit_blocks(nuisances, clip, linear_terms(nuisances, clip)):
        scores[units.rows] = aipw_scores(units, units.propensity)
    return scores


def effect_scores(nuisances: Nuisances, contrast: tuple[int, int], clip: Clip) -> FloatArray:
    """Doubly robust score of every unit for the effect of one level against another.

    Parameters
    ----------
    nuisances, clip
        See `arm_scores`.
    contrast : (b, a)
        Codes of the two levels.

    Returns
    -------
    (n,) float64
        Γ_ib - Γ_ia, in the units of the outcome. Weights of the units are not in it: the mean with
        `Nuisances.unit_weights` is the average treatment effect of `estimate_effects`.
    """
    b, a = contrast
    scores = arm_scores(nuisances, clip)
    difference: FloatArray = scores[:, b] - scores[:, a]
    return difference
