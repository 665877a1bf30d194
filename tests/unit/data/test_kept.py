"""Names of covariates to keep, from what was typed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.data.kept import kept_covariates
from cstonet.errors import OptionError


@pytest.fixture(scope="module")
def spec():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=["y", "age", "bmi", "my col"])
    frame["treat"] = rng.integers(2, size=60)
    frame["sex"] = rng.choice(["f", "m"], size=60)
    frame["region"] = rng.choice([1, 2, 3], size=60)
    formula = "y ~ treat | age + sex + Q('my col') + C(region) + np.log(bmi**2) + age:bmi"
    return cs.CausalStoNet.from_formula(formula, frame).design.spec


REGIONS = ("C(region)[T.2]", "C(region)[T.3]")


@pytest.mark.parametrize(
    ("keep", "covariates"),
    [
        (["age"], ("age",)),
        (["sex"], ("sex[T.m]",)),
        (["sex[T.m]"], ("sex[T.m]",)),
        (["C(region)"], REGIONS),
        (["region"], REGIONS),
        (["C(region)[T.3]", "age"], ("age", "C(region)[T.3]")),
        (["age + C(region)"], ("age", *REGIONS)),
        (["age,sex"], ("age", "sex[T.m]")),
        (["my col"], ("my col",)),
        (["np.log(bmi ** 2)"], ("np.log(bmi ** 2)",)),
        (["np.log(bmi**2)"], ("np.log(bmi ** 2)",)),
        (["age:bmi", "age:bmi"], ("age:bmi",)),
    ],
)
def test_names_terms_columns_and_sums(spec, keep, covariates):
    assert kept_covariates(spec, keep) == covariates


def test_a_column_is_what_is_made_of_it_alone(spec):
    assert kept_covariates(spec, ["bmi"]) == ("np.log(bmi ** 2)",)


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        ("aeg", r"keep names 'aeg', which is neither .* Did you mean 'age'\?"),
        ("age + C(regon)", r"'C\(regon\)'.* Did you mean 'C\(region\)'\?"),
        ("C(region", "cannot be read.*never closed"),
        ("age +", "keep names ''"),
    ],
)
def test_unknown_names_are_errors_with_suggestions(spec, keep, says):
    with pytest.raises(OptionError, match=says):
        kept_covariates(spec, [keep])
