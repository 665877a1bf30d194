"""The dose simulation and its truths."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet.datasets.dose_curve import average_marginal_effect
from cstonet.errors import OptionError

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.fixture(scope="module", params=[False, True])
def large(request):
    return cs.datasets.dose_curve(n=20_000, p=5, seed=0, heteroscedastic=request.param)


def test_marginal_effect_is_that_of_a_large_sample(large):
    error = large.slope.std() / np.sqrt(len(large.slope))
    assert abs(large.sample_ame - large.ame) < FOUR * error


@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_quadrature_has_converged(heteroscedastic):
    values = [average_marginal_effect(heteroscedastic, nodes) for nodes in (60, 120)]
    assert abs(values[0] - values[1]) < 2e-7


def test_dose_has_the_stated_moments(large):
    z = (large.data["dose"] - large.mean) / np.sqrt(large.variance)
    n = len(z)
    assert abs(z.mean()) < FOUR / np.sqrt(n)
    assert abs(z.var() - 1) < FOUR * np.sqrt(2 / n)
    products = (z**2 - 1) * large.data["x1"]
    assert abs(products.mean()) < FOUR * products.std() / np.sqrt(n)


def test_noise_is_what_is_left(large):
    residual = large.data["y"] - large.mu
    assert abs(residual.std() - 1) < FOUR / np.sqrt(2 * len(residual))


def test_slope_is_the_derivative_of_the_outcome(large):
    nuisances = cs.datasets.dose_curve(n=200, p=5, seed=1).nuisances()
    step = 1e-4
    at = np.array([5 - step, 5.0, 5 + step])
    mu = nuisances.mu_at(at)
    np.testing.assert_allclose(
        (mu[:, 2] - mu[:, 0]) / (2 * step), nuisances.mu_at(at, derivative=1)[:, 1], atol=1e-6
    )


def test_curve_is_the_mean_outcome(large):
    nuisances = large.nuisances()
    doses = nuisances.grid[::9]
    error = nuisances.mu_grid[:, ::9].std(axis=0) / np.sqrt(nuisances.n)
    assert (abs(nuisances.average_mu(doses) - large.curve(doses)) < FOUR * error).all()


def test_oracle_covers(large):
    effects = large.oracle()
    assert abs(effects.estimates[0] - large.ame) < FOUR * effects.standard_errors[0]
    doses = np.linspace(2, 8, 5)
    curve = large.oracle_curve(doses)
    assert (abs(curve.estimates - large.curve(doses)) < FOUR * curve.standard_errors).all()


def test_options():
    one, two = (cs.datasets.dose_curve(n=50, p=6, seed=1) for _ in range(2))
    assert one.data.equals(two.data)
    assert not one.data.equals(cs.datasets.dose_curve(n=50, p=6, seed=2).data)
    assert list(one.data)[:3] == ["y", "dose", "x1"]
    assert repr(one) == "<dose_curve: n=50, p=6, seed=1, ame=0.5098>"
    with pytest.raises(OptionError, match="heteroscedastic"):
        cs.datasets.dose_curve(heteroscedastic="yes")
    with pytest.raises(OptionError, match="p must be"):
        cs.datasets.dose_curve(p=3)
