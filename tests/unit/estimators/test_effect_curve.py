"""The splines along which effects are estimated."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.estimators.effect_curve import knots_of, smooth, spline_basis

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
    # They bend without a jump: second derivatives change by no more than their slope times h.
    slopes = np.abs(np.diff(second, axis=0)).max() / step
    assert slopes < 200
    # Coefficients are values at the knots, and four of them describe every line.
    np.testing.assert_allclose(spline_basis(KNOTS, KNOTS), np.eye(4), atol=1e-12)
    line = np.linalg.lstsq(basis, 2 - 3 * grid, rcond=None)[1]
    assert line.sum() < 1e-18


def test_smooth_is_exact_for_lines():
    rng = np.random.default_rng(6)
    values, weights = rng.normal(size=100), rng.uniform(0, 2, 100)
    np.testing.assert_allclose(smooth(values, 1 + 2 * values, weights, AT), 1 + 2 * AT, atol=1e-10)
    few = np.repeat([0.0, 1.0], [97, 3])  # all knots are one
    np.testing.assert_allclose(smooth(few, 3 * few, np.ones(100), np.array([1.0])), 3.0)


def test_knots_are_quantiles_of_units_that_count():
    values = np.arange(101.0)
    weights = np.where(values > 100, 0.0, 1.0)
    np.testing.assert_allclose(
        knots_of(np.append(values, 1e9), np.append(weights, 0.0)), [5, 35, 65, 95]
    )
    few = np.repeat([0.0, 1.0], [97, 3])
    np.testing.assert_array_equal(knots_of(few, np.ones(100)), [0.0, 1.0])


@pytest.mark.parametrize("ones", [35, 65, 95, 5])
def test_knots_of_few_values_are_these(ones):
    """A quantile between them would be a third knot of two values."""
    values = np.repeat([0.0, 1.0], [100 - ones, ones])
    np.testing.assert_array_equal(knots_of(values, np.ones(100)), [0.0, 1.0])
