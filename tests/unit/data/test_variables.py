"""Every way in which outcome and weights can be unfit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet.errors import (
    ConstantOutcomeError,
    DataError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    MissingValuesError,
    OutcomeTypeError,
    UnevenWeightsError,
    UnknownColumnError,
)

N = 20  # rows of the frame


# -- outcome -----------------------------------------------------------------------------------


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
def test_family_is_inferred(values, family, frame, read_design):
    design = read_design(frame.drop(columns="g").assign(y=np.resize(values, N)))
    assert (design.family, design.family_inferred) == (family, True)
    np.testing.assert_array_equal(design.y, np.resize(values, N).astype(float))


def test_family_can_be_given(frame, read_design):
    binary = frame.assign(y=np.resize([True, False], N))
    design = read_design(binary, family="gaussian")
    assert (design.family, design.family_inferred) == ("gaussian", False)
    design = read_design(binary, family="binomial")
    assert (design.family, design.family_inferred) == ("binomial", False)
    counts = frame.drop(columns="g").assign(y=np.resize([0, 3, 1.5], N))
    design = read_design(counts, family="poisson")
    assert (design.family, design.family_inferred) == ("poisson", False)
    np.testing.assert_array_equal(design.y, np.resize([0, 3, 1.5], N))


def test_outcome_must_suit_the_family(frame, read_design):
    with pytest.raises(OutcomeTypeError, match=r"'y' must be 0 or 1.*family='gaussian'"):
        read_design(frame, family="binomial")
    with pytest.raises(OutcomeTypeError, match=r"'y' must not be negative.*it is in 6 rows"):
        read_design(frame.assign(y=np.resize([0, 3, -1], N)[::-1]), family="poisson")


@pytest.mark.parametrize(
    "values",
    [
        np.resize(["yes", "no"], N),
        pd.Categorical(np.resize([0, 1], N)),
        pd.date_range("2020-01-01", periods=N),
        np.arange(N) * 1j,
    ],
)
def test_outcome_must_be_numeric(values, frame, read_design):
    with pytest.raises(OutcomeTypeError, match=r"'y'.*not numeric"):
        read_design(frame.assign(y=values))


def test_constant_outcome(frame, read_design):
    with pytest.raises(ConstantOutcomeError, match="'y' is 3 in all 20 rows"):
        read_design(frame.assign(y=3.0))


def test_outcome_expression_that_fails(frame, read_design):
    with pytest.raises(FormulaError, match=r"'np.log\(g\)' cannot be evaluated"):
        read_design(frame, "np.log(g) ~ treat | x1")
    with pytest.raises(FormulaError, match="cannot be read"):
        read_design(frame, "y y ~ treat | x1")


def test_outcome_is_not_its_own_treatment(frame, read_design):
    with pytest.raises(FormulaError, match="share a column"):
        read_design(frame, "y ~ I(y > 0) | x1")


def test_rows_of_weight_zero_do_not_make_an_outcome_vary(frame, read_design):
    weights = np.where(np.arange(N) < 12, 1.0, 0.0)
    with pytest.raises(ConstantOutcomeError, match="is 3 in all 12 rows with positive weight"):
        read_design(frame.assign(y=np.where(weights > 0, 3.0, frame["y"])), weights=weights)


# -- infinities --------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("column", ["y", "treat", "x1"])
def test_infinities_are_refused_never_dropped(
    column, sign, missing, frame, read_design, with_value
):
    frame = frame.assign(treat=frame.treat.astype(float))
    bad = with_value(frame, column, 3, sign * np.inf)
    with pytest.raises(InfiniteValuesError, match=f"'{column}'.* 1 of 20"):
        read_design(bad, missing=missing)


# -- weights -----------------------------------------------------------------------------------


def test_weights_have_mean_one(frame, read_design):
    weights = np.arange(N) + 0.5
    design = read_design(frame, weights=weights)
    np.testing.assert_allclose(design.weights, weights / weights.mean(), rtol=1e-14)


def test_weights_by_name_are_no_covariate(frame, read_design):
    data = frame.assign(w=np.arange(1, N + 1))
    design = read_design(data, weights="w")
    assert "w" not in design.covariates
    np.testing.assert_allclose(design.weights, data.w / data.w.mean(), rtol=1e-14)
    with pytest.raises(UnknownColumnError, match="no column 'v'"):
        read_design(data, weights="v")


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
def test_bad_weights(weights, error, says, frame, read_design):
    with pytest.raises(error, match=says):
        read_design(frame, weights=weights)


def test_weights_that_no_sum_sees_are_zero(frame, read_design):
    weights = np.where(np.arange(N) % 2, 1.0, 1e-60)
    np.testing.assert_array_equal(
        read_design(frame, weights=weights).weights, np.where(np.arange(N) % 2, 2.0, 0.0)
    )
    small = np.where(np.arange(N) % 2, 1.0, 1e-15)
    assert (read_design(frame, weights=small).weights > 0).all()


@pytest.mark.parametrize(("largest", "fine"), [(20.0, True), (200.0, False)])
def test_one_row_must_not_have_all_the_weight(largest, fine, frame, read_design):
    """(19 + w)² / (19 + w²) is 3.6 for w = 20, and 1.2 for w = 200."""
    weights = np.r_[largest, np.ones(N - 1)]
    if fine:
        read_design(frame, weights=weights)
        return
    with pytest.raises(
        UnevenWeightsError, match=r"91% of the weight of all data.*20 rows.* 1\.2 of"
    ):
        read_design(frame, weights=weights)


def test_huge_weights_do_not_overflow(frame, read_design):
    design = read_design(frame, weights=np.full(N, 1e308))
    np.testing.assert_array_equal(design.weights, 1.0)
