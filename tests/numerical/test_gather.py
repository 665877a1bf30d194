"""Rows of the covariates: the same bits from every kind of array that holds the same numbers."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cstonet import _core

N, P = 150, 70  # more than one tile of 64 in both directions, and a remainder
EVERYTHING = 2**40


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    """Float64 numbers that float32 holds exactly, far from zero so that centering matters."""
    rng = np.random.default_rng(4)
    return (100 + rng.normal(size=(N, P))).astype(np.float32).astype(np.float64)


@pytest.fixture(scope="module")
def scaling(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.mean(axis=0), 1 / x.std(axis=0)


def variants(x: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    wide = np.zeros((2 * N, 3 * P))
    wide[::2, 1::3] = x
    mapped = np.memmap(folder / "x.bin", dtype=np.float32, mode="w+", shape=(N, P))
    mapped[:] = x
    mapped.flush()
    f_mapped = np.memmap(folder / "f.bin", dtype=float, mode="w+", shape=(N, P), order="F")
    f_mapped[:] = x
    unaligned = np.frombuffer(b"\0" + x.tobytes(), dtype=float, count=x.size, offset=1)
    return {
        "float64 C": np.ascontiguousarray(x),
        "float64 F": np.asfortranarray(x),
        "float32 C": np.ascontiguousarray(x, dtype=np.float32),
        "float32 F": np.asfortranarray(x, dtype=np.float32),
        "slice": wide[::2, 1::3],
        "reversed": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "memmap": np.memmap(folder / "x.bin", dtype=np.float32, mode="r", shape=(N, P)),
        "F memmap": f_mapped,
        "unaligned": unaligned.reshape(N, P),
    }


@pytest.mark.parametrize("pack_bytes", [0, EVERYTHING], ids=["in place", "packed"])
@pytest.mark.parametrize("limit", [np.inf, 1.5])
@pytest.mark.parametrize(
    "columns", [range(P), [3], [69, 0, 5, 5, 64], []], ids=["all", "one", "some", "none"]
)
def test_every_array_gives_the_same_bits(
    x: np.ndarray,
    scaling: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    columns: Sequence[int],
    limit: float,
    pack_bytes: int,
) -> None:
    center, inverse_scale = scaling
    rows = np.array([0, 149, 7, 7, 64, 63, 100])
    subset = np.array(columns, dtype=np.int64)
    standard = np.clip((x - center) * inverse_scale, -limit, limit).astype(np.float32)
    expected = standard[rows][:, subset]
    for name, array in variants(x, tmp_path).items():
        data = _core.Dataset(array, center, inverse_scale, limit, pack_bytes)
        assert (data.rows, data.columns, data.is_packed) == (N, P, pack_bytes > 0)
        actual = data.gather(rows, subset)
        assert actual.dtype == np.float32
        assert np.array_equal(actual.view(np.uint32), expected.view(np.uint32)), name


def test_packing_happens_up_to_the_given_size(x: np.ndarray) -> None:
    size = N * 80 * 4  # rows are padded to 80 floats
    for pack_bytes, packed in ((size, True), (size - 1, False)):
        assert _core.Dataset(x, np.zeros(P), np.ones(P), np.inf, pack_bytes).is_packed == packed


def test_doubles_are_centered_before_they_are_rounded() -> None:
    x = np.array([[1e8 + 1], [1e8 - 1]])
    rows = np.arange(2)
    data = _core.Dataset(x, np.array([1e8]), np.ones(1), np.inf, 0)
    actual = data.gather(rows, np.zeros(1, dtype=np.int64))
    assert actual.ravel().tolist() == [1.0, -1.0]


def test_the_source_is_read_only_and_left_alone(x: np.ndarray) -> None:
    frozen = x.copy()
    frozen.flags.writeable = False
    data = _core.Dataset(frozen, np.zeros(P), np.ones(P), np.inf, 0)
    data.gather(np.arange(N), np.arange(P))
    assert np.array_equal(frozen, x)


def test_the_dataset_keeps_its_arrays_alive() -> None:
    data = _core.Dataset(np.full((300, 300), 7.0), np.zeros(300), np.ones(300), np.inf, 0)
    gc.collect()
    np.full((300, 300), -1.0)  # would take the freed memory
    assert np.all(data.gather(np.arange(300), np.arange(300)) == 7)


@pytest.mark.parametrize(("rows", "columns"), [([N], [0]), ([-1], [0]), ([0], [P]), ([0], [-1])])
def test_what_does_not_exist_is_refused(x: np.ndarray, rows: list[int], columns: list[int]) -> None:
    data = _core.Dataset(x, np.zeros(P), np.ones(P), np.inf, 0)
    with pytest.raises(ValueError, match="does not exist"):
        data.gather(np.array(rows), np.array(columns))


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.complex128, ">f8"])
def test_other_types_are_refused_not_copied(dtype: object) -> None:
    x = np.zeros((2, 2), dtype=dtype)
    with pytest.raises(ValueError, match="float32 or float64"):
        _core.Dataset(x, np.zeros(2), np.ones(2), np.inf, 0)
