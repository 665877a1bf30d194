"""The variables that arrays and formulas name: shapes and labels, and what is missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import (
    ConstantTreatmentError,
    DataError,
    DuplicateColumnError,
    EmptyDataError,
    LengthMismatchError,
    MissingValuesError,
    OptionError,
)

N = 20  # rows of the frame


# -- arrays ------------------------------------------------------------------------------------


def test_arrays_and_formula_agree(frame, read_design):
    by_formula = read_design(frame)
    by_arrays = CausalStoNet(frame.y, frame.treat, frame[["x1", "x2", "g"]]).design
    np.testing.assert_array_equal(by_arrays.y, by_formula.y)
    np.testing.assert_array_equal(by_arrays.X, by_formula.X)
    assert by_arrays.covariates == by_formula.covariates
    assert (by_arrays.outcome_name, by_arrays.treatment_name) == ("y", "treat")
    assert by_arrays.formula is None
    assert by_arrays.index.equals(frame.index)


def test_plain_arrays_and_lists(frame):
    X = frame[["x1", "x2"]].to_numpy()
    design = CausalStoNet(frame.y.tolist(), frame.treat.tolist(), X.tolist()).design
    assert design.covariates == ("x1", "x2")
    assert (design.outcome_name, design.treatment_name) == ("y", "treat")
    assert design.index.equals(pd.RangeIndex(N))
    np.testing.assert_array_equal(design.X, X)
    named = CausalStoNet(frame.y, frame.treat, X, names=["age", "bmi"]).design
    assert named.covariates == ("age", "bmi")
    assert named.index.equals(frame.index)


def test_columns_of_shape_n_by_1(frame):
    y, treat = frame[["y"]], frame[["treat"]].to_numpy()
    np.testing.assert_array_equal(CausalStoNet(y, treat, frame[["x1"]]).design.y, frame.y)


def test_boolean_and_integer_arrays(frame):
    flags = np.random.default_rng(0).random((N, 3)) > 0.5
    design = CausalStoNet(frame.y, frame.treat, flags).design
    assert design.covariates == ("x1", "x2", "x3")
    np.testing.assert_array_equal(design.X, flags)
    np.testing.assert_array_equal(design.spec.transform(flags), flags)


def test_masked_arrays_show_their_gaps(frame):
    X = np.ma.masked_array(frame[["x1", "x2"]].to_numpy(), mask=False)
    X[3, 1] = np.ma.masked
    with pytest.raises(MissingValuesError, match=r"x2 \(1\)"):
        CausalStoNet(frame.y, frame.treat, X)
    assert CausalStoNet(frame.y, frame.treat, X, missing="drop").design.n_dropped == 1


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"y": pd.Series(np.ones(3))}, LengthMismatchError, "y has 3 values"),
        ({"y": np.ones(3)}, LengthMismatchError, "y has 3 values but there are 20 rows"),
        ({"treat": np.ones(3)}, LengthMismatchError, "treat has 3 values"),
        ({"weights": np.ones(3)}, LengthMismatchError, "weights has 3 values"),
        ({"weights": "w"}, OptionError, "needs a formula"),
        ({"X": np.ones(N)}, DataError, r"shape \(n, p\).*\(20,\)"),
        ({"X": np.ones((N, 2, 2))}, DataError, r"shape \(n, p\)"),
        ({"X": np.ones((0, 2))}, EmptyDataError, "0 rows, 2 columns"),
        ({"X": np.ones((N, 0))}, EmptyDataError, "20 rows, 0 columns"),
        ({"names": ["only one"]}, LengthMismatchError, "2 columns where 1 are expected"),
        ({"names": ["twice", "twice"]}, DuplicateColumnError, "'twice'"),
        ({"y": np.full(N, np.nan)}, MissingValuesError, r"y \(20\)"),
        ({"treat": np.zeros(N)}, ConstantTreatmentError, "'treat' is 0"),
    ],
)
def test_bad_arrays(change, error, says, frame):
    good = {
        "y": frame.y.to_numpy(),
        "treat": frame.treat.to_numpy(),
        "X": frame[["x1", "x2"]].to_numpy(),
    }
    before = {name: value.copy() for name, value in good.items()}
    with pytest.raises(error, match=says):
        CausalStoNet(**{**good, **change})
    for name, value in good.items():
        np.testing.assert_array_equal(value, before[name])


def test_names_are_for_arrays_only(frame):
    with pytest.raises(OptionError, match="names is for arrays"):
        CausalStoNet(frame.y, frame.treat, frame[["x1"]], names=["z"])


def test_rows_in_different_order_are_refused(frame, read_design):
    with pytest.raises(DataError, match="X and y have different row labels"):
        CausalStoNet(frame.y[::-1], frame.treat, frame[["x1"]])
    with pytest.raises(DataError, match="data and weights have different row labels"):
        read_design(frame, weights=pd.Series(1.0, index=frame.index[::-1]))
    design = CausalStoNet(frame.y[::-1].to_numpy(), frame.treat, frame[["x1"]]).design
    np.testing.assert_array_equal(design.y, frame.y[::-1])


# -- missing values ----------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["y", "treat", "x1", "g"])
def test_gaps_are_counted(column, frame, read_design, with_value):
    frame = frame.assign(treat=frame.treat.astype(float))
    gaps = with_value(with_value(frame, column, 3, None), "x2", 3, np.nan)
    with pytest.raises(MissingValuesError, match=rf"1 of 20 rows.*{column} \(1\).*missing='drop'"):
        read_design(gaps)


def test_many_columns_with_gaps_are_summarised(read_design):
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 30))).add_prefix("x")
    data.iloc[0] = np.nan
    data = data.assign(y=np.arange(N), a=np.arange(N) % 2)
    with pytest.raises(MissingValuesError, match=r"x0 \(1\), .*x4 \(1\) and 25 more"):
        read_design(data, "y ~ a | .")


def test_gaps_in_unused_columns_do_not_matter(frame, read_design, with_value):
    design = read_design(with_value(frame, "x2", 3, np.nan), "y ~ treat | x1 + g")
    assert (design.n_dropped, len(design.y)) == (0, N)


def test_drop_is_joint_and_reported(frame, read_design, with_value):
    gaps = with_value(with_value(frame, "x1", 2, np.nan), "y", 7, np.nan)
    weights = np.arange(1.0, N + 1)
    weights[11] = np.nan
    design = read_design(gaps, missing="drop", weights=weights)
    kept = np.delete(np.arange(N), [2, 7, 11])
    assert design.n_dropped == 3
    assert list(design.index) == list(frame.index[kept])
    np.testing.assert_array_equal(design.y, frame.y.to_numpy()[kept])
    np.testing.assert_array_equal(design.X[:, 0], frame.x1.to_numpy()[kept])
    np.testing.assert_allclose(design.weights, weights[kept] / weights[kept].mean(), rtol=1e-14)


def test_drop_uses_the_levels_that_remain(frame, read_design):
    frame = frame.assign(g=["rare"] * 2 + ["a", "b"] * 9, x1=[np.nan] * 2 + list(range(18)))
    assert read_design(frame, missing="drop").covariates == ("x1", "x2", "g[T.b]")


def test_drop_warns_when_most_rows_go(frame):
    gaps = frame.assign(x1=np.where(np.arange(N) < 11, np.nan, frame.x1))
    with pytest.warns(UserWarning, match="leaves 9 of 20 rows") as caught:
        CausalStoNet.from_formula("y ~ treat | .", gaps, missing="drop")
    assert caught[0].filename == __file__  # it points at the caller, not into the package


def test_drop_may_leave_nothing(frame, read_design):
    with pytest.raises(EmptyDataError, match="leaves no row"):
        read_design(frame.assign(x1=np.nan), missing="drop")


def test_advice_on_gaps_outside_the_covariates_works(frame, read_design, with_value):
    gaps = with_value(with_value(frame, "y", 2, np.nan), "x1", 5, np.nan)
    for missing in ("raise", "mar"):
        with pytest.raises(MissingValuesError, match=r"dropna\(subset=\['y'\]\)"):
            read_design(gaps, missing=missing)
    assert read_design(gaps.dropna(subset=["y"]), missing="mar").gaps.rows.size == 1
    with pytest.raises(MissingValuesError, match=r"without np\.exp\(y\), and impute"):
        read_design(gaps, "np.exp(y) ~ treat | .")


def test_empty_data(frame, read_design):
    with pytest.raises(EmptyDataError, match="0 rows, 5 columns"):
        read_design(frame[:0])
    with pytest.raises(EmptyDataError, match="0 rows, 0 columns"):
        read_design(pd.DataFrame())
