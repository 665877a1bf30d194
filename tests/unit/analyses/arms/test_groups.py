"""Effects by group, projections and intervals of conditional effects, asked of fits."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cstonet.analyses.arms.grouping import grouped
from cstonet.data.conditions import Variables
from cstonet.errors import (
    ColumnTypeError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    LostSupportWarning,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
)
from cstonet.reporting.tables import broken

N = 500


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, 3))
    age = rng.uniform(20, 70, N).round(1)
    region = rng.choice(["east", "north", "west"], N)
    treat = (rng.random(N) < 1 / (1 + np.exp(-0.5 * x[:, 0]))).astype(int)
    effect = 1.0 + (region == "north") + 0.04 * (age - 45)
    sparse = np.where((np.arange(N) < 12) & (treat == 1), "few", "many")
    return pd.DataFrame(
        {
            "y": x[:, 0] + effect * treat + rng.normal(size=N),
            "treat": treat,
            "age": age,
            "region": region,
            **{f"x{j + 1}": x[:, j] for j in range(3)},
            "sex": rng.integers(0, 2, N),
            "sparse": sparse,
            "gaps": np.where(np.arange(N) < 5, np.nan, 1.0),
            "zero": np.where(np.arange(N) < 5, 0.0, 1.0),
        },
        index=pd.Index([f"u{i}" for i in range(N)]),
    )


@pytest.fixture(scope="module")
def results(data, fit_quickly, options):
    twice = options.replace(repeats=2)
    return fit_quickly("y ~ treat | x1 + x2 + x3 + age + region", data, options=twice)


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "cuts", "conditions"),
    [
        ("region", None, ["region == 'east'", "region == 'north'", "region == 'west'"]),
        ("sex", None, ["sex = 0", "sex = 1"]),
        ("age", [30, 50.5], ["age < 30", "30 <= age < 50.5", "age >= 50.5"]),
    ],
)
def test_each_row_is_the_effect_among_the_group(results, by, cuts, conditions):
    found = results.gate(by, cuts=cuts, alpha=0.1)
    assert len(found.table) == len(conditions)
    for where, (_, row) in zip(conditions, found.table.iterrows(), strict=True):
        one = results.effect("ATE", where=where, alpha=0.1)
        expected = [one.estimate, one.se, one.lower, one.upper, one.pvalue]
        got = row[["estimate", "se", "lower", "upper", "pvalue"]]
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
        assert row["lower_simultaneous"] < row["lower"]
        assert row["upper_simultaneous"] > row["upper"]
    if cuts is not None:
        assert found.table.index.tolist() == conditions


def test_groups_partition_the_units(results, data):
    table = results.gate("region").table
    sizes = pd.crosstab(data["region"], data["treat"])
    np.testing.assert_array_equal(table[["n[0]", "n[1]"]], sizes)
    assert table["n"].sum() == N
    assert table.index.tolist() == ["east", "north", "west"]
    assert table.index.name == "region"
    quarters = results.gate("age", cuts=4).table
    assert len(quarters) == 4
    assert quarters["n"].min() > 0.2 * N
    # Labels of numbers that were cut are conditions.
    row = quarters.iloc[1]
    assert results.effect("ATE", where=quarters.index[1]).estimate == row["estimate"]


def test_labels_may_be_given_and_some_units_left_out(results, data):
    labels = np.where(data["age"] > 45, "old", "young")
    table = results.gate(labels).table
    assert table.index.tolist() == ["old", "young"]
    assert table.loc["old", "n"] == (data["age"] > 45).sum()
    ordered = pd.Categorical(labels, ["young", "old", "never"])
    assert results.gate(pd.Series(ordered)).table.index.tolist() == ["young", "old"]
    some = results.gate("region", where="region != 'west'").table
    assert some.index.tolist() == ["east", "north"]
    whole = results.gate("region").table
    np.testing.assert_allclose(some["estimate"], whole["estimate"].iloc[:2], rtol=1e-12)


def test_a_test_of_equal_effects_and_a_printed_table(results):
    found = results.gate("region")
    assert found.test.df == 2
    assert found.test.pvalue < 0.01  # the north has one more, of an error of about 0.25
    text = str(found)
    assert "Equal effects: " in text
    assert max(map(len, text.splitlines())) <= 78
    assert "north" in text
    assert "Equal effects" in found.summary().as_html()
    assert "3 groups" in repr(found)
    placebo = results.gate("sex")
    assert placebo.test.pvalue > 0.001
    both = placebo.t_test(np.array([[1.0, -1.0]]))
    assert placebo.test.pvalue == pytest.approx(float(both.pvalue), rel=0.2, abs=1e-3)


def test_two_levels_of_three(fitted):
    b, a = fitted.arms.levels[2], fitted.arms.levels[1]
    table = fitted.gate("x1", cuts=2, contrast=(b, a)).table
    for label, row in table.iterrows():
        assert fitted.effect(f"ATE[{b}-{a}]", where=label).estimate == row["estimate"]
    with pytest.raises(OptionError, match=r"which has 3: say which, for example contrast=\("):
        fitted.gate("x1", cuts=2)
    with pytest.raises(OptionError, match="say which"):
        fitted.projection("x1")
    with pytest.raises(OptionError, match="say which"):
        fitted.cate(intervals=0.9)


@pytest.mark.parametrize(
    ("by", "asked", "error", "message"),
    [
        ("regoin", {}, UnknownColumnError, r"by: .*'regoin'.*Did you mean 'region'\?"),
        ("gaps", {}, MissingValuesError, "by: column 'gaps' is missing for 5 of the 500 units"),
        (
            "sparse",
            {},
            NotAvailableError,
            "group 'few' of 'sparse' has 0 of its .* in arm 0.*Merge",
        ),
        ("age", {}, OptionError, "different values, and there may be at most 50 groups: give cuts"),
        ("y", {}, NotAvailableError, "'y' is the outcome"),
        ("treat", {}, NotAvailableError, "'treat' is the treatment.*'ATT' and 'ATC'"),
        ("region", {"cuts": 3}, ColumnTypeError, "'region' holds no numbers"),
        ("age", {"cuts": 1}, OptionError, "cuts must be at least 2"),
        ("age", {"cuts": [50, 30]}, OptionError, "cuts must ascend"),
        ("age", {"cuts": "many"}, OptionError, "cuts must be a number of groups"),
        ("age", {"cuts": [1000]}, OptionError, "all units are in one group"),
        (np.zeros(3), {}, LengthMismatchError, "500 labels, one for each unit; got ndarray of sh"),
        (7, {}, LengthMismatchError, "got int"),
        ([None] * 4 + ["a"] * (N - 4), {}, MissingValuesError, "4 of the 500 labels are missing"),
        ([1] * 9 + ["a"] * (N - 9), {}, ColumnTypeError, "are of different kinds"),
        ("region", {"alpha": 2}, OptionError, "alpha must lie"),
    ],
)
def test_groups_that_cannot_be(results, by, asked, error, message):
    with pytest.raises(error, match=message):
        results.gate(by, **asked)


def test_quantiles_are_rounded_where_that_changes_little():
    rng = np.random.default_rng(0)
    values = pd.Series(rng.normal(1234.567, 100, 1000), name="income of household")
    variables = Variables((values.name,), lambda _: values, 1000, None, {})
    found = grouped("income of household", 4, variables, None)
    assert found.labels[0] == "income of household < 1170"
    np.testing.assert_allclose(np.bincount(found.codes), 250, atol=25)
    close = pd.Series(1e6 + rng.normal(size=1000), name="x")
    found = grouped("x", 4, Variables(("x",), lambda _: close, 1000, None, {}), None)
    np.testing.assert_array_equal(np.bincount(found.codes), 250)


def test_rows_with_imputed_covariates_are_effects_among_them_too(data, fit_quickly, options):
    holes = data.assign(x2=data["x2"].where(np.arange(N) % 9 > 0))
    imputed = fit_quickly(
        "y ~ treat | x1 + x2 + age", holes, missing="mar", options=options.replace(imputations=3)
    )
    table = imputed.gate("sex").table
    for sex in (0, 1):
        one = imputed.effect("ATE", where=f"sex = {sex}")
        got = table.loc[sex, ["estimate", "se", "lower", "upper"]]
        np.testing.assert_allclose(got, [one.estimate, one.se, one.lower, one.upper], rtol=1e-9)
    # Gaps hold the means of their imputations.
    assert imputed.effect("ATE", where="x2 > 0").se > 0
    assert imputed.projection("x2").bse.min() > 0


# Projections --------------------------------------------------------------------------------------


def test_a_projection_finds_what_is_linear(results):
    found = results.projection("age + C(region)")
    names = ["Intercept", "C(region)[T.north]", "C(region)[T.west]", "age"]
    assert found.params.index.tolist() == names
    truth = pd.Series([1 - 0.04 * 45, 1.0, 0.0, 0.04], index=names)
    assert ((found.params - truth).abs() < 4 * found.bse).all()
    assert found.test.df == 3
    assert found.test.pvalue < 0.001
    assert found.table.columns.tolist() == [
        "estimate",
        "se",
        "statistic",
        "pvalue",
        "lower",
        "upper",
    ]
    text = str(found)
    assert "Best linear projection of the ATE on age + C(region)" in text
    assert max(map(len, text.splitlines())) <= 78
    np.testing.assert_allclose(found.conf_int()[0], found.table["lower"])


def test_a_projection_on_a_constant_is_the_average_effect(results):
    found = results.projection("1")
    assert found.params["Intercept"] == pytest.approx(results.effect("ATE").estimate, rel=1e-9)
    assert found.test.df == 0
    assert "no slopes" not in str(found)


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ("agee", UnknownColumnError, "'agee'"),
        ("y ~ age", FormulaError, "without '~'"),
        ("age +", FormulaError, "cannot be read"),
        ("age + I(2 * age)", FormulaError, r"'I\(2 \* age\)' is a linear function of the terms"),
        ("gaps", MissingValuesError, "terms: column 'gaps' is missing"),
        ("np.log(zero)", InfiniteValuesError, r"'np.log\(zero\)' is infinite"),
        ("treat", NotAvailableError, "'treat' is the treatment"),
        ("y", NotAvailableError, "'y' is the outcome"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_projections_that_cannot_be(results, terms, error, message):
    with pytest.raises(error, match=message):
        results.projection(terms)


# Conditional effects ------------------------------------------------------------------------------


def test_intervals_are_around_the_conditional_effects(results, data):
    found = results.cate(intervals=0.9)
    assert found.columns.tolist() == ["estimate", "lower", "upper"]
    assert found.index.equals(data.index)
    np.testing.assert_array_equal(found["estimate"], results.cate())
    half = found["upper"] - found["estimate"]
    np.testing.assert_allclose(half, found["estimate"] - found["lower"], rtol=1e-9)
    wider = results.cate(intervals=0.99)
    np.testing.assert_allclose(
        (wider["upper"] - wider["estimate"]) / half, 2.5758293 / 1.6448536, rtol=1e-6
    )
    together = results.cate(intervals=0.9, simultaneous=True)
    ratio = (together["upper"] - together["estimate"]) / half
    assert ratio.min() == pytest.approx(ratio.max(), rel=1e-9)
    assert ratio.min() > 1.3


def test_a_new_unit_has_its_interval_whoever_is_asked_about_beside_it(results, data):
    new = data.drop(columns=["y", "treat"])
    many, few = results.cate(new, intervals=0.9), results.cate(new.iloc[7:9], intervals=0.9)
    np.testing.assert_allclose(many.iloc[7:9], few, rtol=1e-6)
    np.testing.assert_allclose(many["estimate"], results.cate(new), rtol=1e-6)
    nobody = results.cate(new.head(0), intervals=0.9, simultaneous=True)
    assert nobody.shape == (0, 3)


def test_answers_come_in_the_kind_given(results, data):
    pl = pytest.importorskip("polars")
    new = pl.from_pandas(data.iloc[:5].reset_index(drop=True))
    assert results.cate(new, intervals=0.9).columns == ["estimate", "lower", "upper"]


@pytest.mark.parametrize("level", [0, 1, 95, "wide", True])
def test_levels_that_cannot_be(results, level):
    with pytest.raises(OptionError, match="intervals must lie between 0 and 1"):
        results.cate(intervals=level)


def test_simultaneous_needs_a_level(results):
    with pytest.raises(OptionError, match="simultaneous is about intervals"):
        results.cate(simultaneous=True)


def test_without_folds_there_are_no_intervals(data, fit_quickly, options):
    whole = fit_quickly("y ~ treat | x1 + x2", data, options=options.replace(folds=1))
    with pytest.raises(NotAvailableError, match="this fit has none: fit again with folds=5"):
        whole.cate(intervals=0.95)


# Support and clusters -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lost(fit_quickly):
    """A lottery from -0.5 to 0.5; beyond, hardly anybody chose for himself."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 3))
    lottery = np.abs(x[:, 0]) < 0.5
    treat = np.where(lottery, rng.random(400) < 0.5, x[:, 0] > 0)
    treat = (treat ^ (rng.random(400) < 0.02)).astype(int)
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3"]).assign(
        treat=treat, y=x[:, 0] + treat + rng.normal(size=400)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostSupportWarning)
        return fit_quickly("y ~ treat | x1 + x2 + x3", frame)


def test_where_support_is_lost_all_limits_include_what_could_be_hidden(lost):
    groups = lost.gate("x2", cuts=2)
    hidden = groups.effects.bias
    assert hidden is not None
    for label, bias, (_, row) in zip(
        groups.table.index, hidden, groups.table.iterrows(), strict=True
    ):
        one = lost.effect("ATE", where=label)
        assert (row["lower"], row["upper"]) == pytest.approx((one.lower, one.upper), rel=1e-9)
        assert row["upper_simultaneous"] - row["estimate"] > bias
    assert "what extrapolation could hide" in str(groups)
    line = lost.projection("x1")
    assert line.effects.bias.min() > 0
    # A constant alone hides what the average effect hides.
    whole = lost.projection("1").effects.bias[0]
    assert whole == pytest.approx(lost.effects.bias[0], rel=1e-9)
    cate, far = lost.cate(intervals=0.9), lost._cross_fits.overlap.distance((1, 0)) > 0
    width = cate["upper"] - cate["lower"]
    assert width[far].mean() > width[~far].mean()


def test_clusters_are_in_all_of_them(data, fit_quickly):
    villages = np.arange(N) // 5
    told = fit_quickly("y ~ treat | x1 + x2 + age", data, cluster=villages)
    table = told.gate("region").table
    one = told.effect("ATE", where="region == 'north'")
    assert table.loc["north", "se"] == pytest.approx(one.se, rel=1e-9)
    # Villages have units in several regions.
    off = told.gate("region").effects.covariance[~np.eye(3, dtype=bool)]
    assert np.abs(off).min() > 0
    assert told.projection("age").bse.min() > 0
    assert told.cate(intervals=0.9).notna().all(axis=None)


def test_long_conditions_are_not_broken_within_numbers():
    lines = broken("-0.472 <= age < 0.37", 18)
    assert lines == ["-0.472 <= age <", "  0.37"]


# Units of weight zero, and the outcome as labels ------------------------------------------


def test_an_arm_of_weight_zero_has_no_effect(make_results):
    """Nobody that counts was treated there: neither a group's effect nor that of its treated."""
    results = make_results(n=400)
    first = np.arange(400) < 200
    weights = np.where(first & (results.nuisances.treatment == 1), 0.0, 1.0)
    results.nuisances = replace(results.nuisances, weights=weights)
    for name in ("ATE", "ATT"):
        with pytest.raises(NotAvailableError, match="only 0 of the"):
            results.effect(name, where=first)
    with pytest.raises(NotAvailableError, match="has 0 of its"):
        results.gate(first)


def test_the_outcome_is_no_group_as_a_column_either(results, data):
    for column in ("y", "treat"):
        with pytest.raises(NotAvailableError, match=f"'{column}' is the"):
            results.gate(data[column] > data[column].mean())
