"""Designs without some of their covariates: whole terms, whatever they are made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cstonet import CausalStoNet
from cstonet.data.omission import named_covariates, terms_of, without_covariates
from cstonet.errors import EmptyDataError, UnknownColumnError


@pytest.fixture
def frame():
    rng = np.random.default_rng(2)
    n = 60
    numbers = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "z", "w"])
    return numbers.assign(
        y=rng.normal(size=n), treat=np.arange(n) % 2, g=rng.choice(list("abc"), n)
    )


@pytest.fixture
def design(frame):
    formula = "y ~ treat | x + z + g + np.exp(w) + bs(x, 4)"
    return CausalStoNet.from_formula(formula, frame).design


def test_names_stand_for_whole_terms(design):
    spec = design.spec
    g = {spec.names[j] for j in named_covariates(spec, ["g[T.b]"], "drop")}
    assert g == {"g[T.b]", "g[T.c]"}
    assert terms_of(spec, {"g[T.c]"}) == {"g": named_covariates(spec, ["g"], "drop")}
    # A column takes everything that is made of it: x itself and its spline.
    x = {spec.names[j] for j in named_covariates(spec, ["x"], "drop")}
    assert x == {"x", *(f"bs(x, 4)[{k}]" for k in range(4))}
    with pytest.raises(UnknownColumnError, match=r"drop names 'G'.* Did you mean 'g'\?"):
        named_covariates(spec, ["G"], "drop")


@pytest.mark.parametrize("name", ["x", "z", "g", "np.exp(w)", "bs(x, 4)"])
def test_what_stays_is_as_it_was(design, name):
    places = named_covariates(design.spec, [name], "drop")
    smaller = without_covariates(design, places)
    kept = [j for j in range(len(design.covariates)) if j not in places]
    assert smaller.covariates == tuple(design.covariates[j] for j in kept)
    assert smaller.spec.names == smaller.covariates
    np.testing.assert_array_equal(smaller.X, design.X[:, kept])
    assert smaller.y is design.y


def test_sparse_covariates_stay_sparse(frame):
    X = sparse.csc_array(frame[["x", "z", "w"]].to_numpy())
    design = CausalStoNet(frame["y"], frame["treat"], X).design
    smaller = without_covariates(design, [1])
    assert sparse.issparse(smaller.X)
    np.testing.assert_array_equal(smaller.X.toarray(), X.toarray()[:, [0, 2]])


def test_gaps_move_with_their_covariates(frame):
    gappy = frame.assign(z=frame["z"].where(frame["z"] < 1), g=frame["g"].where(frame["x"] < 1))
    model = CausalStoNet.from_formula("y ~ treat | x + z + g", gappy, missing="mar")
    design = model.design
    smaller = without_covariates(design, named_covariates(design.spec, ["x"], "drop"))
    assert [v.name for v in smaller.gaps.variables] == ["z", "g"]
    assert [v.columns for v in smaller.gaps.variables] == [(0,), (1, 2)]
    none = without_covariates(design, named_covariates(design.spec, ["z", "g"], "drop"))
    assert none.gaps is None


def test_something_must_be_left(design):
    with pytest.raises(EmptyDataError, match="no covariate left"):
        without_covariates(design, range(len(design.covariates)))
