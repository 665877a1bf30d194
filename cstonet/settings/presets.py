"""The named settings of a fit.

``"calibrated"`` is what the options' own defaults say. It is scale-free: everything that depends
on the data is ``"auto"``. ``"paper"`` is Algorithm A1 with the settings published for the paper's
second simulation; those of the other experiments carry their names: ``"paper:simulation1"``,
``"paper:acic"``, ``"paper:twins"``, ``"paper:tcga"``. Their rates belong to those data sets and
seldom suit another.
"""

from __future__ import annotations

from typing import Any

from cstonet.errors import OptionError
from cstonet.settings.options import (
    FitOptions,
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
)


def _published(
    *,
    hidden: tuple[int, ...],
    treatment_layer: int,
    latent_variance: tuple[float, ...],
    outcome_variance: float,
    spike: float,
    slab: float,
    epochs: tuple[int, ...],
    friction: float,
    step: tuple[float, ...],
    step_exponent: float,
    rate: tuple[float, ...],
    refine_rate: tuple[float, ...],
    rate_exponent: float,
    batch_size: int = 100,
) -> FitOptions:
    """Algorithm A1 as published: pretrain, then train and prune (maybe twice), then refine.

    Momentum, clipping and the weight on the treatment's likelihood are those of the published
    computations; the paper's text does not state them.
    """
    pretrain, *train, refine = epochs
    decays: dict[str, Any] = {
        "rate_decay": "polynomial",
        "rate_exponent": rate_exponent,
        "step_decay": "polynomial",
        "step_exponent": step_exponent,
    }
    stages = (
        StageOptions(epochs=pretrain, rate=rate, step=step),
        *(
            StageOptions(epochs=e, prior="mixture", prune=True, rate=rate, step=step, **decays)
            for e in train
        ),
        StageOptions(epochs=refine, rate=refine_rate, step=step, **decays),
    )
    return FitOptions(
        hidden=hidden,
        treatment_layer=treatment_layer,
        treatment_weight=1000.0,
        search=None,
        starts=10,
        ensemble=1,
        folds=3,
        repeats=1,
        validation_fraction=0.0,
        outlier_limit=1e6,
        training=TrainingOptions(
            stages=stages,
            batch_size=batch_size,
            initializer="uniform",
            initial_bias=1.0,
            estimate_variance=False,
            initial_variance=outcome_variance,
            sampler=SamplerOptions(
                sweeps=1, friction=friction, temperature=1.0, variance=latent_variance
            ),
            prior=PriorOptions(
                inclusion=1e-6,
                slab_variance=slab,
                spike_start=spike,
                spike_end=spike,
                anneal_share=0.0,
                penalize_bias=True,
            ),
            optimizer=OptimizerOptions(rule="momentum", momentum=0.9, clip_norm=1.0),
        ),
    )


def _published_settings(experiment: str) -> FitOptions:
    """Settings of one experiment, from the paper's appendix "Parameters setting"."""
    if experiment == "simulation1":
        return _published(
            hidden=(32, 16, 8),
            treatment_layer=2,
            latent_variance=(1e-3, 1e-5, 1e-7),
            outcome_variance=1e-9,
            spike=1e-5,
            slab=1e-2,
            epochs=(50, 200, 200),
            friction=0.1,
            step=(3e-3, 3e-4, 5e-7),
            step_exponent=1.2,
            rate=(1e-3, 1e-6, 1e-8, 5e-13),
            refine_rate=(1e-4, 1e-7, 1e-9, 5e-14),
            rate_exponent=1.4,
            batch_size=50,
        )
    if experiment == "simulation2":
        return _published(
            hidden=(8, 6, 5),
            treatment_layer=2,
            latent_variance=(1e-3, 1e-5, 1e-7),
            outcome_variance=1e-9,
            spike=3e-3,
            slab=0.3,
            epochs=(100, 1500, 200),
            friction=0.1,
            step=(3e-3, 3e-4, 1e-6),
            step_exponent=1.2,
            rate=(1e-3, 3e-6, 1e-7, 1e-12),
            refine_rate=(1e-4, 3e-7, 1e-8, 1e-13),
            rate_exponent=1.2,
        )
    if experiment == "acic":
        return _published(
            hidden=(64, 32),
            treatment_layer=1,
            latent_variance=(1e-5, 1e-7),
            outcome_variance=1e-9,
            spike=2e-4,
            slab=0.1,
            epochs=(100, 500, 1000, 200),
            friction=1.0,
            step=(3e-4, 1e-6),
            step_exponent=1.0,
            rate=(5e-6, 5e-8, 5e-13),
            refine_rate=(5e-7, 5e-9, 1e-13),
            rate_exponent=2.0,
        )
    if experiment == "twins":
        return _published(
            hidden=(16, 8, 4),
            treatment_layer=2,
            latent_variance=(1e-3, 1e-4, 1e-5),
            outcome_variance=1e-6,
            spike=5e-4,
            slab=0.1,
            epochs=(100, 1500, 200),
            friction=1.0,
            step=(1e-2, 9e-3, 9e-5),
            step_exponent=1.0,
            rate=(1e-3, 1e-4, 1e-5, 1e-9),
            refine_rate=(1e-4, 1e-5, 1e-6, 1e-10),
            rate_exponent=1.2,
        )
    return _published(
        hidden=(64, 16, 4),
        treatment_layer=2,
        latent_variance=(1e-3, 1e-5, 1e-7),
        outcome_variance=1e-9,
        spike=1e-5,
        slab=1e-2,
        epochs=(100, 1500, 200),
        friction=1.0,
        step=(3e-3, 3e-4, 1e-6),
        step_exponent=1.0,
        rate=(1e-3, 5e-5, 5e-7, 1e-12),
        refine_rate=(1e-4, 1e-6, 1e-8, 1e-13),
        rate_exponent=1.2,
    )


EXPERIMENTS = ("simulation1", "simulation2", "acic", "twins", "tcga")
PRESETS = ("calibrated", "paper", *(f"paper:{name}" for name in EXPERIMENTS))


def preset(name: str) -> FitOptions:
    """The options of a preset.

    Parameters
    ----------
    name
        ``"calibrated"``, ``"paper"`` (the same as ``"paper:simulation2"``), or one of
        ``"paper:simulation1"``, ``"paper:simulation2"``, ``"paper:acic"``, ``"paper:twins"``,
        ``"paper:tcga"``.
    """
    if name not in PRESETS:
        raise OptionError(f"Unknown preset {name!r}. Choose one of {', '.join(PRESETS)}.")
    if name == "calibrated":
        return FitOptions()
    return _published_settings(name.partition(":")[2] or "simulation2")
