"""Building the covariate matrix at the fit, and again for new data."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.data.covariates import CovariateSpec
from cstonet.errors import (
    ColumnTypeError,
    DataError,
    DuplicateColumnError,
    EmptyDataError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    UnknownColumnError,
    UnseenLevelError,
)

N = 40


@pytest.fixture
def frame():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "a": np.arange(N) % 2,
            "x1": rng.normal(size=N),
            "x2": rng.uniform(1.0, 2.0, size=N),
            "k": np.arange(N) % 3,
            "g": rng.permutation(np.resize(["b", "a", "c"], N)),
            "h": pd.Categorical(
                rng.permutation(np.resize(["lo", "hi"], N)), categories=["lo", "hi", "top"]
            ),
            "flag": rng.permutation(np.resize([True, False, True], N)),
            "BRCA-1": rng.normal(size=N),
        }
    )


def design(part, frame):
    return CausalStoNet.from_formula(f"y ~ a | {part}", frame).design


def round_trip(spec):
    return CovariateSpec.from_json(json.loads(json.dumps(spec.to_json())))


# -- coding ----------------------------------------------------------------------------------


def test_numeric_columns_are_taken_as_they_are(frame):
    built = design("x2 + x1", frame)
    assert built.covariates == ("x2", "x1")
    np.testing.assert_array_equal(built.X, frame[["x2", "x1"]].to_numpy())


def test_levels_are_coded_against_the_first(frame):
    built = design("g + h + flag", frame)
    assert built.covariates == ("g[T.b]", "g[T.c]", "h[T.hi]", "h[T.top]", "flag[T.True]")
    expected = np.column_stack(
        [frame.g == "b", frame.g == "c", frame.h == "hi", frame.h == "top", frame.flag]
    )
    np.testing.assert_array_equal(built.X, expected)


def test_columns_keep_the_order_of_the_formula(frame):
    assert design("x1 + g + x2", frame).covariates == ("x1", "g[T.b]", "g[T.c]", "x2")


def test_plain_and_patsy_coding_agree(frame):
    plain, coded = design("g", frame), design("C(g)", frame)
    assert coded.covariates == ("C(g)[T.b]", "C(g)[T.c]")  # no intercept, yet a reference level
    np.testing.assert_array_equal(plain.X, coded.X)


@pytest.mark.parametrize("part", ["0 + C(g)", "C(g) - 1"])
def test_removing_the_intercept_does_not_change_the_coding(part, frame):
    assert design(part, frame).covariates == ("C(g)[T.b]", "C(g)[T.c]")


def test_interactions_know_of_their_margins(frame):
    together = design("g + x1 + g:x1", frame)
    assert together.covariates == ("g[T.b]", "g[T.c]", "x1", "g[T.b]:x1", "g[T.c]:x1")
    np.testing.assert_array_equal(together.X[:, 3], (frame.g == "b") * frame.x1)
    alone = design("g:x1", frame)
    assert alone.covariates == ("g[a]:x1", "g[b]:x1", "g[c]:x1")


def test_functions_of_the_caller_and_numpy_are_found(frame):
    def double(values):
        return 2 * values

    built = design_here(frame, double)
    np.testing.assert_array_equal(built.X[:, 0], 2 * frame.x1)
    np.testing.assert_allclose(built.X[:, 1], np.log(frame.x2), rtol=1e-15)


def design_here(frame, double):
    return CausalStoNet.from_formula("y ~ a | double(x1) + np.log(x2)", frame).design


def test_terms_may_read_dates(frame):
    frame["visit"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) * 30, unit="D")
    built = design("visit.dt.year", frame)
    np.testing.assert_array_equal(built.X[:, 0], frame.visit.dt.year)


def test_repeated_row_labels_do_not_matter(frame):
    frame.index = pd.Index(np.zeros(N, dtype=int))
    built = design("x1 + g + np.log(x2)", frame)
    np.testing.assert_array_equal(built.X[:, 0], frame.x1)
    np.testing.assert_allclose(built.X[:, 3], np.log(frame.x2), rtol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", np.float32),
        ("float64", np.float64),
        ("int8", np.float32),
        ("int16", np.float32),
        ("int64", np.float64),
        ("Int8", np.float32),
        ("Int64", np.float64),
        ("Float32", np.float32),
        ("Float64", np.float64),
        ("Sparse[float64]", np.float64),
    ],
)
def test_single_precision_only_where_exact(dtype, expected, frame):
    values = np.arange(N) % 7
    frame["x1"] = pd.Series(values).astype(dtype)
    frame["x2"] = pd.Series(values[::-1]).astype(dtype)
    built = design("x1 + x2", frame)
    assert built.X.dtype == expected
    np.testing.assert_array_equal(built.X[:, 0], values)


def test_extension_integers_keep_their_labels_in_terms(frame):
    frame["k"] = frame.k.astype("Int64")
    assert design("C(k)", frame).covariates == ("C(k)[T.1]", "C(k)[T.2]")


def test_clashing_names(frame):
    frame["g[T.b]"] = 1.0
    with pytest.raises(DuplicateColumnError, match=r"'g\[T.b\]'"):
        design(".", frame)


def test_no_covariates(frame):
    with pytest.raises(EmptyDataError, match="no covariates"):
        design("1", frame)
    frame["one"] = pd.Categorical(["only"] * N)
    with pytest.raises(EmptyDataError, match="no covariates"):
        design("one", frame)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("np.log(g)", r"'np.log\(g\)' cannot be evaluated"),
        ("x1:I(1/0)", "cannot be evaluated.*ZeroDivisionError"),
        ("x1/None", "Of the terms 'x1:None', one cannot be evaluated.*one number"),
        ("bs(x1)", r"'bs\(x1\)', one cannot be evaluated: must specify either df or knots"),
        ("I(x1 * 1j)", "one cannot be evaluated"),
        ("I(quit())", "one cannot be evaluated: None"),
        ("I(x1[:5])", r"'I\(x1\[:5\]\)', one gives 5 values for 40 rows"),
        ("I(x1.sum())", "one gives 1 values for 40 rows"),
        ("x2 + np.arange(39)", "one gives 39 values for 40 rows"),
        ("I('\ud800')", "cannot be read"),
    ],
)
def test_terms_that_fail(part, says, frame):
    with pytest.raises(FormulaError, match=says):
        design(part, frame)


def test_terms_with_unknown_names(frame):
    with pytest.raises(UnknownColumnError, match=r"no column 'x11'.*'x1'"):
        design("np.log(x11)", frame)
    with pytest.raises(UnknownColumnError, match="no column 'BRCA'"):
        design("np.log(Q('BRCA'))", frame)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_terms_that_are_not_defined_everywhere(frame):
    with pytest.raises(MissingValuesError, match=r"'np.log\(x1\)' gives missing values"):
        design("x2 + np.log(x1)", frame)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_terms_that_overflow(frame):
    with pytest.raises(InfiniteValuesError, match=r"'np.log\(k\)' has infinite values, in 14 of"):
        design("x2 + np.log(k)", frame)


# -- new data --------------------------------------------------------------------------------

PARTS = [
    ".",
    "x1 + x2",
    "g + x1 + flag + h",
    "C(g) + C(k) + np.log(x2)",
    "g*x1 + h:k",
    "Q('BRCA-1') + np.sqrt(x2):Q('BRCA-1')",
    "center(k) + standardize(x2) + scale(x1, ddof=1)",
    "bs(x2, df=4) + bs(x1, knots=[0.0], degree=2, lower_bound=-5, upper_bound=5)",
    "cr(x2, df=3) + cc(x1, df=3) + te(cr(x1, 3), cr(x2, 3))",
    "standardize(center(x1) + x2) + C(h, Sum) + C(k, Poly) + I(g == 'a')",
]


@pytest.mark.parametrize("part", PARTS)
def test_rows_do_not_depend_on_their_company(part, frame):
    """New data use the levels, means and knots of the fit, never their own."""
    built = design(part, frame)
    some = frame.iloc[[3, 17, 4]]
    np.testing.assert_array_equal(built.spec.transform(some), built.X[[3, 17, 4]])


@pytest.mark.parametrize("part", PARTS)
def test_saved_specification_gives_the_same_bits(part, frame):
    spec = design(part, frame).spec
    again = round_trip(spec)
    assert again.names == spec.names
    assert again.columns == spec.columns
    np.testing.assert_array_equal(again.transform(frame), spec.transform(frame))
    np.testing.assert_array_equal(again.transform(frame[:2]), spec.transform(frame[:2]))


def test_new_data_may_have_other_columns_and_orders(frame):
    built = design("x1 + g + x2", frame)
    shuffled = frame[["g", "x2", "k", "x1"]]
    np.testing.assert_array_equal(built.spec.transform(shuffled), built.X)


def test_new_data_may_be_empty(frame):
    assert design("x1 + g", frame).spec.transform(frame[:0]).shape == (0, 3)


def test_categories_may_come_as_text_or_in_another_order(frame):
    built = design("h + h:x1", frame)
    for h in (frame.h.astype(str), frame.h.cat.reorder_categories(["top", "hi", "lo"])):
        np.testing.assert_array_equal(built.spec.transform(frame.assign(h=h)), built.X)


def test_new_data_with_unknown_columns(frame):
    spec = design("x1 + g + np.log(x2)", frame).spec
    with pytest.raises(UnknownColumnError, match="no column 'x2'"):
        spec.transform(frame.drop(columns="x2"))
    with pytest.raises(UnknownColumnError, match="2 columns are missing: 'g', 'x2'"):
        spec.transform(frame.drop(columns=["g", "x2"]))


@pytest.mark.parametrize("part", ["g", "C(g)", "g:x1", "x1 + g"])
def test_new_data_with_unseen_text(part, frame):
    spec = design(part, frame).spec
    new = frame.assign(g=frame.g.replace("c", "z"))
    with pytest.raises(UnseenLevelError, match="'z'"):
        spec.transform(new)
    with pytest.raises(UnseenLevelError):
        round_trip(spec).transform(new)


@pytest.mark.parametrize("part", ["h", "C(h)", "h:x1"])
def test_new_data_with_unseen_category(part, frame):
    spec = design(part, frame).spec
    with pytest.raises(UnseenLevelError, match=r"Column 'h' holds 'mid'.*never saw"):
        spec.transform(frame.assign(h=frame.h.astype(str).replace("hi", "mid")))


def test_new_level_is_no_obstacle_to_a_term_that_can_tell(frame):
    spec = design("I(g == 'a')", frame).spec
    new = frame.assign(g=frame.g.replace("c", "z"))
    np.testing.assert_array_equal(spec.transform(new)[:, 0], frame.g == "a")


def test_new_data_with_gaps(frame):
    spec = design("x1 + g + np.log(x2)", frame).spec
    new = frame.copy()
    new.loc[[1, 2], "x1"] = np.nan
    new.loc[2, "g"] = None
    new.loc[5, "x2"] = np.nan
    with pytest.raises(MissingValuesError, match=r"3 of 40 rows.*x1 \(2\), g \(1\), x2 \(1\)"):
        spec.transform(new)


def test_new_data_with_infinities(frame):
    spec = design("x1 + x2", frame).spec
    frame.loc[4, "x2"] = -np.inf
    with pytest.raises(InfiniteValuesError, match="'x2' has infinite values, in 1 of 40"):
        spec.transform(frame)


@pytest.mark.parametrize("part", ["x1", "np.exp(x1)"])
def test_new_data_with_text_for_numbers(part, frame):
    spec = design(part, frame).spec
    with pytest.raises(ColumnTypeError, match="'x1'"):
        spec.transform(frame.assign(x1="1.5"))


def test_new_data_with_duplicate_columns(frame):
    spec = design("x1", frame).spec
    with pytest.raises(DuplicateColumnError, match="'x1'"):
        spec.transform(pd.concat([frame, frame[["x1"]]], axis=1))


def test_arrays_need_a_fit_on_arrays(frame):
    spec = design("x1 + x2", frame).spec
    with pytest.raises(DataError, match=r"DataFrame.*'x1', 'x2'.*got ndarray"):
        spec.transform(frame[["x1", "x2"]].to_numpy())


def test_arrays_after_a_fit_on_arrays(frame):
    X = frame[["x1", "x2"]].to_numpy()
    built = CausalStoNet(frame.y, frame.a, X).design
    np.testing.assert_array_equal(built.spec.transform(X[:5]), X[:5])
    np.testing.assert_array_equal(round_trip(built.spec).transform(X[:5]), X[:5])
    named = pd.DataFrame(X, columns=["x1", "x2"])
    np.testing.assert_array_equal(built.spec.transform(named), X)
    with pytest.raises(LengthMismatchError, match="3 columns where 2 are expected: 'x1', 'x2'"):
        built.spec.transform(np.ones((4, 3)))
    with pytest.raises(DataError, match="shape"):
        built.spec.transform(X[0])
    X_gap = X.copy()
    X_gap[0, 1] = np.nan
    with pytest.raises(MissingValuesError, match=r"x2 \(1\)"):
        built.spec.transform(X_gap)


# -- what cannot be saved --------------------------------------------------------------------


def test_session_functions_are_not_saved(frame):
    center = np.tanh  # shadows patsy's own name, so the code alone would be misleading

    assert center is np.tanh
    for part in ("x1 + center(x1)", "x1.clip(0)", "np.where(x1 > 0, 1, 0)"):
        spec = CausalStoNet.from_formula(f"y ~ a | {part}", frame).design.spec
        with pytest.raises(NotAvailableError, match=r"kept in a file.*Compute it as a column"):
            spec.to_json()


def test_exotic_levels_are_not_saved(frame):
    frame["when"] = pd.Categorical(pd.to_datetime(np.resize(["2020-01-01", "2021-01-01"], N)))
    frame["when"] = frame.when.sample(frac=1, random_state=1).to_numpy()
    frame["when"] = frame.when.astype("category")
    spec = design("when", frame).spec
    with pytest.raises(NotAvailableError, match="'when' cannot be saved"):
        spec.to_json()


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').getcwd()",
        "np.load('file')",
        "x1.__class__",
        "open('file')",
        "[v for v in x1]",
        "np.log.__self__",
    ],
)
def test_reading_a_file_runs_nothing_but_plain_computations(code, frame):
    """Formulas are code: a tampered file must be refused before any of it runs."""
    saved = design("np.exp(x1)", frame).spec.to_json()
    saved["blocks"][0]["info"]["factors"][0]["code"] = code
    with pytest.raises(NotAvailableError, match="kept in a file"):
        CovariateSpec.from_json(saved)
