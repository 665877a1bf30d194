"""Default fits of a continuous treatment against their truths."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs

REPLICATIONS = 20


@pytest.mark.slow
@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_intervals_and_bands_cover(heteroscedastic):
    """Of 20 intervals of level 95 % fewer than 16 cover with probability 0.003.

    A band is allowed 90 %, its critical value being that of a large sample: fewer than 14 of 20
    then cover with probability 0.002.
    """
    covered, bands, scores = 0, 0, []
    for seed in range(REPLICATIONS):
        simulation = cs.datasets.dose_curve(
            n=1000, p=20, seed=100 + seed, heteroscedastic=heteroscedastic
        )
        results = cs.fit(simulation.formula, simulation.data, seed=seed)
        effect = results.effect("AME")
        covered += effect.lower <= simulation.ame <= effect.upper
        scores.append((effect.estimate - simulation.ame) / effect.se)
        table = results.dose_response(trim=0.05).table
        truth = simulation.curve(table["dose"])
        bands += ((table["uniform_lower"] <= truth) & (truth <= table["uniform_upper"])).all()
    assert covered >= 16
    assert bands >= 14
    # The estimates lie on both sides of the truth: a mean score has standard error 1/√20.
    assert abs(np.mean(scores)) < 4 / np.sqrt(REPLICATIONS)
