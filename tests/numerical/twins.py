"""The paper's formulas in plain NumPy, float64: what the kernel's float32 code is held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax, xlogy

# Unit roundoff of float32: one correctly rounded operation errs by at most this share.
U = 2.0**-24


def assert_close(
    actual: ArrayLike, expected: ArrayLike, *, roundings: float, scale: ArrayLike | None = None
) -> None:
    """|actual - expected| <= roundings * U * scale, and all numbers finite.

    `roundings` counts the float32 operations whose errors can add up in one entry; `scale` is the
    size of the terms that were added (default: the largest expected value), because a sum errs in
    proportion to its terms, not to its value.
    """
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    assert np.all(np.isfinite(actual))
    if scale is None:
        scale = np.max(np.abs(expected), initial=0.0)
    error = np.abs(actual - expected)
    allowed = roundings * U * np.asarray(scale, dtype=float)
    worst = np.max(error / np.maximum(allowed, 1e-300), initial=0.0)
    assert worst <= 1, f"errors reach {worst:.3g} times what {roundings} roundings explain"


# --- prior λ N(0, σ1²) + (1-λ) N(0, σ0²), paper eq. 7 ---------------------------------------


def _log_normal(w: NDArray[Any], variance: float) -> NDArray[Any]:
    return -0.5 * (np.log(2 * np.pi * variance) + w**2 / variance)


def prior_parts(w: ArrayLike, inclusion: float, spike: float, slab: float) -> tuple[Any, Any]:
    """log (1-λ) N(w; 0, σ0²) and log λ N(w; 0, σ1²)."""
    w = np.asarray(w, dtype=float)
    return (
        math.log1p(-inclusion) + _log_normal(w, spike),
        math.log(inclusion) + _log_normal(w, slab),
    )


def prior_log_density(w: ArrayLike, inclusion: float, spike: float, slab: float) -> Any:
    return np.logaddexp(*prior_parts(w, inclusion, spike, slab))


def prior_gradient(w: ArrayLike, inclusion: float, spike: float, slab: float) -> Any:
    """d log π(w) / dw: each component's pull -w/σ², weighted by its posterior probability."""
    w = np.asarray(w, dtype=float)
    log_spike, log_slab = prior_parts(w, inclusion, spike, slab)
    return -w * (expit(log_spike - log_slab) / spike + expit(log_slab - log_spike) / slab)


def slab_probability(w: ArrayLike, inclusion: float, spike: float, slab: float) -> Any:
    log_spike, log_slab = prior_parts(w, inclusion, spike, slab)
    return expit(log_slab - log_spike)


# --- families --------------------------------------------------------------------------------


# Families with a variance or dispersion of their own; bounds on what counts are expected.
WITH_VARIANCE = ("gaussian", "poisson")
FARTHEST_LOG, LEAST_MEAN = 30.0, 0.01


def mean(family: str, eta: NDArray[Any]) -> NDArray[Any]:
    if family == "gaussian":
        return eta
    if family == "bernoulli":
        return expit(eta)
    if family == "poisson":
        return np.exp(np.clip(eta, -FARTHEST_LOG, FARTHEST_LOG))
    with_reference = np.column_stack([np.zeros(len(eta)), eta])
    return softmax(with_reference, axis=1)[:, 1:]


def residual(family: str, variance: float, y: NDArray[Any], eta: NDArray[Any]) -> NDArray[Any]:
    """d log π(y|η) / dη: the canonical link makes it y minus the mean, over σ² or φ if any."""
    return (y - mean(family, eta)) / (variance if family in WITH_VARIANCE else 1.0)


def squared_error(family: str, y: NDArray[Any], eta: NDArray[Any]) -> NDArray[Any]:
    """What the variance, or dispersion, of a family that has one is the mean of."""
    error = (y - mean(family, eta)) ** 2
    return error / np.maximum(mean(family, eta), LEAST_MEAN) if family == "poisson" else error


def log_density(family: str, variance: float, y: NDArray[Any], eta: NDArray[Any]) -> NDArray[Any]:
    """Log π(y|η) of each row, shape (n,)."""
    if family == "gaussian":
        return _log_normal(y - eta, variance).sum(axis=1)
    if family == "bernoulli":
        return -np.logaddexp(0, (1 - 2 * y) * eta).sum(axis=1)
    if family == "poisson":  # the extended quasi-likelihood, by its deviance
        deviance = 2 * (xlogy(y, y / mean(family, eta)) - y + mean(family, eta))
        return -0.5 * (np.log(2 * np.pi * variance) + deviance / variance).sum(axis=1)
    with_reference = np.column_stack([np.zeros(len(eta)), eta])
    return (y * eta).sum(axis=1) - logsumexp(with_reference, axis=1)


# --- activations -----------------------------------------------------------------------------


class Activation(NamedTuple):
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    change: Callable[[Any, Any], Any]  # ψ(z + d) - ψ(z), exact for small d


def _tanh_change(z: Any, d: Any) -> Any:
    return np.sinh(d) / (np.cosh(z) * np.cosh(z + d))


ACTIVATIONS = {
    "tanh": Activation(np.tanh, lambda z: np.cosh(z) ** -2.0, _tanh_change),
    "sigmoid": Activation(
        expit,
        lambda z: expit(z) * expit(-z),
        lambda z, d: 0.5 * _tanh_change(z / 2, d / 2),
    ),
    "relu": Activation(
        lambda z: np.maximum(z, 0),
        lambda z: (z > 0).astype(float),
        lambda z, d: np.where(z > 0, np.maximum(d, -z), np.maximum(z + d, 0)),
    ),
}


# --- update (paper Algorithm A1, step 2) ------------------------------------------------------

Layers = list[NDArray[Any]]


class Optimizer:
    """θ_i += γ_i (clipped mean gradient + prior), with momentum or Adam's scaling, per layer."""

    def __init__(self, options: Any, weights: Layers, biases: Layers) -> None:
        self.options = options
        self.theta = [
            [w.astype(float), b.astype(float)] for w, b in zip(weights, biases, strict=True)
        ]
        self.first = [[np.zeros_like(t) for t in layer] for layer in self.theta]
        self.second = [[np.zeros_like(t) for t in layer] for layer in self.theta]
        self.steps = 0

    @property
    def weights(self) -> Layers:
        return [layer[0] for layer in self.theta]

    @property
    def biases(self) -> Layers:
        return [layer[1] for layer in self.theta]

    def step(
        self,
        gradients: list[tuple[NDArray[Any], NDArray[Any]]],
        *,
        batch_weight: float,
        rate: list[float],
        layer_variance: list[float],
        prior: tuple[float, float, float],
        prior_weight: float,
        penalize_bias: bool,
        masks: Layers | None = None,
        bias_masks: Layers | None = None,
    ) -> None:
        o = self.options
        self.steps += 1
        for i, layer in enumerate(self.theta):
            mask = [1.0 if m is None else m[i] for m in (masks, bias_masks)]
            likelihood = [m * g / batch_weight for m, g in zip(mask, gradients[i], strict=True)]
            norm = math.sqrt(sum(float(np.sum(g**2)) for g in likelihood))
            largest = o.clip_norm / layer_variance[i]
            shrink = largest / norm if o.clip_norm > 0 and norm > largest else 1.0
            for k in (0, 1):  # weights, biases
                g = shrink * likelihood[k]
                if prior_weight > 0 and (k == 0 or penalize_bias):
                    g = g + prior_weight * prior_gradient(layer[k], *prior)
                m, v = self.first[i], self.second[i]
                if o.rule == "momentum":
                    m[k] = o.momentum * m[k] + g
                    move = m[k]
                else:
                    m[k] = o.momentum * m[k] + (1 - o.momentum) * g
                    v[k] = o.second_decay * v[k] + (1 - o.second_decay) * g**2
                    first = m[k] / (1 - o.momentum**self.steps)
                    second = v[k] / (1 - o.second_decay**self.steps)
                    move = first / (np.sqrt(second) + o.epsilon)
                layer[k] = mask[k] * (layer[k] + rate[i] * move)


# --- schedules, model choice ------------------------------------------------------------------


def decayed(initial: ArrayLike, decay: str, exponent: float, epoch: int, epochs: int) -> Any:
    """Rates or steps at an epoch counted from 0; the paper counts k from 1."""
    initial = np.asarray(initial, dtype=float)
    if decay == "polynomial":
        return initial / (1 + initial * (epoch + 1) ** exponent)
    if decay == "cosine":
        return initial * (1 + math.cos(math.pi * epoch / epochs)) / 2
    return initial


def spike_at(start: float, end: float, share: float, epochs: int, epoch: int) -> float:
    """Geometric from `start` to `end` over the first `share` of the epochs, then constant."""
    done = 1.0 if share == 0 else min(1.0, epoch / (share * epochs))
    return math.exp((1 - done) * math.log(start) + done * math.log(end))


def bic(log_likelihood: float, nonzero: int, n: float) -> float:
    return nonzero * math.log(n) - 2 * log_likelihood
