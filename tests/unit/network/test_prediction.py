"""Predictions with one row per unit: averaged, put together, and partly replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from cstonet.network.prediction import RowArrays, averaged, put_together, with_rows


@dataclass(frozen=True, slots=True, eq=False)
class Curves(RowArrays):
    level: NDArray[np.float64]  # (m,)
    curve: NDArray[np.float64]  # (m, 3)


def curves(m: int, seed: int) -> Curves:
    rng = np.random.default_rng(seed)
    return Curves(rng.normal(size=m), rng.normal(size=(m, 3)))


def assert_equal(one: Curves, level: NDArray[np.float64], curve: NDArray[np.float64]) -> None:
    assert type(one) is Curves
    np.testing.assert_allclose(one.level, level, rtol=0, atol=1e-15)
    np.testing.assert_allclose(one.curve, curve, rtol=0, atol=1e-15)


def test_arrays_by_name():
    one = curves(4, 0)
    assert list(one.arrays()) == ["level", "curve"]
    assert one.arrays()["curve"] is one.curve


def test_average_of_several():
    parts = [curves(5, seed) for seed in range(4)]
    assert_equal(averaged(parts), sum(p.level for p in parts) / 4, sum(p.curve for p in parts) / 4)
    assert_equal(averaged(parts[:1]), parts[0].level, parts[0].curve)


def test_weights_differ_from_row_to_row():
    parts = [curves(5, seed) for seed in range(3)]
    weights = np.random.default_rng(9).dirichlet(np.ones(3), size=5)
    assert_equal(
        averaged(parts, weights),
        sum(w * p.level for w, p in zip(weights.T, parts, strict=True)),
        sum(w[:, None] * p.curve for w, p in zip(weights.T, parts, strict=True)),
    )
    equal = averaged(parts, np.full((5, 3), 1 / 3))
    assert_equal(averaged(parts), equal.level, equal.curve)


def test_parts_are_put_where_they_belong():
    whole = curves(6, 0)
    rows = [np.array([4, 1]), np.array([], dtype=np.int64), np.array([0, 5, 2, 3])]
    parts = ((r, Curves(whole.level[r], whole.curve[r])) for r in rows)
    assert_equal(put_together(parts, 6), whole.level, whole.curve)


@pytest.mark.parametrize("rows", [[], [3], [4, 0]])
def test_some_rows_are_replaced_in_a_copy(rows):
    whole, rows = curves(5, 0), np.array(rows, dtype=np.int64)
    before, part = Curves(whole.level.copy(), whole.curve.copy()), curves(len(rows), 1)
    changed = with_rows(whole, rows, part)
    others = np.setdiff1d(np.arange(5), rows)
    np.testing.assert_array_equal(changed.curve[rows], part.curve)
    np.testing.assert_array_equal(changed.level[rows], part.level)
    np.testing.assert_array_equal(changed.curve[others], before.curve[others])
    assert_equal(whole, before.level, before.curve)
