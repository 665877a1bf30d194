"""What a treatment rule is worth, by units that had no part in it.

The value of a rule π is the mean outcome if everyone were treated by it, less what that costs:
E[R_π(x)], with R_a = ± Γ_a - c_a the reward of level a, Γ the doubly robust score. The rule that
units of a fold are judged by is learned from the scores of all other folds. What is estimated is
the value of rules learned in this manner, averaged over the folds; a rule that is learned from all
units is as good as these, or a little better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.policy_tree import Tree, actions, best_tree
from cstonet.estimators.pseudo_outcomes import arm_scores

# Units on each side of a split: at least so many, and at least this share of them.
_FEWEST, _FEWEST_SHARE = 10, 0.01
# A covariate is cut at so many quantiles, or between all its values if these are few.
_CUTS = 24


@dataclass(frozen=True, slots=True, eq=False)
class PolicyProblem:
    """What a rule may look at, and what it should achieve.

    Attributes
    ----------
    X : (n, p) float64
        Covariates that the rule may look at.
    cuts : p arrays
        Where it may cut them.
    depth : int
        At most so many conditions in a row.
    costs : (L,) float64
        Cost of every level, in units of the outcome.
    sign : float
        1 if large outcomes are wanted, -1 if small ones.
    """

    X: FloatArray
    cuts: Sequence[FloatArray]
    depth: int
    costs: FloatArray
    sign: float = 1.0

    def rewards(self, nuisances: Nuisances, clip: Clip) -> FloatArray:
        """Reward of every level for every unit, shape (n, L)."""
        rewards: FloatArray = self.sign * arm_scores(nuisances, clip) - self.costs
        return rewards

    def learned(self, rewards: FloatArray, weights: FloatArray) -> Tree:
        """The best rule for all units."""
        return self._learned(rewards, weights, np.arange(len(rewards)))

    def out_of_fold(self, rewards: FloatArray, nuisances: Nuisances) -> FloatArray:
        """Reward of every unit under the rule of the other folds, shape (n,)."""
        received = np.empty(len(rewards))
        for label in np.unique(nuisances.fold):
            held_out = nuisances.fold == label
            rule = self._learned(rewards, nuisances.unit_weights, np.flatnonzero(~held_out))
            codes = actions(rule, self.X[held_out])
            received[held_out] = rewards[np.flatnonzero(held_out), codes]
        return received

    def _learned(self, rewards: FloatArray, weights: FloatArray, rows: IntArray) -> Tree:
        fewest = max(_FEWEST, int(_FEWEST_SHARE * len(rows)))
        counted = weights[rows, None] * rewards[rows]
        return best_tree(counted, self.X[rows], self.cuts, self.depth, fewest)


def cut_points(x: FloatArray) -> FloatArray:
    """Where a covariate (n,) may be cut, in increasing order: quantiles of three digits.

    Values that are few are all told apart.
    """
    values = np.unique(x)
    if len(values) <= _CUTS + 1:
        # Whole numbers read better; of others, a border between two is safe from rounding.
        whole = bool(np.all(values == np.round(values)))
        return values[1:] if whole else (values[1:] + values[:-1]) / 2
    quantiles = np.quantile(x, np.linspace(0, 1, _CUTS + 2)[1:-1])
    readable = np.unique([float(f"{quantile:.3g}") for quantile in quantiles])
    inside: FloatArray = readable[(readable > values[0]) & (readable <= values[-1])]
    return inside


def estimate_policy(nuisances: Nuisances, problem: PolicyProblem, *, clip: Clip) -> Effects:
    """Value of a rule, and its gain over the same level for everyone, out of fold.

    Parameters
    ----------
    nuisances : Nuisances
        Data and out-of-fold nuisances of n units.
    problem : PolicyProblem
        What the rule may look at.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.

    Returns
    -------
    Effects
        "gain[a]" over level a for everyone, for every code a, positive if the rule is better; then
        "value", in units of the outcome.
    """
    weights, rewards = nuisances.unit_weights, problem.rewards(nuisances, clip)
    received = problem.out_of_fold(rewards, nuisances)
    each = np.column_stack([received[:, None] - rewards, problem.sign * received])
    estimates = np.mean(weights[:, None] * each, axis=0)
    influence = weights[:, None] * (each - estimates)
    return Effects.of_influence(
        [*(f"gain[{code}]" for code in range(nuisances.n_levels)), "value"],
        estimates,
        influence,
        nuisances.clusters,
        clip,
        n_contrasts=nuisances.n_levels,
        counted=np.repeat(weights[:, None], len(estimates), axis=1),
    )
