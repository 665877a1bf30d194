"""The best shallow tree of treatment rules: exact search for up to two splits in a row.

Every unit has a reward for every action, such as a doubly robust score less a cost. A tree of depth
d sends units by at most d conditions to leaves, and each leaf gets the action whose rewards have
the largest sum; the search looks for the tree whose leaves have the largest sum together (Athey and
Wager 2021; policytree by Sverdrup, Kanodia, Zhou, Athey and Wager 2020).

Covariates are cut at given points only. For a pair of covariates, the rewards summed over the cells
of their cuts and cumulated both ways give every pair of splits at once, so a search of depth two
costs a pass over the units for every pair, however many the cuts. Deeper trees take the first split
from the best tree of depth two, and search exactly below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.nuisances import FloatArray, IntArray

DEEPEST = 3
# A split has to gain more than this share of the rewards' sum of magnitudes: less is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Leaf:
    """An action for all units that come here: its code."""

    action: int


@dataclass(frozen=True, slots=True)
class Split:
    """Units with covariate number `covariate` below `cut` go to `below`, the others to `above`."""

    covariate: int
    cut: float
    below: Leaf | Split
    above: Leaf | Split


Tree = Leaf | Split


def actions(tree: Tree, X: FloatArray) -> NDArray[np.int64]:
    """Codes of the actions that a tree assigns to units with covariates X (m, p), shape (m,)."""
    if isinstance(tree, Leaf):
        return np.full(len(X), tree.action, dtype=np.int64)
    below = X[:, tree.covariate] < tree.cut
    assigned = np.empty(len(X), dtype=np.int64)
    assigned[below] = actions(tree.below, X[below])
    assigned[~below] = actions(tree.above, X[~below])
    return assigned


def best_tree(
    rewards: FloatArray, X: FloatArray, cuts: Sequence[FloatArray], depth: int, fewest: int = 1
) -> Tree:
    """The tree with the largest sum of rewards.

    Parameters
    ----------
    rewards : (n, L) float64
        Reward of each action for each unit, times the unit's weight.
    X : (n, p) float64
        Covariates.
    cuts : p arrays
        Increasing values at which each covariate may be cut.
    depth : int
        At most so many splits in a row, 0 to `DEEPEST`: exact to two.
    fewest : int
        Units that each side of a split must have.

    Returns
    -------
    Tree
        Without splits that change nothing.
    """
    codes = np.empty(X.shape, dtype=np.int64)
    for j, cut in enumerate(cuts):
        codes[:, j] = np.searchsorted(cut, X[:, j], side="right")
    return _simplified(_Search(codes, cuts, fewest).tree(rewards, np.arange(len(X)), depth))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Where units lie between the cuts, codes (n, p), and what a split must have."""

    codes: IntArray
    cuts: Sequence[FloatArray]
    fewest: int

    def tree(self, rewards: FloatArray, rows: IntArray, depth: int) -> Tree:
        """The best tree for some units."""
        own = rewards[rows]
        sums, rounding = own.sum(axis=0), _ROUNDING * float(np.abs(own).sum())
        found, best = None, float(sums.max())
        # Of trees that are equally good, the smallest.
        for more in range(1, min(depth, 2) + 1):
            value, place = self._first_split(own, rows, more)
            if value > best + rounding:
                found, best = place, value
        if found is None:
            return Leaf(int(np.argmax(sums)))
        covariate, cut = found
        below = self.codes[rows, covariate] <= cut
        return Split(
            covariate,
            float(self.cuts[covariate][cut]),
            self.tree(rewards, rows[below], depth - 1),
            self.tree(rewards, rows[~below], depth - 1),
        )

    def _first_split(
        self, own: FloatArray, rows: IntArray, depth: int
    ) -> tuple[float, tuple[int, int]]:
        """Sum of the rewards (m, L) of the best tree; covariate and cut of its first split."""
        best, found = -np.inf, (0, 0)
        for j, cut in enumerate(self.cuts):
            if not len(cut):
                continue
            sides = self._sides(own, rows, j)
            value = sides.max(axis=2)
            if depth == 2:
                for k in range(len(self.cuts)):
                    value = np.maximum(value, self._second(own, rows, j, k, sides))
            total = np.where(self._allowed(rows, j), value.sum(axis=0), -np.inf)
            place = int(np.argmax(total))
            if total[place] > best:
                best, found = float(total[place]), (j, place)
        return best, found

    def _sides(self, rewards: FloatArray, rows: IntArray, j: int) -> FloatArray:
        """Sums of rewards below and above every cut of covariate j, shape (2, cuts, L)."""
        below = np.cumsum(self._cells(rewards, self.codes[rows, j], len(self.cuts[j]) + 1), axis=0)
        return np.stack([below[:-1], below[-1] - below[:-1]])

    def _second(
        self, rewards: FloatArray, rows: IntArray, j: int, k: int, sides: FloatArray
    ) -> FloatArray:
        """Best sums of both sides of every cut of j, split at a cut of k, shape (2, cuts of j)."""
        first, second = len(self.cuts[j]) + 1, len(self.cuts[k]) + 1
        if second == 1:
            return np.full((2, first - 1), -np.inf)
        cell = self.codes[rows, j] * second + self.codes[rows, k]
        shape = (first, second, -1)
        sums = self._cells(rewards, cell, first * second).reshape(shape)
        counts = np.bincount(cell, minlength=first * second).reshape(shape)
        value = np.full((2, first - 1), -np.inf)
        # Below and above the cut of j, each cumulated along k.
        for side in range(2):
            inner = _two_sided(sums)[side].cumsum(axis=1)[:, :-1]
            number = _two_sided(counts)[side].cumsum(axis=1)
            low, all_of_side = number[:, :-1, 0], number[:, -1:, 0]
            enough = (low >= self.fewest) & (all_of_side - low >= self.fewest)
            split = inner.max(axis=2) + (sides[side][:, None] - inner).max(axis=2)
            value[side] = np.where(enough, split, -np.inf).max(axis=1)
        return value

    def _allowed(self, rows: IntArray, j: int) -> NDArray[np.bool_]:
        """Cuts of covariate j that leave enough units on both sides, shape (cuts,)."""
        counts = np.bincount(self.codes[rows, j], minlength=len(self.cuts[j]) + 1)
        below = np.cumsum(counts)[:-1]
        allowed: NDArray[np.bool_] = (below >= self.fewest) & (len(rows) - below >= self.fewest)
        return allowed

    @staticmethod
    def _cells(rewards: FloatArray, cell: IntArray, count: int) -> FloatArray:
        """Sums of rewards (n, L) over cells, shape (count, L)."""
        return np.column_stack([np.bincount(cell, column, count) for column in rewards.T])


def _two_sided(sums: NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
    """Sums over the cells (first, …) below and above every border between them."""
    below = np.cumsum(sums, axis=0, dtype=np.float64)
    return below[:-1], below[-1] - below[:-1]


def _simplified(tree: Tree) -> Tree:
    """The tree without splits whose sides do the same."""
    if isinstance(tree, Leaf):
        return tree
    below, above = _simplified(tree.below), _simplified(tree.above)
    if isinstance(below, Leaf) and below == above:
        return below
    return Split(tree.covariate, tree.cut, below, above)
