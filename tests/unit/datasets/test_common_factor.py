"""Simulation 1 is what the paper says, and its truths are true."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, norm

from cstonet.datasets import common_factor, simulation1


def as_printed(x: pd.DataFrame, tau: float):
    """Simulation 1 as the paper prints it."""
    share = norm.cdf(x[["x1", "x3", "x5"]]).mean(axis=1)
    f = {name: 2 / (1 + np.exp(-x[name] + 0.5)) for name in ("x1", "x2")}
    mu0 = 5 * x.x3 / (1 + x.x4**2) + 2 * x.x5
    effect = tau + f["x1"] * f["x2"] - common_factor.MEAN_PRODUCT
    return mu0, mu0 + effect, 0.25 * (1 + beta(2, 4).cdf(share))


def test_covariates_share_a_factor(covariates, check_covariance):
    x = covariates(simulation1(n=20_000, p=12, seed=1, balanced=False))
    check_covariance(x, 0.5 * np.eye(12) + 0.5)


def test_follows_the_paper():
    sim = simulation1(n=500, p=8, seed=7, tau=2.0, balanced=False)
    twins = as_printed(sim.data, 2.0)
    for truth, twin in zip((sim.mu0, sim.mu1, sim.propensity), twins, strict=True):
        np.testing.assert_allclose(truth, twin, rtol=0, atol=1e-12)
    assert sim.propensity.min() >= 0.25
    assert sim.propensity.max() <= 0.5


def test_balancing_multiplies_the_odds():
    sim = simulation1(n=500, p=8, seed=7)
    plain = as_printed(sim.data, 3.0)[2]
    share = common_factor.TREATED_SHARE
    odds = plain / (1 - plain) * (1 - share) / share
    np.testing.assert_allclose(sim.propensity, odds / (1 + odds), rtol=0, atol=1e-12)


def test_constants_by_quadrature():
    """Given the factor, x1, x2, x3, x5 are independent: five dimensions shrink to four."""
    node, weight = np.polynomial.hermite_e.hermegauss(24)
    weight = weight / weight.sum()
    x = (node[:, None] + node[None, :]) / math.sqrt(2)  # (factor, own)
    rank, f = norm.cdf(x), 2 / (1 + np.exp(0.5 - x))
    mean_rank = (rank[:, :, None, None] + rank[:, None, :, None] + rank[:, None, None, :]) / 3
    propensity = 0.25 * (1 + beta(2, 4).cdf(mean_rank))  # (factor, x1, x3, x5)
    given = np.einsum("eijk,j,k->ei", propensity, weight, weight)  # (factor, x1)
    mean_f = f @ weight
    treated = weight @ (given @ weight)
    product = weight @ mean_f**2
    product_treated = weight @ (((given * f) @ weight) * mean_f) / treated
    product_control = (product - treated * product_treated) / (1 - treated)
    assert treated == pytest.approx(common_factor.TREATED_SHARE, abs=1e-10)
    assert product == pytest.approx(common_factor.MEAN_PRODUCT, abs=1e-10)
    shift = (product_treated + product_control) / 2 - product
    assert shift == pytest.approx(common_factor.BALANCED_SHIFT, abs=1e-10)


@pytest.mark.slow
def test_constants_by_simulation(check_mean):
    rng = np.random.default_rng(14)
    n = 4_000_000
    x = (rng.standard_normal((n, 1)) + rng.standard_normal((n, 5))) / math.sqrt(2)
    propensity, deviation = (
        common_factor.treatment_probability(x),
        common_factor.effect_deviation(x),
    )
    check_mean(propensity, common_factor.TREATED_SHARE)
    check_mean(deviation, 0.0)
    share = common_factor.TREATED_SHARE
    ratio = 0.5 * propensity / share + 0.5 * (1 - propensity) / (1 - share)
    check_mean(ratio * deviation, common_factor.BALANCED_SHIFT)


def test_balanced_effect_is_tau_plus_the_shift():
    assert simulation1(n=10, p=5, tau=1.5).ate == 1.5 + common_factor.BALANCED_SHIFT
    assert simulation1(n=10, p=5, tau=1.5, balanced=False).ate == 1.5
