"""What repeated cross-fitting means for a standard error: one rule for every estimate that has it.

Nuisances that are averaged over repetitions weight units more evenly than those of any one, and
the variance of their influence function is too small by as much. So it is taken from each
repetition, averaged, and what the repetitions differ by is added (Chernozhukov and others 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cstonet.estimators.nuisances import FloatArray


def variance_over_repetitions(
    estimates: FloatArray, singles: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Mean over the repetitions of variance and squared distance from the estimates.

    Parameters
    ----------
    estimates : (k,) float64
        Estimates from averaged nuisances.
    singles : sequence of (estimates, variance)
        Each repetition by itself: its estimates (k,), and their variances (k,) or covariance
        (k, k).

    Returns
    -------
    (k,) or (k, k) float64
        As the variances are given.
    """
    parts = []
    for single, variance in singles:
        gap = single - estimates
        parts.append(variance + (np.outer(gap, gap) if variance.ndim == 2 else gap**2))
    mean: FloatArray = np.mean(parts, axis=0)
    return mean
