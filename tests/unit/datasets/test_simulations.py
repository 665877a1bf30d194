"""What both simulations of the paper promise: form, seeds, treatment, noise, limits."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest

from cstonet.datasets import autoregressive, common_factor, simulation1, simulation2
from cstonet.errors import OptionError

# Standard errors: one comparison in 150 000 fails by chance, and the seeds are fixed.
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
def test_seed_governs_everything(simulate, covariates):
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


@pytest.mark.parametrize("variant", NUISANCES)
def test_supports_are_the_supports(variant, covariates):
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


@every_variant
def test_treatment_follows_the_propensity(simulate, covariates):
    """Σ (A_i - e_i) g(x_i) has mean zero and variance at most Σ e_i (1 - e_i) g(x_i)²."""
    sim = simulate(n=20_000, p=6, seed=10)
    excess = sim.data["treat"].to_numpy() - sim.propensity
    variance = sim.propensity * (1 - sim.propensity)
    for g in (np.ones(20_000), sim.propensity - sim.propensity.mean(), *covariates(sim).T):
        assert abs(excess @ g) < Z * math.sqrt(variance @ g**2)


@pytest.mark.parametrize("simulate", [simulation1, simulation2])
def test_every_row_has_noise_of_its_own(simulate, check_mean):
    n = 10_000
    sim = simulate(n=n, p=5, seed=11, noise=0.7)
    treatment = sim.data["treat"].to_numpy()
    noise = sim.data["y"].to_numpy() - np.where(treatment == 1, sim.mu1, sim.mu0)
    check_mean(noise, 0.0)
    assert noise.std() == pytest.approx(0.7, rel=Z / math.sqrt(2 * n))
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < Z / math.sqrt(n)
    for other in (treatment, sim.mu0, sim.propensity):
        assert abs(np.corrcoef(noise, other)[0, 1]) < Z / math.sqrt(n)
    silent = simulate(n=100, p=5, seed=11, noise=0.0)
    mu = np.where(silent.data["treat"] == 1, silent.mu1, silent.mu0)
    np.testing.assert_allclose(silent.data["y"], mu, rtol=0, atol=1e-12)


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
def test_population_effect_is_the_mean_effect(simulate, check_mean):
    sim = simulate(n=100_000, p=5, seed=13)
    if np.ptp(sim.tau) == 0:
        assert sim.ate == sim.sample_ate == 0.0
    else:
        check_mean(sim.tau, sim.ate)


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
