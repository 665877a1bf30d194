"""Misspelt names: the messages end with what was probably meant, wherever names are looked up."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet import errors
from cstonet.suggestions import did_you_mean


@pytest.fixture(scope="module")
def frame():
    data = cs.datasets.one_mediator(n=60, p=12, seed=1).data
    return data.assign(weight=1.0, body_mass=np.arange(60.0)).rename(columns={"x11": "tumor size"})


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("X12", ["x1", "x12", "x2"], "'x12'"),
        ("x_12", ["x1", "x12", "x2"], "'x12'"),
        ("AGE", ["sage", "Age"], "'Age'"),
        ("treat", ["y", " treat"], "' treat'"),
        ("wieght", ["height", "weight"], "'weight'"),
    ],
)
def test_near_names(typed, known, meant):
    assert did_you_mean(typed, known) == f" Did you mean {meant}?"


@pytest.mark.parametrize("typed", ["nothing", "", "q7"])
def test_no_name_is_near(typed):
    assert did_you_mean(typed, ["x1", "weight"]) == ""
    assert did_you_mean(typed, []) == ""


@pytest.mark.parametrize(
    ("formula", "options", "meant"),
    [
        ("Y ~ treat | .", {}, "'y'"),
        ("y ~ Treat | .", {}, "'treat'"),
        ("y ~ treat | x1 + X12", {}, "'x12'"),
        ("y ~ treat | x1 + x_12", {}, "'x12'"),
        ("y ~ treat | . - X12", {}, "'x12'"),
        ("y ~ treat | x1 + np.exp(X12)", {}, "'x12'"),
        ("y ~ treat | tumor_size", {}, 'Q("tumor size")'),
        ("y ~ treat | . | M1", {}, "'m1'"),
        ("y ~ treat | .", {"weights": "Weight"}, "'weight'"),
        ("y ~ treat | .", {"weights": "tumor_size"}, "'tumor size'"),
    ],
)
def test_unknown_columns_end_with_the_nearest(frame, formula, options, meant):
    with pytest.raises(errors.UnknownColumnError) as caught:
        cs.CausalStoNet.from_formula(formula, frame, **options)
    assert str(caught.value).endswith(f" Did you mean {meant}?")


def test_nothing_is_suggested_where_nothing_is_near(frame):
    with pytest.raises(errors.UnknownColumnError) as caught:
        cs.CausalStoNet.from_formula("y ~ treat | zodiac", frame)
    assert "Did you mean" not in str(caught.value)


def test_new_data_and_neighbours(quick_options):
    simulation = cs.datasets.simulation2(n=80, p=5, seed=1)
    results = cs.fit(simulation.formula, simulation.data, options=quick_options(), seed=1, n_jobs=1)
    for old, new in (("treat", "Treat"), ("x2", "X2")):
        with pytest.raises(errors.UnknownColumnError) as caught:
            results.predict(simulation.data.rename(columns={old: new}))
        assert str(caught.value).endswith(f" Did you mean {new!r}?")
    x1 = simulation.data["x1"].mask(np.arange(80) % 9 == 0)
    holes = simulation.data.assign(x1=x1)
    with pytest.raises(errors.OptionError) as caught_option:
        cs.fit(simulation.formula, holes, missing="mar", neighbours={"x1": ["X2"]}, n_jobs=1)
    assert str(caught_option.value).endswith(" Did you mean 'x2'?")


def test_options():
    with pytest.raises(errors.OptionError, match=r"'Folds'\. Did you mean 'folds'"):
        cs.options.FitOptions().replace(Folds=3)
