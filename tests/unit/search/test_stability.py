"""The expected number of false selections, as a sum of doubts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.search.stability import expected_false


def table(**columns):
    return pd.DataFrame(columns, index=["x1", "x2", "x3"])


def test_doubts_about_the_selected_add_up():
    selection = table(
        treatment=[True, False, True],
        treatment_probability=[0.9, 0.4, 0.7],
        outcome=[False, False, False],
        outcome_probability=[0.3, 0.2, 0.1],
    )
    numbers = expected_false(selection)
    assert numbers["treatment"] == pytest.approx(0.4)
    assert numbers["outcome"] == 0


def test_without_probabilities_nothing_is_known():
    selection = table(treatment=[True] * 3, outcome=[True] * 3, outcome_probability=[1.0] * 3)
    numbers = expected_false(selection)
    assert np.isnan(numbers["treatment"])
    assert numbers["outcome"] == 0


def test_results_and_summary_say_it(quick_options):
    """A strong cause raises no doubt; noise is not selected, so its doubts do not count."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 20))
    treat = rng.binomial(1, 0.5, size=400)
    y = treat + 2 * X[:, 0] + 0.5 * rng.normal(size=400)
    data = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(20)]).assign(y=y, treat=treat)
    res = cs.fit("y ~ treat | .", data, options=quick_options(epochs=40))
    assert list(res.selection.index[res.selection["outcome"]]) == ["x1"]
    assert not res.selection["treatment"].any()
    assert res.expected_false_selections["outcome"] < 0.05
    assert res.expected_false_selections["treatment"] == 0
    printed = " ".join(str(res.summary()).split())
    assert "Expected number of false selections: outcome < 0.05." in printed
