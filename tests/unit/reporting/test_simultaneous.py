"""Simultaneous intervals: the quantile of the largest of several estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from cstonet.reporting.simultaneous import largest_quantile, largest_quantile_by_influence


def largest_by_covariance(influence, alpha, seed):
    return largest_quantile(influence.T @ influence, None, alpha, seed)


both_ways = pytest.mark.parametrize(
    "largest", [largest_quantile_by_influence, largest_by_covariance]
)


@both_ways
def test_largest_of_independent_estimates_has_the_known_quantile(largest):
    rng = np.random.default_rng(0)
    influence = np.linalg.qr(rng.normal(size=(1000, 4)))[0] * [1, 10, 0.1, 3]
    exact = -ndtri((1 - 0.95 ** (1 / 4)) / 2)  # Šidák
    # Standard error of a quantile from 20 000 draws, its density being 4 · 2φ(q) · 0.95^(3/4).
    density = 8 * np.exp(-(exact**2) / 2) / np.sqrt(2 * np.pi) * 0.95**0.75
    error = np.sqrt(0.05 * 0.95 / 20_000) / density
    assert abs(largest(influence, 0.05, seed=1) - exact) < 4 * error


@both_ways
def test_one_estimate_or_copies_of_it_need_no_correction(largest):
    influence = np.random.default_rng(0).normal(size=(100, 1))
    single = largest(influence, 0.05, seed=0)
    assert single == pytest.approx(1.959964, abs=1e-6)
    error = np.sqrt(0.05 * 0.95 / 20_000) / 0.1169  # 2φ(1.96)
    copies = largest(np.hstack([influence, -2 * influence]), 0.05, seed=0)
    assert abs(copies - single) < 4 * error


class TestLargestStudent:
    def test_independent_estimates(self):
        """Of many degrees of freedom: P(max |z| < c) = (2 Φ(c) - 1)^k."""
        exact = stats.norm.ppf((1 + 0.95 ** (1 / 3)) / 2)
        density = 3 * 0.95 ** (2 / 3) * 2 * stats.norm.pdf(exact)
        error = np.sqrt(0.05 * 0.95 / 20_000) / density
        found = largest_quantile(np.diag([1.0, 4.0, 9.0]), np.full(3, 1e7), 0.05, seed=1)
        assert abs(found - exact) < 4 * error

    def test_copies_are_one_estimate(self):
        """All k estimates equal: the quantile of a single t with the fewest degrees of freedom."""
        exact = stats.t.ppf(0.975, 8)
        error = np.sqrt(0.05 * 0.95 / 20_000) / (2 * stats.t.pdf(exact, 8))
        found = largest_quantile(np.ones((3, 3)), np.array([20.0, 8, 30]), 0.05, seed=1)
        assert abs(found - exact) < 4 * error

    def test_endless_degrees_of_freedom_are_those_of_a_normal(self):
        covariance = np.diag([1.0, 4.0, 9.0])
        found = largest_quantile(covariance, np.full(3, np.inf), 0.05, seed=1)
        assert found == largest_quantile(covariance, None, 0.05, seed=1)

    def test_one_alone(self):
        found = largest_quantile(np.array([[2.0]]), np.array([7.0]), 0.05, seed=1)
        np.testing.assert_allclose(found, stats.t.ppf(0.975, 7))


def test_infinite_degrees_of_freedom_are_normal():
    """As the means have where only an estimand that leads them rests on few units."""
    covariance = np.diag([1.0, 4.0])
    many = largest_quantile(covariance, np.full(2, np.inf), 0.05, seed=1)
    assert many == largest_quantile(covariance, None, 0.05, seed=1)
