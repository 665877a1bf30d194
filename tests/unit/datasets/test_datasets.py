"""The simulations are what the paper says, and their truths are true.

Random quantities are compared within Z standard errors: one comparison in 150 000 fails by
chance, and the seeds are fixed, so what passes keeps passing.
"""

import math
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import beta, norm

from cstonet.datasets import Simulation, autoregressive, common_factor, simulation1, simulation2
from cstonet.errors import OptionError

Z = 4.5
VARIANTS = {
    "simulation1": simulation1,
    "simulation1 unbalanced": partial(simulation1, balanced=False),
    "simulation2": simulation2,
    "simulation2 unbalanced": partial(simulation2, balanced=False),
    "simulation2 binomial": partial(simulation2, outcome="binomial"),
    "simulation2 null": partial(simulation2, null_effect=True),
    "simulation2 binomial null": partial(simulation2, outcome="binomial", null_effect=True),
}
every_variant = pytest.mark.parametrize("simulate", VARIANTS.values(), ids=VARIANTS.keys())


def covariates(sim: Simulation) -> np.ndarray:
    return sim.data.drop(columns=["y", "treat"]).to_numpy()


def assert_mean(values: np.ndarray, expected: float) -> None:
    """The mean of independent values is `expected`, up to its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) < Z * error, (values.mean(), expected, error)


def assert_covariance(x: np.ndarray, expected: np.ndarray) -> None:
    """Centred Gaussian rows have this covariance; entry ij has variance (σ_ii σ_jj + σ_ij²)/n."""
    variance = np.diag(expected)
    error = np.sqrt((np.outer(variance, variance) + expected**2) / len(x))
    assert np.abs((x.T @ x / len(x) - expected) / error).max() < Z
    assert np.abs(x.mean(axis=0) / np.sqrt(variance / len(x))).max() < Z


# --- the data set as an object ---------------------------------------------------------------


@every_variant
def test_frame_and_truths_have_the_promised_form(simulate):
    sim = simulate(n=60, p=7, seed=2)
    assert list(sim.data.columns) == ["y", "treat", *(f"x{j}" for j in range(1, 8))]
    assert sim.data["treat"].dtype == np.int64
    assert set(sim.data["treat"]) == {0, 1}
    assert isinstance(sim.data.index, pd.RangeIndex)
    assert sim.formula == "y ~ treat | ."
    for truth in (sim.mu0, sim.mu1, sim.tau, sim.propensity):
        assert truth.shape == (60,)
        assert not truth.flags.writeable
    np.testing.assert_allclose(sim.tau, sim.mu1 - sim.mu0, rtol=0, atol=1e-14)
    assert sim.sample_ate == pytest.approx(sim.tau.mean(), abs=1e-15)
    assert 0 < sim.propensity.min() <= sim.propensity.max() < 1
    assert repr(sim).startswith(f"<{sim.name}: n=60, p=7, seed=2")


@every_variant
def test_seed_governs_everything(simulate):
    first, again, other = (simulate(n=40, p=6, seed=seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(first.data, again.data)
    np.testing.assert_array_equal(first.propensity, again.propensity)
    assert np.abs(covariates(first) - covariates(other)).min() > 0


def test_simulations_share_no_random_numbers():
    draws = [
        simulate(n=50, p=5, seed=1, noise=1.0).data["y"] for simulate in (simulation1, simulation2)
    ]
    assert abs(np.corrcoef(draws)[0, 1]) < Z / math.sqrt(50)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
@pytest.mark.parametrize("n", [2, 3, 10, 101, 1000])
def test_balanced_arms_have_equal_size_in_random_order(simulate, n):
    treatment = simulate(n=n, p=5, seed=3).data["treat"].to_numpy()
    assert len(treatment) == n
    assert treatment.sum() in {n // 2, n - n // 2}
    if n == 1000:  # the first half holds its share: a hypergeometric count of variance n/16
        assert abs(treatment[:500].sum() - 250) < Z * math.sqrt(1000 / 16)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
def test_odd_unit_goes_to_either_arm(simulate):
    treated = {int(simulate(n=5, p=5, seed=seed).data["treat"].sum()) for seed in range(20)}
    assert treated == {2, 3}


# --- covariates ------------------------------------------------------------------------------


def test_simulation1_covariates_share_a_factor():
    x = covariates(simulation1(n=20_000, p=12, seed=1, balanced=False))
    assert_covariance(x, 0.5 * np.eye(12) + 0.5)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("p", [5, 12])
def test_simulation2_covariates_have_the_ar2_precision_matrix(p, balanced):
    """Also with balanced arms, which leave the population of this simulation as it is."""
    precision = np.eye(p)
    for lag, value in ((1, 0.5), (2, 0.25)):
        precision += value * (np.eye(p, k=lag) + np.eye(p, k=-lag))
    x = covariates(simulation2(n=20_000, p=p, seed=4, balanced=balanced))
    assert_covariance(x, np.linalg.inv(precision))
    np.testing.assert_allclose(
        autoregressive.relevant_covariance(p), np.linalg.inv(precision)[:5, :5], atol=1e-12
    )


def test_simulation2_columns_far_apart_are_uncorrelated_and_stationary():
    x = covariates(simulation2(n=4000, p=300, seed=6))
    middle = autoregressive.relevant_covariance(200)[4, 4]  # x5 hardly feels the end any more
    assert abs(np.corrcoef(x[:, 100], x[:, 200])[0, 1]) < Z / math.sqrt(4000)
    assert x[:, 150].var() == pytest.approx(middle, rel=Z * math.sqrt(2 / 4000) + 0.01)


# --- nuisances -------------------------------------------------------------------------------


def twin1(x: pd.DataFrame, tau: float):
    """Simulation 1 as the paper prints it."""
    share = norm.cdf(x[["x1", "x3", "x5"]]).mean(axis=1)
    f = {name: 2 / (1 + np.exp(-x[name] + 0.5)) for name in ("x1", "x2")}
    mu0 = 5 * x.x3 / (1 + x.x4**2) + 2 * x.x5
    effect = tau + f["x1"] * f["x2"] - common_factor.MEAN_PRODUCT
    return mu0, mu0 + effect, 0.25 * (1 + beta(2, 4).cdf(share))


def twin2(x: pd.DataFrame):
    """Simulation 2 as the paper prints it."""
    t = np.tanh

    def mu(a):
        first = -4 * t(t(-2 * t(2 * x.x1 + x.x4) + t(2 * x.x2 - 2 * x.x3)) - 2 * a)
        return first + 2 * t(-a + 2 * t(t(2 * x.x2 - 2 * x.x3) - 2 * t(-2 * x.x4 + x.x5)))

    s = t(-x.x1 - 2 * x.x5) - t(2 * x.x2 - 2 * x.x3)
    return mu(0), mu(1), 1 / (1 + np.exp(-s))


def test_simulation1_follows_the_paper():
    sim = simulation1(n=500, p=8, seed=7, tau=2.0, balanced=False)
    for truth, twin in zip((sim.mu0, sim.mu1, sim.propensity), twin1(sim.data, 2.0), strict=True):
        np.testing.assert_allclose(truth, twin, rtol=0, atol=1e-12)
    assert sim.propensity.min() >= 0.25
    assert sim.propensity.max() <= 0.5


def test_simulation1_balancing_multiplies_the_odds():
    sim = simulation1(n=500, p=8, seed=7)
    plain = twin1(sim.data, 3.0)[2]
    share = common_factor.TREATED_SHARE
    odds = plain / (1 - plain) * (1 - share) / share
    np.testing.assert_allclose(sim.propensity, odds / (1 + odds), rtol=0, atol=1e-12)


@pytest.mark.parametrize("balanced", [False, True])
def test_simulation2_follows_the_paper(balanced):
    sim = simulation2(n=500, p=8, seed=7, balanced=balanced)
    for truth, twin in zip((sim.mu0, sim.mu1, sim.propensity), twin2(sim.data), strict=True):
        np.testing.assert_allclose(truth, twin, rtol=0, atol=1e-12)


def test_simulation2_binomial_takes_a_quarter_of_the_mean_as_log_odds():
    sim = simulation2(n=500, p=8, seed=7, outcome="binomial")
    mu0, mu1, _ = twin2(sim.data)
    np.testing.assert_allclose(sim.mu0, expit(mu0 / 4), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sim.mu1, expit(mu1 / 4), rtol=0, atol=1e-12)
    assert set(sim.data["y"]) == {0.0, 1.0}


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


NUISANCES = {
    "simulation1": (
        common_factor.treatment_probability,
        lambda x: np.stack([common_factor.baseline(x), common_factor.effect_deviation(x)]),
    ),
    "simulation2": (
        autoregressive.treatment_probability,
        lambda x: np.stack([autoregressive.mean_outcome(x, a) for a in (0, 1)]),
    ),
    "simulation2 binomial": (
        autoregressive.treatment_probability,
        lambda x: np.stack([autoregressive.mean_outcome(x, a, "binomial") for a in (0, 1)]),
    ),
}


@pytest.mark.parametrize("variant", NUISANCES)
def test_supports_are_the_supports(variant):
    """A column matters exactly if the support names it."""
    sim = VARIANTS[variant](n=50, p=9, seed=9)
    propensity, outcomes = NUISANCES[variant]
    x = covariates(sim)
    for j in range(x.shape[1]):
        changed = x.copy()
        changed[:, j] += 0.5
        name = f"x{j + 1}"
        assert (name in sim.treatment_support) == bool(np.any(propensity(changed) != propensity(x)))
        assert (name in sim.outcome_support) == bool(np.any(outcomes(changed) != outcomes(x)))


# --- treatment and outcome given the nuisances -----------------------------------------------


@every_variant
def test_treatment_follows_the_propensity(simulate):
    """Σ (A_i - e_i) g(x_i) has mean zero and variance at most Σ e_i (1 - e_i) g(x_i)²."""
    sim = simulate(n=20_000, p=6, seed=10)
    excess = sim.data["treat"].to_numpy() - sim.propensity
    variance = sim.propensity * (1 - sim.propensity)
    for g in (np.ones(20_000), sim.propensity - sim.propensity.mean(), *covariates(sim).T):
        assert abs(excess @ g) < Z * math.sqrt(variance @ g**2)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
def test_every_row_has_noise_of_its_own(simulate):
    n = 10_000
    sim = simulate(n=n, p=5, seed=11, noise=0.7)
    treatment = sim.data["treat"].to_numpy()
    noise = sim.data["y"].to_numpy() - np.where(treatment == 1, sim.mu1, sim.mu0)
    assert_mean(noise, 0.0)
    assert noise.std() == pytest.approx(0.7, rel=Z / math.sqrt(2 * n))
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < Z / math.sqrt(n)
    for other in (treatment, sim.mu0, sim.propensity):
        assert abs(np.corrcoef(noise, other)[0, 1]) < Z / math.sqrt(n)
    silent = simulate(n=100, p=5, seed=11, noise=0.0)
    mu = np.where(silent.data["treat"] == 1, silent.mu1, silent.mu0)
    np.testing.assert_allclose(silent.data["y"], mu, rtol=0, atol=1e-12)


def test_binary_outcome_follows_its_risk():
    sim = simulation2(n=20_000, p=5, seed=12, outcome="binomial")
    risk = np.where(sim.data["treat"] == 1, sim.mu1, sim.mu0)
    excess = sim.data["y"].to_numpy() - risk
    for g in (np.ones(20_000), risk - risk.mean(), sim.data["treat"].to_numpy() - 0.5):
        assert abs(excess @ g) < Z * math.sqrt((risk * (1 - risk)) @ g**2)


@every_variant
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_oracle_estimates_the_population_effect(simulate, seed):
    sim = simulate(n=4000, p=10, seed=seed)
    estimate, error = sim.oracle_ate()
    assert abs(estimate - sim.ate) < 4 * error
    treatment, y = sim.data["treat"].to_numpy(), sim.data["y"].to_numpy()
    e = sim.propensity
    score = sim.tau + treatment * (y - sim.mu1) / e - (1 - treatment) * (y - sim.mu0) / (1 - e)
    assert estimate == pytest.approx(score.mean(), abs=1e-10)
    assert error == pytest.approx(score.std() / math.sqrt(4000), rel=1e-3)


@every_variant
def test_population_effect_is_the_mean_effect(simulate):
    sim = simulate(n=100_000, p=5, seed=13)
    if np.ptp(sim.tau) == 0:
        assert sim.ate == sim.sample_ate == 0.0
    else:
        assert_mean(sim.tau, sim.ate)


# --- population constants --------------------------------------------------------------------


def test_simulation1_constants_by_quadrature():
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
def test_simulation1_constants_by_simulation():
    rng = np.random.default_rng(14)
    n = 4_000_000
    x = (rng.standard_normal((n, 1)) + rng.standard_normal((n, 5))) / math.sqrt(2)
    propensity, deviation = (
        common_factor.treatment_probability(x),
        common_factor.effect_deviation(x),
    )
    assert_mean(propensity, common_factor.TREATED_SHARE)
    assert_mean(deviation, 0.0)
    share = common_factor.TREATED_SHARE
    ratio = 0.5 * propensity / share + 0.5 * (1 - propensity) / (1 - share)
    assert_mean(ratio * deviation, common_factor.BALANCED_SHIFT)


def test_simulation1_balanced_effect_is_tau_plus_the_shift():
    assert simulation1(n=10, p=5, tau=1.5).ate == 1.5 + common_factor.BALANCED_SHIFT
    assert simulation1(n=10, p=5, tau=1.5, balanced=False).ate == 1.5


@pytest.mark.parametrize(
    ("outcome", "value", "precision"),
    [("gaussian", 3.159270669, 1e-9), ("binomial", 0.180310, 1e-6)],
)
def test_simulation2_population_effect_for_the_papers_p(outcome, value, precision):
    assert autoregressive.population_ate(100, outcome) == pytest.approx(value, abs=precision)
    assert autoregressive.population_ate(20_000, outcome) == pytest.approx(value, abs=precision)


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["gaussian", "binomial"])
@pytest.mark.parametrize("p", [5, 100])
def test_simulation2_population_effect_by_simulation(p, outcome):
    rng = np.random.default_rng(15)
    root = np.linalg.cholesky(autoregressive.relevant_covariance(p))
    x = rng.standard_normal((4_000_000, 5)) @ root.T
    effect = autoregressive.mean_outcome(x, 1, outcome) - autoregressive.mean_outcome(x, 0, outcome)
    assert_mean(effect, autoregressive.population_ate(p, outcome))
    assert_mean(autoregressive.treatment_probability(x), 0.5)


# --- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n": 1}, "n must"),
        ({"n": 10.0}, "n must"),
        ({"n": True}, "n must"),
        ({"p": 4}, "p must"),
        ({"seed": -1}, "seed must"),
        ({"seed": None}, "seed must"),
        ({"noise": -0.1}, "noise"),
        ({"noise": math.nan}, "noise must"),
        ({"noise": "1"}, "noise must"),
    ],
)
def test_impossible_options_are_refused(simulate, options, named):
    with pytest.raises(OptionError, match=named):
        simulate(**{"n": 10, "p": 5, **options})


def test_impossible_choices_are_refused():
    with pytest.raises(OptionError, match="tau must be a finite number"):
        simulation1(n=10, p=5, tau=math.inf)
    with pytest.raises(OptionError, match="'gaussian' or 'binomial', not 'poisson'"):
        simulation2(n=10, p=5, outcome="poisson")


def test_numpy_integers_are_sizes():
    assert simulation2(n=np.int64(10), p=np.int32(6), seed=np.int64(1)).data.shape == (10, 8)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
def test_irrelevant_columns_are_drawn_once(simulate):
    """Memory stays near the matrix itself: candidates that are not kept never get p columns."""
    n, p = 500, 2000
    simulate(n=n, p=p)
    tracemalloc.start()
    simulate(n=n, p=p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * (8 * n * p)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
def test_twenty_thousand_covariates(simulate):
    sim = simulate(n=1000, p=20_000)
    assert sim.data.shape == (1000, 20_002)
