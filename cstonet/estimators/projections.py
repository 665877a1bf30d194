"""The effect as a linear function of some terms: its best linear projection.

The effects τ(x) of the units are regressed on terms t by least squares, doubly robust scores taking
the place of the effects that nobody sees (Semenova and Chernozhukov 2021). Nothing is assumed of
τ: the coefficients are those of the linear function that is nearest to it, and with a constant as
the only term they are the average treatment effect.

The k coefficients are means of weights c_i = w_i Q⁻¹ t_i times the scores, Q the mean of w t tᵀ.
So they have the influence function of an average effect with these weights: what varies about the
projection, the errors of the outcome, and what slopes of linear terms add. Each unit counts with
what it would have if it had not drawn the projection to itself: its influence value over one minus
its leverage (MacKinnon and White's HC3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstonet.errors import NumericalError
from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import influence_covariance
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.nuisances import Clip, FloatArray, Nuisances
from cstonet.estimators.pseudo_outcomes import effect_scores
from cstonet.estimators.unit_blocks import unit_blocks
from cstonet.estimators.variance import WeightSpread

# A unit that decides its own fit counts at most 1 over this times its influence value.
_LEAST_FREEDOM = 0.05
# Terms whose correlation matrix has a smaller eigenvalue than this say the same thing twice.
_SINGULAR = 1e-10


def estimate_projection(
    nuisances: Nuisances,
    terms: FloatArray,
    contrast: tuple[int, int],
    *,
    clip: Clip,
    names: tuple[str, ...],
    at: FloatArray | None = None,
) -> Effects:
    """Coefficients of the best linear projection of an effect on terms, or values of it.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances of n units.
    terms : (n, k) float64
        The terms, a constant among them if one is wanted.
    contrast : (b, a)
        Codes of the two levels.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    names : tuple of length k, or q
        What to call the coefficients, or the values.
    at : (q, k) float64, optional
        Values of the terms for which the projection is wanted in place of its coefficients.

    Returns
    -------
    Effects
        k coefficients, or q values.

    Raises
    ------
    NumericalError
        If the terms depend on each other linearly.
    """
    b, a = contrast
    n, k = terms.shape
    each = coefficient_weights(nuisances, terms)
    scores = effect_scores(nuisances, contrast, clip)
    estimates = each.T @ scores / n
    leverage = np.sum(each * terms, axis=1) / n
    projected = terms @ estimates
    if at is not None:
        each, estimates, k = each @ at.T, at @ estimates, len(at)
    linear = linear_terms(nuisances, clip)
    imbalance, n_clipped = np.zeros((0 if linear is None else linear.width, k)), 0
    for units in unit_blocks(nuisances, clip, linear):
        n_clipped += units.n_clipped
        if linear is not None:
            own = each[units.rows]
            compared = np.zeros((len(own), nuisances.n_levels, k))
            compared[:, b], compared[:, a] = own, -own
            weights = _weights(units.received, units.propensity, own, b, a)
            imbalance += linear.moments(units.rows, weights)
            imbalance -= linear.expected(units.rows, compared)
    imbalance /= n
    influence, errors, spread = (
        np.empty((n, k)),
        np.empty((n, k)),
        WeightSpread(k, nuisances.clusters),
    )
    for units in unit_blocks(nuisances, clip, linear):
        own = each[units.rows]
        weights = _weights(units.received, units.propensity, own, b, a)
        tau = units.mu[:, b] - units.mu[:, a]
        signal = own * (tau - projected[units.rows])[:, None]
        codes = units.treatment[:, None]
        residual = error = units.y - np.take_along_axis(units.mu, codes, axis=1)[:, 0]
        if linear is not None:
            weights = weights - linear.shift(units.rows, imbalance)
            residual, error = linear.residual[units.rows], linear.error[units.rows]
            signal = signal + linear.held(units.rows, imbalance)
        influence[units.rows] = signal + weights * residual[:, None]
        errors[units.rows] = signal + weights * error[:, None]
        spread.add(weights)
    errors /= np.maximum(1 - leverage, _LEAST_FREEDOM)[:, None]
    covariance = influence_covariance(errors, nuisances.clusters)
    if linear is not None:
        covariance = covariance + linear.missed(imbalance)
    return Effects(
        names=names,
        n_contrasts=k,
        estimates=estimates,
        covariance=covariance,
        influence=influence,
        n_clipped=n_clipped,
        clip=clip,
        variance_kind="influence",
        freedom=spread.freedom(),
    )


def coefficient_weights(nuisances: Nuisances, terms: FloatArray) -> FloatArray:
    """Weights c (n, k) of the units' effects in the coefficients: these are means of c times τ.

    Raises
    ------
    NumericalError
        If the terms depend on each other linearly.
    """
    weighted = terms * nuisances.unit_weights[:, None]
    gram = weighted.T @ terms / nuisances.n
    scale = np.sqrt(np.diag(gram))
    if not np.all(scale > 0) or np.linalg.eigvalsh(gram / np.outer(scale, scale))[0] < _SINGULAR:
        raise NumericalError("the terms depend on each other linearly")
    return np.asarray(np.linalg.solve(gram, weighted.T).T)


def _weights(
    received: NDArray[np.bool_], propensity: FloatArray, each: FloatArray, b: int, a: int
) -> FloatArray:
    """Weights of the outcomes' errors in the coefficients, before slopes take theirs; (m, k)."""
    contrasted = received[:, b] / propensity[:, b] - received[:, a] / propensity[:, a]
    weights: FloatArray = each * contrasted[:, None]
    return weights
