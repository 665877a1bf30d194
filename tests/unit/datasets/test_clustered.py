"""Villages and their truths."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet.datasets.simulation import Simulation
from cstonet.errors import OptionError

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.fixture(scope="module")
def large():
    return cs.datasets.clustered(n_clusters=8000, p=6, seed=0)


def standard_error(values, clusters):
    """Of the mean of values that average to zero, summed over clusters."""
    return np.sqrt(np.sum(np.bincount(clusters, values) ** 2)) / len(values)


def intraclass(values, size=10):
    """Intra-class correlation from the variance of means of equally large clusters."""
    between = values.reshape(-1, size).mean(axis=1).var() / values.var()
    return (size * between - 1) / (size - 1)


def test_population_effect_is_that_of_a_large_sample(large):
    own = large.tau - large.ate
    assert abs(own.mean()) < FOUR * standard_error(own, large.clusters)
    assert abs(large.mu0.mean()) < FOUR * standard_error(large.mu0, large.clusters)
    assert large.ate == 1.0


def test_treatment_has_the_probability_given_own_covariates(large):
    surprise = large.data["treat"].to_numpy() - large.propensity
    for name in ("x1", "x3", "x5", "x2"):
        product = surprise * large.data[name].to_numpy()
        assert abs(product.mean()) < FOUR * standard_error(product, large.clusters)
    assert abs(surprise.mean()) < FOUR * standard_error(surprise, large.clusters)
    index = large.data["x1"] - large.data["x3"] + large.data["x5"]
    for part in np.array_split(np.argsort(index.to_numpy()), 5):
        inside = np.where(np.isin(np.arange(len(index)), part), surprise, 0.0)
        assert abs(inside.mean()) < FOUR * standard_error(inside, large.clusters)


def test_neighbours_are_alike_in_everything(large):
    residual = large.data["y"] - np.where(large.data["treat"] == 1, large.mu1, large.mu0)
    rho = FOUR * 0.01  # the standard error with 8000 clusters of ten is about 0.005
    assert abs(intraclass(residual.to_numpy()) - 0.3) < rho
    without = large.data["y"] - large.tau * large.data["treat"]  # in one arm
    assert abs(intraclass(without.to_numpy()) - 0.2) < rho
    assert abs(intraclass(large.data["x4"].to_numpy()) - 0.2) < rho
    assert abs(residual.std() - 1) < 0.02
    assert intraclass(large.data["treat"].to_numpy().astype(float)) > 0.8
    # What is left of the outcome has nothing to do with the treatment.
    product = residual.to_numpy() * (large.data["treat"] - large.propensity).to_numpy()
    assert abs(product.mean()) < FOUR * standard_error(product, large.clusters)


def test_form_seeds_and_oracle():
    one, same, other = (cs.datasets.clustered(n_clusters=12, seed=s) for s in (1, 1, 2))
    assert list(one.data.columns[:4]) == ["village", "y", "treat", "x1"]
    assert one.data.shape == (120, 23)
    assert repr(one) == "<clustered: n=120, p=20, seed=1, ate=1.0000>"
    assert one.data.equals(same.data)
    assert not one.data.equals(other.data)
    np.testing.assert_array_equal(np.bincount(one.clusters), np.full(12, 10))
    assert "x1 x3 x5" in one.describe()
    estimate, error = one.oracle_ate()
    plain = Simulation(**{name: getattr(one, name) for name in Simulation.__dataclass_fields__})
    assert plain.oracle_ate()[0] == estimate
    assert plain.oracle_ate()[1] < error


@pytest.mark.parametrize(
    "bad", [{"n_clusters": 1}, {"size": 0}, {"size": 2.5}, {"p": 4}, {"correlation": 0.7}]
)
def test_bad_options(bad):
    with pytest.raises(OptionError):
        cs.datasets.clustered(**bad)
