"""The network in NumPy and double precision: the one forward pass that derivatives start from.

Layers up to the treatment's do not depend on the treatment and are computed once per unit. Above
them the treatment is clamped: to what was received, or to any dose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cstonet.network.covariates import Covariates
from cstonet.network.links import link_of, mean_of, slope_of
from cstonet.network.prediction import RowArrays
from cstonet.network.trained import TrainedNetwork

FloatArray = NDArray[np.float64]

# Each activation's value, and its slope as a function of its value.
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (np.tanh, lambda h: 1 - h**2),
    "sigmoid": (expit, lambda h: h * (1 - h)),
    "relu": (lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(np.float64)),
}
# Values of a hidden layer, over units, doses and hidden units, computed at a time.
_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class DosePrediction(RowArrays):
    """Outcome and treatment models at m units and k doses each.

    Parameters
    ----------
    mu, slope : (m, k) float64
        Expected outcome, and its derivative in the dose.
    mean : (m,) float64
        Expected dose.
    """

    mu: FloatArray
    slope: FloatArray
    mean: FloatArray


@dataclass(frozen=True, slots=True)
class Slopes:
    """d predictor / d first-layer units, shape (m, units): each outcome, each treatment unit."""

    outcome: tuple[FloatArray, ...]
    treatment: tuple[FloatArray, ...]


class ForwardPass:
    """A network at given units, up to the predictors of the treatment's layer.

    Parameters
    ----------
    net
        The network.
    data, rows
        The covariates, and the m units wanted.
    """

    def __init__(self, net: TrainedNetwork, data: Covariates, rows: NDArray[np.int64]) -> None:
        self._spec = net.spec
        self._weights = [w.astype(np.float64) for w in net.weights]
        self._biases = [b.astype(np.float64) for b in net.biases]
        self._value, self._slope = ACTIVATIONS[net.spec.activation]
        # Outputs of the covariates and of each layer below the treatment's.
        self._below = [data.gather(rows, net.inputs).astype(np.float64)]
        top = net.spec.treatment_layer
        for i in range(top):
            self._below.append(self._value(self._predictor(self._below[-1], i)))
        self._treatment_layer = self._predictor(self._below[-1], top)

    @property
    def rows(self) -> int:
        """Number m of units."""
        return len(self._treatment_layer)

    def _predictor(self, inputs: FloatArray, layer: int) -> FloatArray:
        return np.asarray(inputs @ self._weights[layer] + self._biases[layer])

    def at_doses(self, dose: FloatArray, offset: DosePrediction | None = None) -> DosePrediction:
        """Outcome and slope at doses (m, k), all standardised, of a gaussian treatment.

        An offset is added to the predictors of outcome and treatment, its slope to the derivative
        of the former.
        """
        # The treatment is the last unit of its layer: below it stands its mean, above it the dose.
        first = self._spec.treatment_layer + 1
        above, biases = self._weights[first:], self._biases[first:]
        base = self._value(self._treatment_layer[:, :-1]) @ above[0][:-1] + biases[0]
        mu, slopes = np.empty(dose.shape), np.empty(dose.shape)
        step = max(1, _AT_ONCE // max(1, dose.shape[1] * max(w.shape[1] for w in above)))
        for start in range(0, self.rows, step):
            part = slice(start, start + step)
            z = base[part, None, :] + dose[part, :, None] * above[0][-1]
            rise = np.broadcast_to(above[0][-1], z.shape)
            for w, b in zip(above[1:], biases[1:], strict=True):
                output = self._value(z)
                z, rise = output @ w + b, (self._slope(output) * rise) @ w
            mu[part], slopes[part] = z[:, :, 0], rise[:, :, 0]
        mean = self._treatment_layer[:, -1]
        if offset is not None:
            mu, slopes, mean = mu + offset.mu, slopes + offset.slope, mean + offset.mean
        link = link_of(self._spec.layers[-1][0].family)
        if link != "identity":
            mu = mean_of(link, mu)
            slopes *= slope_of(link, mu)
        return DosePrediction(mu, slopes, mean)

    def first_layer_slopes(self, treatment: FloatArray) -> Slopes:
        """Derivatives of all predictors with respect to the first layer's units.

        Parameters
        ----------
        treatment : (m, L-1)
            Treatment of the rows as dummies, or as a dose, to which its units are clamped.
        """
        treatment_layer, own = self._spec.treatment_layer, self._spec.treatment_width
        clamped = self._value(self._treatment_layer)
        clamped[:, -own:] = treatment
        outputs = [*self._below, clamped]
        for i in range(treatment_layer + 1, len(self._spec.layers) - 1):
            outputs.append(self._value(self._predictor(outputs[-1], i)))

        def descend(signal: FloatArray, top: int) -> FloatArray:
            """Chain rule from the units of layer ``top`` to those of layer 0."""
            for i in range(top, 0, -1):
                signal = (signal @ self._weights[i].T) * self._slope(outputs[i])
                if i - 1 == treatment_layer:
                    signal[:, -own:] = 0.0  # the treatment is observed: nothing flows through it
            return signal

        def each(units: FloatArray, top: int) -> tuple[FloatArray, ...]:
            return tuple(descend(np.tile(unit, (self.rows, 1)), top) for unit in units)

        last = self._treatment_layer.shape[1]
        return Slopes(
            outcome=each(np.eye(self._spec.units[-1]), len(self._weights) - 1),
            treatment=each(np.eye(last)[-own:], treatment_layer),
        )
