"""Units of an outcome, a dose or a mediator: there and back."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.data.units import Units, careful_moments, weighted_moments


def test_gaussian_outcome_goes_there_and_back():
    y = np.random.default_rng(0).normal(100, 5, size=80)
    units = Units.of(y, "gaussian")
    z = units.standardise(y)
    assert z.mean() == pytest.approx(0, abs=1e-13)
    assert z.std() == pytest.approx(1)
    np.testing.assert_allclose(units.restore(z), y, rtol=1e-14)


def test_binary_outcome_stays_as_it_is():
    y = np.array([0.0, 1.0, 1.0])
    units = Units.of(y, "binomial")
    np.testing.assert_array_equal(units.standardise(y), y)
    np.testing.assert_array_equal(units.restore(y), y)


def test_counts_are_in_units_of_their_mean():
    y, weights = np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 1.0])
    units = Units.of(y, "poisson", weights)
    assert (units.center, units.scale) == (0.0, 7 / 4)
    np.testing.assert_allclose(units.restore(units.standardise(y)), y, rtol=1e-14)


def test_units_are_those_of_repeated_rows():
    y = np.random.default_rng(1).normal(100, 5, size=50)
    times = np.random.default_rng(2).integers(0, 3, size=50)
    weighted = Units.of(y, "gaussian", times.astype(float))
    repeated = Units.of(np.repeat(y, times), "gaussian")
    assert weighted.center == pytest.approx(repeated.center, rel=1e-14)
    assert weighted.scale == pytest.approx(repeated.scale, rel=1e-13)


@pytest.mark.parametrize("power", [-990, -400, 400, 990])
def test_units_of_extreme_numbers(power):
    y = np.random.default_rng(3).normal(3, 5, size=50)
    plain, far = Units.of(y, "gaussian"), Units.of(np.ldexp(y, power), "gaussian")
    assert (far.center, far.scale) == (
        np.ldexp(plain.center, power),
        np.ldexp(plain.scale, power),
    )
    np.testing.assert_array_equal(far.standardise(np.ldexp(y, power)), plain.standardise(y))


def test_ordinary_numbers_are_looked_at_as_they_are():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 4)) * [1, 1e-80, 1e80, 1] + [0, 0, 0, 2e4]
    for weights in (None, rng.uniform(size=80)):
        for ours, plain in zip(
            careful_moments(x, weights), weighted_moments(x, weights), strict=True
        ):
            np.testing.assert_array_equal(ours, plain)
