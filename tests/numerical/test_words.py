"""Options are words in Python and enums in the kernel: both know the same ones."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, get_args, get_type_hints

import cstonet_seams
import pytest

from cstonet import _core
from cstonet.network.spec import Block, NetworkSpec
from cstonet.settings import options

# Where Python lists the words of each enum.
LISTED = {
    "family": (Block, "family"),
    "activation": (NetworkSpec, "activation"),
    "initializer": (options.TrainingOptions, "initializer"),
    "optimizer rule": (options.OptimizerOptions, "rule"),
    "prior": (options.StageOptions, "prior"),
    "decay": (options.StageOptions, "rate_decay"),
}
RECIPE = options.TrainingOptions(
    stages=(options.StageOptions(1, rate=(0.1, 0.1), step=(0.1,)),),
    batch_size=8,
    epoch_rows=100,
    sampler=options.SamplerOptions(variance=(0.1,)),
)


def unchecked(value: Any) -> Any:
    """A dataclass as a namespace, which accepts any value."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: unchecked(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return types.SimpleNamespace(**fields)
    return [unchecked(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("what", LISTED)
def test_both_sides_know_the_same_words(what: str) -> None:
    kind, field = LISTED[what]
    assert sorted(cstonet_seams.option_words()[what]) == sorted(
        get_args(get_type_hints(kind)[field])
    )


def test_every_enum_is_compared() -> None:
    assert set(cstonet_seams.option_words()) == set(LISTED)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("initializer", "initializer"),
        ("optimizer.rule", "optimizer rule"),
        ("stages.0.prior", "prior"),
        ("stages.0.rate_decay", "decay"),
        ("stages.0.step_decay", "decay"),
    ],
)
def test_an_unknown_word_is_refused(path: str, what: str) -> None:
    recipe = unchecked(RECIPE)
    cstonet_seams.read_options(recipe)
    *parents, field = path.split(".")
    owner = recipe
    for name in parents:
        owner = owner[int(name)] if name.isdigit() else getattr(owner, name)
    setattr(owner, field, "newton")
    with pytest.raises(ValueError, match=f"unknown {what} 'newton'"):
        cstonet_seams.read_options(recipe)


def test_unknown_words_of_a_network_are_refused() -> None:
    block = Block("gaussian", 2, visible=False, feeds=True)
    outcome = Block("gaussian", 1, visible=True, feeds=False)
    spec = unchecked(NetworkSpec(3, "tanh", ((block,), (outcome,))))
    assert _core.trace_columns(spec)
    spec.layers[1][0].family = "gamma"
    with pytest.raises(ValueError, match="unknown family 'gamma'"):
        _core.trace_columns(spec)
    spec.activation = "sine"
    with pytest.raises(ValueError, match="unknown activation 'sine'"):
        _core.trace_columns(spec)
