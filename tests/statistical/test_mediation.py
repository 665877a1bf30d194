"""Default mediation fits against their truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs


@pytest.mark.slow
def test_intervals_cover(coverage):
    for seed in range(20):
        simulation = cs.datasets.one_mediator(n=1000, p=20, seed=200 + seed)
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        coverage.add(results, simulation.effects)
    coverage.check()


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


def draw_binary(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, float]]:
    """A binary outcome, and a binary and a gaussian mediator that depend on each other.

    The effects are means over the rows of the true risks, with the same residuals in every world.
    """
    x = rng.normal(size=(n, 6))
    treat = rng.binomial(1, expit(0.6 * x[:, 0] - 0.4 * x[:, 1]))
    u, e = rng.random(n), rng.normal(size=n)

    def mediators(a):
        p = expit(-0.5 + 1.2 * a + 0.5 * x[:, 0])
        b = (u < p).astype(float)
        return b, 0.6 * a + 0.5 * x[:, 1] + 0.5 * (b - p) + e

    def risk(a, b, m):
        return expit(-0.5 + 0.4 * a + b + 0.6 * m + 0.4 * a * b + 0.5 * x[:, 0])

    psi = {(a, c): risk(a, *mediators(c)).mean() for a in (0, 1) for c in (0, 1)}
    b, m = mediators(treat)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(1, 7)]).assign(
        treat=treat, b=b.astype(bool), m=m, y=rng.binomial(1, risk(treat, b, m))
    )
    return frame, {
        "TE": psi[1, 1] - psi[0, 0],
        "NDE": psi[1, 0] - psi[0, 0],
        "NIE": psi[1, 1] - psi[1, 0],
    }


@pytest.mark.slow
def test_binary_outcome_binary_and_gaussian_mediator():
    # A million rows give the population's effects to less than 0.001.
    _, truth = draw_binary(1_000_000, np.random.default_rng(0))
    frame, _ = draw_binary(2000, np.random.default_rng(1))
    results = cs.fit("y ~ treat | . | b + m", frame, seed=1, folds=3, repeats=1)
    assert (np.abs(results.params - pd.Series(truth)) < 4 * results.bse).all()
    assert (results.params > 3 * results.bse).all()
    # The residuals depend on each other, and the law knows it.
    assert all(models.law.shifts[1, 0] > 0.2 for models in results.networks.models)
