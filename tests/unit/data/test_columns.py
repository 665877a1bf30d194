"""Columns of a frame: their names, and whether they hold numbers or levels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import (
    ColumnTypeError,
    DataError,
    DuplicateColumnError,
    UnknownColumnError,
)

N = 20  # rows of the frame


def test_unknown_columns(frame, read_design):
    for formula in ("z ~ treat | x1", "y ~ z | x1", "y ~ treat | z", "np.log(z) ~ treat | x1"):
        with pytest.raises(UnknownColumnError, match="no column 'z'"):
            read_design(frame, formula)


def test_duplicate_columns(frame, read_design):
    with pytest.raises(DuplicateColumnError, match="more than once: 'x1'"):
        CausalStoNet.from_formula("y ~ treat | .", pd.concat([frame, frame[["x1"]]], axis=1))
    mixed = pd.DataFrame({1: np.arange(4.0), "1": 1.0, "y": np.arange(4.0), "t": [0, 1, 0, 1]})
    with pytest.raises(DuplicateColumnError, match="'1'"):
        read_design(mixed, "y ~ t | .")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pd.Series(["a", 1] * (N // 2), dtype=object), "objects of type 'int', 'str'"),
        (pd.Series([{}, []] * (N // 2), dtype=object), "objects of type 'dict', 'list'"),
        (pd.Series([1, 2] * (N // 2), dtype=object), "objects of type 'int'.*to_numeric"),
        (pd.Series(pd.date_range("2020-01-01", periods=N)), "holds dates.*days since the first"),
        (pd.Series(pd.to_timedelta(np.arange(N), unit="D")), "holds durations"),
        (pd.Series(np.arange(N) * 1j), "neither numeric nor categorical"),
        (pd.Series([f"id {i}" for i in range(N)]), "identifier"),
    ],
)
def test_columns_without_levels(values, says, frame, read_design):
    with pytest.raises(ColumnTypeError, match=f"'bad'.*{says}"):
        read_design(frame.assign(bad=values.to_numpy()))


def test_data_must_be_a_frame(frame, read_design):
    with pytest.raises(DataError, match=r"must be a frame of pandas or polars.*; got list"):
        CausalStoNet.from_formula("y ~ treat | .", frame.to_dict("records"))
    nested = frame.set_axis(pd.MultiIndex.from_product([["top"], frame.columns]), axis=1)
    with pytest.raises(DataError, match="MultiIndex"):
        read_design(nested)


def test_constant_covariates_are_legal(frame, read_design):
    design = read_design(frame.assign(one=1.0, off=False))
    assert design.covariates[-2:] == ("one", "off[T.True]")


def test_huge_finite_values_are_legal(frame, read_design):
    """Their sum overflows, which is no reason to call them infinite."""
    big = np.finfo(float).max
    np.testing.assert_array_equal(read_design(frame.assign(x1=big)).X[:, 0], big)
