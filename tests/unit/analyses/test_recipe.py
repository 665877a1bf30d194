"""The call that made a fit, as text, and the fit done again."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet.crossfit.workforce import Workforce


@pytest.fixture(scope="module")
def frame():
    data = cs.datasets.simulation2(n=150, p=5, seed=2).data
    return data.assign(w=np.where(np.arange(150) % 2, 1.0, 2.0))


def test_the_call_can_be_made_again(frame, quick_options):
    res = cs.fit(
        "y ~ treat | .",
        frame,
        weights="w",
        missing="drop",
        estimand="ATT",
        keep=["x1"],
        folds=2,
        seed=7,
        options=quick_options(),
    )
    assert res.call == (
        "cs.fit('y ~ treat | .', data, missing='drop', weights='w', preset='custom', folds=2, "
        "estimand='ATT', keep=['x1'], seed=7)"
    )


def test_arrays_are_named_not_written(frame, quick_options):
    X = frame[["x1", "x2"]].to_numpy()
    model = cs.CausalStoNet(frame["y"].array, frame["treat"].array, X, weights=frame["w"].array)
    res = model.fit(options=quick_options(), seed=3)
    assert res.call == (
        "cs.CausalStoNet(y, treat, X).fit(weights=weights, preset='custom', seed=3)"
    )


def test_a_recipe_gives_the_same_fit_again(frame, quick_options):
    res = cs.fit("y ~ treat | .", frame, options=quick_options(), seed=5)
    again = res.recipe.fit(res.design, 5, Workforce(1))
    assert again.params.equals(res.params)
    assert again.call == res.call
    other = res.recipe.fit(res.design, 6, Workforce(1))
    assert not other.params.equals(res.params)
