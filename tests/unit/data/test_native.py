"""Other storages of the same values: translated without a change, or left to be refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.data.native import doubles, inferred, native, native_frame
from cstonet.errors import ColumnTypeError, DataError

LARGE = [2**53, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (pd.Series(np.array([1, 2], dtype=">i8")), "int64"),
        (pd.Series(np.array([0.5, 2], dtype=">f4")), "float32"),
        (pd.Series(np.array([0.5, 2], dtype="g")), "float64"),
        (pd.Series([1, 0]).astype("Sparse[int64]"), "int64"),
        (pd.Series([True, None]).astype("bool[pyarrow]"), "boolean"),
        (pd.Series(["a", "b"]), "str"),
    ],
)
def test_values_stay_and_dtypes_become_ordinary(values, dtype):
    assert native(values).dtype == dtype
    assert native(values).astype(object).equals(values.astype(object))


def test_long_doubles_that_would_become_equal_or_infinite_stay():
    least = np.finfo(np.longdouble).eps
    if least == np.finfo(np.float64).eps:
        pytest.skip("long doubles are doubles here")
    for few in ([1, 1 + least], [1, np.longdouble(10) ** 4000]):
        values = pd.Series(np.array(few, dtype=np.longdouble))
        assert native(values) is values


def test_ordinary_frames_are_left_alone():
    frame = pd.DataFrame({"a": [1.0], "b": ["x"], "c": pd.arrays.SparseArray([0.0])})
    assert native_frame(frame) is frame


def test_text_that_is_no_unicode_is_named():
    with pytest.raises(ColumnTypeError, match="The outcome 'y' holds text that is no Unicode"):
        inferred(pd.Series(["\ud800"], dtype=object), "The outcome 'y'")


@pytest.mark.parametrize("values", [LARGE, [0, *LARGE], [2**60, 2**60 + 1]])
def test_rounding_that_merges_values_is_refused(values):
    with pytest.raises(DataError, match=r"y holds numbers that are too close.*Subtract a constant"):
        doubles(pd.Series(values), "y")


def test_rounding_that_hardly_matters_is_none():
    nanoseconds = 1_700_000_000_000_000_000 + np.arange(0, 10**15, 10**12)
    np.testing.assert_array_equal(doubles(pd.Series(nanoseconds), "y"), nanoseconds.astype(float))
    np.testing.assert_array_equal(doubles(pd.Series([2**60] * 3), "y"), [2.0**60] * 3)


@pytest.mark.parametrize("dtype", ["int64", ">i8", "Int64", "category", "int64[pyarrow]"])
def test_levels_beyond_double_precision_are_apart(dtype):
    rng = np.random.default_rng(1)
    treat = rng.permutation(np.resize(LARGE, 60))
    frame = pd.DataFrame({"y": rng.normal(size=60), "x": rng.normal(size=60)})
    frame["treat"] = pd.Series(treat.astype(dtype) if dtype == ">i8" else treat)
    if dtype != ">i8":
        frame["treat"] = frame["treat"].astype(dtype)
    design = CausalStoNet.from_formula(
        "y ~ treat | x", frame, treatment="multilevel", reference=2**53 + 1
    ).design
    assert design.treatment.levels == (2**53 + 1, 2**53, 2**53 + 2)
    assert [design.treatment.levels[code] for code in design.treatment.codes] == treat.tolist()
