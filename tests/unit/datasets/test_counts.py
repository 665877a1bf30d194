"""Simulated counts and their truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import OptionError

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.fixture(scope="module", params=[0.0, 0.5])
def large(request):
    return request.param, cs.datasets.counts(100_000, 5, seed=0, overdispersion=request.param)


def test_population_means_are_those_of_a_large_sample(large):
    _, simulation = large
    means = simulation.mean0, simulation.mean0 + simulation.ate
    for mu, mean in zip((simulation.mu0, simulation.mu1), means, strict=True):
        assert abs(mu.mean() - mean) < FOUR * mu.std() / np.sqrt(len(mu))
    assert simulation.ratio == pytest.approx(means[1] / means[0])


def test_counts_have_the_stated_means_and_variances(large):
    overdispersion, simulation = large
    y, treated = simulation.data["y"].to_numpy(), simulation.data["treat"].to_numpy() == 1
    assert (y == np.round(y)).all()
    mu = np.where(treated, simulation.mu1, simulation.mu0)
    for surprise in (y - mu, (y - mu) ** 2 - mu - overdispersion * mu**2):
        for feature in (np.ones_like(mu), simulation.data["x1"], simulation.data["x4"] * treated):
            products = feature * surprise
            assert abs(products.sum()) < FOUR * np.sqrt((products**2).sum())


def test_treatments_have_the_stated_probabilities(large):
    _, simulation = large
    surprise = simulation.data["treat"] - simulation.propensity
    for name in simulation.treatment_support:
        products = simulation.data[name] * surprise
        assert abs(products.sum()) < FOUR * np.sqrt((products**2).sum())


def test_oracle_finds_the_effect(large):
    _, simulation = large
    estimate, error = simulation.oracle_ate()
    assert error < 0.02
    assert abs(estimate - simulation.ate) < FOUR * error


def test_same_seed_same_data():
    one, two, other = (cs.datasets.counts(n=50, p=7, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one.data, two.data)
    assert not one.data["y"].equals(other.data["y"])
    assert repr(one) == "<counts: n=50, p=7, seed=1, ate=0.6759>"


@pytest.mark.parametrize("bad", [{"p": 4}, {"overdispersion": -1.0}, {"overdispersion": np.nan}])
def test_impossible_simulations(bad):
    with pytest.raises(OptionError):
        cs.datasets.counts(**bad)
