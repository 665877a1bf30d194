"""From formula to a design: what comes out, and the pitfalls of formulas."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import cstonet.data
from cstonet import CausalStoNet
from cstonet.errors import (
    MissingValuesError,
    OptionError,
)

N = 20  # rows of the frame


# -- what comes out ----------------------------------------------------------------------------


def test_fields(frame, read_design):
    design = read_design(frame)
    np.testing.assert_array_equal(design.y, frame.y)
    np.testing.assert_array_equal(design.treatment.codes, frame.treat)
    np.testing.assert_array_equal(design.X[:, :2], frame[["x1", "x2"]])
    assert design.y.dtype == np.float64
    assert design.treatment.codes.dtype == np.int64
    assert design.covariates == ("x1", "x2", "g[T.b]", "g[T.c]")
    assert design.spec.names == design.covariates
    assert (design.outcome_name, design.treatment_name) == ("y", "treat")
    assert design.treatment.levels == (0, 1)
    assert design.treatment.kind == "binary"
    assert (design.family, design.family_inferred) == ("gaussian", True)
    assert design.weights is None
    assert design.formula == "y ~ treat | ."
    assert design.index.equals(frame.index)
    assert design.n_dropped == 0


def test_outcome_and_weights_are_copies(frame):
    weights = np.ones(N)
    y, treat = frame.y.to_numpy(copy=True), frame.treat.to_numpy(copy=True)
    design = CausalStoNet(y, treat, frame[["x1"]].to_numpy(), weights=weights).design
    for own, users in ((design.y, y), (design.treatment.codes, treat), (design.weights, weights)):
        assert not np.shares_memory(own, users)


def test_covariates_are_not_copied():
    X = np.random.default_rng(0).normal(size=(N, 5))
    for array in (X, np.asfortranarray(X), X.astype(np.float32)):
        design = CausalStoNet(np.arange(N), np.arange(N) % 2, array).design
        assert np.shares_memory(design.X, array)
        assert design.X.dtype == array.dtype
        assert design.X.flags.c_contiguous == array.flags.c_contiguous


@pytest.mark.skipif(
    int(pd.__version__.partition(".")[0]) < 3, reason="older pandas copies slices of columns itself"
)
def test_neighbouring_columns_of_a_frame_are_not_copied(read_design):
    X = np.random.default_rng(0).normal(size=(N, 5))
    data = pd.DataFrame(X, columns=list("abcde")).assign(y=np.arange(N), t=np.arange(N) % 2)
    assert np.shares_memory(read_design(data, "y ~ t | .").X, data["c"].to_numpy())


def test_read_only_and_strided_input():
    X = np.random.default_rng(0).normal(size=(2 * N, 6))
    X.flags.writeable = False
    view = X[::2, ::3]
    y = np.arange(N, dtype=float)
    y.flags.writeable = False
    design = CausalStoNet(y, np.arange(N) % 2, view).design
    np.testing.assert_array_equal(design.X, view)
    np.testing.assert_array_equal(design.spec.transform(view), view)


def test_memory_map(tmp_path):
    X = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=(N, 3))
    X[:] = np.random.default_rng(0).normal(size=(N, 3))
    design = CausalStoNet(np.arange(N), np.arange(N) % 2, X).design
    assert np.shares_memory(design.X, X)


# -- pitfalls of formulas ----------------------------------------------------------------------


def test_bar_is_no_bitwise_or(read_design):
    data = pd.DataFrame(
        {"y": np.arange(8.0), "a": [0, 1] * 4, "x1": [1, 2, 3, 4] * 2, "x2": [4, 3, 1, 2] * 2}
    )
    design = read_design(data, "y ~ a | x1 + x2")
    assert design.covariates == ("x1", "x2")
    np.testing.assert_array_equal(design.treatment.codes, data.a)


def test_dot_and_quoted_names(frame, read_design):
    frame = frame.rename(columns={"x1": "BRCA-1", "x2": "x 2"})
    assert read_design(frame).covariates[:2] == ("BRCA-1", "x 2")
    assert read_design(frame, "y ~ treat | Q('BRCA-1')").covariates == ("BRCA-1",)
    assert read_design(frame, 'Q("x 2") ~ treat | .').covariates[:2] == ("y", "BRCA-1")


def test_dot_leaves_out_what_expressions_name(frame, read_design):
    design = read_design(frame, "np.exp(y) ~ I(x1 > 0) | .")
    assert design.covariates == ("treat", "x2", "g[T.b]", "g[T.c]")
    assert design.outcome_name == "np.exp(y)"
    assert design.treatment.levels == (False, True)
    np.testing.assert_allclose(design.y, np.exp(frame.y), rtol=1e-15)
    np.testing.assert_array_equal(design.treatment.codes, frame.x1 > 0)


def test_numbers_as_column_names(read_design):
    X = np.random.default_rng(0).normal(size=(N, 3))
    data = pd.DataFrame(X).assign(y=np.arange(N), a=np.arange(N) % 2)
    assert read_design(data, "y ~ a | . - Q('1')").covariates == ("0", "2")


@pytest.fixture
def wide():
    n, p = 1000, 20_000
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.standard_normal((n, p)), columns=[f"x{j}" for j in range(p)])
    ends = pd.DataFrame({"y": rng.normal(size=n), "a": np.arange(n) % 2})
    return pd.concat([ends, data], axis=1)


def test_twenty_thousand_columns_never_reach_patsy(wide, monkeypatch):
    monkeypatch.setitem(sys.modules, "patsy", None)  # any import of it now fails
    for module in ("patsy_terms", "patsy_json"):
        monkeypatch.delitem(sys.modules, f"cstonet.data.{module}", raising=False)
        monkeypatch.delattr(cstonet.data, module, raising=False)
    with pytest.raises(ImportError):
        CausalStoNet.from_formula("y ~ a | np.exp(x1)", wide)
    typed = "y ~ a | " + " + ".join(wide.columns[2:])
    for formula in ("y ~ a | .", "y ~ a | . - x7", typed):
        design = CausalStoNet.from_formula(formula, wide).design
        assert design.X.shape[1] in (20_000, 19_999)
        assert design.spec.transform(wide.iloc[:5]).shape == (5, design.X.shape[1])


def test_many_separate_columns_are_gathered(wide):
    """A frame read from a file holds each column apart."""
    wide = wide.iloc[:, :4000]
    apart = pd.DataFrame({name: wide[name] for name in wide.columns}, copy=False)
    design = CausalStoNet.from_formula("y ~ a | .", apart).design
    np.testing.assert_array_equal(design.X, wide.iloc[:, 2:])


def test_patsy_and_plain_parts_drop_the_same_rows(frame, read_design, with_value):
    frame = frame.assign(h=pd.Categorical(np.resize(["u", "v"], N)))
    for column, row in (("y", 0), ("treat", 1), ("x1", 2), ("g", 3), ("h", 4), ("x2", 5)):
        if column == "treat":
            frame["treat"] = frame.treat.astype(float)
        frame = with_value(frame, column, row, None)
    design = read_design(frame, "y ~ treat | x1 + g + C(h) + standardize(x2)", missing="drop")
    kept = frame.iloc[6:]
    assert design.n_dropped == 6
    assert design.index.equals(kept.index)
    assert design.covariates == ("x1", "g[T.b]", "g[T.c]", "C(h)[T.v]", "standardize(x2)")
    np.testing.assert_array_equal(design.y, kept.y)
    np.testing.assert_array_equal(design.treatment.codes, kept.treat)
    np.testing.assert_array_equal(design.X[:, 0], kept.x1)
    np.testing.assert_array_equal(design.X[:, 3], kept.h == "v")
    expected = (kept.x2 - kept.x2.mean()) / kept.x2.std(ddof=0)
    np.testing.assert_allclose(design.X[:, 4], expected, rtol=0, atol=1e-14)


def test_missing_text_never_becomes_a_level(frame, read_design, with_value):
    frame = with_value(frame, "g", 3, None)
    assert read_design(frame, missing="drop").covariates == ("x1", "x2", "g[T.b]", "g[T.c]")
    assert read_design(frame, "y ~ treat | C(g)", missing="drop").covariates == (
        "C(g)[T.b]",
        "C(g)[T.c]",
    )


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "string", "category"])
@pytest.mark.parametrize("formula", ["y ~ treat | e + x1", "y ~ treat | x1:e"])
def test_extension_dtypes_with_gaps(dtype, formula, frame, read_design):
    values = np.resize([0, 1, 1], N)
    full = pd.Series(values, index=frame.index).astype(
        {"string": "str", "boolean": "bool"}.get(dtype, dtype)
    )
    full = full.astype(dtype)
    complete = read_design(frame.assign(e=full), formula)
    gap = full.copy()
    gap.iloc[2] = pd.NA
    with pytest.raises(MissingValuesError, match=r"e \(1\)"):
        read_design(frame.assign(e=gap), formula)
    dropped = read_design(frame.assign(e=gap), formula, missing="drop")
    assert dropped.n_dropped == 1
    assert dropped.covariates == complete.covariates
    np.testing.assert_array_equal(dropped.X, np.delete(complete.X, 2, axis=0))


def test_extension_dtypes_for_outcome_and_treatment(frame, read_design):
    plain = read_design(frame)
    extended = frame.assign(y=frame.y.astype("Float64"), treat=frame.treat.astype("Int64"))
    design = read_design(extended)
    np.testing.assert_array_equal(design.y, plain.y)
    np.testing.assert_array_equal(design.treatment.codes, plain.treatment.codes)
    assert read_design(frame.assign(treat=frame.treat.astype("boolean"))).treatment.levels == (
        False,
        True,
    )


def test_hidden_gaps_in_expressions_count_as_gaps(frame, read_design, with_value):
    frame = with_value(frame, "x1", 4, np.nan)  # NaN > 0 is False: a control unit by accident
    with pytest.raises(MissingValuesError, match=r"I\(x1 > 0\) \(1\)"):
        read_design(frame, "y ~ I(x1 > 0) | x2")
    assert read_design(frame, "y ~ I(x1 > 0) | x2", missing="drop").n_dropped == 1


def test_column_names_are_data_not_code(frame, tmp_path, read_design):
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')"
    design = read_design(frame.rename(columns={"x1": trap}))
    assert design.covariates[0] == trap
    assert not (tmp_path / "trap").exists()


# -- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"family": "gamma"}, "family='gamma'.*'gaussian', 'binomial', 'poisson', None"),
        ({"treatment": "ordinal"}, "'ordinal'.*'binary', 'multilevel', 'continuous', None"),
        ({"missing": "impute"}, "missing='impute'.*'raise', 'drop', 'mar', 'mnar'"),
        ({"missing": None}, "missing=None"),
    ],
)
def test_options_out_of_range(option, says, frame, read_design):
    with pytest.raises(OptionError, match=says):
        read_design(frame, **option)
    with pytest.raises(OptionError, match=says):
        CausalStoNet(frame.y, frame.treat, frame[["x1"]], **option)


def test_design_cannot_be_changed(frame, read_design):
    design = read_design(frame)
    with pytest.raises(AttributeError):
        design.n_dropped = 1
