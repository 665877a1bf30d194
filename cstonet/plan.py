"""The plan of a fit: every ``"auto"`` resolved to a number, before anything is trained.

A plan is a value: two fits with equal plans on equal data give equal results. It is stored with
the results and can be written as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cstonet.errors import OptionError
from cstonet.network import NetworkSpec, causal_network
from cstonet.options import FitOptions, SamplerOptions, StageOptions, TrainingOptions

if TYPE_CHECKING:
    from cstonet.design import Design

DEFAULT_HIDDEN = (16, 8, 4)
DEFAULT_RATE = 5e-3
LARGE_BATCH, SMALL_BATCH = 100, 50
# Updates a stage should have, and the passes over the data it has at least: small samples need
# many passes, large ones are done after few.
STAGE_UPDATES = 4000
STAGE_EPOCHS = (20, 200)


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, in numbers.

    Attributes
    ----------
    preset
        Name of the preset the options came from.
    network
        Layers and blocks.
    training
        Training options without ``"auto"``.
    starts, folds, seed, validation_fraction, clip, variance, pack_bytes
        See :class:`cstonet.options.FitOptions`.
    """

    preset: str
    network: NetworkSpec
    training: TrainingOptions
    starts: int
    folds: int
    seed: int
    validation_fraction: float
    clip: float
    variance: str
    pack_bytes: int

    @property
    def network_label(self) -> str:
        """Layer widths from covariates to outcome."""
        return self.network.label

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def to_dict(self) -> dict[str, Any]:
        """The plan as nested dictionaries."""
        return dataclasses.asdict(self)


def make_plan(design: Design, options: FitOptions, *, preset: str, seed: int) -> Plan:
    """Resolve every automatic option for this design."""
    n, p = design.X.shape
    hidden = DEFAULT_HIDDEN if options.hidden == "auto" else options.hidden
    layer = options.treatment_layer
    # The middle: layers before it are shared by both models, layers after it see the treatment.
    treatment_layer = (len(hidden) + 1) // 2 if layer == "auto" else layer
    network = causal_network(
        p,
        hidden,
        treatment_layer,
        outcome="bernoulli" if design.family == "binomial" else "gaussian",
        activation=options.activation,
        treatment_weight=options.treatment_weight,
    )
    # Rows the gradient sees in each fold.
    in_training = n if options.folds == 1 else n * (options.folds - 1) / options.folds
    rows = max(1, int(in_training * (1 - options.validation_fraction)))
    return Plan(
        preset=preset,
        network=network,
        training=resolve_training(options.training, depth=len(hidden), rows=rows),
        starts=options.starts,
        folds=options.folds,
        seed=seed,
        validation_fraction=options.validation_fraction,
        clip=options.clip,
        variance=options.variance,
        pack_bytes=options.pack_bytes,
    )


def resolve_training(options: TrainingOptions, *, depth: int, rows: int) -> TrainingOptions:
    """Training options with numbers for every ``"auto"``.

    Parameters
    ----------
    depth
        Hidden layers h.
    rows
        Rows in an epoch.
    """
    batch = options.batch_size
    if batch == "auto":
        batch = LARGE_BATCH if rows >= 100 * LARGE_BATCH // 2 else SMALL_BATCH
    batch = min(batch, rows)
    sampler = _resolve_sampler(options.sampler, depth)
    stages = tuple(
        _resolve_stage(stage, sampler, depth, updates_per_epoch=math.ceil(rows / batch))
        for stage in options.stages
    )
    return dataclasses.replace(options, batch_size=batch, sampler=sampler, stages=stages)


def _resolve_sampler(sampler: SamplerOptions, depth: int) -> SamplerOptions:
    variance = sampler.variance
    if variance == "auto":
        # The theory's ladder σ_1² ≪ σ_2² ≪ … ≪ σ_h² ≪ 1: with a flat one, moving Y_i would change
        # the residual of layer i+1 by as much as it explains.
        variance = tuple(10.0 ** -(3 + 2 * (depth - i)) for i in range(1, depth + 1))
    _check_length("SamplerOptions.variance", variance, depth, "hidden layer")
    return dataclasses.replace(sampler, variance=variance)


def _resolve_stage(
    stage: StageOptions, sampler: SamplerOptions, depth: int, *, updates_per_epoch: int
) -> StageOptions:
    epochs = stage.epochs
    if epochs == "auto":
        fewest, most = STAGE_EPOCHS
        epochs = min(max(math.ceil(STAGE_UPDATES / updates_per_epoch), fewest), most)
    rate = (DEFAULT_RATE,) * (depth + 1) if stage.rate == "auto" else stage.rate
    # With ε_i = σ_i a first step lands where the layer's own density alone would put it.
    step = tuple(math.sqrt(v) for v in sampler.variance) if stage.step == "auto" else stage.step
    _check_length("StageOptions.rate", rate, depth + 1, "layer, the outcome's included")
    _check_length("StageOptions.step", step, depth, "hidden layer")
    return dataclasses.replace(stage, epochs=epochs, rate=rate, step=step)


def _check_length(option: str, values: tuple[float, ...], length: int, per: str) -> None:
    if len(values) != length:
        raise OptionError(
            f"{option} needs one number per {per}: {length} for this network, got {len(values)}."
        )
