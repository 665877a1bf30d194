"""Estimates that few units decide: degrees of freedom, t intervals, and bounds by level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cstonet.errors import OptionError
from cstonet.estimators import (
    Effects,
    Nuisances,
    clip_propensity,
    contrast_freedom,
    estimate_effects,
    estimate_target,
    joint_freedom,
    led_by,
)
from cstonet.estimators.clusters import MANY_DEGREES
from cstonet.estimators.variance import WeightSpread
from cstonet.reporting.inference import Effect, EffectInference

# Degrees of freedom -------------------------------------------------------------------------------


def spread_of(*columns):
    spread = WeightSpread(len(columns))
    weights = np.column_stack(columns)
    spread.add(weights[:4])  # units come in blocks
    spread.add(weights[4:])
    return spread.freedom()


def test_nine_equal_weights_have_eight_degrees_of_freedom():
    assert spread_of(np.full(9, 111.1)) == pytest.approx([8], rel=1e-12)


def test_signs_scale_and_weights_of_zero_do_not_matter():
    weights = np.random.default_rng(0).exponential(size=12)
    signs = np.where(np.arange(12) % 2, -3.0, 3.0)
    squares = weights**2
    expected = squares.sum() ** 2 / (squares**2).sum() - 1
    assert spread_of(weights) == pytest.approx([expected], rel=1e-12)
    assert spread_of(signs * weights) == pytest.approx([expected], rel=1e-12)
    assert spread_of(np.r_[weights, np.zeros(50)]) == pytest.approx([expected], rel=1e-12)


def test_there_is_at_least_one_degree_of_freedom():
    one = np.r_[1.0, np.zeros(8)]
    np.testing.assert_array_equal(spread_of(one, np.zeros(9)), [1, 1])


def test_many_degrees_of_freedom_are_as_good_as_normal():
    many = int(MANY_DEGREES) + 1
    assert spread_of(np.ones(many)) is None
    assert spread_of(np.ones(many - 1)) == pytest.approx([many - 2], rel=1e-12)
    few = np.r_[np.ones(9), np.zeros(many - 9)]
    np.testing.assert_allclose(spread_of(np.ones(many), few), [many - 1, 8], rtol=1e-12)


# A trial with nine treated ------------------------------------------------------------------------

TREATED, CONTROLS = 9, 991


def trial(levels=2) -> Nuisances:
    """Nobody knows more than the shares of the arms; the last has nine units."""
    sizes = (CONTROLS, TREATED) if levels == 2 else (CONTROLS // 2, CONTROLS // 2, TREATED)
    rng, n = np.random.default_rng(4), sum(sizes)
    return Nuisances(
        y=rng.normal(size=n),
        treatment=np.repeat(np.arange(levels), sizes),
        mu=np.zeros((n, levels)),
        propensity=np.tile(np.array(sizes) / n, (n, 1)),
        weights=None,
        fold=np.zeros(n, dtype=np.int64),
        linear=np.empty((n, 0)),
    )


def effects_of(nuisances, clip=0.0) -> Effects:
    levels = tuple(range(nuisances.n_levels))
    kind = "binary" if len(levels) == 2 else "multilevel"
    return estimate_effects(nuisances, levels=levels, clip=clip, variance="influence", kind=kind)


def welch_freedom(*sizes):
    """Satterthwaite's, by hand, for arms whose units count ±1/n_a each."""
    squares = sum(1 / size for size in sizes)
    return squares**2 / sum(1 / size**3 for size in sizes) - 1


def test_an_effect_has_about_as_many_degrees_of_freedom_as_its_smallest_arm():
    effects = effects_of(trial())
    expected = [welch_freedom(TREATED, CONTROLS), CONTROLS - 1, TREATED - 1]
    np.testing.assert_allclose(effects.freedom, expected, rtol=1e-9)
    assert TREATED - 1 < effects.freedom[0] < TREATED
    alone = estimate_target(trial(), "ATT", (1, 0), clip=0.0, name="ATT")
    np.testing.assert_allclose(alone.freedom, expected[:1], rtol=1e-9)


def test_arms_of_some_hundred_are_taken_for_normal():
    assert effects_of(trial(3)).freedom is not None
    large = trial(3).among(trial(3).treatment < 2)
    two = replace(large, mu=large.mu[:, :2], propensity=np.full((large.n, 2), 0.5))
    assert effects_of(two).freedom is None


def test_intervals_and_tests_are_students():
    effects = effects_of(trial())
    inference = EffectInference(effects, "y")
    error, freedom = effects.standard_errors, effects.freedom
    for alpha in (0.05, 0.2):
        limits = inference.conf_int(alpha).to_numpy()
        half = stats.t.ppf(1 - alpha / 2, freedom) * error
        np.testing.assert_allclose((limits[:, 1] - limits[:, 0]) / 2, half, rtol=1e-9)
    p = 2 * stats.t.sf(abs(effects.estimates) / error, freedom)
    np.testing.assert_allclose(inference.pvalues, p, rtol=1e-9)
    one = Effect.of(effects, "ATE", 0.05)
    assert [one.lower, one.upper] == inference.conf_int().loc["ATE"].tolist()
    assert one.pvalue == inference.pvalues["ATE"]
    assert inference.use_t
    test = inference.t_test("ATE = 0")
    assert float(test.pvalue) == pytest.approx(one.pvalue, rel=1e-9)


def test_of_arms_alone_the_effect_is_welchs():
    """Estimate and error are those of Welch's test; its degrees of freedom know the variances."""
    nuisances = trial()
    arms = [nuisances.y[nuisances.treatment == a] for a in (1, 0)]
    welch = stats.ttest_ind(*arms, equal_var=False)
    effects = effects_of(nuisances)
    z = effects.estimates[0] / effects.standard_errors[0]
    assert z == pytest.approx(welch.statistic, rel=1e-9)
    assert effects.freedom[0] == pytest.approx(welch.df, abs=1)


def test_combinations_have_the_fewest_degrees_of_what_they_are_made_of():
    effects = effects_of(trial(3))  # ATE[1-0], ATE[2-0], three means
    assert effects.between is None
    some, few = effects.freedom[0], effects.freedom[4]
    assert some > 100 > few
    matrix = np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, -1, 1], [0, 0, 1, -1, 0]])
    expected = [some, few, effects.freedom[2:4].min()]
    np.testing.assert_array_equal(contrast_freedom(effects, matrix), expected)
    assert joint_freedom(effects, matrix[[0, 1]]) == few
    assert joint_freedom(effects, matrix[[0, 2]]) == min(expected[0], expected[2])
    normal = replace(effects, freedom=None)
    assert contrast_freedom(normal, matrix) is None
    assert joint_freedom(normal, matrix) is None


def test_joint_tests_are_f_tests_with_the_fewest():
    effects = effects_of(trial(3))
    inference = EffectInference(effects, "y")
    test = inference.wald_test(np.eye(5)[:2])
    block = effects.covariance[:2, :2]
    statistic = effects.estimates[:2] @ np.linalg.solve(block, effects.estimates[:2]) / 2
    assert float(test.statistic) == pytest.approx(statistic, rel=1e-8)
    expected = stats.f.sf(statistic, 2, effects.freedom[:2].min())
    assert float(test.pvalue) == pytest.approx(expected, rel=1e-8)


def test_degrees_of_freedom_stay_with_their_effects():
    """An effect that leads the table brings its own; where none has any, none gets any."""
    effects = effects_of(trial())
    leading = estimate_target(trial(), "ATO", (1, 0), clip=0.0, name="ATO")
    both = led_by([leading], effects)
    np.testing.assert_array_equal(both.freedom, [*leading.freedom, *effects.freedom])
    half = led_by([replace(leading, freedom=None)], effects)
    np.testing.assert_array_equal(half.freedom, [np.inf, *effects.freedom])
    none = led_by([replace(leading, freedom=None)], replace(effects, freedom=None))
    assert none.freedom is None


# Bounds by level ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0.2, 0.001), (0.3, 0.05, 0.001)])
def test_every_level_keeps_its_bound_and_rows_sum_to_one(bounds):
    levels = len(bounds)
    p = np.random.default_rng(levels).dirichlet(np.full(levels, 0.3), size=500)
    clipped = clip_propensity(p, bounds)
    np.testing.assert_allclose(clipped.values.sum(axis=1), 1, rtol=1e-14)
    # One minus one minus a bound is the bound up to rounding.
    assert (clipped.values >= np.array(bounds) * (1 - 1e-12)).all()
    low = (p < bounds).any(axis=1)
    assert clipped.n_clipped == low.sum() > 50
    np.testing.assert_array_equal(clipped.values[~low], p[~low])


def test_two_levels_by_hand():
    p = np.array([[0.999, 0.001], [0.5, 0.5], [0.05, 0.95]])
    values = clip_propensity(p, (0.1, 0.01)).values
    np.testing.assert_allclose(values, [[0.99, 0.01], [0.5, 0.5], [0.1, 0.9]], rtol=1e-12)


def test_three_levels_by_hand():
    """The first lacks 0.1, which the others give as 3 to 6; then the third would lack, too."""
    p = np.array([[0.1, 0.3, 0.6], [0.0, 0.7, 0.3]])
    values = clip_propensity(p, (0.2, 0.0, 0.29)).values
    np.testing.assert_allclose(values, [[0.2, 0.8 / 3, 1.6 / 3], [0.2, 0.51, 0.29]], rtol=1e-12)


def test_equal_bounds_are_one_bound():
    for levels in (2, 3, 4):
        p = np.random.default_rng(levels).dirichlet(np.full(levels, 0.3), size=200)
        one, each = clip_propensity(p, 0.1), clip_propensity(p, (0.1,) * levels)
        np.testing.assert_array_equal(one.values, each.values)
        assert one.n_clipped == each.n_clipped


@pytest.mark.parametrize("bounds", [(0.1, 0.1, 0.1), (0.5, 0.5), (-0.1, 0.2), (0.1,)])
def test_impossible_bounds_are_explained(bounds):
    with pytest.raises(OptionError, match=r"clip must hold 2 numbers.*below 1 together; got \("):
        clip_propensity(np.full((3, 2), 0.5), bounds)


def test_estimators_use_the_bounds_of_each_level():
    """A weight is one over the bound where a propensity is below that of its own level."""
    nuisances = replace(trial(), linear=None)
    bounds = (0.5, 0.002)
    effects = effects_of(nuisances, bounds)
    assert effects.clip == bounds
    assert effects.n_clipped == 0
    higher = effects_of(nuisances, (0.5, 0.018))
    assert higher.n_clipped == nuisances.n
    ratio = higher.estimates[2] / effects.estimates[2]
    assert ratio == pytest.approx(0.009 / 0.018, rel=1e-12)
