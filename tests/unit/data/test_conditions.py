"""Conditions that choose units, against what pandas says of the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cstonet.data.conditions import Variables, chosen, holds
from cstonet.errors import (
    ColumnTypeError,
    CStoNetError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
    UnknownLevelError,
)

N = 200


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, N),
            "income": rng.normal(1000, 400, N).round(),
            "region": rng.choice(["north", "south", "o'west"], N),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], N), ["low", "mid", "high"]),
            "size": pd.Categorical(rng.choice(["S", "M"], N), ["S", "M"], ordered=True),
            "married": rng.random(N) < 0.5,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "C(region)[T.south]": rng.integers(0, 2, N).astype(float),
            "years of school": rng.integers(5, 20, N),
            "years": rng.integers(0, 3, N),
            "class": rng.integers(0, 3, N),
            "in": rng.integers(0, 2, N),
            "7": rng.integers(0, 2, N),
            "gaps": np.where(np.arange(N) < 3, np.nan, 1.0),
            "y": rng.normal(size=N),
        },
        index=pd.Index(range(1000, 1000 + N)),
    )


@pytest.fixture(scope="module")
def variables(frame) -> Variables:
    return Variables(tuple(frame), frame.__getitem__, N, None, {"y": "'y' is the outcome."})


WAYS = {
    "age > 50": lambda d: d.age > 50,
    "age>50": lambda d: d.age > 50,
    "50 < age": lambda d: d.age > 50,
    "30 <= age < 50": lambda d: (d.age >= 30) & (d.age < 50),
    "age = 40": lambda d: d.age == 40,
    "age == 40 or age != 40": lambda d: d.age > 0,
    "age > 50 and region == 'north'": lambda d: (d.age > 50) & (d.region == "north"),
    "not (age > 50) and not married": lambda d: (d.age <= 50) & ~d.married,
    "married": lambda d: d.married,
    "married == True": lambda d: d.married,
    "married = 0": lambda d: ~d.married,
    "age < 30 or age > 60 and married": lambda d: (d.age < 30) | (d.age > 60) & d.married,
    "(age < 30 or age > 60) and married": lambda d: ((d.age < 30) | (d.age > 60)) & d.married,
    "age < 40 & married | ~ married": lambda d: (d.age < 40) & d.married | ~d.married,
    "(age < 40) && (married = 1)": lambda d: (d.age < 40) & d.married,
    "region in ['north', 'south']": lambda d: d.region.isin(["north", "south"]),
    "region not in ('north', 'south')": lambda d: ~d.region.isin(["north", "south"]),
    'region = "o\'west"': lambda d: d.region == "o'west",
    "age in [30, 31, 32]": lambda d: d.age.isin([30, 31, 32]),
    "grade != 'low'": lambda d: d.grade != "low",
    "size >= 'M'": lambda d: d["size"] == "M",
    "income < 1,000": lambda d: d.income < 1000,
    "income > -1e2 and income >= +5": lambda d: d.income >= 5,
    "income > age": lambda d: d.income > d.age,
    "seen >= '2021-03-01'": lambda d: d.seen >= "2021-03-01",
    "C(region)[T.south] = 1": lambda d: d["C(region)[T.south]"] == 1,
    "`C(region)[T.south]` = 1 and age > 30": lambda d: (
        (d["C(region)[T.south]"] == 1) & (d.age > 30)
    ),
    "years of school > 9 and years = 1": lambda d: (d["years of school"] > 9) & (d.years == 1),
    "class = 1": lambda d: d["class"] == 1,
    "`in` = 1 and `7` = 0": lambda d: (d["in"] == 1) & (d["7"] == 0),
    "age > 7": lambda d: d.age > 7,
    "  ": lambda d: d.age > 0,
}


@pytest.mark.parametrize("text", WAYS)
def test_all_ways_to_write_conditions(frame, variables, text):
    np.testing.assert_array_equal(holds(text, variables), WAYS[text](frame).to_numpy())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("age", OptionError, "cannot read 'age'; conditions compare columns"),
        ("age > 50 and", OptionError, "cannot read 'age > 50 and'"),
        ("age >", OptionError, "cannot read"),
        ("(age > 50", OptionError, "cannot read"),
        ("age > 1 + 1", OptionError, "'1 \\+ 1' is no value"),
        ("abs(age) > 1", OptionError, r"'abs\(age\)' is no value"),
        ("__import__('os').system('true')", OptionError, "cannot read"),
        ("age.max() > 1", OptionError, "is no value"),
        ("age is 3", OptionError, "'is' has no meaning here"),
        ("3 < 4", OptionError, "'3' and '4' are both values"),
        ("age in 3", OptionError, "on the right a list of values"),
        ("age in [x for x in age]", OptionError, "on the right a list"),
        ("AGE > 3", UnknownColumnError, r"neither a column nor a covariate 'AGE'.*'age'\?"),
        ("`no such` > 3", UnknownColumnError, "'no such'"),
        ("region = north", UnknownColumnError, "value of 'region', write it in quotes: 'north'"),
        ("region = 'nort'", UnknownLevelError, r"'nort' is no value of column 'region'.*'north'\?"),
        ("region in ['north', 'x']", UnknownLevelError, "'x' is no value"),
        ("region = 3", UnknownLevelError, "3 is no value of column 'region'"),
        ("region > 'north'", ColumnTypeError, "'region' have no order"),
        ("age > 'old'", ColumnTypeError, "holds numbers and cannot be compared with the text"),
        ("married = 'yes'", ColumnTypeError, "holds truth values"),
        ("seen > 2021", ColumnTypeError, "'seen' holds dates, and 2021 is none"),
        ("age > region", ColumnTypeError, "only columns of numbers can"),
        ("gaps = 1", MissingValuesError, "'gaps' is missing for 3 of the 200 units"),
        ("y > 0", NotAvailableError, "'y' is the outcome"),
    ],
)
def test_errors_for_people(variables, text, error, message):
    with pytest.raises(error, match=message):
        holds(text, variables)


def test_nothing_but_named_errors_comes_of_any_text(variables):
    """Words of the grammar in random order: an answer, or an error of ours."""
    rng = np.random.default_rng(1)
    words = "age region married ( ) [ ] , and or not in == = < > 50 'north' ` ' lambda : . - ~ |"
    words = words.split()
    read = 0
    for _ in range(2000):
        text = " ".join(rng.choice(words, rng.integers(1, 7)))
        try:
            mask = holds(text, variables)
        except CStoNetError:
            continue
        assert mask.shape == (N,)
        assert mask.dtype == bool
        read += 1
    assert read > 10


def test_masks_choose_themselves(frame, variables):
    mask = (frame.age > 50).to_numpy()
    for where in (mask, mask.tolist(), frame.age > 50, pd.array(mask, dtype="boolean")):
        np.testing.assert_array_equal(chosen(where, variables), mask)


def test_masks_of_all_rows_are_cut_to_those_of_the_fit(frame):
    kept = np.arange(N) % 4 > 0
    some = frame[kept]
    variables = Variables(tuple(some), some.__getitem__, len(some), kept, {})
    np.testing.assert_array_equal(chosen(frame.age > 50, variables), some.age > 50)
    np.testing.assert_array_equal(chosen(some.age > 50, variables), some.age > 50)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("age > 99", "where='age > 99' holds for none of the 200 units"),
        (np.zeros(N, dtype=bool), "holds for none of the 200 units"),
        (np.ones(3, dtype=bool), r"200 truth values, one for each unit; got ndarray of shape \(3,"),
        (np.ones(N), "200 truth values"),
        (7, "200 truth values, one for each unit; got int"),
        (np.ones((N, 1), dtype=bool), "got ndarray of shape"),
        (pd.array([None, *[True] * (N - 1)], dtype="boolean"), "200 truth values"),
    ],
)
def test_choices_that_are_none(variables, where, message):
    with pytest.raises(OptionError, match=message):
        chosen(where, variables)
