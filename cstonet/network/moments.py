"""Means and spreads of the columns of a matrix of any size, dense or sparse, in bounded memory.

Numbers are read once, in the order in which they stand in memory or in a file, and parts are merged
(Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstonet.data.matrix import parts
from cstonet.data.units import Footing, weighted_moments

FloatArray = NDArray[np.float64]

# Numbers looked at together: bounds the memory of float64 temporaries.
_AT_ONCE = 2**20
# Rows that medians are taken of, spread evenly, where there are more.
_MEDIAN_ROWS = 2**15
# Values further from the median than this many robust standard deviations do not set the scale.
_ROBUST_LIMIT = 10.0
# The median absolute deviation of a normal variable is this share of its standard deviation.
_NORMAL_MAD = 0.6744897501960817


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMoments:
    """Mean, standard deviation, and largest distance from the mean of every column, (p,) each."""

    mean: FloatArray
    spread: FloatArray
    reach: FloatArray


class DenseColumns:
    """The columns of an array (n, p) with any strides.

    Parameters
    ----------
    X
        The array.
    weights : (n,), optional
        Row weights; rows of weight zero are not looked at.
    """

    def __init__(self, X: NDArray[np.floating], weights: FloatArray | None) -> None:
        self._X = X
        self._weights = weights

    def moments(self) -> ColumnMoments:
        """Of all columns."""
        return self._moments(np.arange(self._X.shape[1]))

    def brought_in(self, columns: NDArray[np.int64]) -> ColumnMoments:
        """Of some columns, with values beyond a robust bound moved to it.

        A column of which more than half has one value (a rare dummy) has no robust spread; its rare
        values are all it says, and it stays as it is.
        """
        low, high = np.empty(len(columns)), np.empty(len(columns))
        used = self._weights
        rows = np.arange(len(self._X)) if used is None else np.flatnonzero(used > 0)
        rows = rows[:: -(-len(rows) // _MEDIAN_ROWS)]
        step = max(1, _AT_ONCE // max(len(rows), 1))
        for first in range(0, len(columns), step):
            some = slice(first, first + step)
            x = np.asarray(self._X[np.ix_(rows, columns[some])], dtype=np.float64)
            low[some], high[some] = robust_bounds(x)
        return self._moments(columns, low, high)

    def _moments(
        self,
        columns: NDArray[np.int64],
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> ColumnMoments:
        """Of some columns, maybe held within bounds."""
        merged = self._merged(columns, low, high)
        footing = merged.footing()
        if len(footing.special):  # the others are the same again
            merged = self._merged(columns, low, high, footing)
        found = merged.result()
        return ColumnMoments(
            footing.place(found.mean), footing.size(found.spread), footing.size(found.reach)
        )

    def _merged(
        self,
        columns: NDArray[np.int64],
        low: FloatArray | None,
        high: FloatArray | None,
        footing: Footing | None = None,
    ) -> _Merged:
        """All rows of some columns, looked at from their footing; by default as they are."""
        merged = _Merged(len(columns))
        whole = len(columns) == self._X.shape[1]
        for rows, some in parts(self._X, len(columns), _AT_ONCE):
            part = self._X[rows, some] if whole else self._X[rows][:, columns[some]]
            x = np.asarray(part, dtype=np.float64)
            used = None if self._weights is None else self._weights[rows]
            if used is not None:
                x, used = x[used > 0], used[used > 0]
            if low is not None and high is not None:
                x = np.clip(x, low[some], high[some])
            if footing is not None:
                x = footing.of_columns(some).seen(x)
            if len(x):
                # Columns of extreme size overflow, and are looked at again.
                with np.errstate(over="ignore", invalid="ignore"):
                    merged.add(x, used, some)
        return merged


class _Merged:
    """Moments of columns, part of the rows by part of the rows."""

    def __init__(self, columns: int) -> None:
        self._weight, self._mean, self._variance = (np.zeros(columns) for _ in range(3))
        self._low, self._high = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, x: FloatArray, weights: FloatArray | None, columns: slice) -> None:
        """Take rows (m, k) of some columns."""
        mean, spread = weighted_moments(x, weights)
        new = float(len(x)) if weights is None else float(weights.sum())
        old = self._weight[columns]
        share = new / (old + new)
        shift = mean - self._mean[columns]
        # Of the first part exactly what it says.
        self._variance[columns] = (
            (1 - share) * self._variance[columns]
            + share * spread**2
            + share * (1 - share) * shift**2
        )
        self._mean[columns] += share * shift
        self._weight[columns] += new
        self._low[columns] = np.minimum(self._low[columns], x.min(axis=0))
        self._high[columns] = np.maximum(self._high[columns], x.max(axis=0))

    def footing(self) -> Footing:
        """From where the columns should be looked at."""
        return Footing.of(self._low, self._high)

    def result(self) -> ColumnMoments:
        """Of all rows taken."""
        reach = np.maximum(self._high - self._mean, self._mean - self._low)
        return ColumnMoments(self._mean, np.sqrt(self._variance), reach)


class SparseColumns:
    """The columns of a sparse matrix (n, p), compressed by columns (CSC), in canonical format.

    What is not stored is zero and takes part with the weight that is left:
    Σ (x - mean)² = Σ over stored entries of (x - mean)² + (number of others) mean².

    Parameters
    ----------
    X
        The matrix.
    weights : (n,), optional
        Row weights; rows of weight zero are not looked at.
    """

    def __init__(self, X: Any, weights: FloatArray | None) -> None:
        self._X = X
        self._weights = np.ones(X.shape[0]) if weights is None else weights

    def moments(self) -> ColumnMoments:
        """Of all columns."""
        p = self._X.shape[1]
        mean, spread, reach = np.zeros(p), np.zeros(p), np.zeros(p)
        for some in self._blocks():
            mean[some], spread[some], reach[some] = self._of(some)
        return ColumnMoments(mean, spread, reach)

    def brought_in(self, columns: NDArray[np.int64]) -> ColumnMoments:
        """Of some columns, with values beyond a robust bound moved to it.

        A column of which more than half is zero has no robust spread, and stays as it is.
        """
        parts = [self._brought_in(int(column)) for column in columns]
        return ColumnMoments(*(np.array(values) for values in zip(*parts, strict=True)))

    def _brought_in(self, column: int) -> tuple[float, float, float]:
        X, used = self._X, self._weights > 0
        entries = slice(X.indptr[column], X.indptr[column + 1])
        if 2 * used[X.indices[entries]].sum() < used.sum():
            mean, spread, reach = self._of(slice(column, column + 1))
            return float(mean[0]), float(spread[0]), float(reach[0])
        found = self._dense(column).brought_in(np.zeros(1, dtype=np.int64))
        return float(found.mean[0]), float(found.spread[0]), float(found.reach[0])

    def _dense(self, column: int) -> DenseColumns:
        """One column, zeros and all."""
        entries = slice(self._X.indptr[column], self._X.indptr[column + 1])
        x = np.zeros((self._X.shape[0], 1))
        x[self._X.indices[entries], 0] = self._X.data[entries]
        return DenseColumns(x, self._weights)

    def _of(self, some: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        X, used = self._X, self._weights > 0
        starts = X.indptr[some.start : some.stop + 1]
        entries = slice(starts[0], starts[-1])
        column = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        counted = used[X.indices[entries]]
        weight = self._weights[X.indices[entries]][counted]
        column, x = column[counted], np.asarray(X.data[entries], dtype=np.float64)[counted]
        whole = np.bincount(column, minlength=len(starts) - 1) == np.count_nonzero(used)
        low, high = np.where(whole, np.inf, 0.0), np.where(whole, -np.inf, 0.0)
        np.minimum.at(low, column, x)
        np.maximum.at(high, column, x)
        footing, total = Footing.of(low, high), self._weights.sum()
        x = x * footing.factor[column]

        def summed(values: FloatArray) -> FloatArray:
            sums = np.bincount(column, values, minlength=len(starts) - 1)
            return np.asarray(sums, dtype=np.float64)

        mean = summed(weight * x) / total
        absent = np.maximum(total - summed(weight), 0.0)
        squares = summed(weight * (x - mean[column]) ** 2) + absent * mean**2
        reach = np.where(whole, 0.0, np.abs(mean))
        np.maximum.at(reach, column, np.abs(x - mean[column]))
        mean, reach = mean / footing.factor, reach / footing.factor
        spread = np.sqrt(squares / total) / footing.factor
        for level in np.flatnonzero(footing.start):  # without zeros: it might as well be dense
            found = self._dense(some.start + int(level)).moments()
            mean[level], spread[level] = found.mean[0], found.spread[0]
            reach[level] = found.reach[0]
        return mean, spread, reach

    def _blocks(self) -> Iterator[slice]:
        """Parts of the columns with a bounded number of stored entries, at least one each."""
        first, p = 0, self._X.shape[1]
        while first < p:
            most = int(self._X.indptr[first]) + _AT_ONCE
            end = int(np.searchsorted(self._X.indptr, most, side="right")) - 1
            end = min(max(end, first + 1), p)
            yield slice(first, end)
            first = end


def robust_bounds(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What values of columns (m, k) may reach without setting their scale, (k,) each."""
    median = np.median(x, axis=0)
    spread = np.median(np.abs(x - median), axis=0) / _NORMAL_MAD
    reach = np.where(spread > 0, _ROBUST_LIMIT * spread, np.inf)
    return median - reach, median + reach
