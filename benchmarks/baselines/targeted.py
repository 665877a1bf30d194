"""Targeted maximum likelihood, with the lasso or with an ensemble for its initial fits.

Van der Laan and Rubin (2006), as in the R package tmle: the outcome is scaled to [0, 1], one
regression has the treatment among its covariates, and its means are moved along a logistic
fluctuation until the mean of the effect's influence function is zero. One default of the package
is departed from: its initial means are predictions for held-out folds (``cvQinit = TRUE``), here
they are those of one fit to all training rows, as in the paper. This is to the disadvantage of
TMLE in sample: residuals of rows that the fit has seen are too small, most of all with boosting,
so that targeting corrects too little and intervals are too short. Out of sample nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from numpy.typing import NDArray
from scipy.optimize import brentq, nnls
from scipy.special import expit, logit

from baselines.base import Baseline

# How far the scaled means keep from 0 and 1, where the logistic fluctuation has no slope.
MEANS_MARGIN = 0.0005

Predictor: TypeAlias = Callable[[FloatArray], FloatArray]
# Covariates (n, p), response (n,), whether it is 0 or 1, threads, seed: gives the fitted means.
Learner: TypeAlias = Callable[[FloatArray, FloatArray, bool, int, int], Predictor]


def propensity_bound(n: int) -> float:
    """5 / (√n log n), which tmle keeps propensities above and, from 1, below; at most a half."""
    return min(float(5 / (np.sqrt(n) * np.log(n))), 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Targeted:
    """What targeting gives.

    Parameters
    ----------
    ate, se : float
        Mean effect, and its standard error from the influence function.
    means : (n, 2) float64
        Targeted means without and with treatment.
    influence : (n,) float64
        Influence function of the mean effect; its mean is zero.
    """

    ate: float
    se: float
    means: FloatArray
    influence: FloatArray


def target(
    y: FloatArray,
    treat: NDArray[np.int64],
    means: FloatArray,
    propensity: FloatArray,
    limits: tuple[float, float],
) -> Targeted:
    """Fluctuate initial means until they solve the equation of the mean effect.

    Parameters
    ----------
    y, treat : (n,)
        Outcomes and treatments.
    means : (n, 2) float64
        Initial means without and with treatment.
    propensity : (n,) float64
        Probabilities of treatment.
    limits : (float, float)
        Smallest and largest possible outcome.
    """
    low, high = limits
    if not high > low:
        raise ValueError(f"every outcome is {low:g}: there is no effect to estimate")
    n, bound = len(y), propensity_bound(len(y))
    propensity = np.clip(propensity, bound, 1 - bound)
    scaled = (y - low) / (high - low)
    updated = np.empty((n, 2))
    # The clever covariate of an arm is zero in the other one: each has an equation of its own.
    for a, probability in enumerate((1 - propensity, propensity)):
        mine = treat == a
        initial = np.clip((means[:, a] - low) / (high - low), MEANS_MARGIN, 1 - MEANS_MARGIN)
        offset, clever = logit(initial), 1 / probability
        epsilon = fluctuation(scaled[mine], offset[mine], clever[mine])
        updated[:, a] = low + (high - low) * expit(offset + epsilon * clever)
    effects = updated[:, 1] - updated[:, 0]
    ate = float(effects.mean())
    signed = np.where(treat == 1, 1 / propensity, -1 / (1 - propensity))
    influence = signed * (y - np.where(treat == 1, updated[:, 1], updated[:, 0])) + effects - ate
    return Targeted(ate, float(influence.std(ddof=1) / np.sqrt(n)), updated, influence)


def fluctuation(y: FloatArray, offset: FloatArray, clever: FloatArray) -> float:
    """ε of the logistic regression of y in [0, 1] on a covariate alone, beside an offset.

    Parameters
    ----------
    y : (n,) float64
        Scaled outcomes.
    offset : (n,) float64
        Log-odds of the initial means.
    clever : (n,) float64
        Covariate, greater than zero.
    """
    if len(y) == 0:
        raise ValueError("one of the arms has no row: there is nothing to target")

    def score(epsilon: float) -> float:
        return float(clever @ (y - expit(offset + epsilon * clever)))

    # The score falls in ε. Where all outcomes are 0 (or all 1), it becomes zero by underflow.
    low, high = -1.0, 1.0
    while score(low) < 0:
        low *= 2
    while score(high) > 0:
        high *= 2
    return float(brentq(score, low, high, xtol=1e-15, rtol=8.9e-16))


def fit_lasso(X: FloatArray, y: FloatArray, binary: bool, threads: int, seed: int) -> Predictor:
    """Lasso of standardised covariates, linear or logistic, with a cross-validated penalty."""
    from learners import LogisticLasso, cross_validation, path_length
    from sklearn.linear_model import LassoCV

    model: Any
    if binary:
        model = LogisticLasso(threads=threads, seed=seed).fit(X, y)
        return lambda new: model.predict_proba(new)[:, 1]
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    folds, length = cross_validation(binary, seed), path_length(*X.shape)
    model = LassoCV(alphas=100, eps=length, cv=folds, n_jobs=threads).fit((X - centre) / spread, y)
    return lambda new: model.predict((new - centre) / spread)


def fit_boosting(X: FloatArray, y: FloatArray, binary: bool, threads: int, seed: int) -> Predictor:
    """LightGBM, the growth of which stops when a tenth of the rows no longer gains."""
    from learners import stopped_boosting

    model = stopped_boosting(binary, threads, seed).fit(X, y)
    return lambda new: model.predict_proba(new)[:, 1] if binary else model.predict(new)


def fit_ensemble(X: FloatArray, y: FloatArray, binary: bool, threads: int, seed: int) -> Predictor:
    """Super learner of the lasso and boosting: a weighted mean of their predictions.

    The weights are the non-negative least squares of the response on predictions for held-out
    folds, scaled to a sum of one: the default of the R package SuperLearner.
    """
    from learners import cross_validation

    members: tuple[Learner, ...] = (fit_lasso, fit_boosting)
    held_out = np.empty((len(y), len(members)))
    for train, test in cross_validation(binary, seed).split(X, y):
        for column, learner in enumerate(members):
            fitted = learner(X[train], y[train], binary, threads, seed)
            held_out[test, column] = fitted(X[test])
    weights = stacking_weights(held_out, y)
    fitted_members = [
        (weight, learner(X, y, binary, threads, seed))
        for weight, learner in zip(weights, members, strict=True)
        if weight > 0
    ]
    return lambda new: np.sum([weight * member(new) for weight, member in fitted_members], axis=0)


def stacking_weights(predictions: FloatArray, y: FloatArray) -> FloatArray:
    """Non-negative weights (k,) of sum one for predictions (n, k) of y (n,)."""
    weights: FloatArray = nnls(predictions, y)[0]
    if weights.sum() == 0:
        # Every prediction points away from y: as SuperLearner, trust all alike.
        return np.full(len(weights), 1 / len(weights))
    return weights / float(weights.sum())


@dataclass(frozen=True, slots=True, eq=False)
class InitialFits:
    """The initial fits, from the training rows.

    Parameters
    ----------
    outcome : callable
        Means (m,) of the outcome at treatments and covariates (m, 1 + p).
    treatment : callable
        Probabilities (m,) of treatment at covariates (m, p).
    limits : (float, float)
        Smallest and largest outcome of the training rows, or 0 and 1.
    """

    outcome: Predictor
    treatment: Predictor
    limits: tuple[float, float]

    def on(self, rows: Variables) -> Estimate:
        """Target the mean effect among these rows with their outcomes and treatments.

        The rows' effects are those of the initial means: the targeted ones have seen the rows'
        outcomes, and are made for the mean effect alone.
        """
        X = np.asarray(rows.X, np.float64)
        means = np.column_stack(
            [self.outcome(np.column_stack([np.full(len(X), a), X])) for a in (0.0, 1.0)]
        )
        limits = min(self.limits[0], rows.y.min()), max(self.limits[1], rows.y.max())
        done = target(rows.y, rows.treat, means, self.treatment(X), limits)
        return Estimate(
            ate=done.ate,
            se=done.se,
            lower=done.ate - Z95 * done.se,
            upper=done.ate + Z95 * done.se,
            cate=means[:, 1] - means[:, 0],
        )


def learn(learner: Learner, rows: Variables, threads: int, seed: int) -> InitialFits:
    """Make the initial fits with this learner."""
    X, treat = np.asarray(rows.X, np.float64), rows.treat.astype(np.float64)
    limits = (0.0, 1.0) if rows.binary else (float(rows.y.min()), float(rows.y.max()))
    outcome = learner(np.column_stack([treat, X]), rows.y, rows.binary, threads, seed)
    return InitialFits(outcome, learner(X, treat, True, threads, seed), limits)


_SOURCE = "van der Laan and Rubin (2006), International Journal of Biostatistics 2(1)"
_LASSO_MODULES = ("sklearn.linear_model", "sklearn.model_selection")

TMLE_LASSO = Baseline(
    name="tmle-lasso",
    modules=_LASSO_MODULES,
    learn=partial(learn, fit_lasso),
    source=_SOURCE,
    version=2,
)

TMLE_ENSEMBLE = Baseline(
    name="tmle-ensemble",
    modules=(*_LASSO_MODULES, "lightgbm"),
    learn=partial(learn, fit_ensemble),
    source=_SOURCE,
    version=2,
)
