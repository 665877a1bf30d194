"""Arms and doses: how they are read from a column, dealt to folds and clamped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet.data.treatment import Arms, Dose
from cstonet.data.units import Units
from cstonet.errors import (
    ConstantTreatmentError,
    MissingValuesError,
    OneArmedError,
    TooFewRowsError,
    TreatmentTypeError,
    UnknownLevelError,
)

N = 20  # rows of the frame


def arms(codes, levels=("a", "b")):
    return Arms("treat", np.asarray(codes, dtype=np.int64), levels, "multilevel")


def dose(values):
    values = np.asarray(values, dtype=np.float64)
    return Dose("amount", values, Units.of(values, "gaussian"))


# -- as a column -----------------------------------------------------------------------------


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
def test_treatment_levels(values, levels, dtype, frame, read_design):
    pattern = np.array([0, 1, 1, 0, 1] * 4)
    treat = pd.Series(np.array(values)[pattern], index=frame.index, dtype=dtype)
    design = read_design(frame.assign(treat=treat))
    assert design.treatment.levels == levels
    assert [type(level) for level in design.treatment.levels] == [type(v) for v in levels]
    np.testing.assert_array_equal(np.array(levels)[design.treatment.codes], treat)


def test_category_decides_which_arm_is_treated(frame, read_design):
    treat = pd.Categorical(
        np.where(frame.treat == 1, "active", "placebo"), ["placebo", "active", "never used"]
    )
    design = read_design(frame.assign(treat=treat))
    assert design.treatment.levels == ("placebo", "active")
    np.testing.assert_array_equal(design.treatment.codes, frame.treat)


def test_treatment_may_be_marked_as_categorical(frame, read_design):
    assert read_design(frame, "y ~ C(treat) | x1").treatment.levels == (0, 1)


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
def test_treatment_of_another_kind(declared, values, says, frame, read_design):
    with pytest.raises(TreatmentTypeError, match=f"'treat'.*{says}"):
        read_design(frame.assign(treat=values), treatment=declared)


def test_constant_treatment(frame, read_design):
    with pytest.raises(ConstantTreatmentError, match="'treat' is 1 in all 20 rows"):
        read_design(frame.assign(treat=1))
    only = pd.Categorical(["a"] * N, categories=["a", "b"])
    with pytest.raises(ConstantTreatmentError, match="'a' in all"):
        read_design(frame.assign(treat=only))


def test_one_armed_data(frame, read_design):
    treat = np.zeros(N, dtype=int)
    treat[4] = 1
    with pytest.raises(OneArmedError, match="treat = 1 has 1 unit; at least 2"):
        read_design(frame.assign(treat=treat))
    treat[5] = 1
    assert read_design(frame.assign(treat=treat)).treatment.codes.sum() == 2


@pytest.mark.filterwarnings("ignore:missing='drop' leaves")
@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_dropping_may_empty_an_arm(missing, frame, read_design):
    frame = frame.assign(y=np.where(frame.treat == 1, np.nan, frame.y))
    with pytest.raises(MissingValuesError if missing == "raise" else ConstantTreatmentError):
        read_design(frame, missing=missing)


def test_weights_of_zero_do_not_make_an_arm(frame, read_design):
    weights = np.where(frame.treat == 1, 0.0, 1.0)
    with pytest.raises(OneArmedError, match="treat = 1 has 0 units with positive weight"):
        read_design(frame, weights=weights)
    weights[np.flatnonzero(frame.treat == 1)[:2]] = 1.0
    assert (read_design(frame, weights=weights).weights == 0).sum() == 10


def test_amounts_written_as_text(frame, read_design):
    doses = frame["x2"].round(2).astype(str)
    with pytest.raises(OneArmedError, match=r"numbers written as text.*to_numeric"):
        read_design(frame.assign(treat=doses), "y ~ treat | x1")
    with pytest.raises(OneArmedError) as caught:
        read_design(frame.assign(treat=["a"] + ["b"] * (N - 1)))
    assert "text" not in str(caught.value)


# -- as a value ------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_arms_have_a_unit_for_every_level_but_the_reference(levels):
    codes = np.random.default_rng(levels).integers(levels, size=30)
    treatment = arms(codes, tuple("abcd"[:levels]))
    visible = treatment.visible()
    assert visible.shape == (30, levels - 1)
    assert treatment.block_units == levels - 1
    assert treatment.block_family == ("bernoulli" if levels == 2 else "categorical")
    np.testing.assert_array_equal(visible @ np.arange(1, levels), codes)
    np.testing.assert_array_equal(visible.sum(axis=1), codes > 0)


def test_arms_are_their_own_strata_whatever_their_weights():
    treatment = arms([0, 1, 2, 1], ("a", "b", "c"))
    for weights in (None, np.array([1.0, 0.0, 2.0, 1.0])):
        np.testing.assert_array_equal(treatment.strata(weights), [0, 1, 2, 1])


def test_arms_compare_where_each_has_a_unit():
    treatment = arms([0, 1, 2, 1], ("a", "b", "c"))
    assert treatment.compares(np.array([True, False, True, True]))
    assert not treatment.compares(np.array([True, True, False, True]))


def test_arms_know_the_codes_of_their_levels():
    treatment = arms([0, 1], ("none", 5))
    assert [treatment.code_of(level, "reference") for level in ("none", 5)] == [0, 1]
    with pytest.raises(UnknownLevelError, match=r"contrast: .*'treat' has no level 6.*'none', 5"):
        treatment.code_of(6, "contrast")


def test_more_folds_than_rows():
    for treatment in (arms([0, 1, 0, 1]), dose([0.0, 1.0, 2.0, 3.0])):
        treatment.check_folds(1, None)
        with pytest.raises(TooFewRowsError, match="5 folds need at least 5 rows, but there are 4"):
            treatment.check_folds(5, None)


def test_rows_of_weight_zero_are_not_enough_for_an_arm():
    treatment = arms(np.repeat([0, 1], 30))
    weights = np.ones(60)
    treatment.check_folds(5, weights)
    weights[34:] = 0
    with pytest.raises(OneArmedError, match=r"'b' has 4 unit.*with positive weight.*at least 5"):
        treatment.check_folds(5, weights)
    weights[3:] = 0
    with pytest.raises(TooFewRowsError, match="5 rows with positive weight, but there are 3"):
        treatment.check_folds(5, weights)


def test_doses_of_weight_zero_fill_no_fold():
    treatment, weights = dose(np.arange(10.0)), np.ones(10)
    treatment.check_folds(5, weights)
    weights[3:] = 0
    with pytest.raises(TooFewRowsError, match="5 rows with positive weight, but there are 3"):
        treatment.check_folds(5, weights)


def test_doses_are_one_standardised_unit():
    values = np.random.default_rng(0).gamma(2.0, size=50)
    treatment = dose(values)
    visible = treatment.visible()
    assert visible.shape == (50, 1)
    assert (treatment.block_family, treatment.block_units) == ("gaussian", 1)
    np.testing.assert_allclose(visible[:, 0], (values - values.mean()) / values.std(), rtol=1e-12)


def test_doses_are_dealt_by_size():
    values = np.random.default_rng(1).permutation(np.arange(200.0))
    strata = dose(values).strata(None)
    np.testing.assert_array_equal(np.bincount(strata), 20)
    order = np.argsort(values)
    assert (np.diff(strata[order]) >= 0).all()


def test_equal_doses_share_a_stratum():
    values = np.random.default_rng(2).integers(5, size=100).astype(float)
    strata = dose(values).strata(None)
    for value in range(5):
        assert np.unique(strata[values == value]).size == 1


def test_doses_of_weight_zero_do_not_move_the_strata():
    values = np.random.default_rng(3).normal(size=100)
    wild = np.concatenate([values, np.full(50, 1e3)])
    weights = np.repeat([1.0, 0.0], [100, 50])
    np.testing.assert_array_equal(dose(wild).strata(weights)[:100], dose(values).strata(None))


def test_doses_compare_where_they_differ():
    treatment = dose([1.0, 1.0, 2.0])
    assert treatment.compares(np.array([True, False, True]))
    assert not treatment.compares(np.array([True, True, False]))
