"""The effect along a covariate, against least squares written out, and against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from cstonet.estimators.effect_curve import effect_curve, smooth, spline_basis
from cstonet.estimators.pseudo_outcomes import effect_scores

KNOTS = np.array([-1.0, 0.0, 0.5, 2.0])
AT = np.array([-2.0, 0.0, 0.3, 2.5])


def test_basis_is_a_natural_cubic_spline():
    grid = np.linspace(-3, 4, 1401)
    basis = spline_basis(grid, KNOTS)
    assert basis.shape == (1401, 4)
    step = grid[1] - grid[0]
    second = np.diff(basis, n=2, axis=0) / step**2
    middle = grid[1:-1]
    outside = (middle < KNOTS[0] - step) | (middle > KNOTS[-1] + step)
    # Second differences of numbers up to 10 have rounding errors of 1e-15 x 10 x 4 / step².
    np.testing.assert_allclose(second[outside], 0.0, atol=1e-8)
    # They bend without a jump: the second derivative has slopes of at most 6/(t_K - t_j)·2.
    assert np.abs(np.diff(second, axis=0)).max() < 20 * step
    # Four coefficients describe every line, and no column is a combination of the others.
    assert np.linalg.matrix_rank(basis) == 4
    line = np.linalg.lstsq(basis, 2 - 3 * grid, rcond=None)[1]
    assert line.sum() < 1e-18


@pytest.mark.parametrize("weighted", [False, True])
def test_is_least_squares_of_the_scores(draw_nuisances, weighted):
    X, nuisances = draw_nuisances(400, np.random.default_rng(3), weighted=weighted)
    values = X[:, 0]
    effects = effect_curve(nuisances, values, AT, (1, 0), clip=0.01)
    knots = np.quantile(values, [0.05, 0.35, 0.65, 0.95])
    scores, weights = effect_scores(nuisances, (1, 0), 0.01), nuisances.unit_weights
    fit = sm.WLS(scores, spline_basis(values, knots), weights=weights).fit(cov_type="HC0")
    at = spline_basis(AT, knots)
    np.testing.assert_allclose(effects.estimates, at @ fit.params, rtol=1e-9)
    np.testing.assert_allclose(effects.covariance, at @ fit.cov_params() @ at.T, rtol=1e-7)
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0.0, atol=1e-10)


def test_clusters_widen_it(draw_nuisances):
    """Every unit twice, as a cluster: the errors are those of the units once, but for G/(G - 1)."""
    X, once = draw_nuisances(200, np.random.default_rng(4))
    twice = replace(
        once.among(np.ones(200, dtype=bool)),
        y=np.tile(once.y, 2),
        treatment=np.tile(once.treatment, 2),
        mu=np.tile(once.mu, (2, 1)),
        propensity=np.tile(once.propensity, (2, 1)),
        fold=np.tile(once.fold, 2),
        clusters=np.tile(np.arange(200), 2),
    )
    single = effect_curve(once, X[:, 0], AT, (1, 0), clip=0.01)
    double = effect_curve(twice, np.tile(X[:, 0], 2), AT, (1, 0), clip=0.01)
    # Quantiles of doubled values move a little, and the knots with them.
    np.testing.assert_allclose(double.estimates, single.estimates, atol=0.2)
    np.testing.assert_allclose(double.standard_errors, single.standard_errors, rtol=0.1)


def test_true_line(draw_nuisances):
    """τ(x) = 2 + x1 is a spline, so that errors over standard errors are about normal."""
    X, nuisances = draw_nuisances(4000, np.random.default_rng(5))
    effects = effect_curve(nuisances, X[:, 0], np.array([-1.0, 0.0, 1.0]), (1, 0), clip=0.01)
    z = (effects.estimates - [1.0, 2.0, 3.0]) / effects.standard_errors
    assert np.abs(z).max() < 3.5
    assert effects.standard_errors.max() < 0.2


def test_smooth_is_exact_for_lines():
    rng = np.random.default_rng(6)
    values, weights = rng.normal(size=100), rng.uniform(0, 2, 100)
    np.testing.assert_allclose(smooth(values, 1 + 2 * values, weights, AT), 1 + 2 * AT, atol=1e-10)
    few = np.repeat([0.0, 1.0], [97, 3])  # all knots are one
    np.testing.assert_allclose(smooth(few, 3 * few, np.ones(100), np.array([1.0])), 3.0)
