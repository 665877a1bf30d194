"""The density of a dose's residuals, and its score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cstonet.estimators.residual_density import ResidualDensity, fit_residual_density

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5
LAWS = {
    "gamma": stats.gamma(4, loc=-2, scale=0.5),
    "student": stats.t(6, scale=np.sqrt(4 / 6)),
    "mixture": None,
}


def draw(law: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if LAWS[law] is None:
        return 0.5 * rng.normal(size=n) + np.sqrt(0.75) * rng.choice([-1, 1], size=n)
    return LAWS[law].rvs(n, random_state=rng)


def test_gaussian_residuals_have_a_linear_score():
    r = np.random.default_rng(0).normal(size=2000)
    fitted = fit_residual_density(r, np.ones(2000))
    assert fitted.gaussian
    points = np.linspace(-4, 4, 9)
    # Score matching of a line is (r - mean) / variance.
    np.testing.assert_allclose(fitted.score(points), (points - r.mean()) / r.var(), rtol=1e-9)
    np.testing.assert_allclose(
        fitted.density(points), stats.norm.pdf(points, r.mean(), r.std()), rtol=1e-6
    )
    normal = ResidualDensity.standard_normal()
    np.testing.assert_allclose(normal.score(points), points)
    np.testing.assert_allclose(normal.density(points), stats.norm.pdf(points), rtol=1e-12)


def test_gaussian_residuals_are_rarely_rejected():
    rng = np.random.default_rng(1)
    rejected = [
        not fit_residual_density(rng.normal(size=500), np.ones(500)).gaussian for _ in range(100)
    ]
    # Twice the level allows for 500 rows being few; four standard deviations for 100 draws.
    assert np.mean(rejected) < 0.02 + FOUR * np.sqrt(0.02 * 0.98 / 100)


@pytest.mark.parametrize("law", LAWS)
def test_other_residuals_obey_steins_identity(law):
    """E[ψ h] = E[h'] for other functions and other draws than the fit's."""
    n = 20_000
    fitted = fit_residual_density(draw(law, n, 0), np.ones(n))
    assert not fitted.gaussian
    r = draw(law, n, 1)
    for h, slope in ((np.tanh, lambda x: 1 / np.cosh(x) ** 2), (np.sin, np.cos)):
        products = fitted.score(r) * h(r) - slope(r)
        assert abs(products.mean()) < FOUR * np.sqrt(2) * products.std() / np.sqrt(n)
    gaussian = r * np.sin(r) - np.cos(r)
    cubic = r**4 - 3 * r**2
    skew = r * r**2 - 2 * r
    z = [abs(p.mean()) / p.std() * np.sqrt(n) for p in (gaussian, cubic, skew)]
    assert max(z) > 2 * FOUR  # the gaussian score does not obey it
    grid = np.linspace(-20, 30, 50_001)
    np.testing.assert_allclose(np.trapezoid(fitted.density(grid), grid), 1, atol=1e-3)


@pytest.mark.parametrize("law", ["gamma", "student"])
def test_density_is_near_the_true_one(law):
    n = 20_000
    fitted = fit_residual_density(draw(law, n, 0), np.ones(n))
    points = np.linspace(-1.5, 2.5, 9)
    truth = LAWS[law].pdf(points)
    gaussian = stats.norm.pdf(points)
    assert abs(fitted.density(points) - truth).max() < 0.3 * abs(gaussian - truth).max()


def test_knots_at_a_dose_that_many_share_stay_apart():
    rng = np.random.default_rng(4)
    dose = np.where(rng.random(2000) < 0.7, 0.0, rng.exponential(size=2000))
    residual = dose - dose.mean() + 1e-6 * rng.normal(size=2000)
    density = fit_residual_density(residual / residual.std(), np.ones(2000))
    assert np.abs(density.scores).max() < 50
    assert np.isfinite(density.density(np.linspace(-3, 3, 7))).all()
