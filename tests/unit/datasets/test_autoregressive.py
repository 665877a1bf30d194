"""Simulation 2 is what the paper says, and its truths are true."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from cstonet.datasets import autoregressive, simulation2

# Standard errors: one comparison in 150 000 fails by chance, and the seeds are fixed.
Z = 4.5


def as_printed(x: pd.DataFrame):
    """Simulation 2 as the paper prints it."""
    t = np.tanh

    def mu(a):
        first = -4 * t(t(-2 * t(2 * x.x1 + x.x4) + t(2 * x.x2 - 2 * x.x3)) - 2 * a)
        return first + 2 * t(-a + 2 * t(t(2 * x.x2 - 2 * x.x3) - 2 * t(-2 * x.x4 + x.x5)))

    s = t(-x.x1 - 2 * x.x5) - t(2 * x.x2 - 2 * x.x3)
    return mu(0), mu(1), 1 / (1 + np.exp(-s))


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("p", [5, 12])
def test_covariates_have_the_ar2_precision_matrix(p, balanced, covariates, check_covariance):
    """Also with balanced arms, which leave the population of this simulation as it is."""
    precision = np.eye(p)
    for lag, value in ((1, 0.5), (2, 0.25)):
        precision += value * (np.eye(p, k=lag) + np.eye(p, k=-lag))
    x = covariates(simulation2(n=20_000, p=p, seed=4, balanced=balanced))
    check_covariance(x, np.linalg.inv(precision))
    np.testing.assert_allclose(
        autoregressive.relevant_covariance(p), np.linalg.inv(precision)[:5, :5], atol=1e-12
    )


def test_columns_far_apart_are_uncorrelated_and_stationary(covariates):
    x = covariates(simulation2(n=4000, p=300, seed=6))
    middle = autoregressive.relevant_covariance(200)[4, 4]  # x5 hardly feels the end any more
    assert abs(np.corrcoef(x[:, 100], x[:, 200])[0, 1]) < Z / math.sqrt(4000)
    assert x[:, 150].var() == pytest.approx(middle, rel=Z * math.sqrt(2 / 4000) + 0.01)


@pytest.mark.parametrize("balanced", [False, True])
def test_follows_the_paper(balanced):
    sim = simulation2(n=500, p=8, seed=7, balanced=balanced)
    for truth, twin in zip((sim.mu0, sim.mu1, sim.propensity), as_printed(sim.data), strict=True):
        np.testing.assert_allclose(truth, twin, rtol=0, atol=1e-12)


def test_binomial_takes_a_quarter_of_the_mean_as_log_odds():
    sim = simulation2(n=500, p=8, seed=7, outcome="binomial")
    mu0, mu1, _ = as_printed(sim.data)
    np.testing.assert_allclose(sim.mu0, expit(mu0 / 4), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sim.mu1, expit(mu1 / 4), rtol=0, atol=1e-12)
    assert set(sim.data["y"]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("outcome", "value", "precision"),
    [("gaussian", 3.159270669, 1e-9), ("binomial", 0.180310, 1e-6)],
)
def test_population_effect_for_the_papers_p(outcome, value, precision):
    assert autoregressive.population_ate(100, outcome) == pytest.approx(value, abs=precision)
    assert autoregressive.population_ate(20_000, outcome) == pytest.approx(value, abs=precision)


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["gaussian", "binomial"])
@pytest.mark.parametrize("p", [5, 100])
def test_population_effect_by_simulation(p, outcome, check_mean):
    rng = np.random.default_rng(15)
    root = np.linalg.cholesky(autoregressive.relevant_covariance(p))
    x = rng.standard_normal((4_000_000, 5)) @ root.T
    effect = autoregressive.mean_outcome(x, 1, outcome) - autoregressive.mean_outcome(x, 0, outcome)
    check_mean(effect, autoregressive.population_ate(p, outcome))
    check_mean(autoregressive.treatment_probability(x), 0.5)


def test_null_effect_keeps_baseline_and_confounding():
    plain, null = simulation2(n=4000, seed=8), simulation2(n=4000, seed=8, null_effect=True)
    np.testing.assert_array_equal(null.mu1, null.mu0)
    np.testing.assert_array_equal(null.mu0, plain.mu0)
    np.testing.assert_array_equal(null.propensity, plain.propensity)
    assert null.ate == 0.0
    treated = null.data["treat"] == 1
    difference = null.mu0[treated].mean() - null.mu0[~treated].mean()
    error = null.mu0.std() * math.sqrt(4 / 4000)
    assert abs(difference) > Z * error  # a naive comparison would find an effect


def test_binary_outcome_follows_its_risk():
    sim = simulation2(n=20_000, p=5, seed=12, outcome="binomial")
    risk = np.where(sim.data["treat"] == 1, sim.mu1, sim.mu0)
    excess = sim.data["y"].to_numpy() - risk
    for g in (np.ones(20_000), risk - risk.mean(), sim.data["treat"].to_numpy() - 0.5):
        assert abs(excess @ g) < Z * math.sqrt((risk * (1 - risk)) @ g**2)
