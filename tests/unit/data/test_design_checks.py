"""Every way in which outcome, treatment, covariates and weights can be unfit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet import CausalStoNet
from cstonet.errors import (
    ColumnTypeError,
    ConstantOutcomeError,
    ConstantTreatmentError,
    DataError,
    DuplicateColumnError,
    EmptyDataError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    MissingValuesError,
    OneArmedError,
    OutcomeTypeError,
    TreatmentLeakError,
    TreatmentTypeError,
    UnknownColumnError,
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


# -- outcome ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([True, False], "binomial"),
        ([0, 1], "binomial"),
        ([0.0, 1.0], "binomial"),
        ([1, 2], "gaussian"),
        ([0, 1, 2], "gaussian"),
        ([0.0, 0.5], "gaussian"),
    ],
)
def test_family_is_inferred(values, family, frame):
    design = fit(frame.assign(y=np.resize(values, N)))
    assert (design.family, design.family_inferred) == (family, True)
    np.testing.assert_array_equal(design.y, np.resize(values, N).astype(float))


def test_family_can_be_given(frame):
    binary = frame.assign(y=np.resize([True, False], N))
    design = fit(binary, family="gaussian")
    assert (design.family, design.family_inferred) == ("gaussian", False)
    design = fit(binary, family="binomial")
    assert (design.family, design.family_inferred) == ("binomial", False)


def test_outcome_must_suit_the_family(frame):
    with pytest.raises(OutcomeTypeError, match=r"'y' must be 0 or 1.*family='gaussian'"):
        fit(frame, family="binomial")


@pytest.mark.parametrize(
    "values",
    [
        np.resize(["yes", "no"], N),
        pd.Categorical(np.resize([0, 1], N)),
        pd.date_range("2020-01-01", periods=N),
        np.arange(N) * 1j,
    ],
)
def test_outcome_must_be_numeric(values, frame):
    with pytest.raises(OutcomeTypeError, match=r"'y'.*not numeric"):
        fit(frame.assign(y=values))


def test_constant_outcome(frame):
    with pytest.raises(ConstantOutcomeError, match="'y' is 3 in all 20 rows"):
        fit(frame.assign(y=3.0))


def test_outcome_expression_that_fails(frame):
    with pytest.raises(FormulaError, match=r"'np.log\(g\)' cannot be evaluated"):
        fit(frame, "np.log(g) ~ treat | x1")
    with pytest.raises(FormulaError, match="cannot be read"):
        fit(frame, "y y ~ treat | x1")


def test_outcome_is_not_its_own_treatment(frame):
    with pytest.raises(FormulaError, match="share a column"):
        fit(frame, "y ~ I(y > 0) | x1")


# -- treatment -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([0, 1], (0, 1)),
        ([1.0, 0.0], (0, 1)),
        ([False, True], (False, True)),
        (["b", "a"], ("a", "b")),
        ([5, -1], (-1, 5)),
        ([0.25, 0.5], (0.25, 0.5)),
    ],
)
@pytest.mark.parametrize("dtype", [None, object])
def test_treatment_levels(values, levels, dtype, frame):
    pattern = np.array([0, 1, 1, 0, 1] * 4)
    treat = pd.Series(np.array(values)[pattern], index=frame.index, dtype=dtype)
    design = fit(frame.assign(treat=treat))
    assert design.treatment.levels == levels
    assert [type(level) for level in design.treatment.levels] == [type(v) for v in levels]
    np.testing.assert_array_equal(np.array(levels)[design.treatment.codes], treat)


def test_category_decides_which_arm_is_treated(frame):
    treat = pd.Categorical(
        np.where(frame.treat == 1, "active", "placebo"), ["placebo", "active", "never used"]
    )
    design = fit(frame.assign(treat=treat))
    assert design.treatment.levels == ("placebo", "active")
    np.testing.assert_array_equal(design.treatment.codes, frame.treat)


def test_treatment_may_be_marked_as_categorical(frame):
    assert fit(frame, "y ~ C(treat) | x1").treatment.levels == (0, 1)


@pytest.mark.parametrize(
    ("declared", "values", "says"),
    [
        ("binary", np.resize(["a", "b", "c"], N), "not binary: it has 3 values .*multilevel"),
        ("binary", np.linspace(0, 1, N), "not binary: it has 20 values"),
        (None, np.resize([0, 0.5, 2], N), "3 values .*continuous.*treatment='multilevel'"),
        ("continuous", np.resize([0, 1], N), "2 values .*at least 5"),
        ("continuous", np.resize(["a", "b"], N), "not numeric"),
        (None, pd.date_range("2020-01-01", periods=N), "neither numbers"),
        (None, pd.Series(["a", 1] * (N // 2), dtype=object).to_numpy(), "neither numbers"),
    ],
)
def test_treatment_of_another_kind(declared, values, says, frame):
    with pytest.raises(TreatmentTypeError, match=f"'treat'.*{says}"):
        fit(frame.assign(treat=values), treatment=declared)


def test_constant_treatment(frame):
    with pytest.raises(ConstantTreatmentError, match="'treat' is 1 in all 20 rows"):
        fit(frame.assign(treat=1))
    only = pd.Categorical(["a"] * N, categories=["a", "b"])
    with pytest.raises(ConstantTreatmentError, match="'a' in all"):
        fit(frame.assign(treat=only))


def test_one_armed_data(frame):
    treat = np.zeros(N, dtype=int)
    treat[4] = 1
    with pytest.raises(OneArmedError, match="treat = 1 has 1 unit; at least 2"):
        fit(frame.assign(treat=treat))
    treat[5] = 1
    assert fit(frame.assign(treat=treat)).treatment.sum() == 2


@pytest.mark.filterwarnings("ignore:missing='drop' leaves")
@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_dropping_may_empty_an_arm(missing, frame):
    frame = frame.assign(y=np.where(frame.treat == 1, np.nan, frame.y))
    with pytest.raises(MissingValuesError if missing == "raise" else ConstantTreatmentError):
        fit(frame, missing=missing)


# -- covariates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "leak",
    [
        lambda a: a,
        lambda a: 1 - a,
        lambda a: 3.5 - 7.0 * a,
        lambda a: (a - a.mean()) / a.std(),
        lambda a: a == 1,
        lambda a: np.where(a == 1, "drug", "none"),
        lambda a: pd.Categorical(np.where(a == 1, "drug", "none")),
        lambda a: a.astype(np.float32),
    ],
)
def test_covariate_equal_to_the_treatment(leak, frame):
    with pytest.raises(TreatmentLeakError, match=r"'copy(\[T\..*\])?' is the treatment 'treat'"):
        fit(frame.assign(copy=leak(frame.treat)))


def test_covariate_nearly_equal_to_the_treatment_is_legal(frame):
    almost = frame.treat.to_numpy(copy=True)
    almost[-1] = 1 - almost[-1]
    assert "almost" in fit(frame.assign(almost=almost)).covariates


def test_constant_covariates_are_legal(frame):
    design = fit(frame.assign(one=1.0, off=False))
    assert design.covariates[-2:] == ("one", "off[T.True]")


def test_covariate_equal_to_the_outcome(frame):
    with pytest.raises(DataError, match="'again' equals the outcome 'y'"):
        fit(frame.assign(again=frame.y))
    with pytest.raises(DataError, match="'y' equals the outcome 'y'"):
        CausalStoNet(frame.y, frame.treat, frame[["x1", "y"]]).design


def test_unknown_columns(frame):
    for formula in ("z ~ treat | x1", "y ~ z | x1", "y ~ treat | z", "np.log(z) ~ treat | x1"):
        with pytest.raises(UnknownColumnError, match="no column 'z'"):
            fit(frame, formula)


def test_duplicate_columns(frame):
    with pytest.raises(DuplicateColumnError, match="more than once: 'x1'"):
        CausalStoNet.from_formula("y ~ treat | .", pd.concat([frame, frame[["x1"]]], axis=1)).design
    mixed = pd.DataFrame({1: np.arange(4.0), "1": 1.0, "y": np.arange(4.0), "t": [0, 1, 0, 1]})
    with pytest.raises(DuplicateColumnError, match="'1'"):
        fit(mixed, "y ~ t | .")


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
def test_columns_without_levels(values, says, frame):
    with pytest.raises(ColumnTypeError, match=f"'bad'.*{says}"):
        fit(frame.assign(bad=values.to_numpy()))


def test_empty_data(frame):
    with pytest.raises(EmptyDataError, match="0 rows, 5 columns"):
        fit(frame[:0])
    with pytest.raises(EmptyDataError, match="0 rows, 0 columns"):
        fit(pd.DataFrame())


def test_data_must_be_a_frame(frame):
    with pytest.raises(DataError, match="must be a pandas DataFrame, got dict"):
        CausalStoNet.from_formula("y ~ treat | .", frame.to_dict()).design
    nested = frame.set_axis(pd.MultiIndex.from_product([["top"], frame.columns]), axis=1)
    with pytest.raises(DataError, match="MultiIndex"):
        fit(nested)


# -- missing and infinite values -------------------------------------------------------------


@pytest.mark.parametrize("column", ["y", "treat", "x1", "g"])
def test_gaps_are_counted(column, frame):
    frame = frame.assign(treat=frame.treat.astype(float))
    gaps = with_value(with_value(frame, column, 3, None), "x2", 3, np.nan)
    with pytest.raises(MissingValuesError, match=rf"1 of 20 rows.*{column} \(1\).*missing='drop'"):
        fit(gaps)


def test_many_columns_with_gaps_are_summarised():
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 30))).add_prefix("x")
    data.iloc[0] = np.nan
    data = data.assign(y=np.arange(N), a=np.arange(N) % 2)
    with pytest.raises(MissingValuesError, match=r"x0 \(1\), .*x4 \(1\) and 25 more"):
        fit(data, "y ~ a | .")


def test_gaps_in_unused_columns_do_not_matter(frame):
    design = fit(with_value(frame, "x2", 3, np.nan), "y ~ treat | x1 + g")
    assert (design.n_dropped, len(design.y)) == (0, N)


def test_drop_is_joint_and_reported(frame):
    gaps = with_value(with_value(frame, "x1", 2, np.nan), "y", 7, np.nan)
    weights = np.arange(1.0, N + 1)
    weights[11] = np.nan
    design = fit(gaps, missing="drop", weights=weights)
    kept = np.delete(np.arange(N), [2, 7, 11])
    assert design.n_dropped == 3
    assert list(design.index) == list(frame.index[kept])
    np.testing.assert_array_equal(design.y, frame.y.to_numpy()[kept])
    np.testing.assert_array_equal(design.X[:, 0], frame.x1.to_numpy()[kept])
    np.testing.assert_allclose(design.weights, weights[kept] / weights[kept].mean(), rtol=1e-14)


def test_drop_uses_the_levels_that_remain(frame):
    frame = frame.assign(g=["rare"] * 2 + ["a", "b"] * 9, x1=[np.nan] * 2 + list(range(18)))
    assert fit(frame, missing="drop").covariates == ("x1", "x2", "g[T.b]")


def test_drop_warns_when_most_rows_go(frame):
    gaps = frame.assign(x1=np.where(np.arange(N) < 11, np.nan, frame.x1))
    with pytest.warns(UserWarning, match="leaves 9 of 20 rows") as caught:
        fit(gaps, missing="drop")
    assert caught[0].filename == __file__  # it points at the caller, not into the package


def test_drop_may_leave_nothing(frame):
    with pytest.raises(EmptyDataError, match="leaves no row"):
        fit(frame.assign(x1=np.nan), missing="drop")


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("column", ["y", "treat", "x1"])
def test_infinities_are_refused_never_dropped(column, sign, missing, frame):
    frame = frame.assign(treat=frame.treat.astype(float))
    bad = with_value(frame, column, 3, sign * np.inf)
    with pytest.raises(InfiniteValuesError, match=f"'{column}'.* 1 of 20"):
        fit(bad, missing=missing)


def test_huge_finite_values_are_legal(frame):
    """Their sum overflows, which is no reason to call them infinite."""
    big = np.finfo(float).max
    np.testing.assert_array_equal(fit(frame.assign(x1=big)).X[:, 0], big)


# -- weights ---------------------------------------------------------------------------------


def test_weights_have_mean_one(frame):
    weights = np.arange(N) + 0.5
    design = fit(frame, weights=weights)
    np.testing.assert_allclose(design.weights, weights / weights.mean(), rtol=1e-14)


def test_weights_by_name_are_no_covariate(frame):
    data = frame.assign(w=np.arange(1, N + 1))
    design = fit(data, weights="w")
    assert "w" not in design.covariates
    np.testing.assert_allclose(design.weights, data.w / data.w.mean(), rtol=1e-14)
    with pytest.raises(UnknownColumnError, match="no column 'v'"):
        fit(data, weights="v")


@pytest.mark.parametrize(
    ("weights", "error", "says"),
    [
        (np.ones(N - 1), LengthMismatchError, "weights has 19 values but there are 20 rows"),
        (np.ones((N, 2)), DataError, r"one value per row; its shape is \(20, 2\)"),
        (3.0, DataError, "one value per row"),
        (np.full(N, -1.0), DataError, "negative in 20 rows"),
        (np.zeros(N), DataError, "all zero"),
        (np.r_[np.nan, np.ones(N - 1)], MissingValuesError, r"weights \(1\)"),
        (np.r_[np.inf, np.ones(N - 1)], InfiniteValuesError, "weights"),
        (np.array(["a"] * N), DataError, "not numeric"),
    ],
)
def test_bad_weights(weights, error, says, frame):
    with pytest.raises(error, match=says):
        fit(frame, weights=weights)


def test_weights_of_zero_do_not_make_an_arm(frame):
    weights = np.where(frame.treat == 1, 0.0, 1.0)
    with pytest.raises(OneArmedError, match="treat = 1 has 0 units with positive weight"):
        fit(frame, weights=weights)
    weights[np.flatnonzero(frame.treat == 1)[:2]] = 1.0
    assert (fit(frame, weights=weights).weights == 0).sum() == 10


def test_huge_weights_do_not_overflow(frame):
    design = fit(frame, weights=np.full(N, 1e308))
    np.testing.assert_array_equal(design.weights, 1.0)


def test_rows_of_weight_zero_do_not_make_an_outcome_vary(frame):
    weights = np.where(np.arange(N) < 12, 1.0, 0.0)
    with pytest.raises(ConstantOutcomeError, match="is 3 in all 12 rows with positive weight"):
        fit(frame.assign(y=np.where(weights > 0, 3.0, frame["y"])), weights=weights)


def test_amounts_written_as_text(frame):
    doses = frame["x2"].round(2).astype(str)
    with pytest.raises(OneArmedError, match=r"numbers written as text.*to_numeric"):
        fit(frame.assign(treat=doses), "y ~ treat | x1")
    with pytest.raises(OneArmedError) as caught:
        fit(frame.assign(treat=["a"] + ["b"] * (N - 1)))
    assert "text" not in str(caught.value)


def test_advice_on_gaps_outside_the_covariates_works(frame):
    gaps = with_value(with_value(frame, "y", 2, np.nan), "x1", 5, np.nan)
    for missing in ("raise", "mar"):
        with pytest.raises(MissingValuesError, match=r"dropna\(subset=\['y'\]\)"):
            fit(gaps, missing=missing)
    assert fit(gaps.dropna(subset=["y"]), missing="mar").gaps.rows.size == 1
    with pytest.raises(MissingValuesError, match=r"without np\.exp\(y\), and impute"):
        fit(gaps, "np.exp(y) ~ treat | .")


def test_a_copy_in_the_rows_that_count_is_a_copy(frame):
    weights = np.where(np.arange(N) < 12, 1.0, 0.0)
    there = weights > 0
    with pytest.raises(DataError, match="'x1' equals the outcome"):
        fit(frame.assign(x1=np.where(there, frame["y"], 0.0)), weights=weights)
    with pytest.raises(TreatmentLeakError, match="'x1' is the treatment"):
        fit(frame.assign(x1=np.where(there, 2.0 * frame["treat"], 7.0)), weights=weights)
