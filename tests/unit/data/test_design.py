"""From formula or arrays to a design: what comes out, and the pitfalls of formulas."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import cstonet.data
from cstonet import CausalStoNet
from cstonet.data import design as design_module
from cstonet.errors import (
    ConstantTreatmentError,
    DataError,
    DuplicateColumnError,
    EmptyDataError,
    LengthMismatchError,
    MissingValuesError,
    OptionError,
)

N = 20


@pytest.fixture
def frame():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "treat": np.resize([0, 1, 1, 0, 1], N),
            "x1": rng.normal(size=N),
            "x2": rng.normal(size=N),
            "g": np.resize(["a", "b", "c"], N),
        },
        index=[f"unit {i}" for i in range(N)],
    )


def fit(frame, formula="y ~ treat | .", **kwargs):
    """Build the design; whether that succeeds or not, the frame must stay as it was."""
    before = frame.copy(deep=True)
    try:
        return CausalStoNet.from_formula(formula, frame, **kwargs).design
    finally:
        pd.testing.assert_frame_equal(frame, before)


def with_value(frame, column, row, value):
    changed = frame.copy()
    changed.iloc[row, changed.columns.get_loc(column)] = value
    return changed


# -- what comes out --------------------------------------------------------------------------


def test_fields(frame):
    design = fit(frame)
    np.testing.assert_array_equal(design.y, frame.y)
    np.testing.assert_array_equal(design.treatment.codes, frame.treat)
    np.testing.assert_array_equal(design.X[:, :2], frame[["x1", "x2"]])
    assert design.y.dtype == np.float64
    assert design.treatment.dtype == np.int64
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
def test_neighbouring_columns_of_a_frame_are_not_copied():
    X = np.random.default_rng(0).normal(size=(N, 5))
    data = pd.DataFrame(X, columns=list("abcde")).assign(y=np.arange(N), t=np.arange(N) % 2)
    assert np.shares_memory(fit(data, "y ~ t | .").X, data["c"].to_numpy())


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


# -- pitfalls of formulas --------------------------------------------------------------------


def test_bar_is_no_bitwise_or():
    data = pd.DataFrame(
        {"y": np.arange(8.0), "a": [0, 1] * 4, "x1": [1, 2, 3, 4] * 2, "x2": [4, 3, 1, 2] * 2}
    )
    design = fit(data, "y ~ a | x1 + x2")
    assert design.covariates == ("x1", "x2")
    np.testing.assert_array_equal(design.treatment.codes, data.a)


def test_dot_and_quoted_names(frame):
    frame = frame.rename(columns={"x1": "BRCA-1", "x2": "x 2"})
    assert fit(frame).covariates[:2] == ("BRCA-1", "x 2")
    assert fit(frame, "y ~ treat | Q('BRCA-1')").covariates == ("BRCA-1",)
    assert fit(frame, 'Q("x 2") ~ treat | .').covariates[:2] == ("y", "BRCA-1")


def test_dot_leaves_out_what_expressions_name(frame):
    design = fit(frame, "np.exp(y) ~ I(x1 > 0) | .")
    assert design.covariates == ("treat", "x2", "g[T.b]", "g[T.c]")
    assert design.outcome_name == "np.exp(y)"
    assert design.treatment.levels == (False, True)
    np.testing.assert_allclose(design.y, np.exp(frame.y), rtol=1e-15)
    np.testing.assert_array_equal(design.treatment.codes, frame.x1 > 0)


def test_numbers_as_column_names():
    X = np.random.default_rng(0).normal(size=(N, 3))
    data = pd.DataFrame(X).assign(y=np.arange(N), a=np.arange(N) % 2)
    assert fit(data, "y ~ a | . - Q('1')").covariates == ("0", "2")


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
        CausalStoNet.from_formula("y ~ a | np.exp(x1)", wide).design
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


def test_patsy_and_plain_parts_drop_the_same_rows(frame):
    frame = frame.assign(h=pd.Categorical(np.resize(["u", "v"], N)))
    for column, row in (("y", 0), ("treat", 1), ("x1", 2), ("g", 3), ("h", 4), ("x2", 5)):
        if column == "treat":
            frame["treat"] = frame.treat.astype(float)
        frame = with_value(frame, column, row, None)
    design = fit(frame, "y ~ treat | x1 + g + C(h) + standardize(x2)", missing="drop")
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


def test_missing_text_never_becomes_a_level(frame):
    frame = with_value(frame, "g", 3, None)
    assert fit(frame, missing="drop").covariates == ("x1", "x2", "g[T.b]", "g[T.c]")
    assert fit(frame, "y ~ treat | C(g)", missing="drop").covariates == ("C(g)[T.b]", "C(g)[T.c]")


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "string", "category"])
@pytest.mark.parametrize("formula", ["y ~ treat | e + x1", "y ~ treat | x1:e"])
def test_extension_dtypes_with_gaps(dtype, formula, frame):
    values = np.resize([0, 1, 1], N)
    full = pd.Series(values, index=frame.index).astype(
        {"string": "str", "boolean": "bool"}.get(dtype, dtype)
    )
    full = full.astype(dtype)
    complete = fit(frame.assign(e=full), formula)
    gap = full.copy()
    gap.iloc[2] = pd.NA
    with pytest.raises(MissingValuesError, match=r"e \(1\)"):
        fit(frame.assign(e=gap), formula)
    dropped = fit(frame.assign(e=gap), formula, missing="drop")
    assert dropped.n_dropped == 1
    assert dropped.covariates == complete.covariates
    np.testing.assert_array_equal(dropped.X, np.delete(complete.X, 2, axis=0))


def test_extension_dtypes_for_outcome_and_treatment(frame):
    plain = fit(frame)
    extended = frame.assign(y=frame.y.astype("Float64"), treat=frame.treat.astype("Int64"))
    design = fit(extended)
    np.testing.assert_array_equal(design.y, plain.y)
    np.testing.assert_array_equal(design.treatment.codes, plain.treatment)
    assert fit(frame.assign(treat=frame.treat.astype("boolean"))).treatment.levels == (False, True)


def test_hidden_gaps_in_expressions_count_as_gaps(frame):
    frame = with_value(frame, "x1", 4, np.nan)  # NaN > 0 is False: a control unit by accident
    with pytest.raises(MissingValuesError, match=r"I\(x1 > 0\) \(1\)"):
        fit(frame, "y ~ I(x1 > 0) | x2")
    assert fit(frame, "y ~ I(x1 > 0) | x2", missing="drop").n_dropped == 1


def test_column_names_are_data_not_code(frame, tmp_path):
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')"
    design = fit(frame.rename(columns={"x1": trap}))
    assert design.covariates[0] == trap
    assert not (tmp_path / "trap").exists()


# -- arrays ----------------------------------------------------------------------------------


def test_arrays_and_formula_agree(frame):
    by_formula = fit(frame)
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
        CausalStoNet(frame.y, frame.treat, X).design
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
        CausalStoNet(**{**good, **change}).design
    for name, value in good.items():
        np.testing.assert_array_equal(value, before[name])


def test_names_are_for_arrays_only(frame):
    with pytest.raises(OptionError, match="names is for arrays"):
        CausalStoNet(frame.y, frame.treat, frame[["x1"]], names=["z"]).design


def test_rows_in_different_order_are_refused(frame):
    with pytest.raises(DataError, match="X and y have different row labels"):
        CausalStoNet(frame.y[::-1], frame.treat, frame[["x1"]]).design
    with pytest.raises(DataError, match="data and weights have different row labels"):
        fit(frame, weights=pd.Series(1.0, index=frame.index[::-1]))
    design = CausalStoNet(frame.y[::-1].to_numpy(), frame.treat, frame[["x1"]]).design
    np.testing.assert_array_equal(design.y, frame.y[::-1])


# -- options ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"family": "poisson"}, "family='poisson'.*'gaussian', 'binomial', None"),
        ({"treatment": "ordinal"}, "'ordinal'.*'binary', 'multilevel', 'continuous', None"),
        ({"missing": "impute"}, "missing='impute'.*'raise', 'drop', 'mar', 'mnar'"),
        ({"missing": None}, "missing=None"),
    ],
)
def test_options_out_of_range(option, says, frame):
    with pytest.raises(OptionError, match=says):
        fit(frame, **option)
    with pytest.raises(OptionError, match=says):
        CausalStoNet(frame.y, frame.treat, frame[["x1"]], **option).design


def test_design_cannot_be_changed(frame):
    design = fit(frame)
    with pytest.raises(AttributeError):
        design.n_dropped = 1


def test_public_names():
    assert set(design_module.__all__) == {"Design", "Family", "Missing", "TreatmentKind"}
