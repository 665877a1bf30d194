"""Standardisation: the network sees columns of mean zero and variance one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.units import weighted_moments

# Columns whose moments are computed together: bounds the memory of the float64 temporaries.
_COLUMNS_AT_ONCE = 512
# Values further from the median than this many robust standard deviations do not set the scale.
_ROBUST_LIMIT = 10.0
# The median absolute deviation of a normal variable is this share of its standard deviation.
_NORMAL_MAD = 0.6744897501960817


@dataclass(frozen=True, slots=True)
class Scaling:
    """``(x - center) * inverse_scale`` per column, held within ``± limit``.

    Constant columns become zero.
    """

    center: NDArray[np.float64]
    inverse_scale: NDArray[np.float64]
    limit: float

    def dataset(self, X: NDArray[np.floating], pack_bytes: int) -> _core.Dataset:
        """The covariates as the kernel reads them, shape (n, p)."""
        return _core.Dataset(X, self.center, self.inverse_scale, self.limit, pack_bytes)


def column_scaling(
    X: NDArray[np.floating], limit: float, weights: NDArray[np.float64] | None = None
) -> Scaling:
    """Mean and standard deviation of every column, without a copy of the matrix.

    Where a column has values beyond ``limit`` standard deviations, its moments are taken again
    with such values brought in to a robust bound: one wild value must not flatten the others.

    Parameters
    ----------
    X : (n, p)
        Covariates.
    limit
        Bound on the standardised values.
    weights : (n,), optional
        Row weights.
    """
    p = X.shape[1]
    center, inverse_scale = np.empty(p), np.zeros(p)
    for first in range(0, p, _COLUMNS_AT_ONCE):
        columns = slice(first, min(first + _COLUMNS_AT_ONCE, p))
        block = np.asarray(X[:, columns], dtype=np.float64)
        if weights is not None:
            block, used = block[weights > 0], weights[weights > 0]
        else:
            used = None
        mean, spread = weighted_moments(block, used)
        wild = np.flatnonzero(np.max(np.abs(block - mean), axis=0) > limit * spread)
        if len(wild):
            mean[wild], spread[wild] = weighted_moments(_brought_in(block[:, wild]), used)
        center[columns] = mean
        # A column is constant when its spread is rounding error of its level.
        varies = spread > 1e-12 * np.maximum(np.abs(mean), np.finfo(float).tiny)
        np.divide(1.0, spread, out=inverse_scale[columns], where=varies)
    return Scaling(center, inverse_scale, limit)


def _brought_in(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with values beyond the robust bound moved to it.

    A column of which more than half has one value (a rare dummy) has no robust spread; its rare
    values are all it says, and it stays as it is.
    """
    median = np.median(x, axis=0)
    spread = np.median(np.abs(x - median), axis=0) / _NORMAL_MAD
    reach = np.where(spread > 0, _ROBUST_LIMIT * spread, np.inf)
    return np.clip(x, median - reach, median + reach)
