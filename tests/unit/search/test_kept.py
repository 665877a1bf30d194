"""Covariates that the analyst keeps: in all models, in every fold, in the weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import OptionError
from cstonet.network.structure import Structure
from cstonet.search.scope import SearchScope

N = 300


@pytest.fixture(scope="module")
def data():
    """Nobody needs x4; x1 confounds."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 6))
    treat = (x[:, 0] + rng.logistic(size=N) > 0).astype(int)
    y = treat + 2 * x[:, 0] + rng.normal(size=N)
    frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(6)])
    return frame.assign(treat=treat, y=y, g=rng.choice(["a", "b", "c"], size=N))


@pytest.fixture(scope="module")
def fit(quick_options):
    options = quick_options(epochs=20)

    def fit_keeping(data, formula="y ~ treat | .", **changes):
        return cs.fit(formula, data, **({"options": options, "seed": 2, "n_jobs": 1} | changes))

    return fit_keeping


@pytest.fixture(scope="module")
def kept(data, fit):
    return fit(data, keep=["x4", "g"])


NAMES = ("x4", "g[T.b]", "g[T.c]")


def places(results):
    return {results.design.covariates.index(name) for name in NAMES}


def test_they_are_in_both_models_of_every_fold(kept):
    assert kept.plan.keep == kept.kept == NAMES
    for fold in kept.networks.folds:
        for structure in (fold.adjustment.found, fold.adjustment.used):
            assert places(kept) <= set(structure.treatment)
            assert places(kept) <= set(structure.outcome)
        assert not places(kept) & set(fold.adjustment.linear)
    table = kept.selection.loc[list(NAMES)]
    for model in ("treatment", "outcome"):
        assert table[model].all()
        assert (table[f"{model}_frequency"] == 1).all()
        assert (table[f"{model}_strength"] > 0).all()
    # The search is not told to drop them, and does not.
    moves = kept.networks.search
    assert not moves["covariate"].isin(NAMES).any()


def test_without_the_option_nothing_of_this_is_there(data, fit, kept):
    plain = fit(data)
    assert "kept" not in plain.selection
    assert plain.kept == ()
    assert not plain.selection.loc["x4", ["treatment", "outcome"]].any()
    assert list(kept.selection.index[kept.selection["kept"]]) == list(NAMES)
    assert kept.selection["kept"].dtype == bool


def test_the_rest_is_still_searched_for_and_weighed(kept):
    assert kept.selection.loc["x1", ["treatment", "outcome"]].all()
    assert kept.selection.loc["x1", "outcome_probability"] > 0.9
    assert kept.selection.loc[list(NAMES), "outcome_probability"].isna().all()
    assert kept.selection.drop(index=list(NAMES))["outcome_probability"].notna().all()
    assert np.isfinite(kept.expected_false_selections).all()


def test_the_summary_says_so(kept):
    text = kept.summary().as_text()
    row = next(line for line in text.split("\n") if line.startswith("x4 "))
    assert row.split()[1::2] == ["kept", "kept"]
    assert "x4, g[T.b], g[T.c] were kept in all models by choice" in kept.methods()
    row = next(line for line in text.split("\n") if line.startswith("x1 "))
    assert "kept" not in row


def test_screening_lets_them_pass(data, fit, quick_options):
    searched = fit(data, keep="x4 + g", screen=1)
    for fold in searched.networks.folds:
        assert places(searched) <= set(fold.adjustment.used.inputs.tolist())
    options = quick_options("prune", epochs=4)
    screened = fit(data, keep="x4", screen=2, options=options)
    for fold in screened.networks.folds:
        # One seat is left, for the covariate with the largest score.
        assert {screened.design.covariates[j] for j in fold.starts[0].inputs} <= {"x1", "x4"}
    moves = screened.networks.search
    assert "x1" in set(moves["covariate"])


def test_pruning_alone_cannot_promise_anything(data, fit, quick_options):
    with pytest.raises(OptionError, match=r"keep= needs the structure search, or screening"):
        fit(data, keep="x4", options=quick_options("prune", epochs=4))
    with pytest.raises(OptionError, match="keep= needs"):
        cs.CausalStoNet.from_formula("y ~ treat | .", data).plan("stonet", keep=["x4"])


def test_doses_and_mediators_keep_them_too(data, fit):
    rng = np.random.default_rng(5)
    frame = data.drop(columns=["g", "treat"]).assign(dose=data["x1"] + rng.normal(size=N))
    doses = fit(frame, "y ~ dose | .", keep="x4")
    assert doses.selection.loc["x4", ["treatment", "outcome", "kept"]].all()
    mediated = data.drop(columns="g").assign(m=data["treat"] + rng.normal(size=N))
    mediation = fit(mediated, "y ~ treat | . | m", keep=["x4"])
    assert mediation.selection.loc["x4", ["treatment", "mediator", "outcome", "kept"]].all()
    row = next(line for line in mediation.summary().as_text().split("\n") if line.startswith("x4 "))
    assert row.count("kept") == 3


def test_the_scope_holds_them_where_it_may():
    scope = SearchScope(always=(1, 5), barred=(5,))
    assert scope.held("outcome") == (1, 5)
    assert scope.held("treatment") == (1,)
    assert SearchScope(models=("outcome",), always=(1,)).held("treatment") == ()
    assert scope.united(Structure((1,), (1, 5))) == Structure((1,), (1, 5))


@pytest.mark.parametrize("wrong", [[1], ["x1", ""], 7])
def test_malformed_lists(wrong, quick_options):
    with pytest.raises(OptionError, match=r"FitOptions\.keep must be a list of names"):
        quick_options(keep=wrong)


def test_nothing_to_keep(quick_options):
    assert quick_options(keep=[]).keep is None
