"""Estimates against truths: default fits of data whose answer is known.

A tolerance is a number of standard errors. A correct fit violates four with probability 6e-5, and
each test runs on fixed seeds: a failure means a change of the method, not bad luck.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.estimators import estimate_effects
from cstonet.settings.presets import preset

FOUR = 4.0


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.simulation2(n=2000, p=20, seed=0)


@pytest.fixture(scope="module")
def results(simulation):
    return cs.fit(simulation.formula, simulation.data, seed=0)


def distance(results, truth):
    """How many of its standard errors the ATE is away from the truth."""
    return abs(results.params["ATE"] - truth) / results.bse["ATE"]


def test_effect_is_found(simulation, results):
    assert distance(results, simulation.ate) < FOUR
    assert distance(results, 0.0) > 10  # the interval is narrow enough to mean something


def test_potential_outcome_means_are_found(simulation, results):
    # Balanced arms leave the covariates' law symmetric, so the rows' own means are the yardstick;
    # they differ from the population's by less than the estimate does.
    for arm, mu in (("POM[0]", simulation.mu0), ("POM[1]", simulation.mu1)):
        assert abs(results.params[arm] - mu.mean()) < FOUR * results.bse[arm]


def test_errors_are_those_of_the_data(simulation, results):
    """No estimator beats the oracle; one far worse than the raw difference has learned nothing."""
    oracle, oracle_error = simulation.oracle_ate()
    raw = simulation.data.groupby("treat")["y"].var().sum() / (len(simulation.data) / 2)
    assert 0.8 * oracle_error < results.bse["ATE"] < 1.5 * np.sqrt(raw)
    assert abs(results.params["ATE"] - oracle) < FOUR * results.bse["ATE"]


def test_relevant_covariates_are_selected(simulation, results):
    selection = results.selection
    assert selection.loc[list(simulation.outcome_support), "outcome"].all()
    # x1 moves the treatment's log-odds by less than its neighbours do; a sample may not show it.
    assert selection.loc[["x2", "x3", "x5"], "treatment"].all()
    irrelevant = selection.drop(index=list(simulation.outcome_support))
    assert irrelevant["outcome"].sum() + irrelevant["treatment"].sum() <= 2
    assert irrelevant["strength"].max() < 0.1


def test_individual_effects_follow_the_truth(simulation, results):
    error = np.sqrt(np.mean((results.cate() - simulation.tau) ** 2))
    assert error < 0.5 * simulation.tau.std()


def test_individual_effects_of_new_units_follow_the_truth(results):
    new = cs.datasets.simulation2(n=1000, p=20, seed=77)
    error = np.sqrt(np.mean((results.cate(new.data) - new.tau) ** 2))
    assert error < 0.5 * new.tau.std()


def test_no_effect_is_found_where_there_is_none():
    simulation = cs.datasets.simulation2(n=2000, p=20, seed=1, null_effect=True)
    results = cs.fit(simulation.formula, simulation.data, seed=1)
    assert distance(results, 0.0) < FOUR
    assert results.bse["ATE"] < 0.3


def test_confounding_is_removed():
    """One strong confounder: the raw difference is far off, the estimate is not."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 6))
    treat = rng.binomial(1, 1 / (1 + np.exp(-1.5 * X[:, 0])))
    y = 2 * X[:, 0] + treat + rng.normal(size=2000)
    results = cs.CausalStoNet(y, treat, X).fit(seed=1)
    raw = y[treat == 1].mean() - y[treat == 0].mean()
    assert abs(raw - 1) > 10 * results.bse["ATE"]
    assert distance(results, 1.0) < FOUR


def test_risk_difference_is_found():
    simulation = cs.datasets.simulation2(n=1000, p=10, seed=2, outcome="binomial")
    results = cs.fit(simulation.formula, simulation.data, seed=2)
    assert distance(results, simulation.ate) < FOUR
    for arm, mu in (("POM[0]", simulation.mu0), ("POM[1]", simulation.mu1)):
        assert abs(results.params[arm] - mu.mean()) < FOUR * results.bse[arm]
    assert results.nuisances.mu.min() >= 0
    assert results.nuisances.mu.max() <= 1


def test_both_variance_estimators_agree(results):
    influence = estimate_effects(
        results.nuisances, levels=(0, 1), clip=results.plan.clip, variance="influence"
    )
    scores = influence.influence[:, 0]
    kurtosis = np.mean(scores**4) / np.mean(scores**2) ** 2
    # Both estimate one variance from n rows; the relative error of its root is sqrt(κ / n) / 2.
    tolerance = FOUR * np.sqrt(kurtosis / len(scores)) / 2
    assert influence.standard_errors[0] == pytest.approx(results.bse["ATE"], rel=tolerance)


@pytest.mark.slow
def test_first_simulation_with_few_covariates():
    simulation = cs.datasets.simulation1(n=2000, p=20, seed=1)
    results = cs.fit(simulation.formula, simulation.data, seed=1)
    assert distance(results, simulation.ate) < FOUR


@pytest.mark.slow
def test_intervals_cover(coverage):
    for seed in range(20):
        simulation = cs.datasets.simulation2(n=2000, p=10, seed=100 + seed)
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        coverage.add(results, {"ATE": simulation.ate})
    coverage.check()


@pytest.mark.slow
def test_published_schedule():
    """Preset "paper" on simulation 2, as published but for one start and no cross-fitting."""
    simulation = cs.datasets.simulation2(n=10_000, p=100, seed=1)
    results = cs.fit(simulation.formula, simulation.data, preset="paper", starts=1, folds=1)
    assert [stage.epochs for stage in results.plan.training.stages] == [100, 1500, 200]
    assert len(results.trace) == 1800
    assert results.plan.network_label == "100-8-6-5-1"
    assert distance(results, simulation.ate) < FOUR


@pytest.mark.slow
@pytest.mark.parametrize("what", ["outcome", "covariates"])
def test_units_do_not_matter_to_a_default_fit(simulation, results, what):
    data = simulation.data.copy()
    if what == "outcome":
        data["y"] = 1000 * data["y"] + 1e6
    else:
        rng = np.random.default_rng(0)
        for name in data.columns.drop(["y", "treat"]):
            data[name] = 10.0 ** rng.integers(-4, 5) * data[name] + 100 * rng.normal()
    other = cs.fit(simulation.formula, data, seed=0)
    assert other.tvalues["ATE"] == pytest.approx(results.tvalues["ATE"], rel=1e-3)


@pytest.mark.slow
def test_another_seed_is_a_fraction_of_a_standard_error_away():
    """A spread of 0.3 standard errors adds less than a twentieth to them: √(1 + 0.3²) = 1.04."""
    simulation = cs.datasets.simulation1(n=1000, p=50, seed=2)
    fits = [cs.fit(simulation.formula, simulation.data, seed=seed) for seed in range(4)]
    estimates = np.array([fit.params["ATE"] for fit in fits])
    assert 0 < estimates.std(ddof=1) < 0.3 * fits[0].bse["ATE"]


def weakly_confounded(seed, effect):
    """Seven covariates that drive the treatment and have this linear effect on the outcome."""
    rng = np.random.default_rng(seed)
    n, p = 500, 30
    X = rng.normal(size=(n, p))
    drivers = X[:, 2:9].sum(axis=1)
    treat = rng.binomial(1, 1 / (1 + np.exp(-0.6 * (X[:, 0] + drivers))))
    y = treat + X[:, 0] + X[:, 1] + effect * drivers + rng.normal(size=n)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(p)])
    return pd.concat([pd.DataFrame({"y": y, "treat": treat}), frame], axis=1)


def linear_and_weights(effect):
    """Errors and standard errors, each (24, 2): with linear terms, and all in the weights."""
    search = preset("calibrated").search
    errors, widths = [], []
    for seed in range(101, 125):
        data = weakly_confounded(seed, effect)
        fits = [
            cs.fit("y ~ treat | .", data, seed=seed, search=dataclasses.replace(search, adjust=how))
            for how in ("linear", "union")
        ]
        assert fits[0].nuisances.linear is not None
        errors.append([fit.params["ATE"] - 1 for fit in fits])
        widths.append([fit.bse["ATE"] for fit in fits])
    return np.array(errors), np.array(widths)


@pytest.mark.slow
def test_linear_terms_cost_less_than_weights_where_there_is_nothing_to_remove():
    errors, widths = linear_and_weights(0.0)
    assert errors[:, 0].std(ddof=1) < errors[:, 1].std(ddof=1)
    # What the standard errors say of it is too little to be told apart: 0.0015 ± 0.0014 of 0.11.
    assert widths[:, 0].mean() < 1.05 * widths[:, 1].mean()
    linear = errors[:, 0]
    assert abs(linear.mean()) < FOUR * linear.std(ddof=1) / np.sqrt(len(linear))


@pytest.mark.slow
def test_linear_terms_err_less_than_weights_where_confounding_is_weak():
    """Too weak to be found for the outcome: a test of the effect has the expectation 2.

    The ridge leaves a part of it (docs/decisions/0060), as weights do, at a smaller variance.
    """
    errors, _ = linear_and_weights(2 / np.sqrt(500))
    linear, weights = np.sqrt(np.mean(errors**2, axis=0))
    assert linear < weights
    more = errors[:, 0] - errors[:, 1]
    assert more.mean() < FOUR * more.std(ddof=1) / np.sqrt(len(more))
