"""The efficient-influence-function estimator of mediation, on nuisances that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import multivariate_normal

from cstonet.datasets import linear_mediation, one_mediator, three_mediators
from cstonet.errors import NumericalError
from cstonet.estimators import (
    Estimates,
    PathNuisances,
    estimate_effects,
    estimate_mediation,
    estimate_mediator_effects,
    estimate_paths,
    mediation_scores,
)

# Estimates from true nuisances are normal; four standard errors are missed once in 16 000 times.
FAR = 4.0


@pytest.fixture(scope="module")
def simulation():
    return three_mediators(n=4000, p=5, seed=1)


@pytest.fixture(scope="module")
def large():
    return one_mediator(n=40_000, p=5, seed=2)


def distance(effects, truth):
    """Errors of the three effects in standard errors."""
    return np.abs(effects.estimates - list(truth.values())) / effects.standard_errors


def test_scores_against_the_formula_with_density_ratios(simulation):
    nuisances = simulation.nuisances()
    scores = mediation_scores(nuisances, nuisances.propensity, nuisances.posterior)
    x = simulation.data[[f"x{j}" for j in range(1, 6)]].to_numpy()
    m = simulation.data[["m1", "m2", "m3"]].to_numpy()
    A, y, p = nuisances.treatment, nuisances.y, nuisances.propensity
    means = [
        np.column_stack(
            [
                0.7 * a + 0.6 * x[:, 0] + 0.6 * np.tanh(2 * x[:, 3]) + 0.3 * a * x[:, 1],
                0.5 * a - 0.5 * x[:, 1] + 0.4 * (x[:, 3] ** 2 - 1),
                0.6 * a + 0.5 * x[:, 0],
            ]
        )
        for a in (0, 1)
    ]
    correlation = [[1, 0.4, 0.3], [0.4, 1, 0.3], [0.3, 0.3, 1]]
    density = [multivariate_normal(cov=correlation).pdf(m - mean) for mean in means]
    for a in (0, 1):
        for b in (0, 1):
            expected = (
                (a == A) / p[:, a] * density[b] / density[a] * (y - nuisances.mu[:, a])
                + (b == A) / p[:, b] * (nuisances.mu[:, a] - nuisances.eta[:, a, b])
                + nuisances.eta[:, a, b]
            )
            # The ratio is formed from logarithms on one side: its relative error is some 1e-13.
            np.testing.assert_allclose(scores[:, a, b], expected, rtol=1e-9, atol=1e-9)


def test_total_is_direct_plus_indirect_exactly(simulation):
    effects = estimate_mediation(simulation.nuisances(), clip=0.01).effects
    assert effects.names == ("TE", "NDE", "NIE")
    assert effects.estimates[0] == effects.estimates[1] + effects.estimates[2]
    np.testing.assert_array_equal(
        effects.influence[:, 0], effects.influence[:, 1] + effects.influence[:, 2]
    )
    covariance = effects.influence.T @ effects.influence / len(effects.influence) ** 2
    np.testing.assert_allclose(effects.covariance, covariance, rtol=1e-10, atol=1e-18)


def test_total_effect_is_aipw(simulation):
    nuisances = simulation.nuisances()
    effects = estimate_mediation(nuisances, clip=0.0).effects
    aipw = estimate_effects(nuisances.total(), levels=(0, 1), clip=0.0, variance="influence")
    np.testing.assert_allclose(effects.estimates[0], aipw.estimates[0], rtol=1e-10)
    np.testing.assert_allclose(effects.standard_errors[0], aipw.standard_errors[0], rtol=1e-10)


@pytest.mark.parametrize("make", [one_mediator, three_mediators, linear_mediation])
def test_oracle_finds_the_population_effects(make):
    simulation = make(n=20_000, p=5, seed=3)
    oracle = simulation.oracle()
    assert (distance(oracle, simulation.effects) < FAR).all()
    # The rows' own mean effects have a spread of at most 1/√n times that of the effects.
    for name, value in simulation.sample_effects.items():
        assert value == pytest.approx(simulation.effects[name], abs=0.02)


def test_linear_effects_in_closed_form():
    effects = linear_mediation(n=10, seed=0).effects
    assert effects["NDE"] == pytest.approx(0.6, abs=1e-12)
    assert effects["NIE"] == pytest.approx(0.8 * 0.5, abs=1e-12)
    assert effects["TE"] == pytest.approx(1.0, abs=1e-12)


def wrong_outcome(nuisances):
    """μ ≡ 0, hence η ≡ 0, whatever the mediators' law."""
    return replace(nuisances, mu=0 * nuisances.mu, eta=0 * nuisances.eta)


def wrong_mediators(nuisances):
    """Mediators that ignore the treatment and a mean over them that is off everywhere."""
    return replace(nuisances, posterior=nuisances.propensity, eta=0.5 * nuisances.eta + 1)


def wrong_treatment(nuisances):
    """A coin for the treatment; the mediators' density ratio stays right."""
    p = nuisances.propensity[:, 1]
    treated = expit(logit(nuisances.posterior[:, 1]) - logit(p))
    half = np.full_like(nuisances.propensity, 0.5)
    return replace(nuisances, propensity=half, posterior=np.column_stack([1 - treated, treated]))


@pytest.mark.parametrize("wrong", [wrong_outcome, wrong_mediators, wrong_treatment])
def test_one_wrong_nuisance_does_no_harm(large, wrong):
    effects = estimate_mediation(wrong(large.nuisances()), clip=0.0).effects
    assert (distance(effects, large.effects) < FAR).all()


def test_two_wrong_nuisances_do(large):
    nuisances = wrong_treatment(wrong_outcome(large.nuisances()))
    effects = estimate_mediation(nuisances, clip=0.0).effects
    assert (distance(effects, large.effects) > FAR).any()


def test_extreme_ratios_are_bounded_and_counted(simulation):
    nuisances = simulation.nuisances()
    estimated = estimate_mediation(nuisances, clip=0.05)
    outside = (nuisances.posterior.min(axis=1) < 0.05).sum()
    assert estimated.n_bounded == outside > 0
    bounded = np.clip(nuisances.posterior, 0.05, 0.95)
    propensity = np.clip(nuisances.propensity, 0.05, 0.95)
    scores = mediation_scores(nuisances, propensity, bounded)
    expected = (scores[:, 1, 0] - scores[:, 0, 0]).mean()
    assert estimated.effects.estimates[1] == pytest.approx(expected, rel=1e-12)
    assert estimate_mediation(nuisances, clip=0.0).n_bounded == 0


def test_proportion_by_the_delta_method(simulation):
    estimated = estimate_mediation(simulation.nuisances(), clip=0.01)
    share = estimated.proportion()
    total, _, indirect = estimated.effects.estimates
    gradient = np.array([-indirect / total**2, 0, 1 / total])
    variance = gradient @ estimated.effects.covariance @ gradient
    assert share.estimates[0] == pytest.approx(indirect / total, rel=1e-12)
    assert share.standard_errors[0] == pytest.approx(np.sqrt(variance), rel=1e-10)
    assert not estimated.uncertain_total


def test_proportion_has_one_number_of_degrees_of_freedom(simulation):
    nuisances = simulation.nuisances()
    few = replace(nuisances, clusters=np.arange(len(nuisances.y)) % 12)
    estimated = estimate_mediation(few, clip=0.01)
    freedom = estimated.proportion().freedom
    assert freedom.shape == (1,)
    assert freedom[0] == estimated.effects.freedom.min() < 12


def test_covariance_over_repetitions(simulation):
    nuisances = simulation.nuisances()
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.normal(size=(2, *nuisances.mu.shape))
    singles = [
        estimate_mediation(replace(nuisances, mu=nuisances.mu + one), clip=0.01) for one in noise
    ]
    both = estimate_mediation(replace(nuisances, mu=nuisances.mu + noise.mean(axis=0)), clip=0.01)
    found = both.over_repetitions(singles)
    np.testing.assert_array_equal(found.effects.estimates, both.effects.estimates)
    gaps = [single.effects.estimates - both.effects.estimates for single in singles]
    expected = sum(
        single.effects.covariance + gap[:, None] * gap
        for single, gap in zip(singles, gaps, strict=True)
    )
    np.testing.assert_allclose(found.effects.covariance, expected / 2, rtol=1e-12)
    # TE stays the sum of the other two, and a single repetition changes nothing.
    variance = found.effects.covariance
    assert variance[0, 0] == pytest.approx(variance[1:, 1:].sum(), rel=1e-12)
    alone = both.over_repetitions([both])
    np.testing.assert_array_equal(alone.effects.covariance, both.effects.covariance)


def test_small_total_effect_is_uncertain(simulation):
    nuisances = simulation.nuisances()
    shift = simulation.effects["TE"] * (nuisances.treatment == 1)
    gone = np.array([[0, 0], [1, 1]]) * simulation.effects["TE"]
    flat = replace(
        nuisances,
        y=nuisances.y - shift,
        mu=nuisances.mu - gone[:, 0],
        eta=nuisances.eta - gone,
    )
    assert estimate_mediation(flat, clip=0.01).uncertain_total


def test_weights_count_like_repeated_rows(simulation):
    nuisances = simulation.nuisances()
    weights = np.arange(len(nuisances.y)) % 3 + 1
    rows = np.repeat(np.arange(len(nuisances.y)), weights)
    names = ("y", "treatment", "mu", "eta", "propensity", "posterior", "fold")
    repeated = replace(nuisances, **{name: getattr(nuisances, name)[rows] for name in names})
    weighted = estimate_mediation(replace(nuisances, weights=weights.astype(float)), clip=0.01)
    np.testing.assert_allclose(
        weighted.effects.estimates,
        estimate_mediation(repeated, clip=0.01).effects.estimates,
        rtol=1e-12,
    )


def test_predictions_must_be_finite_and_probabilities_positive(simulation):
    nuisances = simulation.nuisances()
    broken = nuisances.eta.copy()
    broken[3, 0, 1] = np.nan
    with pytest.raises(NumericalError, match="eta"):
        replace(nuisances, eta=broken)
    with pytest.raises(ValueError, match="eta"):
        replace(nuisances, eta=nuisances.eta[:, :, 0])
    certain = nuisances.posterior.copy()
    certain[0] = [nuisances.treatment[0], 1 - nuisances.treatment[0]]
    with pytest.raises(NumericalError, match="clip"):
        estimate_mediation(replace(nuisances, posterior=certain), clip=0.0)


# Paths -------------------------------------------------------------------------------------------


def test_path_of_a_single_mediator_is_the_nie():
    simulation = one_mediator(n=3000, p=5, seed=4)
    nuisances = simulation.nuisances()
    odds = nuisances.posterior / nuisances.propensity
    ratio = np.stack([odds[:, 0] / odds[:, 1], np.ones(len(odds))], axis=1)[:, :, None]
    both = nuisances.eta[:, 1, :, None]
    paths = PathNuisances(ratio=ratio, own=nuisances.mu[:, 1:], rest=both, both=both)
    found = estimate_paths(nuisances, paths, clip=0.0)
    expected = estimate_mediation(nuisances, clip=0.0).effects
    np.testing.assert_allclose(found.values[0], expected.estimates[2], rtol=1e-10)
    np.testing.assert_allclose(found.errors[0], expected.standard_errors[2], rtol=1e-10)


def test_errors_of_paths_over_repetitions():
    whole = Estimates(np.array([1.0, 0.0]), np.array([0.01, 0.0]))
    singles = [
        Estimates(np.array([1.3, 0.0]), np.array([0.5, 0.0])),
        Estimates(np.array([0.9, 0.0]), np.array([0.7, 0.0])),
    ]
    found = whole.over_repetitions(singles)
    np.testing.assert_array_equal(found.values, whole.values)
    # Their own variances 0.25 and 0.49, and squared distances 0.09 and 0.01.
    np.testing.assert_allclose(found.errors, [np.sqrt((0.25 + 0.49 + 0.09 + 0.01) / 2), 0.0])


def test_paths_of_a_linear_outcome_are_products():
    """With y linear in two mediators, path_j is the effect on M_j times its coefficient."""
    rng = np.random.default_rng(5)
    n, slopes, effects = 40_000, np.array([0.8, -0.5]), np.array([0.7, 0.4])
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    x = rng.normal(size=n)
    p1 = expit(0.7 * x)
    A = rng.binomial(1, p1)
    means = np.stack([np.column_stack([x + a * e for e in effects]) for a in (0, 1)], axis=1)
    m = means[np.arange(n), A] + rng.multivariate_normal([0, 0], covariance, n)
    base = 0.3 * np.arange(2) + 0.5 * x[:, None]
    mu = base + (m @ slopes)[:, None]
    y = mu[np.arange(n), A] + rng.normal(size=n)
    eta = base[:, :, None] + (means @ slopes)[:, None, :]
    density = np.column_stack(
        [multivariate_normal(cov=covariance).logpdf(m - means[:, a]) for a in (0, 1)]
    )
    treated = expit(logit(p1) + density[:, 1] - density[:, 0])
    template = one_mediator(n=n, p=5, seed=0).nuisances()
    nuisances = replace(
        template,
        y=y,
        treatment=A,
        mu=mu,
        eta=eta,
        propensity=np.column_stack([1 - p1, p1]),
        posterior=np.column_stack([1 - treated, treated]),
    )
    ratio, rest, both = (np.empty((n, 2, 2)) for _ in range(3))
    own = np.empty((n, 2))
    for j in (0, 1):
        other = 1 - j
        conditional = means[:, 1, j] + 0.5 * (m[:, other] - means[:, 1, other])
        log_conditional = -0.5 * (m[:, j] - conditional) ** 2 / 0.75 - 0.5 * np.log(0.75)
        own[:, j] = base[:, 1] + m[:, j] * slopes[j] + means[:, 1, other] * slopes[other]
        for a in (0, 1):
            alone = means[:, a, j] * slopes[j]
            rest[:, a, j] = base[:, 1] + alone + m[:, other] * slopes[other]
            both[:, a, j] = base[:, 1] + alone + means[:, 1, other] * slopes[other]
            ratio[:, a, j] = np.exp(-0.5 * (m[:, j] - means[:, a, j]) ** 2 - log_conditional)
    paths = PathNuisances(ratio=ratio, own=own, rest=rest, both=both)
    found = estimate_paths(nuisances, paths, clip=0.0)
    assert (np.abs(found.values - effects * slopes) < FAR * found.errors).all()
    assert (np.abs(found.values) > FAR * found.errors).all()
    on_mediators = estimate_mediator_effects(nuisances, m, means, clip=0.0)
    assert (np.abs(on_mediators.values - effects) < FAR * on_mediators.errors).all()
    # Without the outcome model the density ratio alone must find the path.
    blind = replace(nuisances, mu=0 * mu, eta=0 * eta)
    nothing = PathNuisances(ratio=ratio, own=0 * own, rest=0 * rest, both=0 * both)
    found = estimate_paths(blind, nothing, clip=0.0)
    assert (np.abs(found.values - effects * slopes) < FAR * found.errors).all()
