"""The three-arm simulation and its truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import OptionError

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.fixture(scope="module")
def large():
    return cs.datasets.three_arms(n=100_000, p=5, seed=0)


def test_population_means_are_those_of_a_large_sample(large):
    error = large.mu.std(axis=0) / np.sqrt(len(large.mu))
    assert list(large.means) == list(large.levels) == ["placebo", "low", "high"]
    assert (abs(large.mu.mean(axis=0) - list(large.means.values())) < FOUR * error).all()
    assert large.contrasts == {"ATE[low-placebo]": 1.0, "ATE[high-placebo]": 2.0}


def test_arms_are_drawn_with_the_probabilities_given(large):
    received = large.nuisances().received
    assert (large.data["treat"].cat.codes == large.treatment).all()
    surprise = received - large.propensity
    features = np.column_stack([np.ones(len(surprise)), large.data[["x1", "x3", "x5"]]])
    for arm in range(3):
        products = features * surprise[:, [arm]]
        z = products.sum(axis=0) / np.sqrt((products**2).sum(axis=0))
        assert (abs(z) < FOUR).all()


def test_covariates_have_the_stated_correlations(large):
    correlation = np.corrcoef(large.data[[f"x{j}" for j in range(1, 6)]].T)
    expected = 0.5 ** abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert abs(correlation - expected).max() < FOUR * 1.5 / np.sqrt(len(large.data))


def test_noise_is_what_is_left(large):
    own = np.take_along_axis(large.mu, large.treatment[:, None], axis=1)[:, 0]
    residual = large.data["y"] - own
    assert abs(residual.std() - 1) < FOUR / np.sqrt(2 * len(residual))


def test_oracle_finds_the_contrasts(large):
    oracle = large.oracle()
    truth = [*large.contrasts.values(), *large.means.values()]
    assert oracle.names[:2] == tuple(large.contrasts)
    assert (abs(oracle.estimates - truth) < FOUR * oracle.standard_errors).all()
    sample = np.array(list(large.sample_contrasts.values()))
    assert (abs(sample - [1, 2]) < 0.05).all()
    assert (sample != [1, 2]).all()


def test_same_seed_same_data():
    one, two, other = (cs.datasets.three_arms(n=50, p=7, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one.data, two.data)
    assert not one.data["y"].equals(other.data["y"])
    assert repr(one) == "<three_arms: n=50, p=7, seed=1>"


@pytest.mark.parametrize("bad", [{"p": 4}, {"n": 1}, {"noise": -1.0}, {"seed": -1}])
def test_impossible_simulations(bad):
    with pytest.raises(OptionError):
        cs.datasets.three_arms(**bad)
