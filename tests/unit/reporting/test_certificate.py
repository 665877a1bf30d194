"""The certificate: its numbers by hand, its text."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from cstonet.reporting.certificate import Certificate

# Truth, estimate, standard error, half the interval.
DRAWS = {
    2: (1.0, 1.1, 0.1, 0.2),
    0: (1.0, 0.7, 0.1, 0.2),
    1: (1.2, 1.2, 0.2, 0.4),
    3: (1.0, 1.1, 0.2, 0.4),
}
ERRORS = np.array([-0.3, 0.0, 0.1, 0.1])


def certificate(estimate=1.5, effects=None, **more):
    return Certificate.of("ATE", DRAWS, estimate=estimate, effects=effects, alpha=0.05, **more)


def test_draws_are_a_table():
    table = certificate().draws
    assert list(table.index) == [0, 1, 2, 3]
    assert list(table["covered"]) == [False, True, True, True]
    np.testing.assert_allclose(table["lower"], [0.5, 0.8, 0.9, 0.7])
    np.testing.assert_allclose(table["upper"], [0.9, 1.6, 1.3, 1.5])


def test_numbers():
    found = certificate()
    assert found.coverage == 0.75
    assert found.coverage_se == pytest.approx(np.sqrt(4 / 6 * 2 / 6 / 6))
    assert found.bias_in_se == pytest.approx(ERRORS.mean() / 0.15)
    assert found.bias_in_se_error == pytest.approx(ERRORS.std(ddof=1) / 2 / 0.15)
    assert found.se_ratio == pytest.approx(0.15 / ERRORS.std(ddof=1))
    assert found.se_ratio_error == pytest.approx(found.se_ratio / np.sqrt(6))


@pytest.mark.parametrize(("covered", "n"), [(0, 5), (3, 5), (94, 100), (5, 5)])
def test_limits_of_the_coverage_are_exact(covered, n):
    draws = {k: (0.0 if k < covered else 9.0, 0.0, 1.0, 2.0) for k in range(n)}
    found = Certificate.of("ATE", draws, estimate=1.0, effects=None, alpha=0.05)
    exact = binomtest(covered, n).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose(found.coverage_interval, [exact.low, exact.high], atol=1e-10)


def test_power_is_that_of_shifted_estimates():
    power = certificate(effects=(0.0, 0.35, -0.35, 1.0)).power
    assert list(power["effect"]) == [0.0, 0.35, -0.35, 1.0]
    # |error + effect| > half: halves are 0.2, 0.4, 0.2, 0.4.
    assert list(power["power"]) == [0.25, 0.5, 0.25 + 0.25, 1.0]
    np.testing.assert_allclose(power["power_se"], np.sqrt([0.1875, 0.25, 0.25, 0]) / 2)


@pytest.mark.parametrize("sign", [1, -1])
def test_smallest_effect(sign):
    found = certificate(estimate=sign)
    needed = np.sort(np.array([0.2, 0.4, 0.2, 0.4]) - sign * ERRORS)
    assert found.smallest_effect == pytest.approx(sign * needed[3])  # the fourth of four
    a_little_more = Certificate.of(
        "ATE", DRAWS, estimate=sign, effects=(found.smallest_effect * (1 + 1e-9),), alpha=0.05
    )
    assert a_little_more.power["power"][0] >= 0.8


def test_effects_by_default_go_in_the_direction_of_the_estimate():
    assert certificate(estimate=-0.2).effects == pytest.approx((0, -0.15, -0.2, -0.3, -0.45, -0.6))


@pytest.mark.parametrize(
    ("covered", "words"),
    [(80, "too short"), (95, "agrees with their level of 95 %"), (100, "longer than they need be")],
)
def test_verdict(covered, words):
    draws = {k: (0.0 if k < covered else 9.0, 0.0, 1.0, 2.0) for k in range(100)}
    verdict = Certificate.of("ATE", draws, estimate=1.0, effects=None, alpha=0.05).verdict
    assert verdict.startswith(f"{covered} of 100 intervals cover the truth (95 % limits")
    assert words in verdict


def test_text(check_golden):
    found = certificate(refused=("OneArmedError: too few.",), notes=("About twins.",))
    text = str(found)
    assert max(map(len, text.splitlines())) == 78
    check_golden("certificate.txt", text)
    assert repr(found).startswith("<Certificate of ATE: coverage 0.750 (MC error 0.192)")
    assert "<table" in found._repr_html_()
