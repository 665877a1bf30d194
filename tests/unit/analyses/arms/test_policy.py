"""res.policy(): rules, what they assign, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import (
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
    UnknownLevelError,
)
from cstonet.estimators.policy_tree import Leaf, Split
from cstonet.estimators.policy_value import PolicyProblem, cut_points, estimate_policy


def test_rule_of_a_known_effect(make_results):
    """τ(x) = 2 + x1 at a cost of 2 is worth its price where x1 > 0."""
    results = make_results(n=2000)
    policy = results.policy(1, cost=2.0)
    assert policy.used == ("x1",)
    assert isinstance(policy.tree, Split)
    assert (policy.tree.below, policy.tree.above) == (Leaf(0), Leaf(1))
    # The effect there is as large as the cut; more than 0.3 would need an error of the scores
    # between cut and zero of several standard errors.
    assert abs(policy.tree.cut) < 0.3
    truth = 1 / np.sqrt(2 * np.pi)
    gains = policy.gains
    assert np.all(np.abs(gains["estimate"] - truth) < 3 * gains["se"])
    assert list(gains.index) == [0, 1]


def test_numbers_are_those_of_the_estimator(make_results):
    results = make_results(n=300, weighted=True, n_selected=2)
    policy = results.policy(2, cost={1: 1.5})
    X = np.asarray(results.design.X[:, :2], dtype=float)
    cuts = [cut_points(column) for column in X.T]
    problem = PolicyProblem(X, cuts, 2, np.array([0.0, 1.5]))
    effects = estimate_policy(results.nuisances, problem, clip=0.01)
    np.testing.assert_allclose(policy.gains["estimate"], effects.estimates[:2], rtol=1e-12)
    assert policy.value == pytest.approx(effects.estimates[2], rel=1e-12)
    assert policy.value_se == pytest.approx(effects.standard_errors[2], rel=1e-12)
    assert policy.covariates == ("x1", "x2")


def test_new_units_need_only_the_columns_of_the_rule(make_results):
    policy = make_results(n=600).policy(1, cost=2.0)
    new = pd.DataFrame({"x1": [-2.0, 2.0]}, index=["a", "b"])
    assigned = policy.assign(new)
    assert assigned.to_dict() == {"a": 0, "b": 1}
    assert assigned.name == "treat"
    np.testing.assert_array_equal(policy.assign({"x1": [-2.0, 2.0]}), [0, 1])
    with pytest.raises(UnknownColumnError):
        policy.assign(new.rename(columns={"x1": "other"}))
    with pytest.raises(MissingValuesError, match=r"missing in 'x1'.*fill the gaps"):
        policy.assign(pd.DataFrame({"x1": [1.0, np.nan]}))


def test_units_of_the_fit(make_results):
    results = make_results(n=400, n_selected=3)
    policy = results.policy(3, cost=2.0)
    frame = pd.DataFrame(results.design.X, columns=list(results.design.covariates))
    assert policy.assign(frame).tolist() == policy.assign().tolist() == policy.assigned.tolist()


def test_text_and_everyone_the_same(make_results):
    results = make_results(n=400)
    same = results.policy(0)
    assert same.rule == "assign 1"
    assert same.tree == Leaf(1)
    assert same.assign(pd.DataFrame(index=range(3))).tolist() == [1, 1, 1]
    assert same.gains.loc[1, "estimate"] == same.gains.loc[1, "se"] == 0.0
    text = str(results.policy(1, cost=2.0))
    assert "if x1 < " in text
    assert "otherwise: assign 1" in text
    assert "gain over all 0" in text
    assert max(map(len, text.splitlines())) <= 78


def test_small_outcomes_may_be_wanted(make_results):
    results = make_results(n=400)
    assert results.policy(0, larger_is_better=False).tree == Leaf(0)


def test_what_is_refused(make_results):
    results = make_results(n=300)
    for depth in (-1, 4, 1.5, True, "2"):
        with pytest.raises(OptionError, match="depth"):
            results.policy(depth)
    for cost in (np.nan, "3", {1: None}):
        with pytest.raises(OptionError, match="cost"):
            results.policy(cost=cost)
    with pytest.raises(UnknownLevelError, match="cost"):
        results.policy(cost={7: 1.0})
    with pytest.raises(UnknownColumnError, match=r"no covariate of this fit.*Did you mean 'x1'"):
        results.policy(covariates=["X1"])
    for names in ("x1", []):
        with pytest.raises(OptionError, match="covariates must be a list"):
            results.policy(covariates=names)
    with pytest.raises(NotAvailableError, match=r"covariates=\[...\]"):
        make_results(n=300, n_selected=0).policy()


@pytest.fixture(scope="module")
def three_arms(quick_options):
    """A fit of three arms, the best of which depends on a category."""
    rng = np.random.default_rng(1)
    n = 600
    region = rng.choice(["north", "south", "west"], n)
    x = rng.normal(size=(n, 2))
    arm = rng.choice(["a", "b", "c"], n)
    gain = 4.0 * ((arm == "b") & (region == "north")) + 4.0 * ((arm == "c") & (region != "north"))
    y = x[:, 0] + gain + rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "arm": arm, "region": region, "x1": x[:, 0], "x2": x[:, 1]})
    return frame, cs.fit("y ~ arm | .", frame, options=quick_options(), seed=1, n_jobs=1)


def test_best_of_three_arms_by_category(three_arms):
    frame, results = three_arms
    policy = results.policy(covariates=["region", "x1"], cost=0.5)
    expected = np.where(frame["region"] == "north", "b", "c")
    assert policy.covariates == ("region[T.south]", "region[T.west]", "x1")
    assert np.mean(policy.assigned == expected) > 0.95
    assert "if region = " in policy.rule
    assert list(policy.gains.index) == ["a", "b", "c"]
    # Under the rule everyone gains 4 at a cost of 0.5.
    assert policy.gains.loc["a", "estimate"] == pytest.approx(3.5, abs=4 * policy.gains["se"].max())
    some = pd.DataFrame({"region": ["north", "west"], "x1": [0.0, 0.0]})
    assert policy.assign(some).tolist() == ["b", "c"]


def test_heterogeneity_of_a_named_contrast(three_arms):
    _, results = three_arms
    found = results.heterogeneity(contrast=("b", "c"))
    assert found.contrast == "b - c"
    assert 0 <= found.pvalue <= 1
