"""Do predicted effects say anything about who gains? A one-sided test that knows about folds.

Given the networks of a fold, which its units have not trained, the covariance of prediction and
score among these units has mean zero if all effects are the same, so its studentised value z_k is
standard normal. The z_k of K folds are not independent, though. What fold j taught the networks of
fold k, fold k taught those of fold j: for predictions linear in the scores of other folds,
S_k = Σ_{j≠k} s_j's_k, and every pair of folds counts twice. The correlation of two of them is then
1 / (K - 1), and the sum has the variance 2 K, not K, for any K. Learners that select and shrink
repeat themselves less. So the statistic is Σ_k z_k / √(2 K), taken for standard normal: at most a
little conservative. A pooled regression of all scores on all predictions ignores this, and mixes in
that a fold with large scores is predicted by others with smaller ones.

If all effects are the same, they are so under any weights. Units count with the overlap weights of
the ATO, h = p_a p_b / (p_a + p_b), so that the scores of those who could hardly have received one
of the levels do not decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri_exp, stdtr

from cstonet.estimators.calibration import within_folds
from cstonet.estimators.clusters import cluster_sums, small_sample_factor
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.pseudo_outcomes import effect_scores
from cstonet.estimators.ranking import Places

# Variance of the sum of the folds' statistics, over their number.
_REPEATED = 2.0


@dataclass(frozen=True, slots=True)
class OneSidedTest:
    """A test that something is zero against that it is positive.

    Attributes
    ----------
    statistic : float
        Standard normal, at most, if it is zero; 0 if there is nothing to test.
    pvalue : float
        One if there is nothing to test.
    """

    statistic: float
    pvalue: float


def fold_statistics(
    scores: FloatArray,
    direction: FloatArray,
    weights: FloatArray,
    fold: IntArray,
    clusters: IntArray | None,
) -> FloatArray:
    """Studentised covariances of direction and score in every fold where both vary, shape (k,).

    Parameters
    ----------
    scores, direction, weights : (n,) float64
        Scores of the effect, what they may go with, and weights of the units.
    fold : (n,) int
        Folds of the units.
    clusters : (n,) int or None
        Codes of their clusters.

    Returns
    -------
    (k,) float64
        Student's t, by the number of units or clusters of the fold, as a normal value.
    """
    products = weights * within_folds(direction, weights, fold)
    products *= within_folds(scores, weights, fold)
    statistics = []
    for label in np.unique(fold):
        own = (fold == label) & (weights > 0)
        groups = None if clusters is None else clusters[own]
        sums = cluster_sums(products[own, None], groups)[:, 0] if own.any() else np.empty(0)
        variance = float(sums @ sums)
        if len(sums) < 2 or variance <= 0:
            continue
        variance *= small_sample_factor(groups)
        statistics.append(_normal(float(sums.sum()) / math.sqrt(variance), len(sums) - 1))
    return np.array(statistics)


def combined_test(repetitions: Sequence[FloatArray]) -> OneSidedTest:
    """One test of the folds' statistics (k,) of one or more repetitions of the cross-fitting.

    Repetitions ask the same units again, so their statistics are averaged and nothing is gained.
    """
    sums = [float(z.sum()) / math.sqrt(_REPEATED * len(z)) for z in repetitions if len(z)]
    if not sums:
        return OneSidedTest(0.0, 1.0)
    statistic = float(np.mean(sums))
    return OneSidedTest(statistic, float(ndtr(-statistic)))


def calibration_statistics(
    nuisances: Nuisances, contrast: tuple[int, int], clip: Clip
) -> FloatArray:
    """Statistics of the folds (k,) for scores that grow with their predictions."""
    b, a = contrast
    return _statistics(nuisances, nuisances.mu[:, b] - nuisances.mu[:, a], contrast, clip)


def autoc_statistics(nuisances: Nuisances, contrast: tuple[int, int], clip: Clip) -> FloatArray:
    """Statistics of the folds (k,) for an AUTOC above zero."""
    b, a = contrast
    predicted = nuisances.mu[:, b] - nuisances.mu[:, a]
    places = Places.of(predicted, nuisances.unit_weights, nuisances.fold)
    return _statistics(nuisances, places.log_weights(), contrast, clip)


def _statistics(
    nuisances: Nuisances, direction: FloatArray, contrast: tuple[int, int], clip: Clip
) -> FloatArray:
    """Statistics of the folds (k,) for a direction (n,), with overlap weights."""
    p_b, p_a = (nuisances.propensity[:, level] for level in contrast)
    either = p_a + p_b
    overlap = np.divide(p_a * p_b, either, out=np.zeros_like(either), where=either > 0)
    return fold_statistics(
        effect_scores(nuisances, contrast, clip),
        direction,
        nuisances.unit_weights * overlap,
        nuisances.fold,
        nuisances.clusters,
    )


def _normal(t: float, freedom: int) -> float:
    """The normal value of the same probability as Student's t, far into its tails."""
    tail = float(stdtr(freedom, -abs(t)))
    size = -float(ndtri_exp(math.log(tail))) if tail > 0 else abs(t)
    return math.copysign(size, t)
