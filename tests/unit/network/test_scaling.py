"""Standardisation of covariates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cstonet.network.moments import robust_bounds
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


@pytest.fixture
def in_many_parts(monkeypatch):
    """Blocks so small that every matrix here has several."""
    monkeypatch.setattr("cstonet.network.moments._AT_ONCE", 300)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_of_parts_are_merged(in_many_parts, order, weighted):
    rng = np.random.default_rng(2)
    X = np.asarray(rng.normal(100, 3, size=(200, 7)), order=order)
    X[5, 3] = 1e5  # brought in
    weights = rng.integers(0, 3, size=200).astype(float) if weighted else None
    scaling = column_scaling(X, 6.0, weights)
    tame = X.copy()
    used = np.ones(200) if weights is None else weights
    low, high = robust_bounds(X[used > 0][:, 3:4])
    tame[:, 3] = np.clip(X[:, 3], low, high)
    mean = np.average(tame, axis=0, weights=used)
    spread = np.sqrt(np.average((tame - mean) ** 2, axis=0, weights=used))
    # Sums of 200 terms in float64, on a level of 30 standard deviations.
    np.testing.assert_allclose(scaling.center, mean, rtol=200 * np.finfo(float).eps)
    np.testing.assert_allclose(1 / scaling.inverse_scale, spread, rtol=6000 * np.finfo(float).eps)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.csr_array, sparse.coo_matrix])
def test_sparse_columns_are_scaled_as_dense_ones(in_many_parts, kind, weighted):
    rng = np.random.default_rng(3)
    X = rng.normal(2, 1, size=(150, 9)) * (rng.random((150, 9)) < np.linspace(0, 1, 9))
    X[:, 8] += 5  # no zeros at all
    X[2, 7:] = 1e4  # a wild value among many others, brought in
    X[:2, 1] = 30.0  # rare values, left as they are
    weights = rng.integers(0, 3, size=150).astype(float) if weighted else None
    dense, found = column_scaling(X, 6.0, weights), column_scaling(kind(X), 6.0, weights)
    tolerance = 150 * np.finfo(float).eps
    np.testing.assert_allclose(found.center, dense.center, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.inverse_scale, dense.inverse_scale, rtol=100 * tolerance)
    # And the kernel reads the same numbers, in any order of rows.
    rows, columns = rng.permutation(150), np.array([8, 0, 3, 1, 7])
    actual = dense.dataset(kind(X), 0).gather(rows, columns)
    expected = dense.dataset(X, 0).gather(rows, columns)
    np.testing.assert_array_equal(actual, expected)


def test_entries_listed_twice_are_added():
    X = sparse.csc_array(
        (np.array([1.0, 2.0, 4.0]), np.array([3, 1, 3]), np.array([0, 3])), shape=(5, 1)
    )
    scaling = column_scaling(X, 6.0)
    assert scaling.center[0] == pytest.approx(7 / 5)
    assert X.nnz == 3  # the caller's matrix is left alone


def columns_of_all_kinds(rows: int = 120) -> np.ndarray:
    """Make ordinary, wild, rare, sparse and two-valued columns, in multiples of 2^-10."""
    rng = np.random.default_rng(8)
    X = np.round(rng.normal(1, 2, size=(rows, 5)) * 2**10) / 2**10
    X[3, 1] = 1e4
    X[:, 2] = np.arange(rows) < 4
    X[:, 3] *= rng.random(rows) < 0.3
    X[:, 4] = np.resize([2.0, 5.0, 5.0], rows)
    return X


@pytest.mark.parametrize("power", [-990, -520, -301, 301, 510, 990])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csc_array])
def test_powers_of_two_change_no_digit(in_many_parts, kind, weighted, power):
    X = columns_of_all_kinds()
    weights = np.random.default_rng(3).integers(0, 3, size=len(X)) * 1.0 if weighted else None
    plain = column_scaling(kind(X), 6.0, weights)
    far = column_scaling(kind(np.ldexp(X, power)), 6.0, weights)
    np.testing.assert_array_equal(far.center, np.ldexp(plain.center, power))
    np.testing.assert_array_equal(far.inverse_scale, np.ldexp(plain.inverse_scale, -power))
    # Beside ordinary columns, too, which stay as they are.
    X[:, 1:] = np.ldexp(X[:, 1:], power)
    mixed = column_scaling(kind(X), 6.0, weights)
    assert mixed.center[0] == plain.center[0]
    np.testing.assert_array_equal(mixed.inverse_scale[1:], far.inverse_scale[1:])
    rows, columns = np.arange(len(X)), np.arange(X.shape[1])
    expected = plain.dataset(columns_of_all_kinds(), 0).gather(rows, columns)
    np.testing.assert_array_equal(mixed.dataset(kind(X), 0).gather(rows, columns), expected)


@pytest.mark.parametrize("power", [0, 700, -700])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_a_high_level_costs_no_digit(in_many_parts, kind, power):
    """With a mean that the data can represent, x and 2^40 + x are standardised to the same bits."""
    half = np.round(np.random.default_rng(4).normal(size=(60, 2)) * 2**10) / 2**10
    X = np.vstack([half, -half])
    plain, high = column_scaling(X, 6.0), column_scaling(kind(np.ldexp(2.0**40 + X, power)), 6.0)
    np.testing.assert_array_equal(high.center, np.ldexp(2.0**40, power))
    np.testing.assert_array_equal(high.inverse_scale, np.ldexp(plain.inverse_scale, -power))


def test_what_rounding_leaves_is_constant():
    third = np.where(np.arange(200) % 2, 0.1 * 3, 0.3)  # differ in the last digit
    X = np.column_stack([third, 1e12 * third, 1e12 + (np.arange(200) % 2), 5e-324 * (third > 0.3)])
    scaling = column_scaling(X, 6.0)
    np.testing.assert_array_equal(scaling.constant, [0, 1, 3])
    assert scaling.inverse_scale[2] == 2.0
    assert np.isfinite(scaling.inverse_scale).all()
