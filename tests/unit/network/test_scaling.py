"""Standardisation of covariates."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.network.scaling import column_scaling


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("p", [1, 511, 512, 513, 1100])
def test_columns_get_mean_zero_and_variance_one(dtype, order, p):
    rng = np.random.default_rng(p)
    X = np.asarray(rng.normal(3, 2, size=(50, p)), dtype=dtype, order=order)
    scaling = column_scaling(X, limit=6.0)
    Z = (X.astype(np.float64) - scaling.center) * scaling.inverse_scale
    # Sums of 50 terms of order one in float64.
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=50 * np.finfo(float).eps)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=50 * np.finfo(float).eps)


@pytest.mark.parametrize("level", [0.0, 1.0, -3.3, 1e15, 1e-300])
def test_constant_columns_become_zero(level):
    X = np.full((37, 2), level)
    X[:, 1] = np.arange(37)
    scaling = column_scaling(X, limit=6.0)
    assert scaling.inverse_scale[0] == 0
    assert scaling.inverse_scale[1] > 0


def test_small_variation_on_a_high_level_counts():
    X = 1e6 + np.array([[0.0], [1e-3], [2e-3]])
    scaling = column_scaling(X, limit=6.0)
    Z = (X - scaling.center) * scaling.inverse_scale
    # Spacing of doubles near 1e6 is 1.2e-10: a relative error of 1e-7 in the differences.
    np.testing.assert_allclose(Z[:, 0], np.array([-1, 0, 1]) * np.sqrt(1.5), atol=1e-6)


def test_float32_columns_are_summed_in_double():
    X = np.full((10_000, 1), 1e4, np.float32)
    X[::2] += np.float32(0.5)
    scaling = column_scaling(X, limit=6.0)
    assert scaling.center[0] == pytest.approx(1e4 + 0.25, rel=1e-12)
    assert scaling.inverse_scale[0] == pytest.approx(4.0, rel=1e-9)


def test_one_wild_value_does_not_set_the_scale():
    x = np.random.default_rng(0).normal(size=(1000, 1))
    wild = x.copy()
    wild[3] = 1e6
    tame, scaling = column_scaling(x, 6.0), column_scaling(wild, 6.0)
    # The value is brought in to 10 robust standard deviations, which adds 100/n to a variance of 1.
    ratio = tame.inverse_scale[0] / scaling.inverse_scale[0]
    assert 1 <= ratio < 1.1
    assert abs(scaling.center[0] - tame.center[0]) < 0.02


def test_a_rare_dummy_keeps_its_scale():
    x = np.zeros((1000, 1))
    x[:4] = 1.0
    scaling = column_scaling(x, 6.0)
    assert 1 / scaling.inverse_scale[0] == pytest.approx(x.std())


def test_weighted_moments_are_those_of_repeated_rows():
    x = np.random.default_rng(1).normal(size=(50, 3))
    times = np.random.default_rng(2).integers(0, 3, size=50)
    weighted = column_scaling(x, 6.0, times.astype(float))
    repeated = column_scaling(np.repeat(x, times, axis=0), 6.0)
    np.testing.assert_allclose(weighted.center, repeated.center, rtol=0, atol=1e-14)
    np.testing.assert_allclose(weighted.inverse_scale, repeated.inverse_scale, rtol=1e-13)
