"""Linear parts and networks together: how much each of them counts.

A fold has three predictors of every visible unit: its linear part alone, a network that learned
what the linear part leaves, and networks without one. The first is best where there is nothing else
to learn, the last where a function is no sum of a linear one and a simpler one. They are mixed on
the scale of the linear predictor, η = Σ_k v_k η_k, with weights v_k ≥ 0 that sum to one, chosen by
the likelihood of rows that the fold did not train on: two numbers for the treatment and two for the
outcome, from all rows, overfit nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from cstonet.network.links import Link, link_of, losses, mean_of, predictor_of
from cstonet.network.spec import NetworkSpec

FloatArray = NDArray[np.float64]
Loss = Callable[[FloatArray], tuple[float, FloatArray]]

# Probabilities of treatments are held this far from 0 before their log-odds are taken.
_TINY = 1e-7
_TOLERANCE = 1e-9
# Logarithm of the largest factor by which log-odds are sharpened.
_MOST_SHARPENING = 6.0
# Predictors: linear, network beside a linear part, network alone.
N_PREDICTORS = 3


@dataclass(frozen=True, slots=True)
class Mixture:
    """Weights of the three predictors, for treatment and outcome."""

    treatment: tuple[float, ...]
    outcome: tuple[float, ...]


_EVEN = (1 / N_PREDICTORS,) * N_PREDICTORS
EVEN_MIXTURE = Mixture(_EVEN, _EVEN)


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Log-odds (m, L-1) of all levels but the first against it, from probabilities (m, L)."""
    logs = np.log(np.maximum(probabilities, _TINY))
    odds: FloatArray = logs[:, 1:] - logs[:, :1]
    return odds


def probabilities_of(odds: FloatArray) -> FloatArray:
    """Probabilities (m, L) from log-odds (m, L-1), the inverse of `log_odds`."""
    probabilities: FloatArray = softmax(_padded(odds), axis=1)
    return probabilities


def mixed_probabilities(odds: FloatArray, weights: tuple[float, ...]) -> FloatArray:
    """Probabilities (m, L) from the predictors' log-odds (K, m, L-1)."""
    return probabilities_of(np.tensordot(weights, odds, axes=1))


def treatment_weights(
    odds: FloatArray, codes: NDArray[np.integer], counts: FloatArray
) -> tuple[float, ...]:
    """Weights under which the treatments received (m,) are most likely.

    Parameters
    ----------
    odds : (K, m, L-1)
        Log-odds of the predictors.
    codes, counts : (m,)
        Treatments as codes, and what each row counts.
    """

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        value, surprise = _log_loss(np.tensordot(weights, odds, axes=1), codes, counts)
        return value, -np.einsum("kml,ml,m->k", odds, surprise, counts)

    return _least(loss, len(odds), float(counts.sum()))


def sharpened(odds: FloatArray, codes: NDArray[np.integer], counts: FloatArray) -> FloatArray:
    """Log-odds (m, L-1), sharpened as far as the treatments received say.

    Penalties keep log-odds small even where covariates determine the treatment. A common factor of
    at least one, and a constant for every level, make the treatments most likely.
    """
    from scipy.optimize import minimize

    width, total = odds.shape[1], counts.sum()

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        value, surprise = _log_loss(np.exp(values[0]) * odds + values[1:], codes, counts)
        surprise = surprise * counts[:, None] / total
        factor = np.exp(values[0]) * np.sum(surprise * odds)
        return value / total, -np.concatenate([[factor], surprise.sum(axis=0)])

    most = [(0.0, _MOST_SHARPENING), *[(None, None)] * width]
    found = minimize(loss, np.zeros(width + 1), jac=True, method="L-BFGS-B", bounds=most)
    sharp: FloatArray = np.exp(found.x[0]) * odds + found.x[1:]
    return sharp


@dataclass(frozen=True, slots=True)
class OutcomeLink:
    """The scale on which predictors of an outcome are mixed."""

    link: Link

    @classmethod
    def of(cls, spec: NetworkSpec) -> OutcomeLink:
        """That of a network's outcome."""
        return cls(link_of(spec.layers[-1][0].family))

    def predictor(self, means: FloatArray) -> FloatArray:
        """Linear predictors of means in network units, of any shape."""
        return predictor_of(self.link, means)

    def mixed(self, predictors: FloatArray, weights: tuple[float, ...]) -> FloatArray:
        """Means (m, L) of the predictors (K, m, L)."""
        return mean_of(self.link, np.tensordot(weights, predictors, axes=1))

    def weights(
        self, predictors: FloatArray, outcome: FloatArray, counts: FloatArray
    ) -> tuple[float, ...]:
        """Weights under which outcomes (m,), in network units, are most likely.

        Parameters
        ----------
        predictors : (K, m)
            Under the treatment received.
        outcome, counts : (m,)
            Outcomes, and what each row counts.
        """

        def loss(weights: FloatArray) -> tuple[float, FloatArray]:
            eta = weights @ predictors
            error = mean_of(self.link, eta) - outcome
            return float(counts @ losses(self.link, eta, outcome)), predictors @ (counts * error)

        return _least(loss, len(predictors), float(counts.sum()))


def _log_loss(
    odds: FloatArray, codes: NDArray[np.integer], counts: FloatArray
) -> tuple[float, FloatArray]:
    """Minus the log-likelihood of treatments (m,) with log-odds (m, L-1), and received minus p.

    The latter, shape (m, L-1), is of all levels but the first.
    """
    log_p, rows = log_softmax(_padded(odds), axis=1), np.arange(len(codes))
    surprise = -np.exp(log_p)
    surprise[rows, codes] += 1
    return -float(counts @ log_p[rows, codes]), surprise[:, 1:]


def _padded(odds: FloatArray) -> FloatArray:
    """Log-odds (m, L) with the zeros of the first level."""
    return np.column_stack([np.zeros(len(odds)), odds])


def _least(loss: Loss, predictors: int, total: float) -> tuple[float, ...]:
    """Weights of least convex loss among those that are not negative and sum to one."""
    from scipy.optimize import minimize  # not at the top: only fits with linear parts load it

    def scaled(weights: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = loss(weights)
        return value / total, gradient / total

    found = minimize(
        scaled,
        np.full(predictors, 1 / predictors),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * predictors,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": _TOLERANCE},
    )
    weights = np.clip(found.x, 0.0, 1.0)
    return tuple(float(w) for w in weights / weights.sum())
