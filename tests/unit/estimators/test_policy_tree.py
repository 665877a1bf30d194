"""Trees of treatment rules against every tree there is, and their value against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators.policy_tree import Leaf, Split, actions, best_tree
from cstonet.estimators.policy_value import PolicyProblem, cut_points, estimate_policy
from cstonet.estimators.pseudo_outcomes import arm_scores, effect_scores


def best_sum(rewards: np.ndarray, X: np.ndarray, cuts: list, depth: int, fewest: int) -> float:
    """Try all trees."""
    best = rewards.sum(axis=0).max()
    if depth == 0:
        return best
    for j, points in enumerate(cuts):
        for cut in points:
            below = X[:, j] < cut
            if min(below.sum(), (~below).sum()) < fewest:
                continue
            sides = (
                best_sum(rewards[side], X[side], cuts, depth - 1, fewest)
                for side in (below, ~below)
            )
            best = max(best, sum(sides))
    return best


def reached(tree, rewards: np.ndarray, X: np.ndarray) -> float:
    return rewards[np.arange(len(X)), actions(tree, X)].sum()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fewest", [1, 4])
def test_no_tree_is_better(seed, fewest):
    rng = np.random.default_rng(seed)
    n, p, levels = rng.integers(8, 25), rng.integers(1, 4), rng.integers(2, 4)
    X = rng.integers(0, 4, (n, p)).astype(float) if seed % 2 else rng.normal(size=(n, p))
    cuts = [cut_points(column) for column in X.T]
    rewards = rng.normal(size=(n, levels))
    for depth in range(3):
        tree = best_tree(rewards, X, cuts, depth, fewest)
        expected = best_sum(rewards, X, cuts, depth, fewest)
        assert reached(tree, rewards, X) == pytest.approx(expected, abs=1e-10)
    # The third split in a row is found below a given first one: never worse than two.
    deep = best_tree(rewards, X, cuts, 3, fewest)
    assert reached(deep, rewards, X) >= expected - 1e-10


def test_splits_that_change_nothing_are_not_there():
    X = np.arange(20.0)[:, None]
    assert best_tree(np.tile([0.0, 1.0], (20, 1)), X, [cut_points(X[:, 0])], 2) == Leaf(1)
    gain = np.where(X[:, 0] < 7, 1.0, -1.0)
    tree = best_tree(np.column_stack([np.zeros(20), gain]), X, [cut_points(X[:, 0])], 2)
    assert tree == Split(0, 7.0, Leaf(1), Leaf(0))


def test_constant_covariates_are_never_cut():
    X = np.column_stack([np.ones(20), np.arange(20.0)])
    rewards = np.column_stack([np.zeros(20), X[:, 1] - 14.9])
    tree = best_tree(rewards, X, [cut_points(column) for column in X.T], 2)
    assert isinstance(tree, Split)
    assert (tree.covariate, tree.below, tree.above) == (1, Leaf(0), Leaf(1))


def test_cut_points_are_readable_and_separate():
    assert cut_points(np.array([0.0, 1.0, 1.0, 3.0])).tolist() == [1.0, 3.0]
    assert cut_points(np.array([0.25, 0.75])).tolist() == [0.5]
    assert cut_points(np.ones(5)).size == 0
    x = np.random.default_rng(1).normal(size=1000)
    cuts = cut_points(x)
    assert 20 <= len(cuts) <= 24
    assert all(float(f"{cut:.3g}") == cut for cut in cuts)
    assert np.all((np.add.outer(-cuts, x) < 0).any(axis=1) & (np.add.outer(-cuts, x) >= 0).any(1))


def test_arm_scores_differ_by_effect_scores(draw_nuisances):
    _, nuisances = draw_nuisances(50, np.random.default_rng(1))
    scores = arm_scores(nuisances, 0.01)
    expected = effect_scores(nuisances, (1, 0), 0.01)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, rtol=1e-12)


def problem_of(X: np.ndarray, depth: int = 1, **changes) -> PolicyProblem:
    fields = {"costs": np.array([0.0, 2.0])} | changes
    return PolicyProblem(X, [cut_points(column) for column in X.T], depth, **fields)


def test_value_is_that_of_rules_of_other_folds(draw_nuisances):
    X, nuisances = draw_nuisances(300, np.random.default_rng(2), weighted=True)
    problem = problem_of(X)
    effects = estimate_policy(nuisances, problem, clip=0.01)
    rewards, weights = arm_scores(nuisances, 0.01) - [0.0, 2.0], nuisances.unit_weights
    received = np.empty(300)
    for k in range(3):
        own = nuisances.fold == k
        counted = weights[~own, None] * rewards[~own]
        rule = best_tree(counted, X[~own], problem.cuts, 1, fewest=10)
        received[own] = rewards[own][np.arange(own.sum()), actions(rule, X[own])]
    assert effects.names == ("gain[0]", "gain[1]", "value")
    expected = [np.average(received - one, weights=weights) for one in (*rewards.T, 0.0)]
    np.testing.assert_allclose(effects.estimates, expected, rtol=1e-10)
    error = np.sqrt(np.mean((weights * (received - expected[2])) ** 2) / 300)
    assert effects.standard_errors[2] == pytest.approx(error, rel=1e-10)


def test_value_agrees_with_the_truth(draw_nuisances):
    """Of τ(x) = 2 + x at a cost of 2, those with x > 0 are to be treated.

    That gains E[x 1(x > 0)] = 1/√(2π) over either level for everyone. Rules with cuts near zero
    lose next to nothing of it.
    """
    X, nuisances = draw_nuisances(6000, np.random.default_rng(3))
    effects = estimate_policy(nuisances, problem_of(X), clip=0.01)
    truth = 1 / np.sqrt(2 * np.pi)
    np.testing.assert_array_less(
        np.abs(effects.estimates[:2] - truth), 3 * effects.standard_errors[:2]
    )
    assert effects.standard_errors.max() < 0.1


def test_rules_for_small_outcomes_mirror(draw_nuisances):
    X, nuisances = draw_nuisances(200, np.random.default_rng(4))
    mirrored = replace(nuisances, y=-nuisances.y, mu=-nuisances.mu)
    large = estimate_policy(nuisances, problem_of(X), clip=0.01)
    small = estimate_policy(mirrored, problem_of(X, sign=-1.0), clip=0.01)
    np.testing.assert_allclose(small.estimates[:2], large.estimates[:2], rtol=1e-10)
    np.testing.assert_allclose(small.estimates[2], -large.estimates[2], rtol=1e-10)


def test_out_of_fold_values_are_not_too_good():
    """Rules of noise: nothing is gained by them, over 200 data sets, where nothing can be."""
    from cstonet.estimators import Nuisances

    gains, errors = np.empty(200), np.empty(200)
    for draw in range(200):
        rng = np.random.default_rng([8, draw])
        n, X = 200, rng.normal(size=(200, 5))
        nuisances = Nuisances(
            y=rng.normal(size=n),
            treatment=rng.integers(0, 2, n),
            mu=np.zeros((n, 2)),
            propensity=np.full((n, 2), 0.5),
            weights=None,
            fold=np.arange(n) % 5,
        )
        effects = estimate_policy(nuisances, problem_of(X, 1, costs=np.zeros(2)), clip=0.01)
        gains[draw], errors[draw] = effects.estimates[2], effects.standard_errors[2]
    assert abs(gains.mean()) < 3 * gains.std() / np.sqrt(200)
    assert np.mean(gains > 1.645 * errors) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_few_clusters_have_few_degrees_of_freedom(draw_nuisances):
    X, nuisances = draw_nuisances(120, np.random.default_rng(5))
    problem = PolicyProblem(X, [cut_points(column) for column in X.T], 1, np.zeros(2))
    few = replace(nuisances, clusters=np.arange(120) % 12)
    np.testing.assert_allclose(estimate_policy(few, problem, clip=0.01).freedom, np.full(3, 11.0))
    assert estimate_policy(nuisances, problem, clip=0.01).freedom is None
