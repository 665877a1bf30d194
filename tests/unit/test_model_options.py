"""Options of a fit: presets, plans, and what is out of range."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import cstonet as cs
from cstonet import errors
from cstonet.settings.presets import PRESETS, preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_a_plan(frame, name):
    plan = cs.CausalStoNet.from_formula("y ~ treat | .", frame).plan(name)
    assert plan.preset == name
    assert "auto" not in plan.to_json()


def test_published_schedule_runs(frame):
    """Preset "paper", with only its epochs cut short: the rest of the schedule as published."""
    published = preset("paper")
    stages = tuple(replace(stage, epochs=3) for stage in published.training.stages)
    short = replace(published.training, stages=stages)
    results = cs.fit("y ~ treat | .", frame, preset="paper", training=short, starts=2)
    assert results.plan.preset == "paper"
    assert results.plan.network_label == "4-8-6-5-1"
    assert results.plan.training.optimizer.rule == "momentum"
    assert list(results.trace["stage"].unique()) == [0, 1, 2]


def test_plan_is_what_fit_does_and_is_plain_data(frame, fitted, options):
    model = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
    plan = model.plan(options=options, seed=3)
    assert plan == fitted.plan
    stored = json.loads(plan.to_json())
    assert stored["folds"] == 2
    assert stored["seed"] == 3
    assert stored["training"]["stages"][0]["epochs"] == 12
    assert model.plan(options=options, seed=3, clip=0.1) != plan


def test_none_can_be_a_value(frame, options):
    model = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
    assert model.plan(options=options).search is not None
    assert model.plan(options=options, search=None).search is None
    assert model.plan(options=options, starts=None, folds=None) == model.plan(options=options)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clip": None}, "clip must be a number"),
        ({"clip": 0.5}, r'FitOptions.clip must be a number in \[0, 0.5\) or "auto"; got 0.5'),
        ({"clip": (0.01, "much")}, "got .*'much'"),
        ({"clip": (0.01,)}, "clip must be a number, one for each level"),
        ({"clip": (0.01, 0.02, 0.01)}, "one for each of the 2 levels"),
        ({"clip": "small"}, "got 'small'"),
        ({"starts": 0}, "starts must be a whole number from 1"),
        ({"starts": 2.0}, "starts must be a whole number"),
        ({"folds": -3}, "folds must be a whole number from 1"),
        ({"folds": True}, "folds must be a whole number"),
        ({"hidden": (8, 0)}, "hidden must be a tuple of whole numbers"),
        ({"hidden": [8, 4.0]}, "hidden must be a tuple of whole numbers"),
        ({"treatment_layer": 9}, "treatment_layer=9, but the network has 3 hidden layers"),
        ({"validation_fraction": 0.0}, "no rows to measure the noise on"),
        ({"hidden": (32, 1, 4), "treatment_layer": 3}, "leave the outcome model none"),
        ({"hidden": (4, 1), "treatment_layer": 2}, "needs at least one unit besides"),
        (
            {"hidden": (4,), "treatment_layer": 2},
            "treatment_layer must be a whole number from 1 to 1",
        ),
        ({"activation": "swish"}, "activation must be one of 'tanh', 'sigmoid', 'relu'"),
        ({"variance": "robust"}, "variance must be one of 'auto', 'paper', 'influence'"),
        ({"validation_fraction": 0.9}, r"validation_fraction must be a number in \[0, 0.5\]"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"preset": "best"}, "Unknown preset 'best'. Choose one of calibrated, stonet, paper"),
        ({"progress": "bar"}, "progress must be None, True, False or a function"),
        ({"options": {"folds": 3}}, "options must be a FitOptions"),
        ({"family": "gamma"}, "family='gamma' is not available"),
        ({"missing": "impute"}, "missing='impute' is not available"),
        ({"fold": 3}, "Unknown option 'fold'. Did you mean 'folds'"),
        ({"dropout": 0.5}, "Unknown option 'dropout'. The options of a fit are: training, hidden"),
    ],
)
def test_options_out_of_range(frame, change, says):
    with pytest.raises(errors.OptionError, match=says):
        cs.fit("y ~ treat | .", frame, **change)
