"""Every option and every argument of a fit, given every kind of value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import cstonet as cs
from cstonet.settings.options import (
    FitOptions,
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    SearchOptions,
    StageOptions,
    TrainingOptions,
)
from tests.bad_inputs.outcome import Case
from tests.bad_inputs.roles import base
from tests.bad_inputs.values import VALUES, same_value

_BOUNDED = {"slab_variance": ("spike_start", "spike_end")}
_TRAINING = FitOptions().training
_ORDINARY: dict[type, Any] = {
    SearchOptions: SearchOptions(),
    TrainingOptions: _TRAINING,
    StageOptions: _TRAINING.stages[0],
    SamplerOptions: SamplerOptions(),
    PriorOptions: PriorOptions(),
    OptimizerOptions: OptimizerOptions(),
}
_OF_THE_DATA = ("family", "treatment", "reference", "missing", "weights", "cluster", "safe")
_OF_THE_PLAN = ("preset", "seed", "options")


def cases() -> Iterator[Case]:
    """A case for each field and each value; new fields are found by themselves."""
    for field in dataclasses.fields(FitOptions):
        for name, value in VALUES.items():
            run = partial(_planned, field.name, value)
            yield Case("option of a fit", f"{field.name}={name}", run, (field.name,), _is_plan)
    for owner in _ORDINARY:
        for field in dataclasses.fields(owner):
            for name, value in VALUES.items():
                label = f"{owner.__name__}.{field.name}={name}"
                run = partial(_made, owner, field.name, value)
                # A bound may be another field's.
                says = (field.name, *_BOUNDED.get(field.name, ()))
                yield Case("option of training", label, run, says, bool)
    for argument in _OF_THE_DATA:
        for name, value in VALUES.items():
            run = partial(_read, argument, value)
            yield Case("argument", f"{argument}={name}", run, (argument,), bool)
    for argument in _OF_THE_PLAN:
        for name, value in VALUES.items():
            run = partial(_plan_of, argument, value)
            says = (argument, "starts", "folds", "repeats")
            yield Case("argument", f"{argument}={name}", run, says, _is_plan)
    for argument in ("n_jobs", "backend", "progress", "stop", "checkpoint"):
        for name, value in VALUES.items():
            if argument == "checkpoint" and isinstance(value, str):
                continue  # the name of a folder, mostly
            # What would be a fit is none: it is refused for its folds.
            run = partial(_fit_of, argument, value)
            says = (argument, "folds need", "no path")
            yield Case("argument", f"{argument}={name}", run, says)


def _model() -> cs.CausalStoNet:
    return cs.CausalStoNet.from_formula("y ~ treat | x1 + x2", base())


def _planned(name: str, value: Any) -> Any:
    plan = _model().plan(**{name: value})
    if value is not None:
        options = FitOptions().replace(**{name: value})
        if not same_value(getattr(options, name), value):
            raise AssertionError(f"{name} became {getattr(options, name)!r}")
    return plan


def _plan_of(argument: str, value: Any) -> Any:
    return _model().plan(**{argument: value})


def _is_plan(plan: Any) -> bool:
    """Whether it is a plan of numbers that can be written."""
    return bool(json.loads(plan.to_json()))


def _made(owner: Any, name: str, value: Any) -> bool:
    return same_value(getattr(dataclasses.replace(_ORDINARY[owner], **{name: value}), name), value)


def _read(argument: str, value: Any) -> bool:
    model = cs.CausalStoNet.from_formula("y ~ treat | x1 + x2", base(), **{argument: value})
    accepted = {
        "reference": lambda: value is None or model.design.treatment.levels[0] == value,
        "treatment": lambda: value is None,
        "family": lambda: value is None,
        "missing": lambda: False,
        "weights": lambda: value is None,
        "safe": lambda: value is True or value is False or isinstance(value, np.bool_),
        "cluster": lambda: value is None,
    }
    return bool(accepted[argument]())


def _fit_of(argument: str, value: Any) -> Any:
    return _model().fit(folds=1000, search=None, **{argument: value})
