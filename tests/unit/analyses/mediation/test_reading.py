"""Mediators as users give them: formulas, arrays, kinds of columns, and all that can be wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.analyses.mediation.reading import MediationDesign
from cstonet.errors import (
    ConstantMediatorError,
    DataError,
    DuplicateColumnError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    MediatorLeakError,
    MediatorTypeError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    TreatmentLeakError,
    UnknownColumnError,
)

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "a": np.arange(N) % 2,
            "x1": rng.normal(size=N),
            "x2": rng.normal(size=N),
            "m1": rng.normal(size=N),
            "m2": rng.exponential(size=N),
            "b": rng.binomial(1, 0.5, N),
            "yes": rng.random(N) < 0.5,
            "label": rng.choice(["low", "high"], N),
            "group": rng.choice(["p", "q", "r"], N),
        }
    )


def mediators_of(formula, frame, **options):
    return CausalStoNet.from_formula(formula, frame, **options).design.mediators


def test_numbers_and_two_levels(frame):
    found = mediators_of("y ~ a | x1 + x2 | label + m1 + b + yes", frame)
    assert found.names == ("label", "m1", "b", "yes")
    assert found.families == ("binomial", "gaussian", "binomial", "binomial")
    assert found.levels == (("high", "low"), (), (0.0, 1.0), (False, True))
    assert found.binary.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(found.values[:, 0], frame["label"] == "low")
    np.testing.assert_array_equal(found.values[:, 1], frame["m1"])
    np.testing.assert_array_equal(found.values[:, 3], frame["yes"])


@pytest.mark.parametrize(
    ("formula", "covariates"),
    [
        ("y ~ a | . - b - yes - label - group | np.exp(m1) + m2", ("x1", "x2")),
        ("y ~ a | . - b - yes - label - group | m1 + m1:m2", ("x1", "x2")),
        ("y ~ a | np.exp(x1) | m1 + m2", ("np.exp(x1)",)),
    ],
)
def test_columns_inside_expressions_belong_to_their_part(formula, covariates, frame):
    design = CausalStoNet.from_formula(formula, frame).design
    assert design.covariates == covariates


def test_a_column_computed_with_in_both_parts_is_refused(frame):
    with pytest.raises(FormulaError, match="'m1' is named among the covariates and among the"):
        CausalStoNet.from_formula("y ~ a | x1 + I(m1**2) | m1", frame)


def test_mediators_without_columns_are_refused(frame):
    with pytest.raises(DataError, match="no columns"):
        CausalStoNet(frame["y"], frame["a"], frame[["x1"]], mediators=np.empty((N, 0)))


def test_two_numbers_are_two_levels(frame):
    found = mediators_of("y ~ a | x1 | m", frame.assign(m=3 + 2.0 * frame["b"]))
    assert found.levels == ((3.0, 5.0),)
    np.testing.assert_array_equal(found.values[:, 0], frame["b"])


def test_terms_of_patsy(frame):
    found = mediators_of("y ~ a | x1 | np.log(m2) + m1", frame)
    assert found.names == ("m1", "np.log(m2)")
    np.testing.assert_allclose(found.values[:, 1], np.log(frame["m2"]))


def test_dot_leaves_the_other_part_alone(frame):
    small = frame[["y", "a", "x1", "x2", "m1", "m2"]]
    design = CausalStoNet.from_formula("y ~ a | . | m1 + m2", small).design
    assert design.covariates == ("x1", "x2")
    assert design.mediators.names == ("m1", "m2")
    design = CausalStoNet.from_formula("y ~ a | x1 + x2 | .", small).design
    assert design.mediators.names == ("m1", "m2")
    weighted = CausalStoNet.from_formula("y ~ a | x1 | .", small.assign(w=1.0), weights="w").design
    assert weighted.mediators.names == ("x2", "m1", "m2")


def test_without_a_third_part_there_are_none(frame):
    design = CausalStoNet.from_formula("y ~ a | x1", frame).design
    assert not isinstance(design, MediationDesign)
    assert not hasattr(design, "mediators")


def test_arrays(frame):
    X, y, a = frame[["x1", "x2"]].to_numpy(), frame["y"], frame["a"]
    model = cs.CausalStoNet(y, a, X, mediators=frame[["m1", "label"]])
    assert model.design.mediators.names == ("m1", "label")
    assert CausalStoNet(y, a, X, mediators=frame["m1"]).design.mediators.names == ("m1",)
    bare = CausalStoNet(y, a, X, mediators=frame[["m1", "m2"]].to_numpy()).design
    assert bare.mediators.names == ("m1", "m2")
    one = CausalStoNet(y, a, X, mediators=frame["m1"].to_numpy()).design
    np.testing.assert_array_equal(one.mediators.values[:, 0], frame["m1"])


def test_arrays_must_fit(frame):
    X, y, a = frame[["x1", "x2"]].to_numpy(), frame["y"].to_numpy(), frame["a"].to_numpy()
    with pytest.raises(LengthMismatchError, match="59 rows"):
        CausalStoNet(y, a, X, mediators=frame["m1"].to_numpy()[:-1])
    with pytest.raises(DataError, match="one row per unit"):
        CausalStoNet(y, a, X, mediators=np.zeros((N, 2, 2)))
    with pytest.raises(DataError, match="rows differ in length"):
        CausalStoNet(y, a, X, mediators=[[1.0], [1.0, 2.0]] * (N // 2))
    masked = np.ma.masked_array(frame["m1"].to_numpy(), mask=np.arange(N) < 2)
    with pytest.raises(MissingValuesError, match=r"m1 \(2\)"):
        CausalStoNet(y, a, X, mediators=masked)
    with pytest.raises(DuplicateColumnError, match="both called 'x1'"):
        CausalStoNet(y, a, X, mediators=frame[["m1"]].set_axis(["x1"], axis=1))
    with pytest.raises(DataError, match="different row labels"):
        CausalStoNet(frame["y"], a, X, mediators=frame["m1"].iloc[::-1])


def test_missing_values(frame):
    frame.loc[3, "m1"] = np.nan
    with pytest.raises(MissingValuesError, match=r"m1 \(1\)"):
        mediators_of("y ~ a | x1 | m1 + m2", frame)
    design = CausalStoNet.from_formula("y ~ a | x1 | m1 + m2", frame, missing="drop").design
    assert (design.n_dropped, len(design.mediators.values), len(design.y)) == (1, N - 1, N - 1)


@pytest.mark.parametrize(
    ("formula", "error", "message"),
    [
        ("y ~ a | x1 | group", MediatorTypeError, "3 levels"),
        ("y ~ a | x1 | m1 + constant", ConstantMediatorError, "'constant' is"),
        ("y ~ a | x1 | text", ConstantMediatorError, "'text' is 'same'"),
        ("y ~ a | x1 | copy", MediatorLeakError, "'copy' is the outcome"),
        ("y ~ a | x1 | m1 + risen", MediatorLeakError, "'risen' is the outcome"),
        ("y ~ a | x1 | arm", MediatorLeakError, "'arm' is the treatment"),
        ("y ~ a | x1 | armname", MediatorLeakError, "'armname' is the treatment"),
        ("y ~ a | x1 | moved", MediatorLeakError, "also among the covariates, as 'x1'"),
        ("y ~ a | x1 | bent", MediatorLeakError, "also among the covariates, as 'x1'"),
        ("y ~ a | x1 | m1 + double", MediatorLeakError, "'m1' and 'double' are the same"),
        ("y ~ a | x1 | m1 + cube", MediatorLeakError, "'m1' and 'cube' are the same"),
        (
            "y ~ a | x1 | m1 + m2 + total",
            MediatorLeakError,
            "'total' is a sum of multiples of others",
        ),
        ("y ~ a | x1 | some", ConstantMediatorError, "'some' has one value in the control arm"),
        ("y ~ a | x1 | none", ConstantMediatorError, "'none' has one value in the treated arm"),
        ("y ~ a | x1 | always", ConstantMediatorError, "'always' has one value in the treated arm"),
        ("y ~ a | x1 | digits", MediatorTypeError, "numbers that are written as text"),
        ("y ~ a | x1 | m1 + far", InfiniteValuesError, "The mediator 'far' is infinite in 1 of 60"),
        ("y ~ a | x1 + m1 | m1", FormulaError, "'m1' is named among the covariates and"),
        ("y ~ a | . | .", FormulaError, r"'\.' stands among the covariates and"),
        ("y ~ a | x1 | m1 - m1", FormulaError, "no mediators"),
        ("y ~ a | x1 | y", FormulaError, "The mediator 'y' uses the outcome"),
        ("y ~ a | x1 | m1 + np.log(a + 1)", TreatmentLeakError, "uses the treatment"),
        ("y ~ a | x1 | nowhere", UnknownColumnError, "nowhere"),
    ],
)
def test_errors_say_what_is_wrong(frame, formula, error, message):
    data = frame.assign(
        constant=2.5,
        text="same",
        copy=3 - 2 * frame["y"],
        risen=np.exp(frame["y"] / 4),
        bent=np.exp(-frame["x1"]),
        cube=frame["m1"] ** 3,
        arm=7 - 4 * frame["a"],
        armname=frame["a"].map({0: "control", 1: "drug"}),
        moved=10 + 0.5 * frame["x1"],
        double=-2 * frame["m1"],
        total=(1 + frame["m1"] - 3 * frame["m2"]).astype("float32"),
        some=frame["m1"] * frame["a"],
        none=frame["m1"] * (1 - frame["a"]),
        always=np.where(frame["a"] == 1, "yes", np.where(frame["b"] == 1, "yes", "no")),
        digits=frame["m1"].round(2).astype(str),
        far=np.where(frame.index == 7, np.inf, frame["m2"]),
    )
    with pytest.raises(error, match=message):
        mediators_of(formula, data)


@pytest.mark.parametrize("column", ["y", "x1", "m1"])
@pytest.mark.parametrize("missing", ["raise", "mar"])
def test_advice_on_gaps_works(frame, column, missing):
    frame.loc[3, column] = np.nan
    formula = "y ~ a | x1 | m1 + m2"
    with pytest.raises(MissingValuesError, match=rf"{column} \(1\).*missing='drop'") as caught:
        mediators_of(formula, frame, missing=missing)
    if missing == "raise":  # imputation is refused, so it is no advice
        assert "'mar'" not in str(caught.value)
    assert len(mediators_of(formula, frame, missing="drop").values) == N - 1


def test_rows_of_weight_zero_do_not_count(frame):
    weights = np.where(np.arange(N) < 40, 1.0, 0.0)
    there = weights > 0

    def found(values):
        data = frame.assign(m=np.where(there, values, frame["m2"]))
        return mediators_of("y ~ a | x1 | m + m1", data, weights=weights)

    for values, error, message in (
        (2.5, ConstantMediatorError, "'m' is 2.5 in all rows with positive weight"),
        (frame["m1"], MediatorLeakError, "'m' and 'm1' are the same"),
        (1 - 3 * frame["y"], MediatorLeakError, "'m' is the outcome"),
        (frame["a"], MediatorLeakError, "'m' is the treatment"),
        (2 * frame["x1"], MediatorLeakError, "also among the covariates, as 'x1'"),
    ):
        with pytest.raises(error, match=message):
            found(values)
    # Two values where it counts are two levels, whatever a row without weight holds.
    two = found(frame["b"])
    assert two.levels[0] == (0.0, 1.0)
    np.testing.assert_array_equal(two.values[there, 0], frame["b"][there])
    labels = frame.assign(label=np.where(there, frame["label"], "unknown"))
    assert mediators_of("y ~ a | x1 | label", labels, weights=weights).levels == (("high", "low"),)
    labels = frame.assign(label=np.where(there, "low", "high"))
    with pytest.raises(ConstantMediatorError, match="'low' in all rows with positive weight"):
        mediators_of("y ~ a | x1 | label", labels, weights=weights)


@pytest.mark.parametrize("code", [99999999.0, 1e12, -1e30])
def test_a_shared_code_makes_no_copy(frame, code):
    """One row, or several, with the same code for a gap in variables that are not the same."""
    formula = "y ~ a | x1 + x2 | m1 + m2 + rare"
    # The covariates are float32, where the copy of a code is not always the code.
    columns = ["y", "x1", "m1", "m2", "rare"]
    for rows in ([3], [0, 3, 17, 40]):
        coded = frame.assign(rare=np.where(np.arange(N) % 5 < 3, 0.0, frame["m1"] ** 2))
        coded.loc[rows, columns] = code
        assert mediators_of(formula, coded).names == ("m1", "m2", "rare")
        for copied, message in (
            (3 - 2 * coded["y"], "'m1' is the outcome"),
            (2 * coded["m2"], "'m1' and 'm2' are the same"),
            (coded["rare"] / 3, "'m1' and 'rare' are the same"),
            (-4 * coded["x1"], "also among the covariates, as 'x1'"),
        ):
            with pytest.raises(MediatorLeakError, match=message):
                mediators_of(formula, coded.assign(m1=copied))
        total = coded.assign(rare=coded["m1"] + 2 * coded["m2"])
        with pytest.raises(MediatorLeakError, match="'rare' is a sum of multiples of others"):
            mediators_of(formula, total)


def test_what_nobody_has_under_control_can_mediate(frame):
    taken = frame.assign(taken=frame["b"] * frame["a"])
    assert mediators_of("y ~ a | x1 | taken", taken).levels == ((0.0, 1.0),)


def test_only_two_arms(frame):
    with pytest.raises(NotAvailableError, match="two levels"):
        mediators_of("y ~ group | x1 | m1", frame)


def test_no_mediation_without_a_search(frame):
    model = cs.CausalStoNet.from_formula("y ~ a | x1 | m1", frame)
    with pytest.raises(NotAvailableError, match="structure search"):
        model.fit("paper")


def test_variance_is_that_of_the_influence_function(frame):
    model = cs.CausalStoNet.from_formula("y ~ a | x1 | m1", frame)
    assert model.plan().variance == model.plan(variance="influence").variance == "influence"
    with pytest.raises(OptionError, match=r"variance='paper' .*mediators"):
        model.fit(variance="paper")
    plain = cs.CausalStoNet.from_formula("y ~ a | x1", frame)
    assert plain.plan().variance == "influence"
    assert plain.plan(variance="paper").variance == "paper"


def test_data_are_not_changed(frame):
    before = frame.copy(deep=True)
    design = CausalStoNet.from_formula("y ~ a | x1 | m1 + label", frame).design
    design.mediators.values[:] = 0
    pd.testing.assert_frame_equal(frame, before)
