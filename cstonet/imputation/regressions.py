"""Regressions of single covariates: linear for numbers, softmax for levels; their selection.

They are the pieces of the graphical model of the covariates
(:mod:`cstonet.imputation.conditionals`) and of the model of what is missing
(:mod:`cstonet.imputation.missingness`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from cstonet import _core
from cstonet.network.covariates import FoldCovariates
from cstonet.network.products import main_effects
from cstonet.search.scores import threshold

FloatArray = NDArray[np.float64]
# A function called now and then that may raise to stop; its argument is immaterial.
Stop = Callable[[int], object]

# Precision of a normal prior on standardised coefficients: it only matters where levels are
# separated by a feature, or features are copies of each other.
_LINEAR_RIDGE, _SOFTMAX_RIDGE = 1e-3, 0.5
_NEWTON_STEPS, _CONVERGED = 12, 1e-5
# Newton's matrix has a row per level and feature: up to so many levels it is the faster way. Where
# levels are rare it can go astray; what is left of the gradient then is many times this.
_NEWTON_LEVELS, _ASTRAY = 20, 0.01
# Steps of L-BFGS at most, and the gradient at its end in standard errors of the coefficients.
_GRADIENT_STEPS, _GRADIENT_LEFT = 200, 1e-3
# Features admitted per round, and in all: a covariate's distribution given thirty others needs no
# more.
_PER_ROUND, _MOST_FEATURES = 2, 30
# Known values that a regression needs for each of its features, or it leaves no spread.
VALUES_PER_FEATURE = 3
# Targets whose scores are held at once.
_TARGETS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Regression:
    """A number or a level given other covariates.

    Attributes
    ----------
    features : (q,)
        The covariates it depends on.
    coefficients : (1 + q, k)
        Intercept and slopes: of the mean (k = 1), or of the log-odds of each of k = L - 1 levels
        against the first.
    spread : float or None
        Residual standard deviation; None for levels.
    """

    features: NDArray[np.int64]
    coefficients: FloatArray
    spread: float | None


def fit_linear(x: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """Least squares: coefficients (1 + q, 1) and the residual standard deviation.

    Parameters
    ----------
    x : (n, q)
        Features.
    y : (n,)
        Target.
    """
    design = _with_intercept(x)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += _LINEAR_RIDGE
    slopes = np.asarray(np.linalg.solve(gram, design.T @ y), dtype=np.float64)
    residual = y - design @ slopes
    freedom = max(len(y) - len(slopes), 1)
    return slopes[:, None], float(np.sqrt(residual @ residual / freedom))


def fit_softmax(
    x: FloatArray,
    codes: NDArray[np.int64],
    levels: int,
    *,
    start: FloatArray | None = None,
    weights: FloatArray | None = None,
    stop: Stop | None = None,
) -> FloatArray:
    """Log-odds (1 + q, L - 1) of levels against the first.

    By Newton's method, or by L-BFGS where levels are many or Newton's steps do not converge.

    Parameters
    ----------
    x : (n, q)
        Features.
    codes : (n,)
        Level of each row.
    levels
        Number of levels L.
    start : (1 + q, L - 1), optional
        Where to begin.
    weights : (n,), optional
        Row weights.
    stop
        Called now and then; may raise to stop.
    """
    design = _with_intercept(x)
    q, k = design.shape[1], levels - 1
    theta = np.zeros((q, k)) if start is None else start.copy()
    if k == 0:
        return theta
    target = (codes[:, None] == np.arange(1, levels)).astype(np.float64)
    w = np.ones(len(codes)) if weights is None else weights
    # The intercept has no prior: the frequencies of the levels must come out right.
    ridge = np.full(q, _SOFTMAX_RIDGE)
    ridge[0] = 1e-6
    if levels > _NEWTON_LEVELS:
        return _by_gradient(design, target, w, ridge, start, stop)

    def at(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities (n, k) and the gradient (q, k) of the log posterior."""
        p = level_probabilities(design @ theta)[:, 1:]
        return p, design.T @ (w[:, None] * (target - p)) - ridge[:, None] * theta

    for _ in range(_NEWTON_STEPS):
        p, gradient = at(theta)
        hessian = _softmax_hessian(design, p, w, stop)
        hessian[np.diag_indices(k * q)] += np.tile(ridge, k)
        step = np.linalg.solve(hessian, gradient.T.ravel()).reshape(k, q).T
        # A full step can overshoot where levels are rare; five units of log-odds never do.
        theta += step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < _CONVERGED:
            return theta
    _, gradient = at(theta)
    if np.abs(gradient).max() < _ASTRAY:
        return theta
    return _by_gradient(design, target, w, ridge, start, stop)


def _softmax_hessian(
    design: FloatArray, p: FloatArray, weights: FloatArray, stop: Stop | None
) -> FloatArray:
    """Information (kq, kq) of k log-odds with q coefficients each, at probabilities (n, k)."""
    q, k = design.shape[1], p.shape[1]
    hessian = np.empty((k, q, k, q))
    for a in range(k):
        poll(stop)
        for b in range(a, k):
            curvature = weights * p[:, a] * ((a == b) - p[:, b])
            block = design.T @ (curvature[:, None] * design)
            hessian[a, :, b, :] = hessian[b, :, a, :] = block
    return hessian.reshape(k * q, k * q)


def _by_gradient(
    design: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    ridge: FloatArray,
    start: FloatArray | None,
    stop: Stop | None,
) -> FloatArray:
    """The same log-odds (q, k) by L-BFGS, which needs no matrix of all levels and features.

    Parameters
    ----------
    design : (n, q)
        Features, with the intercept.
    target : (n, k)
        Indicators of all levels but the first.
    weights, ridge : (n,), (q,)
        Weights of the rows; precisions of the prior.
    start, stop
        As for `fit_softmax`; by default from the frequencies of the levels.
    """
    shape = design.shape[1], target.shape[1]
    counts = weights @ target + 0.5
    rest = weights.sum() + 0.5 - (weights @ target).sum()
    if start is None:
        start = np.zeros(shape)
        start[0] = np.log(counts / rest)
    # In units in which each level's own curvature at its frequency is one, levels that are rare
    # move as fast as others: tens of steps instead of hundreds.
    share = counts / (counts.sum() + rest)
    gram = design.T @ (weights[:, None] * design)
    root = np.linalg.cholesky((share * (1 - share))[:, None, None] * gram + np.diag(ridge))
    units = np.linalg.inv(root)  # (k, q, q)

    def coefficients(flat: FloatArray) -> FloatArray:
        moved = flat.reshape(shape[1], 1, shape[0]) @ units
        return np.ascontiguousarray(moved[:, 0, :].T)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        poll(stop)
        theta = coefficients(flat)
        log_odds = design @ theta
        highest = np.maximum(log_odds.max(axis=1), 0.0)
        loss = weights @ (highest - np.einsum("nk,nk->n", log_odds, target))
        p = np.exp(log_odds - highest[:, None])
        total = np.exp(-highest) + p.sum(axis=1)
        p /= total[:, None]
        loss += weights @ np.log(total) + 0.5 * ridge @ np.sum(theta**2, axis=1)
        gradient = design.T @ (weights[:, None] * (p - target)) + ridge[:, None] * theta
        return float(loss), (units @ gradient.T[:, :, None]).ravel()

    from scipy.optimize import minimize  # not at the top: only fits with gaps pay for loading it

    begin = (start.T[:, None, :] @ root).ravel()
    options = {"maxiter": _GRADIENT_STEPS, "gtol": _GRADIENT_LEFT, "ftol": 1e-12}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    return coefficients(found.x)


def poll(stop: Stop | None) -> None:
    """Give a function that may raise the occasion to do so."""
    if stop is not None:
        stop(0)


def level_probabilities(log_odds: FloatArray) -> FloatArray:
    """Probabilities (…, L) of the levels from log-odds (…, L - 1) against the first."""
    if log_odds.shape[-1] == 1:  # several times faster than the general case
        return np.concatenate([expit(-log_odds), expit(log_odds)], axis=-1)
    zero = np.zeros((*log_odds.shape[:-1], 1))
    probabilities: FloatArray = softmax(np.concatenate([zero, log_odds], axis=-1), axis=-1)
    return probabilities


def _with_intercept(x: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(x)), x])


@dataclass(frozen=True, slots=True)
class Target:
    """What a regression explains.

    Parameters
    ----------
    values : (m,)
        Numbers, or codes of levels.
    levels
        Number of levels; None for numbers.
    observed : (m,)
        Rows whose value is known; the others do not count.
    barred
        Covariates that are no features, because they code the target itself.
    forced
        Covariates that are features in any case.
    extra : (m, e), optional
        Features that are no covariates; they come first.
    """

    values: FloatArray
    levels: int | None
    observed: NDArray[np.bool_]
    barred: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    extra: FloatArray | None = None

    @property
    def most_features(self) -> int:
        """How many features may be chosen for it."""
        return min(_MOST_FEATURES, int(self.observed.sum()) // VALUES_PER_FEATURE)

    def fit(
        self, x: FloatArray, *, start: FloatArray | None = None, stop: Stop | None = None
    ) -> tuple[FloatArray, float | None]:
        """Coefficients and spread from the features (m, e + q), over the observed rows."""
        poll(stop)
        x, values = x[self.observed], self.values[self.observed]
        if self.levels is None:
            return fit_linear(x, values)
        codes = values.astype(np.int64)
        return fit_softmax(x, codes, self.levels, start=start, stop=stop), None

    def residuals(self, x: FloatArray, coefficients: FloatArray) -> FloatArray:
        """What is left to explain, shape (m, k); zero where nothing was observed."""
        predictor = _with_intercept(x) @ coefficients
        if self.levels is None:
            residual = self.values[:, None] - predictor
        else:
            expected = level_probabilities(predictor)[:, 1:]
            residual = (self.values[:, None] == np.arange(1, self.levels)) - expected
        return np.where(self.observed[:, None], residual, 0.0)


def select_features(
    data: _core.Dataset,
    rows: NDArray[np.int64],
    targets: Sequence[Target],
    threads: int,
    stop: Stop | None = None,
) -> list[NDArray[np.int64]]:
    """Covariates that each target depends on, by forward selection with score tests.

    A covariate enters when its score exceeds what the largest of all would reach by chance, and
    the BIC's price; see :func:`cstonet.search.scores.threshold`. All targets share each product
    with the covariates.
    """
    chosen = [list(target.forced) for target in targets]
    growing = [
        t
        for t, target in enumerate(targets)
        if (target.levels is None or target.levels > 1) and len(chosen[t]) < target.most_features
    ]
    while growing:
        grown: list[int] = []
        for first in range(0, len(growing), _TARGETS_AT_ONCE):
            numbers = growing[first : first + _TARGETS_AT_ONCE]
            grown += _grow(data, rows, targets, chosen, numbers, threads, stop)
        growing = grown
    return [np.array(features, dtype=np.int64) for features in chosen]


def _grow(
    data: _core.Dataset,
    rows: NDArray[np.int64],
    targets: Sequence[Target],
    chosen: list[list[int]],
    numbers: list[int],
    threads: int,
    stop: Stop | None,
) -> list[int]:
    """Let some targets, by number, choose further features; give those that may go on."""
    residuals = []
    for t in numbers:
        features = np.array(chosen[t], dtype=np.int64)
        x = features_of(data, rows, features, targets[t].extra)
        coefficients, _ = targets[t].fit(x, stop=stop)
        residuals.append(targets[t].residuals(x, coefficients))
    columns = FoldCovariates(data, rows, threads=threads, stop=stop)
    products = main_effects(np.hstack(residuals))
    z = np.abs(columns.statistics(products, np.arange(data.columns), squares=False)[0])
    grown, first = [], 0
    for t, residual in zip(numbers, residuals, strict=True):
        width = residual.shape[1]
        score = z[:, first : first + width].max(axis=1)
        first += width
        score[[*targets[t].barred, *chosen[t]]] = -np.inf
        critical = threshold(len(score) * width, max(int(targets[t].observed.sum()), 2))
        at_most = min(_PER_ROUND, targets[t].most_features - len(chosen[t]))
        best = [int(j) for j in np.argsort(-score, kind="stable")[:at_most]]
        new = [j for j in best if score[j] > critical]
        chosen[t] += new
        if new and len(chosen[t]) < targets[t].most_features:
            grown.append(t)
    return grown


def features_of(
    data: _core.Dataset,
    rows: NDArray[np.int64],
    features: NDArray[np.int64],
    extra: FloatArray | None = None,
) -> FloatArray:
    """Features (m, e + q) of a regression: those that are no covariates, then covariates."""
    x = data.gather(rows, features).astype(np.float64)
    return x if extra is None else np.hstack([extra, x])
