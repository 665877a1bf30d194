"""Default fits of three arms against their truths."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs

REPLICATIONS = 20


@pytest.mark.slow
def test_intervals_cover():
    """Of 20 intervals of level 95 % fewer than 16 cover with probability 0.003, per contrast."""
    covered, jointly, scores = np.zeros(2), 0, []
    for seed in range(REPLICATIONS):
        simulation = cs.datasets.three_arms(n=1000, p=20, seed=100 + seed)
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        truth = np.array(list(simulation.contrasts.values()))
        names = list(simulation.contrasts)
        low, high = results.conf_int().loc[names].to_numpy().T
        covered += (low <= truth) & (truth <= high)
        low, high = results.conf_int(simultaneous=True).loc[names].to_numpy().T
        jointly += ((low <= truth) & (truth <= high)).all()
        scores.append((results.params[names].to_numpy() - truth) / results.bse[names].to_numpy())
    assert covered.min() >= 16
    assert jointly >= 16
    # The estimates lie on both sides of the truth: a mean score has standard error 1/√20.
    assert abs(np.mean(scores, axis=0)).max() < 4 / np.sqrt(REPLICATIONS)
