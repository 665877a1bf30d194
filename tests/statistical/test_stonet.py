"""The preset "stonet": a network on all covariates, pruned by its prior, selects and estimates."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs

THREE = 3.0


def selected(results, model):
    table = results.selection
    return set(table.index[table[model]])


def test_easy_data_are_selected_exactly():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1200, 12))
    p = 1 / (1 + np.exp(-1.2 * X[:, 0]))
    treat = rng.binomial(1, p)
    mu = 2 * X[:, 0] + np.tanh(2 * X[:, 1])
    y = mu + treat + 0.5 * rng.normal(size=1200)
    oracle = np.mean(1 + treat * (y - mu - 1) / p - (1 - treat) * (y - mu) / (1 - p))
    results = cs.CausalStoNet(y, treat, X).fit(preset="stonet", seed=1)
    assert selected(results, "outcome") == {"x1", "x2"}
    assert selected(results, "treatment") == {"x1"}
    # The oracle's own error, of 2.2 standard errors in these data, is not the network's.
    assert abs(oracle - 1) < THREE * results.bse["ATE"]
    assert abs(results.params["ATE"] - oracle) < 2 * results.bse["ATE"]
    assert results.bse["ATE"] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [15, 16])
def test_second_simulation_is_selected_exactly(seed):
    simulation = cs.datasets.simulation2(n=12_000, seed=seed)
    results = cs.fit(simulation.formula, simulation.data, preset="stonet", seed=seed)
    assert selected(results, "outcome") == set(simulation.outcome_support)
    assert selected(results, "treatment") == set(simulation.treatment_support)
    oracle, error = simulation.oracle_ate()
    assert abs(results.params["ATE"] - oracle) < 0.2 * error
    assert abs(results.bse["ATE"] / error - 1) < 0.1
