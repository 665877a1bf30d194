"""Standardised covariates on the workers of a cluster: statistics and scores by partition.

Sums over rows are sums of those over partitions, added in a fixed order: the answer does not depend
on which worker was first. Training and prediction read the few covariates that networks have, and
these are brought here once.
"""

from __future__ import annotations

import mmap
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.partitions import PartitionedMatrix
from cstonet.data.units import Footing
from cstonet.network.covariates import Stop
from cstonet.network.products import Explained, Products
from cstonet.network.scaling import Scaling, column_scaling, scaling_of_moments

# Pages that nobody writes to take no memory, and with this none is set aside for them.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class PartitionedCovariates:
    """Covariates of a partitioned matrix, see :class:`cstonet.network.covariates.Covariates`.

    Parameters
    ----------
    matrix
        The user's numbers.
    scaling
        Their standardisation.
    """

    def __init__(self, matrix: PartitionedMatrix, scaling: Scaling) -> None:
        self._matrix = matrix
        self.scaling = scaling
        # A task, so that Dask can make it again, and the workers pass it on.
        self._remote = matrix.client.submit(_itself, scaling, pure=False)
        n, p = matrix.shape
        # Columns keep their numbers, so that random streams are those of a fit in memory; those
        # that are never brought here take no memory.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        try:
            room = mmap.mmap(-1, max(4 * n * p, 1), flags=flags)
        except OSError as error:  # of the address space: nothing is taken yet
            raise MemoryError(str(error)) from error
        self._store = np.frombuffer(room, dtype=np.float32, count=n * p).reshape(p, n).T
        self._here = np.zeros(p, dtype=bool)
        self._lock = threading.Lock()
        none, one = np.zeros(p), np.ones(p)
        self._dataset = _core.Dataset(self._store, none, one, float(np.finfo(np.float32).max), 0)

    @classmethod
    def of(cls, matrix: PartitionedMatrix, scaling: Scaling) -> PartitionedCovariates:
        """Those of an earlier call with the same scaling, with all that was brought here."""
        known = matrix.derived.get(cls)
        if known is None or known.scaling is not scaling:
            known = matrix.derived[cls] = cls(matrix, scaling)
        return known

    @property
    def rows(self) -> int:
        """Number n of rows."""
        return self._matrix.shape[0]

    @property
    def columns(self) -> int:
        """Number p of covariates."""
        return self._matrix.shape[1]

    def gather(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some columns of some rows, (m, q)."""
        self._bring(columns)
        return self._dataset.gather(rows, columns)

    def trained_on(self, inputs: NDArray[np.int64]) -> _core.Dataset:
        """A data set of the kernel with all rows that has these covariates, at their numbers."""
        self._bring(inputs)
        return self._dataset

    def _bring(self, columns: NDArray[np.int64]) -> None:
        """Bring columns of all rows here that are not here yet."""
        with self._lock:
            wanted = np.unique(columns[~self._here[columns]])
            if not len(wanted):
                return
            matrix, first = self._matrix, self._matrix.first
            everywhere = [self._remote] * len(matrix.parts)
            brought = matrix.map(_columns, everywhere, [wanted] * len(matrix.parts))
            for k, values in enumerate(brought):
                self._store[first[k] : first[k + 1], wanted] = values
            self._here[wanted] = True

    def square_sums(
        self, rows: NDArray[np.int64], threads: int, progress: Stop | None = None
    ) -> NDArray[np.float64]:
        """Σ x² over some rows, of every covariate; (p,)."""
        del threads, progress
        own = [(k, here) for k, (_, here) in enumerate(self._matrix.cut(rows)) if len(here)]
        return _total(
            self._matrix.compute(
                lambda: [
                    self._matrix.submit(_square_sums, k, self._remote, here) for k, here in own
                ]
            )
        )

    def score_sums(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Stop | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float64]:
        """Sums behind the scores of some covariates, by default of all: (2, 2, q, k)."""
        del threads
        if progress is not None:
            progress(0)
        matrix = self._matrix
        cut = [(k, *one) for k, one in enumerate(matrix.cut(rows)) if len(one[0])]

        def submit() -> list[Any]:
            futures = []
            for k, places, here in cut:
                # The rows' own numbers go straight to a worker, not through the scheduler. Dask
                # knows the size of a partition, and moves these to it.
                own = matrix.client.scatter((here, products.on_rows(places)), hash=False)
                futures.append(
                    matrix.submit(
                        _score_sums, k, self._remote, own, mean_squares, covariates, explained
                    )
                )
            return futures

        return _total(matrix.compute(submit))

    def score_statistics(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Stop | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float32]:
        """Scores Σ g f / sqrt(Σ g² f²) of the same sums, (2, q, k) or (1, q, k)."""
        sums = self.score_sums(
            rows, products, mean_squares, covariates, threads, progress, explained
        )
        top, squares = sums[:, 0], sums[:, 1]
        scores = np.zeros(top.shape)
        np.divide(top, np.sqrt(squares), out=scores, where=squares > 0)
        return scores.astype(np.float32)


def partitioned_scaling(
    matrix: PartitionedMatrix, limit: float, weights: NDArray[np.float64] | None
) -> Scaling:
    """:func:`cstonet.network.scaling.column_scaling` of a partitioned matrix."""
    own = matrix.sliced(weights)
    totals, sums, low, high = zip(*matrix.map(_sums, own), strict=True)
    total = float(sum(totals))
    # Of extreme columns sums are no numbers, and of those on a high level they are inexact.
    special = Footing.of(np.min(low, axis=0), np.max(high, axis=0)).special
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _total(list(sums)) / total
    mean[special] = 0.0
    everywhere = [mean] * len(own)
    squares, reach = zip(*matrix.map(_deviations, own, everywhere), strict=True)
    with np.errstate(over="ignore"):
        spread = np.sqrt(_total(list(squares)) / total)
        # Columns with values far out are few: their medians are found here.
        wild = np.flatnonzero(np.max(reach, axis=0) > limit * spread)
    spread[special] = 0.0
    scaling = scaling_of_moments(mean, spread, limit)
    for column in np.union1d(wild, special):
        one = column_scaling(matrix[:, np.array([column])], limit, weights)
        scaling.center[column] = one.center[0]
        scaling.inverse_scale[column] = one.inverse_scale[0]
    return scaling


def _total(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum, in the order of the parts."""
    total: NDArray[np.float64] = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total


# What workers do ----------------------------------------------------------------------------------

_Part = NDArray[np.floating]
_ROWS_AT_ONCE = 4096  # bounds the double-precision temporaries


def _itself(scaling: Scaling) -> Scaling:
    return scaling


def _columns(part: _Part, scaling: Scaling, columns: NDArray[np.int64]) -> NDArray[np.float32]:
    return scaling.dataset(part, 0).gather(np.arange(len(part)), columns)


def _square_sums(part: _Part, scaling: Scaling, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return scaling.dataset(part, 0).square_sums(rows, 1)


def _score_sums(
    part: _Part,
    scaling: Scaling,
    own: tuple[NDArray[np.int64], Products],
    mean_squares: NDArray[np.float64] | None,
    covariates: NDArray[np.int64] | None,
    explained: Explained | None,
) -> NDArray[np.float64]:
    rows, products = own
    data = scaling.dataset(part, 0)
    return data.score_sums(rows, products, mean_squares, covariates, 1, None, explained)


def _sums(
    part: _Part, weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Total weight; of the columns weighted sums, and ends of the values in rows that count."""
    low, high = np.full(part.shape[1], np.inf), np.full(part.shape[1], -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # extreme columns are looked at elsewhere
        total = part.sum(axis=0, dtype=np.float64) if weights is None else np.zeros(part.shape[1])
        for i in range(0, len(part), _ROWS_AT_ONCE):
            some = part[i : i + _ROWS_AT_ONCE]
            if weights is not None:
                used = weights[i : i + _ROWS_AT_ONCE]
                total += used @ some.astype(np.float64)
                some = some[used > 0]
            if len(some):
                low, high = np.minimum(low, some.min(axis=0)), np.maximum(high, some.max(axis=0))
    return float(len(part) if weights is None else weights.sum()), total, low, high


def _deviations(
    part: _Part, weights: NDArray[np.float64] | None, mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted sums of squared deviations, and the largest deviation of rows that count."""
    squares, reach = np.zeros(part.shape[1]), np.zeros(part.shape[1])
    for i in range(0, len(part), _ROWS_AT_ONCE):
        away = part[i : i + _ROWS_AT_ONCE].astype(np.float64) - mean
        with np.errstate(over="ignore", invalid="ignore"):  # as above
            if weights is None:
                squares += np.einsum("ij,ij->j", away, away)
            else:
                used = weights[i : i + _ROWS_AT_ONCE]
                squares += used @ away**2
                away = away[used > 0]
        if len(away):
            np.maximum(reach, np.abs(away).max(axis=0), out=reach)
    return squares, reach
