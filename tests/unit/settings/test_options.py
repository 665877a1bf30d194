"""Options check themselves, say what is allowed, and mirror the kernel's structs."""

from __future__ import annotations

import dataclasses
import importlib
import math

import cstonet_seams
import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import OptionError
from cstonet.settings import options
from cstonet.settings.checks import choices_of
from cstonet.settings.options import (
    LARGEST_SEED,
    FitOptions,
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    SearchOptions,
    StageOptions,
    TrainingOptions,
    check_seed,
)
from cstonet.settings.presets import preset


def test_the_kernel_has_the_same_fields():
    """One home per option: C++ lists its fields, Python's dataclasses have exactly these."""
    for name, fields in cstonet_seams.option_fields().items():
        ours = {field.name for field in dataclasses.fields(getattr(options, name))}
        assert ours == set(fields), name


STAGES = (StageOptions(epochs=1),)

OUT_OF_RANGE = [
    (SamplerOptions, {"sweeps": 0}, "sweeps must be a whole number from 1"),
    (SamplerOptions, {"sweeps": 1.5}, "sweeps must be a whole number"),
    (SamplerOptions, {"friction": 0}, r"friction must be a number in \(0, 1\]"),
    (SamplerOptions, {"friction": 1.1}, "friction"),
    (SamplerOptions, {"friction": 10**400}, "friction"),
    (SamplerOptions, {"temperature": -0.1}, "temperature"),
    (SamplerOptions, {"temperature": math.inf}, "temperature"),
    (SamplerOptions, {"variance": (1e-3, 0.0)}, "variance must be a tuple of positive numbers"),
    (SamplerOptions, {"variance": ()}, "variance must be a tuple of positive numbers"),
    (SamplerOptions, {"variance": [1e-3]}, "variance must be a tuple"),
    (SamplerOptions, {"variance": "large"}, "variance must be a tuple"),
    (PriorOptions, {"inclusion": 0.0}, r"inclusion must be a number in \(0, 1\)"),
    (PriorOptions, {"inclusion": 1.0}, "inclusion"),
    (PriorOptions, {"slab_variance": 0.0}, "slab_variance"),
    (PriorOptions, {"slab_variance": 1e-3}, r"spike_start must be a number in \(0, 0.001\)"),
    (PriorOptions, {"spike_end": 1.0}, "spike_end"),
    (PriorOptions, {"spike_end": math.nan}, "spike_end"),
    (PriorOptions, {"anneal_share": 1.01}, "anneal_share"),
    (PriorOptions, {"penalize_bias": 1}, "penalize_bias must be True or False"),
    (OptimizerOptions, {"rule": "sgd"}, "rule must be one of 'adam', 'momentum'"),
    (OptimizerOptions, {"momentum": 1.0}, "momentum"),
    (OptimizerOptions, {"second_decay": -0.1}, "second_decay"),
    (OptimizerOptions, {"epsilon": 0.0}, "epsilon"),
    (OptimizerOptions, {"clip_norm": -1.0}, "clip_norm"),
    (StageOptions, {"epochs": -1}, 'epochs must be a whole number from 0 .* or "auto"'),
    (StageOptions, {"epochs": "some"}, "epochs"),
    (StageOptions, {"epochs": 1, "prior": True}, "prior must be one of"),
    (StageOptions, {"epochs": 1, "prune": "yes"}, "prune must be True or False"),
    (StageOptions, {"epochs": 1, "rate": (0.1, -0.1)}, "rate must be a tuple of positive"),
    (StageOptions, {"epochs": 1, "step": 0.1}, "step must be a tuple of positive"),
    (StageOptions, {"epochs": 1, "rate_decay": "linear"}, "rate_decay must be one of 'none'"),
    (StageOptions, {"epochs": 1, "step_decay": "cosine"}, "step_decay must be one of"),
    (StageOptions, {"epochs": 1, "rate_exponent": -1}, "rate_exponent"),
    (FitOptions, {"outcome_temperature": 0.0}, "outcome_temperature must be a number in"),
    (FitOptions, {"outcome_temperature": math.inf}, "outcome_temperature"),
    (TrainingOptions, {"stages": ()}, "stages must be a non-empty tuple of StageOptions"),
    (TrainingOptions, {"stages": (1,)}, "stages must be a non-empty tuple"),
    (TrainingOptions, {"stages": 0.5}, "stages must be a non-empty tuple"),
    (TrainingOptions, {"stages": STAGES, "batch_size": 0}, "batch_size"),
    (TrainingOptions, {"stages": STAGES, "initializer": "zeros"}, "initializer must be one of"),
    (TrainingOptions, {"stages": STAGES, "initial_bias": -1}, "initial_bias"),
    (TrainingOptions, {"stages": STAGES, "initial_variance": 0}, "initial_variance"),
    (TrainingOptions, {"stages": STAGES, "prior": 1}, "prior must be a PriorOptions"),
    (FitOptions, {"training": None}, "training must be a TrainingOptions"),
]


@pytest.mark.parametrize(
    ("kind", "fields", "says"), OUT_OF_RANGE, ids=lambda value: str(value)[:40]
)
def test_out_of_range(kind, fields, says):
    with pytest.raises(OptionError, match=says) as caught:
        kind(**fields)
    assert str(caught.value).startswith(f"{kind.__name__}.")
    assert isinstance(caught.value, ValueError)


CHOICES = [
    (OptimizerOptions, "rule", "'adam', 'momentum'"),
    (StageOptions, "prior", "'none', 'slab', 'mixture'"),
    (StageOptions, "rate_decay", "'none', 'polynomial', 'cosine'"),
    (StageOptions, "step_decay", "'none', 'polynomial'"),
    (TrainingOptions, "initializer", "'normal', 'uniform'"),
    (SearchOptions, "adjust", "'auto', 'union', 'own', 'linear'"),
    (FitOptions, "activation", "'tanh', 'sigmoid', 'relu'"),
    (FitOptions, "variance", "'auto', 'paper', 'influence'"),
]


@pytest.mark.parametrize(("kind", "name", "choices"), CHOICES)
def test_choices_are_those_of_the_annotation(kind, name, choices):
    needed = {StageOptions: {"epochs": 1}, TrainingOptions: {"stages": STAGES}}.get(kind, {})
    for choice in choices_of(kind, name):
        kind(**needed, **{name: choice})
    for wrong in ("other", "", None, [], 1):
        with pytest.raises(OptionError) as caught:
            kind(**needed, **{name: wrong})
        assert str(caught.value) == (
            f"{kind.__name__}.{name} must be one of {choices}; got {wrong!r}."
        )


def test_bounds_themselves():
    """Closed ends are allowed."""
    SamplerOptions(friction=1, temperature=0)
    PriorOptions(anneal_share=0)
    PriorOptions(anneal_share=1.0)
    StageOptions(epochs=0)
    fit = preset("calibrated")
    fit.replace(clip=0, validation_fraction=0.5, starts=1, folds=1)


def test_replace_changes_only_what_is_named():
    base = preset("calibrated")
    changed = base.replace(clip=0.2, folds=5)
    assert (changed.clip, changed.folds) == (0.2, 5)
    assert changed.replace(clip=base.clip, folds=base.folds) == base
    with pytest.raises(OptionError, match="Did you mean 'validation_fraction'"):
        base.replace(validation_frac=0.1)


@pytest.mark.parametrize(
    "value", [preset("paper"), preset("paper").training, SamplerOptions(), PriorOptions(), *STAGES]
)
def test_options_cannot_be_changed_in_place(value):
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, 3)


def test_seeds():
    assert check_seed(0) == 0
    assert check_seed(np.int32(7)) == 7
    assert check_seed(LARGEST_SEED) == LARGEST_SEED
    for wrong in (-1, LARGEST_SEED + 1, 1.0, "1", None, True):
        with pytest.raises(OptionError, match="seed must be a whole number from 0 to"):
            check_seed(wrong)


def test_options_are_importable_where_users_look():
    public = importlib.import_module("cstonet.options")
    assert public is cs.options
    assert public.FitOptions is options.FitOptions
    assert set(public.__all__) == set(options.__all__)
