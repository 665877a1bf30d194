"""The joint law of the mediators, against scipy's densities and brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from cstonet.analyses.mediation.law import DRAWS, MediatorLaw

COVARIANCE = np.array([[0.5, 0.2, 0.1], [0.2, 0.4, 0.15], [0.1, 0.15, 0.6]])
ROWS = 20_000


@pytest.fixture(scope="module")
def gaussian():
    rng = np.random.default_rng(1)
    means = rng.normal(size=(ROWS, 3))
    values = means + rng.multivariate_normal(np.zeros(3), COVARIANCE, ROWS)
    return values, means, MediatorLaw.fit(values, means, np.ones(ROWS), np.zeros(3, bool), rng)


@pytest.fixture(scope="module")
def mixed():
    """Two binary mediators, the second dependent on the first, and a gaussian one on both."""
    rng = np.random.default_rng(2)
    probabilities = expit(rng.normal(size=(ROWS, 2)))
    first = rng.binomial(1, probabilities[:, 0])
    shifted = np.log(probabilities[:, 1] / (1 - probabilities[:, 1]))
    second = rng.binomial(1, expit(shifted + 0.8 * (first - probabilities[:, 0])))
    mean = rng.normal(size=ROWS)
    third = mean + 0.5 * (first - probabilities[:, 0]) + 0.6 * rng.normal(size=ROWS)
    values = np.column_stack([third, first, second]).astype(float)
    means = np.column_stack([mean, probabilities])
    binary = np.array([False, True, True])
    return values, means, MediatorLaw.fit(values, means, np.ones(ROWS), binary, rng)


def residual_covariance(law):
    factor = np.eye(len(law.variance)) - law.shifts
    return np.linalg.inv(factor.T @ (factor / law.variance[:, None]))


def test_gaussian_law_is_the_residual_covariance(gaussian):
    values, means, law = gaussian
    residuals = values - means
    expected = residuals.T @ residuals / ROWS
    np.testing.assert_allclose(residual_covariance(law), expected, rtol=1e-10)
    # A covariance of ROWS rows has a standard error below 0.6 √2 / √ROWS.
    assert np.abs(expected - COVARIANCE).max() < 4 * 0.6 * np.sqrt(2 / ROWS)


def test_gaussian_density(gaussian):
    values, means, law = gaussian
    normal = multivariate_normal(cov=residual_covariance(law))
    other = means + 0.3
    ratio = law.log_density(values, other) - law.log_density(values, means)
    expected = normal.logpdf(values - other) - normal.logpdf(values - means)
    np.testing.assert_allclose(ratio, expected, atol=1e-9)


def test_draws_have_mean_and_variance(gaussian):
    _, means, law = gaussian
    drawn = law.draw(means[:5])
    assert drawn.shape == (5, DRAWS, 3)
    np.testing.assert_allclose(drawn.mean(axis=1), means[:5], atol=1e-12)
    # The first in the order has innovations only, scaled to variance one.
    np.testing.assert_allclose(drawn[:, :, 0].var(axis=1), law.variance[0], rtol=1e-12)


def test_gaussian_own_over_conditional(gaussian):
    values, means, law = gaussian
    covariance = residual_covariance(law)
    own = means[:, 1] + 0.4
    others = [0, 2]
    slope = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, 1])
    center = means[:, 1] + (values - means)[:, others] @ slope
    spread = covariance[1, 1] - covariance[1, others] @ slope
    expected = norm.pdf(values[:, 1], own, np.sqrt(covariance[1, 1])) / norm.pdf(
        values[:, 1], center, np.sqrt(spread)
    )
    found = law.own_over_conditional(1, values, own, means)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_binary_shifts_are_found(mixed):
    _, _, law = mixed
    # Standard errors: 1/√(n p(1-p) Var) is below 0.05, and 0.6/√(n 0.2) below 0.01.
    assert law.shifts[2, 1] == pytest.approx(0.8, abs=0.2)
    assert law.shifts[0, 1] == pytest.approx(0.5, abs=0.04)
    assert law.shifts[0, 2] == pytest.approx(0.0, abs=0.04)
    assert law.shifts[1].tolist() == [0, 0, 0]


def test_binary_probabilities_sum_to_one(mixed):
    values, means, law = mixed
    rows, total = slice(0, 50), 0.0
    for first, second in product((0.0, 1.0), repeat=2):
        settings = values[rows].copy()
        settings[:, 1:] = first, second
        shift = (settings - means[rows])[:, 1:] @ law.shifts[0, 1:]
        gaussian = -0.5 * (settings[:, 0] - means[rows, 0] - shift) ** 2 / law.variance[0]
        total += np.exp(law.log_density(settings, means[rows]) - gaussian)
    np.testing.assert_allclose(total, 1.0, rtol=1e-10)


def test_binary_own_over_conditional(mixed):
    values, means, law = mixed
    rows = slice(0, 50)
    densities = []
    for value in (0.0, 1.0):
        settings = values[rows].copy()
        settings[:, 1] = value
        densities.append(np.exp(law.log_density(settings, means[rows])))
    taken = values[rows, 1] == 1
    conditional = np.where(taken, densities[1], densities[0]) / (densities[0] + densities[1])
    own = np.full(50, 0.3)
    found = law.own_over_conditional(1, values[rows], own, means[rows])
    np.testing.assert_allclose(found, np.where(taken, 0.3, 0.7) / conditional, rtol=1e-10)


def test_binary_draws_have_their_probabilities(mixed):
    _, means, law = mixed
    drawn = law.draw(means[:200])
    assert set(np.unique(drawn[:, :, 1])) <= {0.0, 1.0}
    # Evenly spaced uniform numbers: the share is off by at most half a step.
    assert np.abs(drawn[:, :, 1].mean(axis=1) - means[:200, 1]).max() <= 0.5 / DRAWS + 1e-12


def test_weights_count_like_repeated_rows(mixed):
    values, means, _ = mixed
    values, means, binary = values[:500], means[:500], np.array([False, True, True])
    weights = np.arange(500) % 3 + 1.0
    rows = np.repeat(np.arange(500), weights.astype(int))
    one = MediatorLaw.fit(values, means, weights, binary, np.random.default_rng(0))
    ones = np.ones(len(rows))
    other = MediatorLaw.fit(values[rows], means[rows], ones, binary, np.random.default_rng(0))
    np.testing.assert_allclose(one.shifts, other.shifts, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-10)


def test_separated_classes_stay_finite():
    rng = np.random.default_rng(3)
    first = rng.binomial(1, 0.5, 200).astype(float)
    values = np.column_stack([first, first])
    law = MediatorLaw.fit(values, np.full((200, 2), 0.5), np.ones(200), np.ones(2, bool), rng)
    assert np.isfinite(law.shifts).all()
    assert law.shifts[1, 0] > 1
