"""What networks say about a continuous treatment: μ(a, x) at any dose, its slope, and m(x).

Layers up to the treatment's do not depend on the dose and are computed once per unit; those above
are small. Everything is in float64, and the derivative in the dose is the network's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cstonet import _core
from cstonet.estimators.nuisances import FloatArray
from cstonet.network.scaling import OutcomeScale
from cstonet.network.trained import ACTIVATIONS, FittedNetworks, TrainedNetwork

# Values of a hidden layer, over units, doses and hidden units, computed at a time.
_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class DosePrediction:
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


def evaluate(
    net: TrainedNetwork, data: _core.Dataset, rows: NDArray[np.int64], dose: FloatArray
) -> DosePrediction:
    """One network in its own units: standardised outcome and dose.

    Parameters
    ----------
    net
        A network whose treatment is one gaussian unit.
    data, rows
        The covariates, and the m units wanted.
    dose : (m, k)
        Standardised doses of each unit.
    """
    treatment_layer = net.spec.treatment_layer
    weights = [w.astype(np.float64) for w in net.weights]
    biases = [b.astype(np.float64) for b in net.biases]
    value, slope = ACTIVATIONS[net.spec.activation]
    below = data.gather(rows, net.inputs).astype(np.float64)
    for i in range(treatment_layer):
        below = value(below @ weights[i] + biases[i])
    predictor = below @ weights[treatment_layer] + biases[treatment_layer]
    # The treatment is the last unit of its layer: below it stands its mean, above it the dose.
    above, biases_above = weights[treatment_layer + 1 :], biases[treatment_layer + 1 :]
    base = value(predictor[:, :-1]) @ above[0][:-1] + biases_above[0]
    mu, slopes = np.empty(dose.shape), np.empty(dose.shape)
    step = max(1, _AT_ONCE // max(1, dose.shape[1] * max(w.shape[1] for w in above)))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        z = base[part, None, :] + dose[part, :, None] * above[0][-1]
        rise = np.broadcast_to(above[0][-1], z.shape)
        for w, b in zip(above[1:], biases_above[1:], strict=True):
            output = value(z)
            z, rise = output @ w + b, (slope(output) * rise) @ w
        mu[part], slopes[part] = z[:, :, 0], rise[:, :, 0]
    if net.spec.layers[-1][0].family == "bernoulli":
        mu = expit(mu)
        slopes *= mu * (1 - mu)
    return DosePrediction(mu, slopes, predictor[:, -1])


def mean_dose_prediction(parts: Sequence[DosePrediction]) -> DosePrediction:
    """The average of several predictions of the same units."""
    return DosePrediction(
        mu=np.mean([part.mu for part in parts], axis=0),
        slope=np.mean([part.slope for part in parts], axis=0),
        mean=np.mean([part.mean for part in parts], axis=0),
    )


def predict_doses(
    fitted: FittedNetworks, X: NDArray[np.floating], dose: FloatArray
) -> DosePrediction:
    """New units X (m, p) at doses (m, k), averaged over the chosen networks of all folds."""
    data, rows = fitted.x_scaling.dataset(X, 0), np.arange(X.shape[0])
    return mean_dose_prediction(
        [_average(fitted, nets, data, rows, dose) for nets in fitted.chosen]
    )


def predict_doses_out_of_fold(
    fitted: FittedNetworks, data: _core.Dataset, dose: FloatArray
) -> list[DosePrediction]:
    """The training rows at doses (n, k), each from networks that did not train on it.

    One prediction per repetition of the cross-fitting.
    """
    folds = list(zip(fitted.splits, fitted.chosen, strict=True))
    predictions = []
    for first in range(0, len(folds), fitted.plan.folds):
        whole = DosePrediction(np.empty(dose.shape), np.empty(dose.shape), np.empty(len(dose)))
        for split, nets in folds[first : first + fitted.plan.folds]:
            part = _average(fitted, nets, data, split.test, dose[split.test])
            whole.mu[split.test], whole.slope[split.test] = part.mu, part.slope
            whole.mean[split.test] = part.mean
        predictions.append(whole)
    return predictions


def _average(
    fitted: FittedNetworks,
    nets: tuple[TrainedNetwork, ...],
    data: _core.Dataset,
    rows: NDArray[np.int64],
    dose: FloatArray,
) -> DosePrediction:
    """Networks averaged, in the units of the data."""
    units = _dose_scale(fitted)
    standardised = units.standardise(dose)
    mean = mean_dose_prediction([evaluate(net, data, rows, standardised) for net in nets])
    return DosePrediction(
        mu=fitted.y_scale.restore(mean.mu),
        slope=mean.slope * (fitted.y_scale.scale / units.scale),
        mean=units.restore(mean.mean),
    )


def _dose_scale(fitted: FittedNetworks) -> OutcomeScale:
    if fitted.dose_scale is None:
        raise ValueError("the networks of a treatment with levels know no doses")
    return fitted.dose_scale
