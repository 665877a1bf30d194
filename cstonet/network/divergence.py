"""Networks that diverged: how they are told, what is tried next, what to do about them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.network.spec import NetworkSpec
from cstonet.network.training_data import TrainingData
from cstonet.settings.options import StageOptions, TrainingOptions

# What diverged is tried again with these parts of its rates and steps, one after the other.
SMALLER_STEPS = (1 / 4, 1 / 16)
# A network with so many times the errors of a constant has not learned badly: it has exploded.
_EXPLODED = 100.0
_WITH_VARIANCE = ("gaussian", "poisson")


def breakdown(
    result: _core.TaskResult, spec: NetworkSpec, data: TrainingData, rows: NDArray[np.int64]
) -> str:
    """What is wrong with a network as a whole; empty if nothing is.

    Beside what the kernel saw: likelihoods that are no number, and errors so large that the network
    must have exploded, though all its weights are finite.

    Parameters
    ----------
    result
        What training left.
    spec, data
        The network, and what it learned from.
    rows : (m,)
        Those that its errors were measured on.
    """
    if result.failure:
        return result.failure
    has_likelihood = len(result.log_likelihood) > 0
    if has_likelihood and not math.isfinite(result.bic):
        return "its likelihood is not a finite number"
    column = 0
    for k, block in enumerate(block for layer in spec.layers for block in layer if block.visible):
        observed = data.visible[:, column : column + block.size]
        column += block.size
        if block.family in _WITH_VARIANCE:
            error = float(result.variances[k])
            # Standardised values have errors of about one; heavy tails may have more in some rows.
            usual = 1.0 if error <= _EXPLODED else max(1.0, _spread(observed, data.weights, rows))
        elif has_likelihood:
            error, usual = -float(result.log_likelihood[k]) / result.rows, 1.0
        else:
            continue
        if not error <= _EXPLODED * usual:
            return f"its errors are {error / usual:.1e} times those of a constant"
    return ""


def with_smaller_steps(options: TrainingOptions, part: float) -> TrainingOptions:
    """The same training with a part of the rates of its parameters and steps of its samplers."""

    def smaller(stage: StageOptions) -> StageOptions:
        rates, steps = np.atleast_1d(stage.rate) * part, np.atleast_1d(stage.step) * part
        return dataclasses.replace(stage, rate=tuple(rates.tolist()), step=tuple(steps.tolist()))

    return dataclasses.replace(options, stages=tuple(smaller(stage) for stage in options.stages))


def divergence_advice(failure: str, options: str) -> str:
    """What to do about a network that diverged.

    Parameters
    ----------
    failure
        What was wrong with it.
    options
        Where the training options are, such as ``"FitOptions.training"``.
    """
    if "latent variables" in failure:
        return (
            f"Use a lower temperature, smaller steps (StageOptions.step) or latent variances that "
            f"rise from layer to layer (SamplerOptions.variance) in {options}."
        )
    return f"Use smaller rates in {options}.stages."


def _spread(
    observed: NDArray[np.float32], weights: NDArray[np.float32], rows: NDArray[np.int64]
) -> float:
    """Mean square of what a constant leaves of units (n, k) in some rows."""
    values, counts = observed[rows].astype(np.float64), weights[rows].astype(np.float64)
    mean = np.average(values, axis=0, weights=counts)
    return float(np.average(np.mean((values - mean) ** 2, axis=1), weights=counts))
