"""Default fits of three arms against their truths."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs


@pytest.mark.slow
def test_intervals_cover(coverage):
    """Each contrast's, and those of both at a time."""
    jointly = 0
    for seed in range(20):
        simulation = cs.datasets.three_arms(n=1000, p=20, seed=100 + seed)
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        truth = np.array(list(simulation.contrasts.values()))
        coverage.add(results, simulation.contrasts)
        low, high = results.conf_int(simultaneous=True).loc[list(simulation.contrasts)].to_numpy().T
        jointly += ((low <= truth) & (truth <= high)).all()
    coverage.check()
    assert jointly >= 16
