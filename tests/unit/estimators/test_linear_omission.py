"""Omitted variables of a linear regression, against the published example of Darfur."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cstonet.errors import OptionError
from cstonet.estimators.linear_omission import LinearOmission
from cstonet.estimators.omitted_variables import robustness_value

# Cinelli and Hazlett (2020), attitudes towards peace on exposure to violence in Darfur, as the
# package sensemakr prints it.
DARFUR = LinearOmission(estimate=0.09731582, se=0.02325654, freedom=783)
PUBLISHED = {"partial_r2": 0.02187309, "rv": 0.1387764, "rv_alpha": 0.07625797}
# A confounder as strong as gender: R² with treatment and outcome, then the adjusted estimate, its
# standard error and t.
FEMALE = (0.009164287, 0.1246409, 0.07522, 0.02187, 3.43890)


def test_darfur_has_the_printed_digits():
    assert DARFUR.partial_r2 == pytest.approx(PUBLISHED["partial_r2"], abs=5e-8)
    assert DARFUR.robustness_value() == pytest.approx(PUBLISHED["rv"], abs=5e-7)
    assert DARFUR.robustness_value(alpha=0.05) == pytest.approx(PUBLISHED["rv_alpha"], abs=5e-8)


def test_darfur_with_a_confounder_as_strong_as_gender():
    treated, own, estimate, se, t = FEMALE
    adjusted, error = DARFUR.adjusted_estimate(own, treated), DARFUR.adjusted_se(own, treated)
    assert float(adjusted) == pytest.approx(estimate, abs=5e-6)
    assert float(error) == pytest.approx(se, abs=5e-6)
    assert float(adjusted / error) == pytest.approx(t, abs=5e-5)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_darfur_equals_the_closed_forms(share):
    t, df = 0.09731582 / 0.02325654, 783
    f = share * t / math.sqrt(df)
    by_hand = 0.5 * (math.sqrt(f**4 + 4 * f**2) - f**2)
    assert DARFUR.robustness_value(share=share) == pytest.approx(by_hand, abs=1e-8)
    g = f - abs(stats.t.ppf(0.025, df - 1)) / math.sqrt(df - 1)
    by_hand = 0.5 * (math.sqrt(g**4 + 4 * g**2) - g**2)
    found = DARFUR.robustness_value(share=share, alpha=0.05)
    assert found == pytest.approx(by_hand, abs=1e-8)
    assert DARFUR.partial_r2 == pytest.approx(t**2 / (t**2 + df), abs=1e-8)


def test_a_confounder_of_the_robustness_value_takes_estimate_or_significance():
    r = DARFUR.robustness_value()
    assert float(DARFUR.adjusted_estimate(r, r)) == pytest.approx(0.0, abs=1e-12)
    r = DARFUR.robustness_value(alpha=0.05)
    t = DARFUR.adjusted_estimate(r, r) / DARFUR.adjusted_se(r, r)
    assert float(t) == pytest.approx(stats.t.ppf(0.975, 782), rel=1e-9)
    turned = LinearOmission(-DARFUR.estimate, DARFUR.se, DARFUR.freedom)
    assert turned.adjusted_estimate(0.1, 0.2) == -DARFUR.adjusted_estimate(0.1, 0.2)


def test_weak_and_overwhelming_effects():
    assert LinearOmission(0.01, 1.0, 50).robustness_value(alpha=0.05) == 0.0
    strong = LinearOmission(100.0, 1.0, 20)
    f2, needed2 = 100.0**2 / 20, stats.t.ppf(0.975, 19) ** 2 / 19
    expected = (f2 - needed2) / (1 + f2)
    assert strong.robustness_value(alpha=0.05) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_partially_linear_case_of_the_scale():
    rng = np.random.default_rng(2)
    n = 200
    x = rng.normal(size=n)
    dose = 0.5 * x + rng.normal(size=n)
    y = 0.4 * dose + x + rng.normal(size=n)
    basis = np.column_stack([dose, np.ones(n), x])
    coefficients, rss, *_ = np.linalg.lstsq(basis, y, rcond=None)
    left = dose - basis[:, 1:] @ np.linalg.lstsq(basis[:, 1:], dose, rcond=None)[0]
    se = math.sqrt(rss[0] / (n - 3) / np.sum(left**2))
    representer = left / np.mean(left**2)
    scale = math.sqrt(rss[0] / n * np.mean(representer**2))
    linear = LinearOmission(coefficients[0], se, n - 3)
    assert linear.robustness_value() == pytest.approx(
        robustness_value(abs(coefficients[0]) / scale), rel=1e-10
    )


@pytest.mark.parametrize("broken", [(1.0, 0.0, 10), (1.0, 1.0, 1), (math.nan, 1.0, 10)])
def test_impossible_coefficients_are_refused(broken):
    with pytest.raises(OptionError, match="standard error above 0"):
        LinearOmission(*broken)
