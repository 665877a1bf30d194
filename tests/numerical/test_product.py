"""The matrix product of every level: whole tiles, remainders, both orientations."""

from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest
import twins

from cstonet import _core


def compare(rows: int, depth: int, columns: int, *, transpose: bool, seed: int = 0) -> None:
    rng = np.random.default_rng([seed, rows, depth, columns])
    a = rng.normal(size=(depth, rows) if transpose else (rows, depth)).astype(np.float32)
    b = rng.normal(size=(depth, columns)).astype(np.float32)
    left = (a.T if transpose else a).astype(float)
    expected = left @ b
    assert expected.shape == (rows, columns)
    # A sum of `depth` products in float32, each term rounded at most once as a product and once
    # for every later addition: relative to the sum of absolute terms.
    terms = np.abs(left) @ np.abs(b)
    actual = cstonet_seams.multiply(a, b, transpose)
    twins.assert_close(actual, expected, roundings=depth + 1, scale=terms)


@pytest.mark.parametrize("transpose", [False, True])
def test_every_number_of_rows_up_to_two_tiles(transpose: bool, level: str) -> None:
    for rows in range(1, 27):  # tiles have 6 or 12 rows
        compare(rows, 9, 32, transpose=transpose)


@pytest.mark.parametrize("transpose", [False, True])
def test_widths_on_both_sides_of_the_registers(transpose: bool, level: str) -> None:
    for columns in (1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 65):
        compare(13, 5, columns, transpose=transpose)


@pytest.mark.parametrize("transpose", [False, True])
def test_random_shapes(transpose: bool, level: str) -> None:
    rng = np.random.default_rng(8)
    for seed in range(40):
        rows, depth, columns = (int(v) for v in rng.integers(1, 70, size=3))
        compare(rows, depth, columns, transpose=transpose, seed=seed)


def test_the_shapes_of_a_minibatch(level: str) -> None:
    compare(100, 1000, 32, transpose=False)
    compare(1000, 100, 32, transpose=True)


def test_an_empty_sum_is_zero(level: str) -> None:
    """A network all of whose covariates were pruned still has a first layer."""
    empty = np.zeros((5, 0), dtype=np.float32), np.zeros((0, 3), dtype=np.float32)
    assert np.array_equal(cstonet_seams.multiply(*empty, False), np.zeros((5, 3)))


def test_levels_are_named_best_last_and_unknown_ones_refused() -> None:
    assert _core.level() in _core.levels()
    with pytest.raises(ValueError, match="no kernels for level 'v9'"):
        _core.use_level("v9")
