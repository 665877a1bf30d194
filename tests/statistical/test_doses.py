"""Default fits of a continuous treatment against their truths."""

from __future__ import annotations

import pytest

import cstonet as cs


@pytest.mark.slow
@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_intervals_and_bands_cover(heteroscedastic, coverage):
    """A band is allowed 92 %: fewer than 15 of 20 then cover with probability 0.004."""
    bands = 0
    for seed in range(20):
        simulation = cs.datasets.dose_curve(
            n=1000, p=20, seed=100 + seed, heteroscedastic=heteroscedastic
        )
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        coverage.add(results, {"AME": simulation.ame})
        table = results.dose_response(trim=0.05).table
        truth = simulation.curve(table["dose"])
        bands += ((table["uniform_lower"] <= truth) & (truth <= table["uniform_upper"])).all()
    coverage.check()
    assert bands >= 15
