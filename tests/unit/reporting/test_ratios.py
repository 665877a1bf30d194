"""Effects on the scale of ratios, and numbers needed to treat."""

from __future__ import annotations

import math

import pytest

from cstonet.reporting.inference import Effect
from cstonet.reporting.ratios import NumberNeeded, Ratio


def effect(estimate, half, se=0.02):
    return Effect("ATE", estimate, se, estimate - half, estimate + half, 0.03, 0.05)


def test_ratio_is_the_exponential_of_its_log():
    ratio = Ratio.from_log(effect(math.log(2), 0.04))
    assert ratio.estimate == pytest.approx(2)
    assert ratio.se == pytest.approx(0.04)
    assert ratio.lower * ratio.upper == pytest.approx(4)
    assert ratio.upper == pytest.approx(2 * math.exp(0.04))
    assert (ratio.pvalue, ratio.alpha) == (0.03, 0.05)
    assert str(ratio) == "ATE = 2.000 (SE 0.040, 95% CI 1.922 to 2.082)"


def test_limits_may_be_infinite():
    ratio = Ratio.from_log(effect(0.0, math.inf))
    assert (ratio.lower, ratio.upper) == (0.0, math.inf)


def test_number_needed_inverts_the_limits():
    number = NumberNeeded.from_difference(effect(0.1, 0.05), "NNT")
    assert number.estimate == pytest.approx(10)
    assert number.se == pytest.approx(2)  # 0.02 / 0.1²
    assert (number.lower, number.upper) == pytest.approx((1 / 0.15, 20))
    assert not number.through_infinity
    assert str(number) == "NNT = 10 for one more (95% CI 6.67 to 20)"


def test_number_needed_for_one_fewer():
    number = NumberNeeded.from_difference(effect(-0.1, 0.05), "NNT")
    assert number.estimate == pytest.approx(-10)
    assert (number.lower, number.upper) == pytest.approx((-20, -1 / 0.15))
    assert str(number) == "NNT = 10 for one fewer (95% CI 6.67 to 20)"


def test_interval_runs_through_infinity_where_nothing_may_change():
    number = NumberNeeded.from_difference(effect(0.05, 0.1), "NNT")
    assert number.through_infinity
    assert (number.lower, number.upper) == pytest.approx((1 / 0.15, -20))
    expected = "NNT = 20 for one more (95% CI 6.67 to inf for one more and 20 to inf for one fewer)"
    assert str(number) == expected


@pytest.mark.parametrize(
    ("difference", "limits"),
    [(effect(0.1, 0.1), (5, math.inf)), (effect(-0.1, 0.1), (-math.inf, -5))],
)
def test_a_limit_of_zero_is_infinity(difference, limits):
    number = NumberNeeded.from_difference(difference, "NNT")
    assert (number.lower, number.upper) == pytest.approx(limits)
    assert not number.through_infinity


def test_equal_risks_need_infinitely_many():
    number = NumberNeeded.from_difference(effect(0.0, 0.1), "NNT")
    assert math.isinf(number.estimate)
    assert math.isinf(number.se)
    assert number.through_infinity
