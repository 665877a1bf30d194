"""The same fit without some covariates: its options no longer name them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.analyses.refits import recipe_of, without
from cstonet.errors import NotAvailableError


@pytest.fixture
def model():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["x", "z", "w"])
    frame.loc[:5, "z"] = np.nan
    frame = frame.assign(y=rng.normal(size=60), treat=np.arange(60) % 2)
    return CausalStoNet.from_formula("y ~ treat | x + z + w", frame, missing="mar")


def test_options_forget_what_is_gone(model, quick_options):
    options = quick_options(keep=["x + w"], neighbours={"z": ["x", "w"]})
    recipe = model._recipe("calibrated", options, {})
    smaller, design = without(recipe, model.design, [0])
    assert design.covariates == ("z", "w")
    assert smaller.options.keep == ("w",)
    assert smaller.options.neighbours == (("z", ("w",)),)
    assert smaller.plan(design, 1).keep == ("w",)
    alone, _ = without(recipe, model.design, [0, 2])
    assert alone.options.keep is None
    assert alone.options.neighbours is None


def test_results_without_a_recipe_cannot_be_repeated(make_results):
    with pytest.raises(NotAvailableError, match="loading them from a file"):
        recipe_of(make_results(), "placebo()")
