"""Fits of a continuous treatment: their effect, and what it does not depend on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import cstonet as cs
from cstonet.crossfit.fold import by_repetition, fold_labels
from cstonet.errors import OptionError
from cstonet.estimators.marginal_effect import estimate_marginal_effect

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


def test_fit_finds_the_marginal_effect(simulation, fitted):
    assert fitted.design.treatment.kind == "continuous"
    assert list(fitted.params.index) == ["AME"]
    assert abs(fitted.params["AME"] - simulation.ame) < FOUR * fitted.bse["AME"]
    assert fitted.params["AME"] > FOUR * fitted.bse["AME"]
    # The models have learnt most of what there is to know.
    nuisances, truth = fitted.dose_nuisances, simulation.nuisances()
    for name in ("mu", "mean"):
        got, true = getattr(nuisances, name), getattr(truth, name)
        assert np.mean((got - true) ** 2) < 0.3 * true.var()
    assert fitted.nobs == 500
    assert "treatment_variance" in fitted.trace


def test_linear_gaussian_effect_is_that_of_least_squares(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    dose = X[:, 0] + rng.normal(size=600)
    y = 1.5 * dose + X[:, 0] - X[:, 1] + rng.normal(size=600)
    results = cs.CausalStoNet(y, dose, X).fit(options=options, seed=1, n_jobs=1)
    ols = sm.OLS(y, sm.add_constant(np.column_stack([dose, X]))).fit()
    assert abs(results.params["AME"] - 1.5) < FOUR * results.bse["AME"]
    # Both are efficient, so they differ by less than they err, and have the same standard error.
    assert abs(results.params["AME"] - ols.params[1]) < results.bse["AME"]
    assert results.bse["AME"] == pytest.approx(ols.bse[1], rel=0.25)
    curve = results.dose_response([-1.0, 0.0, 1.0]).table
    assert (abs(curve["estimate"] - 1.5 * curve["dose"]) < FOUR * curve["se"]).all()


@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (0.01, 70.0), (-1.0, 0.0)])
def test_units_of_the_dose_do_not_matter(simulation, fit_quickly, fitted, factor, shift):
    data = simulation.data.assign(dose=factor * simulation.data["dose"] + shift)
    other = fit_quickly(simulation.formula, data)
    t, before = other.tvalues["AME"], fitted.tvalues["AME"]
    if factor < 0:  # the network starts elsewhere, as seen from the dose
        assert abs(other.params["AME"] + fitted.params["AME"]) < FOUR * fitted.bse["AME"]
        return
    assert t == pytest.approx(before, abs=1e-3)
    assert factor * other.params["AME"] == pytest.approx(fitted.params["AME"], rel=1e-4)
    doses = np.array([3.0, 5.0, 7.0])
    one = fitted.dose_response(doses).table
    two = other.dose_response(factor * doses + shift).table
    np.testing.assert_allclose(two["estimate"], one["estimate"], atol=1e-3 * one["se"].min())


def test_threads_do_not_change_a_bit(simulation, fit_quickly, fitted):
    other = fit_quickly(simulation.formula, simulation.data, n_jobs=3)
    assert other.params["AME"] == fitted.params["AME"]
    np.testing.assert_array_equal(other.dose_nuisances.mu_grid, fitted.dose_nuisances.mu_grid)
    pd.testing.assert_frame_equal(other.dose_response().table, fitted.dose_response().table)


@pytest.mark.parametrize("recipe", ["search", "prune"])
def test_risks_with_weights(simulation, fit_quickly, quick_options, recipe):
    data = simulation.data.assign(y=(simulation.data["y"] > 0).astype(int))
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(data))
    weights[:5] = 0.0
    options = quick_options(recipe, epochs=30)
    results = fit_quickly(simulation.formula, data, weights=weights, options=options)
    assert results.dose_nuisances.mu_grid.min() >= 0
    assert results.dose_nuisances.mu_grid.max() <= 1
    assert results.params["AME"] > 3 * results.bse["AME"]
    assert "risk of y = 1" in results.summary().as_text()
    assert results.dose_response().table["estimate"].between(-0.2, 1.2).all()


def test_repetitions_are_averaged(simulation, fit_quickly, quick_options):
    options = quick_options(repeats=2, starts=1)
    results = fit_quickly(simulation.formula, simulation.data, options=options)
    assert len(results.networks.folds) == 4
    alone = results._alone
    assert not np.allclose(alone[0].mu, alone[1].mu)
    np.testing.assert_allclose(
        (alone[0].mu + alone[1].mu) / 2, results.dose_nuisances.mu, rtol=1e-6
    )
    singles = [estimate_marginal_effect(one, clip=0.01) for one in alone]
    variance = [
        single.covariance[0, 0] + (single.estimates[0] - results.params["AME"]) ** 2
        for single in singles
    ]
    assert results.bse["AME"] == pytest.approx(np.sqrt(np.mean(variance)), rel=1e-9)


def test_heteroscedastic_doses_are_noticed(fit_quickly, quick_options):
    simulation = cs.datasets.dose_curve(n=800, p=5, seed=2, heteroscedastic=True)
    options = quick_options(epochs=30, starts=1)
    results = fit_quickly(simulation.formula, simulation.data, options=options)
    assert results.dispersion.heteroscedastic
    correlation = np.corrcoef(np.log(results.dose_nuisances.variance), np.log(simulation.variance))
    assert correlation[0, 1] > 0.7
    assert "a variance that depends on them" in results.methods()


def test_folds_of_the_nuisances_are_those_of_their_repetition(fit_quickly, quick_options):
    """The variance of the dose is fitted to rows outside a row's fold, by these labels."""
    simulation = cs.datasets.dose_curve(n=800, p=5, seed=2, heteroscedastic=True)
    options = quick_options(epochs=30, starts=1, repeats=2)
    results = fit_quickly(simulation.formula, simulation.data, options=options)
    assert results.dispersion.heteroscedastic
    first, second = by_repetition(results.networks.folds)
    for own, folds in zip(results._alone, (first, second), strict=True):
        np.testing.assert_array_equal(own.fold, fold_labels(folds))
    assert not np.array_equal(fold_labels(first), fold_labels(second))


def test_folds_share_the_doses(simulation, fitted):
    dose = simulation.data["dose"].to_numpy()
    cuts = np.quantile(dose, np.linspace(0, 1, 11))
    for fold in fitted.networks.folds:
        counts = np.histogram(dose[fold.split.test], cuts)[0]
        assert counts.max() - counts.min() <= 2


def test_variance_is_that_of_the_influence_function(simulation):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    assert model.plan().variance == model.plan(variance="influence").variance == "influence"
    assert model.plan("paper").variance == "influence"
    with pytest.raises(OptionError, match=r"variance='paper' .*continuous treatment"):
        model.fit(variance="paper")
