"""Terms that give a row another value in other company are refused, whatever code they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.errors import FormulaError

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    x2 = rng.uniform(1.0, 3.0, size=N)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "a": np.arange(N) % 2,
            "x1": rng.normal(size=N),
            "x2": x2,
            "single": x2.astype(np.float32),
            "g": rng.permutation(np.resize(["b", "a", "c"], N)),
        }
    )


def largest_is_one(x):
    return x / np.max(x)


def coin(x):
    return np.random.default_rng().binomial(1, 0.5, size=len(x))


def fixed_noise(x):
    return x + np.random.default_rng(1).normal(size=len(x))


def fails_alone(x):
    if len(x) == 1:
        raise RuntimeError("too few")
    return 2 * x


def centred_if_many(x):
    return x - x.mean() if len(x) > 1 else x - 0.5


def smooth(x):
    return np.sin(np.exp(x)) / (1 + x**2)


def cancelling(x):
    return np.exp(x) - np.exp(x + 2.0**-10)


def two_columns(x):
    return np.column_stack([x, x**2])


@pytest.mark.parametrize(
    "term",
    [
        "I(x1 - x1.mean())",
        "np.log(x2).cumsum()",
        "x1.rank()",
        "I(x2 / np.max(x2))",
        "I(x1 > x1.median())",
        "pd.qcut(x1, 4)",
        "C(pd.qcut(x2, 3))",
        "x1.shift(1, fill_value=0)",
        "np.arange(len(x1))",
        "np.gradient(x1)",
        "I(x1 - x1.groupby(g).transform('mean'))",
        "np.random.permutation(x1)",
        "largest_is_one(x2)",
        "coin(x1)",
        "fixed_noise(x1)",
        "fails_alone(x1)",
        "centred_if_many(x1)",
        "x1:largest_is_one(x2)",
        "np.matmul(x1, x1) * x1",
    ],
)
def test_what_depends_on_other_rows_is_refused(term, frame):
    with pytest.raises(FormulaError, match=r"another value by itself.*center\(x|cannot be"):
        CausalStoNet.from_formula(f"y ~ a | x2 + {term}", frame)


@pytest.mark.parametrize(
    "term",
    [
        "np.where(x1 > 0, 1, 0)",
        "x1.clip(0, 1)",
        "pd.cut(x2, [0, 1.5, 2, 4])",
        "C(pd.cut(x2, [0, 1.5, 2, 4])):x1",
        "np.clip(single, 1, 2)",
        "smooth(single)",
        "smooth(x1)",
        "cancelling(x2)",
        "two_columns(x1)",
        "g.str.upper()",
        "x1.where(x1 > 0, center(x1))",
        "bs(x1.clip(-1, 1), df=4)",
        "C(g.replace('a', 'b'))",
    ],
)
def test_what_takes_each_row_by_itself_is_not(term, frame):
    design = CausalStoNet.from_formula(f"y ~ a | x2 + {term}", frame).design
    for rows in ([5], [17, 3, 40], range(N)):
        again = design.spec.transform(frame.iloc[list(rows)])
        # Rounding of a single value, in the precision of the column.
        np.testing.assert_allclose(again, design.X[list(rows)], rtol=0, atol=2**-20)


def test_the_whole_column_may_be_remembered(frame):
    """What the error advises gives each row of new data the value it has in the fit."""
    design = CausalStoNet.from_formula("y ~ a | center(x1) + standardize(x2)", frame).design
    for row in range(5):
        alone = design.spec.transform(frame.iloc[[row]])
        np.testing.assert_array_equal(alone, design.X[[row]])


def test_mediators_are_held_to_it(frame):
    with pytest.raises(FormulaError, match=r"x2 - x2\.mean"):
        cs.CausalStoNet.from_formula("y ~ a | x1 | I(x2 - x2.mean())", frame)


def test_infinite_values_are_said_to_be_infinite(frame):
    frame.loc[3, "x2"] = 0.0
    with np.errstate(divide="ignore"), pytest.raises(cs.errors.InfiniteValuesError):
        CausalStoNet.from_formula("y ~ a | x1 + x2.map(np.log)", frame)
