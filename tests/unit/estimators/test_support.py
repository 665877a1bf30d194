"""Who has a counterpart, how far others are, and what extrapolation to them could hide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from cstonet.estimators import TARGETS, Effects, Nuisances
from cstonet.estimators.combinations import combined
from cstonet.estimators.support import COUNTERPART, Overlap, hidden_bias, steepest
from cstonet.reporting.inference import (
    Effect,
    EffectInference,
    critical_values,
    half_widths,
    studentised,
)

PAIR = (1, 0)


def nuisances_of(treatment, probabilities, mu, noise=0.0, weights=None) -> Nuisances:
    """Outcomes that are what the regressions say, but for noise."""
    rows = np.arange(len(treatment))
    return Nuisances(
        y=mu[rows, treatment] + noise,
        treatment=treatment,
        mu=mu,
        propensity=probabilities,
        weights=weights,
        fold=np.zeros(len(treatment), dtype=np.int64),
        linear=rows[:, None] / len(rows),
    )


# Counterparts -------------------------------------------------------------------------------------


@pytest.fixture
def four() -> Overlap:
    """Half of the units in each arm, so that a probability of 0.025 makes a counterpart."""
    p1 = np.array([0.5, 0.01, 0.99, 0.025])
    treatment = np.array([0, 0, 1, 1])
    probabilities = np.column_stack([1 - p1, p1])
    return Overlap.of(probabilities, nuisances_of(treatment, probabilities, np.zeros((4, 2))))


def test_a_counterpart_has_a_probability_not_far_below_the_arms_share(four):
    np.testing.assert_allclose(four.least, COUNTERPART * 0.5)
    expected = [[True, True], [True, False], [False, True], [True, True]]
    np.testing.assert_array_equal(four.counterparts, expected)
    np.testing.assert_array_equal(four.without, [False, True, True, False])


def test_shares_are_those_of_weighted_units(four):
    treatment, weights = np.array([0, 0, 1, 1]), np.array([7.0, 2.0, 3.0, 8.0])
    probabilities = four.probabilities
    given = nuisances_of(treatment, probabilities, np.zeros((4, 2)), weights=weights)
    overlap = Overlap.of(probabilities, given)
    np.testing.assert_allclose(overlap.least, COUNTERPART * np.array([9, 11]) / 20)
    assert overlap.lost_share("ATE", PAIR) == pytest.approx((2 + 3) / 20)
    assert overlap.lost_share("ATT", PAIR) == pytest.approx(3 / 11)
    assert overlap.lost_share("ATC", PAIR) == pytest.approx(2 / 9)


def test_in_its_own_arm_a_unit_is_its_own_counterpart(four):
    unlikely = replace(four, probabilities=four.probabilities[:, ::-1])
    np.testing.assert_array_equal(unlikely.counterparts[2:, 1], True)
    np.testing.assert_array_equal(unlikely.without, False)


def test_targets_lose_the_units_that_they_ask_about(four):
    lost = {target: np.flatnonzero(four.lost(target, PAIR)).tolist() for target in TARGETS}
    assert lost == {"ATE": [1, 2], "ATT": [2], "ATC": [1], "ATO": []}
    shares = {target: four.lost_share(target, PAIR) for target in TARGETS}
    assert shares == {"ATE": 0.5, "ATT": 0.5, "ATC": 0.5, "ATO": 0.0}
    # The other way round those who received the first level are the treated.
    assert np.flatnonzero(four.lost("ATT", (0, 1))).tolist() == [1]


def test_of_three_arms_only_those_compared_count():
    probabilities = np.array([[0.5, 0.499, 0.001], [0.001, 0.5, 0.499], [0.3, 0.3, 0.4]])
    given = nuisances_of(np.arange(3), probabilities, np.zeros((3, 3)))
    overlap = Overlap.of(probabilities, given)
    np.testing.assert_array_equal(overlap.lost("ATE", (1, 0)), [False, True, False])
    np.testing.assert_array_equal(overlap.lost("ATE", (2, 0)), [True, True, False])
    np.testing.assert_array_equal(overlap.lost("ATT", (1, 0)), [False, True, False])
    np.testing.assert_array_equal(overlap.lost("ATC", (2, 0)), [True, False, False])
    np.testing.assert_array_equal(overlap.without, [True, True, False])
    np.testing.assert_allclose(overlap.index((2, 0)), np.log([0.002, 499, 4 / 3]), rtol=1e-12)


def test_distances_are_log_odds_beyond_the_boundary(four):
    least = COUNTERPART * 0.5
    expected = [0, logit(least) - logit(0.01), logit(0.99) - logit(1 - least), 0]
    np.testing.assert_allclose(four.distance(PAIR), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(four.distance((0, 1)), expected, rtol=1e-9, atol=1e-12)


# What extrapolation could hide --------------------------------------------------------------------


def separating(strength=3.0, noise=0.0, slope=0.7, n=600, weighted=False):
    """Overlap and nuisances of a treatment with ℓ = strength x, an effect of 2 + slope ℓ."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    p1 = expit(strength * x)
    treatment = (rng.random(n) < p1).astype(np.int64)
    probabilities = np.column_stack([1 - p1, p1])
    base = np.sin(3 * x)
    mu = np.column_stack([base, base + 2 + slope * strength * x])
    weights = rng.uniform(0.5, 2, n) if weighted else None
    errors = noise * rng.normal(size=n)
    given = nuisances_of(treatment, probabilities, mu, errors, weights)
    return Overlap.of(probabilities, given), given


@pytest.mark.parametrize("slope", [0.7, -0.7, 0.0])
def test_scores_on_a_line_have_its_slope(slope):
    """Without noise nothing is uncertain about it."""
    overlap, given = separating(slope=slope)
    assert overlap.lost("ATE", PAIR).sum() > 50
    # Up to the scores' rounding, 1e-16 over the least propensity.
    assert steepest(overlap, given, PAIR) == pytest.approx(abs(slope), rel=1e-9, abs=1e-9)
    assert steepest(overlap, given, (0, 1)) == pytest.approx(abs(slope), rel=1e-9, abs=1e-9)


def test_two_standard_errors_are_added():
    """Twin: statsmodels' weighted least squares with its HC0 errors, among those who are shared."""
    from statsmodels.api import WLS, add_constant

    overlap, given = separating(noise=1.0, weighted=True)
    shared = ~overlap.lost("ATE", PAIR)
    p = np.clip(given.propensity[:, 1], overlap.least[1], 1 - overlap.least[0])
    residual = given.y - given.mu[np.arange(given.n), given.treatment]
    sign = np.where(given.treatment == 1, 1 / p, -1 / (1 - p))
    effect = given.mu[:, 1] - given.mu[:, 0] + sign * residual
    twin = WLS(
        effect[shared], add_constant(overlap.index(PAIR)[shared]), given.weights[shared]
    ).fit(cov_type="HC0")
    expected = abs(twin.params[1]) + 2 * twin.bse[1]
    assert steepest(overlap, given, PAIR) == pytest.approx(expected, rel=1e-9)


def test_nobody_or_nothing_to_judge_by_is_no_bound():
    overlap, given = separating(n=60)
    nobody = replace(overlap, least=np.array([1.0, 1.0]), treatment=overlap.treatment)
    assert steepest(nobody, given, PAIR) == np.inf
    alike = replace(overlap, probabilities=np.full((60, 2), 0.5))
    assert steepest(alike, given, PAIR) == np.inf


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_hidden_where_nobody_is_lost(target):
    overlap, given = separating(strength=0.5)
    assert not overlap.without.any()
    assert hidden_bias(overlap, given, target, PAIR) == 0


@pytest.mark.parametrize("target", ["ATE", "ATT", "ATC"])
def test_it_is_the_steepest_change_times_the_mean_distance(target):
    overlap, given = separating(noise=1.0, weighted=True)
    asked = {"ATE": given.treatment >= 0, "ATT": given.treatment == 1, "ATC": given.treatment == 0}
    who, w = asked[target], given.weights
    least = np.log(overlap.least / (1 - overlap.least))
    odds = logit(given.propensity[:, 1])
    far = np.where(given.treatment == 0, least[1] - odds, odds + least[0])
    mean = np.sum((w * np.maximum(far, 0))[who]) / w[who].sum()
    assert mean > 0.01
    expected = steepest(overlap, given, PAIR) * mean
    assert hidden_bias(overlap, given, target, PAIR) == pytest.approx(expected, rel=1e-9)


def test_overlap_weights_hide_nothing():
    overlap, given = separating(noise=1.0)
    assert hidden_bias(overlap, given, "ATO", PAIR) == 0


def test_it_grows_with_the_distance_of_the_lost():
    overlap, given = separating(noise=1.0)
    lost = overlap.lost("ATE", PAIR)
    biases = []
    for times in (1.0, 1.5, 2.0):  # those who are lost are further away, the others stay
        odds = logit(overlap.probabilities[:, 1]) * np.where(lost, times, 1.0)
        further = replace(overlap, probabilities=np.column_stack([expit(-odds), expit(odds)]))
        biases.append(hidden_bias(further, given, "ATE", PAIR))
    assert 0 < biases[0] < biases[1] < biases[2]
    # Equal steps of ℓ are equal steps of the bias: the same units are shared.
    assert biases[2] - biases[1] == pytest.approx(biases[1] - biases[0], rel=1e-6)


# In intervals and tests ---------------------------------------------------------------------------


def effects_with(bias, freedom=None) -> Effects:
    estimates = np.array([2.0, -1.0, 3.0])
    return Effects(
        names=("ATE", "POM[0]", "POM[1]"),
        n_contrasts=1,
        estimates=estimates,
        covariance=np.diag([0.25, 0.09, 0.16]),
        influence=np.empty((0, 3)),
        n_clipped=0,
        clip=0.01,
        variance_kind="influence",
        freedom=freedom,
        bias=None if bias is None else np.array(bias),
    )


BIAS = (0.8, 1.5, 0.0)


@pytest.mark.parametrize("freedom", [None, np.array([5.0, 8.0, 30.0])])
def test_intervals_are_longer_by_the_bias_on_both_sides(freedom):
    effects = effects_with(BIAS, freedom)
    law = stats.norm if freedom is None else stats.t(freedom)
    for alpha in (0.05, 0.3):
        half = law.ppf(1 - alpha / 2) * effects.standard_errors + BIAS
        np.testing.assert_allclose(half_widths(effects, critical_values(effects, alpha)), half)
        limits = EffectInference(effects, "y").conf_int(alpha).to_numpy()
        expected = np.column_stack([effects.estimates - half, effects.estimates + half])
        np.testing.assert_allclose(limits, expected, rtol=1e-9)
        one = Effect.of(effects, "ATE", alpha)
        assert (one.lower, one.upper) == pytest.approx(tuple(expected[0]), rel=1e-9)
        assert one.se == effects.standard_errors[0]


def test_tests_take_the_least_that_the_estimate_could_be():
    """2 ± 0.8 is at least 1.2; -1 ± 1.5 may be zero; signs stay."""
    effects = effects_with(BIAS)
    np.testing.assert_allclose(studentised(effects), [1.2 / 0.5, 0.0, 3.0 / 0.4], rtol=1e-12)
    p = EffectInference(effects, "y").pvalues
    np.testing.assert_allclose(p, [2 * stats.norm.sf(2.4), 1.0, 2 * stats.norm.sf(7.5)], rtol=1e-9)
    assert Effect.of(effects, "ATE", 0.05).pvalue == p["ATE"]
    down = replace(effects, estimates=-effects.estimates)
    np.testing.assert_allclose(studentised(down), [-2.4, 0.0, -7.5], rtol=1e-12)


def test_an_interval_excludes_zero_if_and_only_if_the_test_rejects():
    for bias in np.linspace(0.9, 1.1, 21):
        one = Effect.of(effects_with((bias, 0.0, 0.0)), "ATE", 0.05)
        assert (one.lower > 0) == (one.pvalue < 0.05)


def test_without_bias_nothing_changes():
    plain, none = effects_with(None), effects_with((0.0, 0.0, 0.0))
    critical = critical_values(plain, 0.05)
    np.testing.assert_array_equal(half_widths(plain, critical), half_widths(none, critical))
    np.testing.assert_array_equal(studentised(plain), plain.estimates / plain.standard_errors)
    np.testing.assert_array_equal(studentised(plain), studentised(none))


def test_a_difference_may_be_off_by_the_sum_of_what_its_parts_are():
    difference = combined(effects_with(BIAS), "difference", np.array([1.0, -2.0, 0.0]))
    np.testing.assert_allclose(difference.bias, [0.8 + 2 * 1.5], rtol=1e-12)
