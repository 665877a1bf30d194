"""Rows that occur more than once: copies that no coincidence explains."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.matrix import Rows, is_partitioned

# Columns that are looked at together.
_AT_ONCE = 16
# Rows that tell whether a covariate is continuous, and the share of different values it then has.
_SAMPLE, _DIFFERENT = 1000, 0.5
# An odd number whose multiples spread over 64 bits (2^64 over the golden ratio).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def count_copies(
    y: NDArray[np.float64], treatment: NDArray[np.floating | np.integer], X: Rows
) -> int:
    """Rows that equal an earlier one in outcome, treatment and every covariate.

    Rows whose outcome and first covariates occur once need not be looked at further, so that the
    rest costs next to nothing.

    Parameters
    ----------
    y, treatment : (m,)
        Outcome and treatment of the rows that count.
    X : Rows, (m, p)
        Their covariates.

    Returns
    -------
    int
        Zero if no covariate is continuous, where equal rows may well be different units; and if
        the covariates are on the workers of a cluster.
    """
    if is_partitioned(X.X):
        return 0
    rows = np.arange(len(y))
    prints = _mixed(_mixed(np.zeros(len(y), dtype=np.uint64), y), treatment)
    p = X.shape[1]
    for first in range(0, p, _AT_ONCE):
        again = pd.Series(prints).duplicated(keep=False).to_numpy()
        rows, prints = rows[again], prints[again]
        if len(rows) == 0:
            return 0
        for column in X.part(rows, slice(first, min(first + _AT_ONCE, p))).T:
            prints = _mixed(prints, column)
    copies = pd.Series(prints).duplicated().to_numpy()
    if not copies.any() or not _continuous(X, np.delete(np.arange(len(y)), rows[copies])):
        return 0
    return int(copies.sum())


def _mixed(
    prints: NDArray[np.uint64], values: NDArray[np.floating | np.integer]
) -> NDArray[np.uint64]:
    """Fingerprints (m,) that depend on further values (m,), too."""
    # Zero has two signs in floating point, and is the same number.
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    mixed = (prints ^ bits) * _SPREAD
    return mixed ^ (mixed >> np.uint64(29))


def _continuous(X: Rows, different: NDArray[np.intp]) -> bool:
    """Whether some covariate has a value of its own in most rows, of those that are no copies."""
    sample = different[:_SAMPLE]
    p = X.shape[1]
    for first in range(0, p, _AT_ONCE):
        part = X.part(sample, slice(first, min(first + _AT_ONCE, p)))
        if any(len(np.unique(column)) > _DIFFERENT * len(sample) for column in part.T):
            return True
    return False
