"""Default mediation fits against their truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs

REPLICATIONS = 20


@pytest.mark.slow
def test_intervals_cover():
    """Of 20 intervals of level 95 % fewer than 16 cover with probability 0.003, per effect."""
    covered, scores = np.zeros(3), []
    for seed in range(REPLICATIONS):
        simulation = cs.datasets.one_mediator(n=1000, p=20, seed=200 + seed)
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        truth = np.array(list(simulation.effects.values()))
        low, high = results.conf_int().to_numpy().T
        covered += (low <= truth) & (truth <= high)
        scores.append((results.params.to_numpy() - truth) / results.bse.to_numpy())
    assert covered.min() >= 16
    # The estimates lie on both sides of the truth: a mean score has standard error 1/√20.
    assert abs(np.mean(scores, axis=0)).max() < 4 / np.sqrt(REPLICATIONS)


@pytest.mark.slow
def test_more_covariates_than_rows_and_many_mediators():
    """Two of twenty mediators matter, among a thousand covariates of six hundred units."""
    simulation = cs.datasets.three_mediators(n=600, p=1000, seed=1)
    rng = np.random.default_rng(2)
    treat = simulation.data["treat"].to_numpy()
    others = {f"k{j}": 0.4 * treat + rng.normal(size=600) for j in range(17)}
    data = pd.concat([simulation.data, pd.DataFrame(others)], axis=1)
    names = ["m1", "m2", "m3", *others]
    results = cs.fit(f"y ~ treat | . | {' + '.join(names)}", data, seed=1)
    truth = pd.Series(simulation.effects)
    assert (np.abs(results.params - truth) < 4 * results.bse).all()
    assert results.params["NIE"] > 4 * results.bse["NIE"]
    held = results.mediators.index[results.mediators["outcome"]]
    assert {"m1", "m2"} <= set(held)
    assert len(held) <= 5
    # The effects of the treatment on mediators that nothing is made of are found all the same.
    left = results.mediators.loc[list(others)]
    assert (np.abs(left["effect"] - 0.4) < 4.5 * left["effect_se"]).all()
