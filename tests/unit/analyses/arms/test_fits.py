"""Fits of treatments with more than two levels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5
# Two fits of the same rows err by at most this many standard errors in total, both being within
# three of the truth except with probability 0.005.
MONTE_CARLO = 3 * 2**0.5


def test_fit_finds_the_contrasts(simulation, fitted):
    assert list(fitted.params.index[:2]) == list(simulation.contrasts)
    for name, truth in simulation.contrasts.items():
        assert abs(fitted.params[name] - truth) < FOUR * fitted.bse[name]
        assert fitted.params[name] > 5 * fitted.bse[name]
    np.testing.assert_allclose(fitted.propensity().sum(axis=1), 1, rtol=1e-6)
    own = np.take_along_axis(simulation.propensity, simulation.treatment[:, None], axis=1)
    got = np.take_along_axis(fitted.propensity().to_numpy(), simulation.treatment[:, None], axis=1)
    assert np.log(got).mean() > np.log(1 / 3)  # better than knowing nothing
    assert np.log(got).mean() < np.log(own).mean() + 0.1


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_multilevel_with_two_levels_is_binary(quick_options, recipe):
    """The block is the same, so the bits are; only names and shapes differ."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.normal(size=(200, 4))).rename(columns=str)
    treat = rng.binomial(1, expit(X["0"]))
    frame = X.assign(y=X["0"] + treat + rng.normal(size=200), treat=treat)
    fits = [
        cs.CausalStoNet.from_formula("y ~ treat | .", frame, treatment=kind).fit(
            options=quick_options(recipe), seed=2, n_jobs=1
        )
        for kind in ("binary", "multilevel")
    ]
    binary, multilevel = fits
    np.testing.assert_array_equal(binary.params, multilevel.params)
    np.testing.assert_array_equal(binary.cov_params(), multilevel.cov_params())
    np.testing.assert_array_equal(binary.nuisances.propensity, multilevel.nuisances.propensity)
    np.testing.assert_array_equal(binary.selection, multilevel.selection[binary.selection.columns])
    np.testing.assert_array_equal(binary.cate(), multilevel.cate()["CATE[1-0]"])
    np.testing.assert_array_equal(binary.propensity(), multilevel.propensity()[1])
    np.testing.assert_array_equal(binary.balance(), multilevel.balance())
    np.testing.assert_array_equal(binary.overlap(), multilevel.overlap().loc[1])
    assert binary.effect("ATO").estimate == multilevel.effect("ATO[1-0]").estimate
    assert list(multilevel.params.index) == ["ATE[1-0]", "POM[0]", "POM[1]"]
    assert (multilevel.selection["treatment"] == multilevel.selection["treatment[1]"]).all()


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_risks_in_weighted_arms(simulation, quick_options, recipe):
    """A binary outcome with weights: effects are risk differences, and means are risks."""
    data = simulation.data.assign(y=(simulation.data["y"] > 1).astype(int))
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(data))
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, weights=weights, reference="high")
    results = model.fit(options=quick_options(recipe, epochs=30), seed=1, n_jobs=1)
    assert list(results.params.index[:2]) == ["ATE[placebo-high]", "ATE[low-high]"]
    assert results.nuisances.mu.min() >= 0
    assert results.nuisances.mu.max() <= 1
    assert (results.params[:2] < -3 * results.bse[:2]).all()  # higher doses push y above 1
    assert "risk difference" in results.summary().as_text()
    np.testing.assert_allclose(results.influence.mean(), 0, atol=1e-12)


def test_relabelling_permutes_the_table(simulation, fit_quickly, fitted):
    names = {"placebo": "z", "low": "x", "high": "y"}
    data = simulation.data.assign(treat=simulation.data["treat"].astype(str).map(names))
    other = fit_quickly(simulation.formula, data)
    assert list(other.params.index[:2]) == ["ATE[y-x]", "ATE[z-x]"]
    for old, new in names.items():
        pom, renamed = f"POM[{old}]", f"POM[{new}]"
        error = max(fitted.bse[pom], other.bse[renamed])
        assert abs(fitted.params[pom] - other.params[renamed]) < MONTE_CARLO * error
    error = max(fitted.bse["ATE[low-placebo]"], other.bse["ATE[z-x]"])
    difference = fitted.params["ATE[low-placebo]"] + other.params["ATE[z-x]"]
    assert abs(difference) < MONTE_CARLO * error


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_search_does_not_depend_on_the_reference(reference, quick_options):
    """x1 moves the chance of one arm only, and is found whichever arm is the reference."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 40))
    p = np.column_stack([expit(X[:, 0]), *2 * [expit(-X[:, 0]) / 2]])
    arm = (rng.random((400, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(40)])
    frame = frame.assign(y=3 * X[:, 1] + rng.normal(size=400), arm=np.array(list("abc"))[arm])
    model = cs.CausalStoNet.from_formula("y ~ arm | .", frame, reference=reference)
    results = model.fit(options=quick_options(starts=1), seed=0, n_jobs=1)
    moves = results.networks.search.query("model == 'treatment' and move == 'grow'")
    # The first covariate that each fold admits to the treatment's model, with the same score:
    # without covariates all arms are equally likely for everyone, up to the training of the biases.
    first = moves.groupby("fold").first()
    assert set(first["covariate"]) == {"x1"}
    z = X[:, 0] * ((arm == 0) - np.mean(arm == 0))
    expected = z.sum() / np.sqrt((z**2).sum()) * np.sqrt(0.5)  # two folds: half of the rows
    assert abs(first["score"] - expected).max() < 4 * np.sqrt(0.5)


def test_selection_per_level(fitted):
    selection = fitted.selection
    for level in ("low", "high"):
        assert selection[f"treatment[{level}]"].dtype == bool
        assert (selection["treatment"] >= selection[f"treatment[{level}]"]).all()
        np.testing.assert_allclose(selection[f"treatment_strength[{level}]"].sum(), 1)
    assert "treatment[placebo]" not in selection
    assert selection.loc[["x1", "x3"], "treatment"].all()
