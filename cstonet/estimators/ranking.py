"""What ranking units by their predicted effects is worth: the TOC curve and the area under it.

The targeting operator characteristic of Yadlowsky, Fleming, Shah, Brunskill and Wager (2021) says
how much larger the average effect is among the units ranked highest,

    TOC(q) = E[τ | among the share q with the highest predictions] - E[τ],

and the AUTOC is its integral over q. With u the share of units ranked before a unit it is the
covariance of effect and -log(u): zero if the ranking is worth nothing, and large if the few units
ranked first gain much. Effects are replaced by doubly robust scores.

Ranks are those within a fold. Predictions of different folds come from different networks, and a
fold whose units happen to have large scores is predicted by the others, which have smaller ones: a
ranking of all units together would look worse than it is. Units of the same prediction share their
places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from cstonet.estimators.aipw import Effects
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.pseudo_outcomes import effect_scores


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where units stand in the rankings of their folds, the highest predictions first.

    Attributes
    ----------
    first, last : (n,) float64
        The share of the fold's weight before the unit and those tied with it, and the same with
        them.
    fold : (n,) int
        Number of the unit's fold, from 0.
    tie : (n,) int
        Number of the unit's tie: those with the same prediction in the same fold. Numbers follow
        the ranking.
    """

    first: FloatArray
    last: FloatArray
    fold: IntArray
    tie: IntArray

    @classmethod
    def of(cls, priority: FloatArray, weights: FloatArray, fold: IntArray) -> Places:
        """Rank units by a priority (n,), within folds and with weights."""
        _, fold = np.unique(fold, return_inverse=True)
        # Sorted by fold and priority, a tie is a run of equal pairs.
        order = np.lexsort((-priority, fold))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(priority[order]) != 0) | (np.diff(fold[order]) != 0)
        tie = np.empty(len(order), dtype=np.int64)
        tie[order] = np.cumsum(new) - 1
        mass = np.bincount(tie, weights)
        owner = fold[order][new]
        total = np.bincount(fold, weights)
        before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
        size = np.where(total > 0, total, 1.0)[owner]
        ends = np.cumsum(mass)
        last = np.clip((ends - before[owner]) / size, 0.0, 1.0)
        first = np.clip((ends - mass - before[owner]) / size, 0.0, 1.0)
        return cls(first[tie], last[tie], fold, tie)

    def among_first(self, share: float) -> FloatArray:
        """How much of each unit is among the first `share` of its fold, shape (n,)."""
        inside = np.asarray(self.last <= share, dtype=np.float64)
        cut = (self.first < share) & (share < self.last)
        inside[cut] = (share - self.first[cut]) / (self.last - self.first)[cut]
        return inside

    def log_weights(self) -> FloatArray:
        """Mean of -log(u) over the places of a unit and those tied with it, minus one, (n,).

        Their mean over all places is zero.
        """
        width = self.last - self.first
        # The antiderivative of -log(u) is u - u log(u).
        area = width - xlogy(self.last, self.last) + xlogy(self.first, self.first)
        mean: FloatArray = np.divide(area, width, out=np.ones_like(width), where=width > 0)
        return mean - 1.0


def autoc_influence(scores: FloatArray, weights: FloatArray, places: Places) -> FloatArray:
    """Influence of the units on the AUTOC, shape (n,): how it moves with their weights.

    A unit moves the means it is part of, and the places of all that are ranked after it.

    Parameters
    ----------
    scores, weights : (n,) float64
        Scores of the effect, and weights of mean one.
    places : Places
        The ranking.
    """
    tie, ties = places.tie, int(places.tie.max()) + 1
    mass = np.bincount(tie, weights, ties)
    total = np.bincount(tie, weights * scores, ties)
    mean = np.divide(total, mass, out=np.zeros(ties), where=mass > 0)
    last, owner = np.empty(ties), np.empty(ties, dtype=np.int64)
    last[tie] = places.last
    owner[tie] = places.fold
    # The place u of the border after a tie counts with -log(u) times the step of the means there.
    # A weightless tie has no mean of its own and takes no part.
    heavy = np.flatnonzero(mass > 0)
    steps = np.zeros(ties)
    inner = heavy[:-1][owner[heavy[:-1]] == owner[heavy[1:]]]
    following = heavy[1:][owner[heavy[:-1]] == owner[heavy[1:]]]
    steps[inner] = (mean[inner] - mean[following]) * -np.log(last[inner])
    after = np.cumsum(steps[::-1])[::-1]
    # Sums run to the end of the unit's own fold.
    ends = np.concatenate([after, [0.0]])[np.searchsorted(owner, owner, side="right")]
    value = (places.log_weights() + 1) * (scores - mean[tie]) + (after - ends)[tie] - scores
    # Folds count with their weights, which the unit moves as well.
    gain = scores * places.log_weights()
    center = _fold_means(gain - value, weights, places.fold) - float(np.mean(weights * gain))
    influence: FloatArray = weights * (value + center)
    return influence


def _fold_means(values: FloatArray, weights: FloatArray, fold: IntArray) -> FloatArray:
    """Weighted means of the values (n,) in the folds of the units, shape (n,)."""
    size, total = np.bincount(fold, weights), np.bincount(fold, weights * values)
    means = np.divide(total, size, out=np.zeros(len(total)), where=size > 0)
    return np.asarray(means[fold])


def estimate_toc(
    nuisances: Nuisances, contrast: tuple[int, int], *, clip: Clip, shares: Sequence[float]
) -> Effects:
    """AUTOC, and the TOC at some shares, of the ranking by predicted effects.

    Parameters
    ----------
    nuisances : Nuisances
        Data and out-of-fold nuisances of n units.
    contrast : (b, a)
        Codes of the two levels; units are ranked by μ̂_b(x) - μ̂_a(x), without slopes.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    shares : sequence of float
        Shares q in (0, 1].

    Returns
    -------
    Effects
        "AUTOC" and "TOC[q]" for every share. A point of the curve has the error of the comparison
        of those above its cut with everyone, the cut being given.
    """
    b, a = contrast
    scores, weights = effect_scores(nuisances, contrast, clip), nuisances.unit_weights
    places = Places.of(nuisances.mu[:, b] - nuisances.mu[:, a], weights, nuisances.fold)
    everyone = float(np.mean(weights * scores))
    estimates = [float(np.mean(weights * places.log_weights() * scores))]
    influence, counted = [autoc_influence(scores, weights, places)], [weights]
    for share in shares:
        first = weights * places.among_first(share)
        size = float(np.mean(first))
        mean = float(np.mean(first * scores)) / size if size > 0 else everyone
        estimates.append(mean - everyone)
        moved = first * (scores - mean) / max(size, np.finfo(float).tiny)
        influence.append(moved - weights * (scores - everyone))
        counted.append(first)
    return Effects.of_influence(
        ["AUTOC", *(f"TOC[{share:g}]" for share in shares)],
        np.array(estimates),
        np.column_stack(influence),
        nuisances.clusters,
        clip,
        counted=np.column_stack(counted),
    )
