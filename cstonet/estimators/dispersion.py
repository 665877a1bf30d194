"""The variance v(x) of a dose given the covariates: one number, or a log-linear function of them.

Which of the two is decided by a test. Both use the residuals of rows that the dose's model was not
trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from cstonet.estimators.nuisances import FloatArray, IntArray

# Level of the test for a variance that depends on the covariates.
LEVEL = 0.01
# v(x) stays within this factor of its average: a log-linear model is not believed further out.
_WIDEST = 20.0
# Newton steps of the log-linear model, and when they have converged.
_STEPS, _TOLERANCE = 50, 1e-10
# Observations that the prior "no dependence" is worth, per coefficient.
_RIDGE = 2.0


@dataclass(frozen=True, slots=True)
class Dispersion:
    """The fitted variance of the dose.

    Parameters
    ----------
    values : (n,) float64
        v̂(x_i).
    heteroscedastic : bool
        Whether it depends on the covariates.
    pvalue : float
        Of the hypothesis that it does not.
    terms : (n, k) float64 or None
        What log v̂(x) is linear in, beside a constant; None if it is constant.
    """

    values: FloatArray
    heteroscedastic: bool
    pvalue: float
    terms: FloatArray | None = None


def fit_dispersion(
    residual: FloatArray, features: FloatArray, weights: FloatArray, fold: IntArray
) -> Dispersion:
    """Fit v(x), constant unless a score test says otherwise.

    Parameters
    ----------
    residual : (n,) float64
        A_i - m̂(x_i), out of fold if the fit is cross-fitted.
    features : (n, k) float64
        What the variance may depend on; constant columns are ignored.
    weights : (n,) float64
        Row weights with mean one.
    fold : (n,) int64
        The log-linear model is fitted to the other folds' rows, if there are others.
    """
    squares = residual**2
    average = float(np.mean(weights * squares))
    z = _standardised(features, weights)
    pvalue = _score_test(squares, z, weights)
    if not pvalue < LEVEL:
        return Dispersion(np.full(len(residual), average), False, pvalue)
    design = np.column_stack([np.ones(len(z)), z])
    values = np.empty(len(residual))
    for number in np.unique(fold):
        here = fold == number
        rows = ~here if not here.all() else here
        coefficients = _log_linear(squares[rows] / average, design[rows], weights[rows])
        limit = np.log(_WIDEST)
        values[here] = average * np.exp(np.clip(design[here] @ coefficients, -limit, limit))
    return Dispersion(values, True, pvalue, z)


def coefficient_influence(ratio: FloatArray, terms: FloatArray, weights: FloatArray) -> FloatArray:
    """Influence values of the coefficients in log v̂(x), without that of the constant.

    Parameters
    ----------
    ratio : (n,) float64
        Squared residuals over v̂(x_i).
    terms : (n, k) float64
        See `Dispersion`.
    weights : (n,) float64
        Row weights with mean one.

    Returns
    -------
    (n, k) float64
        The likelihood equations mean((ratio - 1)(1, terms)) = 0, linearised.
    """
    design = np.column_stack([np.ones(len(terms)), terms])
    curvature = (design * (weights * ratio)[:, None]).T @ design / len(terms)
    moments = (weights * (ratio - 1))[:, None] * design
    values: FloatArray = moments @ np.linalg.pinv(curvature, hermitian=True)[:, 1:]
    return values


def _standardised(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Columns of weighted mean zero and variance one, shape (n, k); constant ones are left out."""
    centred = features - weights @ features / len(features)
    spread = np.sqrt(weights @ centred**2 / len(features))
    varies = spread > 1e-10 * np.maximum(np.abs(features).max(axis=0, initial=0.0), 1e-300)
    columns: FloatArray = centred[:, varies] / spread[varies]
    return columns


def _score_test(squares: FloatArray, z: FloatArray, weights: FloatArray) -> float:
    """P-value of Koenker's score test of squares that do not depend on z.

    The products of z with the centred squares have mean zero if not; their own second moments
    studentise them, so that the test does not rest on a normal dose.
    """
    if z.shape[1] == 0:
        return 1.0
    centred = squares - np.mean(weights * squares)
    products = weights[:, None] * z * centred[:, None]
    # Features may be collinear: only as many directions are tested as there are.
    values, vectors = np.linalg.eigh(products.T @ products)
    kept = values > 1e-8 * max(float(values[-1]), np.finfo(float).tiny)
    total = products.sum(axis=0) @ vectors[:, kept]
    return float(chdtrc(int(kept.sum()), np.sum(total**2 / values[kept])))


def _log_linear(squares: FloatArray, design: FloatArray, weights: FloatArray) -> FloatArray:
    """γ that maximises the gaussian likelihood with variances exp(design γ), shape (k + 1,).

    A small ridge on all but the intercept keeps the estimate finite.
    """
    ridge = np.full(design.shape[1], _RIDGE)
    ridge[0] = 0.0

    def loss(gamma: FloatArray) -> float:
        eta = design @ gamma
        with np.errstate(over="ignore"):
            terms = eta + squares * np.exp(-eta)
        return float(np.sum(weights * terms) + np.sum(ridge * gamma**2))

    gamma = np.zeros(design.shape[1])
    current = loss(gamma)
    for _ in range(_STEPS):
        ratio = squares * np.exp(-(design @ gamma))
        gradient = design.T @ (weights * (1 - ratio)) + 2 * ridge * gamma
        # The expected curvature, in which the ratio is one, is positive definite.
        curvature = (design * weights[:, None]).T @ design + 2 * np.diag(ridge)
        step = np.linalg.solve(curvature + 1e-10 * np.eye(len(gamma)), gradient)
        size = 1.0
        while loss(gamma - size * step) > current and size > 1e-6:
            size /= 2
        gamma = gamma - size * step
        previous, current = current, loss(gamma)
        if previous - current < _TOLERANCE * max(abs(current), 1.0):
            break
    return gamma
