"""The models behind the simulated mediations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from cstonet.datasets.simulation import FloatArray

# Nodes per dimension of the Gauss-Hermite rules. Doubling them moves no truth by 1e-4.
_NODES = 32
# Residual correlation of the three mediators.
_CORRELATION = np.array([[1.0, 0.4, 0.3], [0.4, 1.0, 0.3], [0.3, 0.3, 1.0]])


@dataclass(frozen=True, slots=True)
class MediationModel:
    """A mediation model on independent standard normal covariates.

    ``predictor(x)`` is the log-odds of treatment; ``means(a, x)`` the mediators' means (n, J), to
    which residuals with covariance ``covariance`` are added; ``outcome(a, m, x)`` the outcome's
    mean. ``smoothed(a, mean, x)`` is its mean over the residuals of mediators with that mean.
    """

    predictor: Callable[[FloatArray], FloatArray]
    means: Callable[[int, FloatArray], FloatArray]
    outcome: Callable[[int, FloatArray, FloatArray], FloatArray]
    smoothed: Callable[[int, FloatArray, FloatArray], FloatArray]
    covariance: FloatArray
    treatment_support: tuple[str, ...]
    mediator_support: tuple[str, ...]
    outcome_support: tuple[str, ...]
    outcome_mediators: tuple[str, ...]

    def eta(self, x: FloatArray) -> FloatArray:
        """η_aa'(x), shape (n, 2, 2)."""
        eta = np.empty((len(x), 2, 2))
        for a in (0, 1):
            for b in (0, 1):
                eta[:, a, b] = self.smoothed(a, self.means(b, x), x)
        return eta


def gauss_hermite() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for the standard normal distribution."""
    nodes, weights = hermegauss(_NODES)
    return nodes, weights / weights.sum()


def _smooth_tanh(mean: FloatArray) -> FloatArray:
    """E tanh(mean + e) for standard normal e, shape of `mean`."""
    nodes, weights = gauss_hermite()
    total = np.zeros_like(mean)
    for node, weight in zip(nodes, weights, strict=True):
        total += weight * np.tanh(mean + node)
    return total


def _predictor(x: FloatArray) -> FloatArray:
    log_odds: FloatArray = 0.6 * x[:, 0] - 0.5 * x[:, 1] + 0.3 * (x[:, 2] ** 2 - 1)
    return log_odds


def _without_mediators(a: int, x: FloatArray) -> FloatArray:
    """What treatment and covariates add to the outcome of the nonlinear simulations."""
    level: FloatArray = (
        0.5 * a + 0.7 * x[:, 0] + 0.5 * (x[:, 2] ** 2 - 1) + 0.5 * np.tanh(2 * x[:, 4])
    )
    return level


def _first_mediator(shift: float, a: int, x: FloatArray) -> FloatArray:
    mean: FloatArray = shift * a + 0.6 * x[:, 0] + 0.6 * np.tanh(2 * x[:, 3]) + 0.3 * a * x[:, 1]
    return mean


def _three_means(a: int, x: FloatArray) -> FloatArray:
    second = 0.5 * a - 0.5 * x[:, 1] + 0.4 * (x[:, 3] ** 2 - 1)
    third = 0.6 * a + 0.5 * x[:, 0]
    return np.column_stack([_first_mediator(0.7, a, x), second, third])


_ONE = MediationModel(
    predictor=_predictor,
    means=lambda a, x: _first_mediator(0.8, a, x)[:, None],
    outcome=lambda a, m, x: (
        _without_mediators(a, x) + (0.5 + 0.3 * a) * m[:, 0] + 0.5 * np.tanh(m[:, 0])
    ),
    smoothed=lambda a, mean, x: (
        _without_mediators(a, x) + (0.5 + 0.3 * a) * mean[:, 0] + 0.5 * _smooth_tanh(mean[:, 0])
    ),
    covariance=np.eye(1),
    treatment_support=("x1", "x2", "x3"),
    mediator_support=("x1", "x2", "x4"),
    outcome_support=("x1", "x3", "x5"),
    outcome_mediators=("m1",),
)

_THREE = MediationModel(
    predictor=_predictor,
    means=_three_means,
    outcome=lambda a, m, x: (
        _without_mediators(a, x)
        + 0.4 * m[:, 0]
        + 0.5 * np.tanh(m[:, 0])
        + (0.5 + 0.3 * a) * m[:, 1]
    ),
    smoothed=lambda a, mean, x: (
        _without_mediators(a, x)
        + 0.4 * mean[:, 0]
        + 0.5 * _smooth_tanh(mean[:, 0])
        + (0.5 + 0.3 * a) * mean[:, 1]
    ),
    covariance=_CORRELATION,
    treatment_support=("x1", "x2", "x3"),
    mediator_support=("x1", "x2", "x4"),
    outcome_support=("x1", "x3", "x5"),
    outcome_mediators=("m1", "m2"),
)

_LINEAR = MediationModel(
    predictor=lambda x: 0.5 * x[:, 0] - 0.5 * x[:, 1],
    means=lambda a, x: (0.8 * a + 0.5 * x[:, 0])[:, None],
    outcome=lambda a, m, x: 0.6 * a + 0.5 * m[:, 0] + 0.5 * x[:, 0] + 0.5 * x[:, 1],
    smoothed=lambda a, mean, x: 0.6 * a + 0.5 * mean[:, 0] + 0.5 * x[:, 0] + 0.5 * x[:, 1],
    covariance=np.eye(1),
    treatment_support=("x1", "x2"),
    mediator_support=("x1",),
    outcome_support=("x1", "x2"),
    outcome_mediators=("m1",),
)

# By the name of the function that simulates from it.
MODELS = {"one_mediator": _ONE, "three_mediators": _THREE, "linear_mediation": _LINEAR}
