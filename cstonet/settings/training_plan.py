"""Training options with numbers for every ``"auto"``, given the rows and the network."""

from __future__ import annotations

import dataclasses
import math

from cstonet.errors import OptionError
from cstonet.settings.options import SamplerOptions, StageOptions, TrainingOptions
from cstonet.settings.sparsity import automatic_prior

DEFAULT_RATE = 1e-2
LARGE_BATCH, SMALL_BATCH = 100, 50
ROWS_FOR_LARGE_BATCH = 5000
# Updates of an epoch of an automatic stage: at most so many however large the data are, so that
# the rate falls and the noise is measured in small steps; and counted as at least so many however
# small they are, because every epoch ends with a look at the held-out rows.
MOST_UPDATES_PER_EPOCH, FEWEST_UPDATES_PER_EPOCH = 64, 13


def resolve_training(
    options: TrainingOptions, *, depth: int, rows: int, updates: int, weights: int
) -> TrainingOptions:
    """Training options with numbers for every ``"auto"``.

    Parameters
    ----------
    depth
        Hidden layers h.
    rows
        Rows to train on.
    updates
        Parameter updates of a stage whose epochs are automatic.
    weights
        Weights before any is pruned.
    """
    automatic = LARGE_BATCH if rows >= ROWS_FOR_LARGE_BATCH else SMALL_BATCH
    batch = min(automatic if isinstance(options.batch_size, str) else options.batch_size, rows)
    variance = _latent_variance(options.sampler, depth)
    epoch_rows = _epoch_rows(options, rows, batch)
    per_epoch = math.ceil(min(rows, epoch_rows) / batch)
    epochs = math.ceil(updates / max(per_epoch, FEWEST_UPDATES_PER_EPOCH))
    stages = tuple(_resolve_stage(stage, variance, epochs) for stage in options.stages)
    return dataclasses.replace(
        options,
        batch_size=batch,
        epoch_rows=epoch_rows,
        sampler=dataclasses.replace(options.sampler, variance=variance),
        prior=automatic_prior(options.prior, rows=rows, weights=weights),
        stages=stages,
    )


def _epoch_rows(options: TrainingOptions, rows: int, batch: int) -> int:
    """Rows visited in an epoch."""
    if not isinstance(options.epoch_rows, str):
        return options.epoch_rows
    if any(stage.epochs != "auto" for stage in options.stages):
        return rows
    # Equal parts, as the trainer cuts them: the budget counts the updates of each.
    parts = math.ceil(rows / (MOST_UPDATES_PER_EPOCH * batch))
    return math.ceil(rows / parts)


def _latent_variance(sampler: SamplerOptions, depth: int) -> tuple[float, ...]:
    """σ_i² of the hidden layers, i = 1..h."""
    variance = sampler.variance
    if isinstance(variance, str):
        # The theory's ladder σ_1² ≪ σ_2² ≪ … ≪ σ_h² ≪ 1: with a flat one, moving Y_i would change
        # the residual of layer i+1 by as much as it explains.
        variance = tuple(10.0 ** -(5 + 2 * (depth - i)) for i in range(1, depth + 1))
    _check_length("SamplerOptions.variance", variance, depth, "hidden layer")
    return variance


def _resolve_stage(stage: StageOptions, variance: tuple[float, ...], epochs: int) -> StageOptions:
    depth = len(variance)
    rate = DEFAULT_RATE if isinstance(stage.rate, str) else stage.rate
    rate = rate if isinstance(rate, tuple) else (float(rate),) * (depth + 1)
    # With ε_i = σ_i a first step lands where the layer's own density alone would put it.
    step = tuple(map(math.sqrt, variance)) if stage.step == "auto" else stage.step
    _check_length("StageOptions.rate", rate, depth + 1, "layer, the outcome's included")
    _check_length("StageOptions.step", step, depth, "hidden layer")
    return dataclasses.replace(
        stage, epochs=epochs if stage.epochs == "auto" else stage.epochs, rate=rate, step=step
    )


def _check_length(option: str, values: tuple[float, ...], length: int, per: str) -> None:
    if len(values) != length:
        raise OptionError(
            f"{option} needs one number per {per}: {length} for this network, got {len(values)}."
        )
