"""Regressions of single covariates: linear for numbers, softmax for levels; their selection.

They are the pieces of the graphical model of the covariates (:mod:`cstonet.conditionals`) and of
the model of what is missing (:mod:`cstonet.missingness`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from cstonet import _core
from cstonet.scores import threshold

FloatArray = NDArray[np.float64]
# A function called now and then that may raise to stop; its argument is immaterial.
Stop = Callable[[int], object]

# Precision of a normal prior on standardised coefficients: it only matters where levels are
# separated by a feature, or features are copies of each other.
_LINEAR_RIDGE, _SOFTMAX_RIDGE = 1e-3, 0.5
_NEWTON_STEPS, _CONVERGED = 12, 1e-5
# Features admitted per round, and in all: a covariate's distribution given thirty others needs no
# more.
_PER_ROUND, _MOST_FEATURES = 2, 30
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
    """Log-odds (1 + q, L - 1) of levels against the first, by Newton's method.

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
    for _ in range(_NEWTON_STEPS):
        p = level_probabilities(design @ theta)[:, 1:]
        gradient = design.T @ (w[:, None] * (target - p)) - ridge[:, None] * theta
        hessian = np.empty((k, q, k, q))
        for a in range(k):
            poll(stop)
            for b in range(a, k):
                curvature = w * p[:, a] * ((a == b) - p[:, b])
                block = design.T @ (curvature[:, None] * design)
                hessian[a, :, b, :] = hessian[b, :, a, :] = block
        flat = hessian.reshape(k * q, k * q)
        flat[np.diag_indices(k * q)] += np.tile(ridge, k)
        step = np.linalg.solve(flat, gradient.T.ravel()).reshape(k, q).T
        # A full step can overshoot where levels are rare; five units of log-odds never do.
        theta += step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < _CONVERGED:
            break
    return theta


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
    the BIC's price; see :func:`cstonet.scores.threshold`. All targets share each product with the
    covariates.
    """
    chosen = [list(target.forced) for target in targets]
    growing = [t for t, target in enumerate(targets) if target.levels is None or target.levels > 1]
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
    directions = np.ascontiguousarray(np.hstack(residuals), dtype=np.float32)
    z = np.abs(_core.score_statistics(data, rows, directions, threads, stop)[0])
    grown, first = [], 0
    for t, residual in zip(numbers, residuals, strict=True):
        width = residual.shape[1]
        score = z[:, first : first + width].max(axis=1)
        first += width
        score[[*targets[t].barred, *chosen[t]]] = -np.inf
        critical = threshold(len(score) * width, max(int(targets[t].observed.sum()), 2))
        best = [int(j) for j in np.argsort(-score, kind="stable")[:_PER_ROUND]]
        new = [j for j in best if score[j] > critical]
        chosen[t] += new
        if new and len(chosen[t]) < _MOST_FEATURES:
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
