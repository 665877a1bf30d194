"""Covariate matrices that are too large to copy: read in parts of bounded size.

A matrix is a NumPy array of any order, a memory map included, or a ``scipy.sparse.csc_array``. One
on the workers of a cluster (:mod:`cstonet.data.partitions`) is read by its rows and columns alone.
Nothing here makes a dense copy of more than a part of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from cstonet.data.partitions import PartitionedMatrix

    Matrix: TypeAlias = NDArray[np.floating] | csc_array

# Values read at a time: 16 MB of them in double precision.
_VALUES_AT_ONCE = 2**21
# Bytes of a copy for which nobody asks how much memory is left.
SMALL_COPY = 64 * 2**20
# Rows that are looked at first where a few may settle the matter.
_FIRST_ROWS = 8


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy, without an import of scipy."""
    return hasattr(X, "tocsc") and not isinstance(X, np.ndarray)


def is_partitioned(X: Any) -> TypeGuard[PartitionedMatrix]:
    """Whether X is on the workers of a cluster."""
    return hasattr(type(X), "on_workers")


def is_small(X: Matrix) -> bool:
    """Whether a copy of X costs next to nothing."""
    found: Any = X
    arrays = (found.data, found.indices, found.indptr) if is_sparse(X) else (found,)
    return bool(sum(array.nbytes for array in arrays) <= SMALL_COPY)


def may_be_changed(X: Matrix) -> bool:
    """Whether somebody else holds an array that X looks at, and may write to it.

    Not so of arrays that look at nobody else's, of files that are mapped, and of partitions.
    """
    if is_partitioned(X):
        return False
    if is_sparse(X):
        return True
    root: Any = X
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    return root is not X and isinstance(root, np.ndarray)


def copied(X: Matrix) -> Matrix:
    """A copy that has its values in the same order in memory."""
    return X.copy() if is_sparse(X) else np.copy(X, order="K")


def checksum(X: Matrix) -> int:
    """A number that a change of any value, or of the order of the values, changes as well."""
    if is_sparse(X):
        found: Any = X
        return _sum_of(np.asarray(found.indptr), _sum_of(found.indices, _sum_of(found.data, 0)))
    total = 0
    for rows, columns in parts(X):
        total = _sum_of(X[rows, columns], total)
    return total


def _sum_of(values: NDArray[Any], before: int) -> int:
    # In the order of the memory, whatever that is.
    along = values if values.flags.c_contiguous else values.T
    content: Any = np.ascontiguousarray(along).view(np.uint8)
    return zlib.crc32(content, before)


def parts(
    X: Matrix, width: int | None = None, values: int | None = None
) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of parts that cover X (n, p), in the order in which memory holds them.

    Runs of whole rows if values of a row are neighbours, else runs of whole columns: each page of a
    memory map is read once. Rows and columns that are too long for a part are cut.

    Parameters
    ----------
    X : (n, p)
        The matrix.
    width
        How many columns are to be covered, if they are chosen among those of X; by default all.
    values
        Of a part, at most; by default 2²¹.
    """
    n, p = X.shape[0], X.shape[1] if width is None else width
    most = _VALUES_AT_ONCE if values is None else values
    by_rows = not is_sparse(X) and abs(X.strides[1]) <= abs(X.strides[0])
    rows_first, long, short = (True, p, n) if by_rows else (False, n, p)
    across = max(1, most // max(long, 1))
    along = min(max(long, 1), most)
    for i in range(0, short, across):
        for j in range(0, long, along):
            outer, inner = slice(i, min(i + across, short)), slice(j, min(j + along, long))
            yield (outer, inner) if rows_first else (inner, outer)


def dense_part(
    X: Matrix, rows: slice | NDArray[np.integer], columns: slice | NDArray[np.integer]
) -> NDArray[np.floating]:
    """Some rows and columns as an array (m, k), a view where that is possible."""
    found: Any = X
    if is_sparse(X):
        return np.asarray(found[:, columns][rows].toarray())
    if isinstance(rows, slice) or isinstance(columns, slice) or is_partitioned(X):
        return np.asarray(found[rows, columns])
    return np.asarray(found[np.ix_(rows, columns)])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of a matrix, which are read when they are asked for.

    Attributes
    ----------
    X : (n, p)
        The matrix.
    places : (m,) of int, or None
        The rows; None: all.
    """

    X: Matrix
    places: NDArray[np.integer] | None = None

    @classmethod
    def counted(cls, X: Matrix, weights: NDArray[np.float64] | None) -> Rows:
        """The rows that count: those of positive weight."""
        return cls(X, None if weights is None or weights.all() else np.flatnonzero(weights))

    @property
    def shape(self) -> tuple[int, int]:
        """(m, p)."""
        n, p = self.X.shape
        return n if self.places is None else len(self.places), p

    def part(
        self, rows: slice | NDArray[np.integer], columns: slice | NDArray[np.integer]
    ) -> NDArray[np.floating]:
        """Some of these rows, and some columns, as an array."""
        return dense_part(self.X, rows if self.places is None else self.places[rows], columns)

    def surviving(
        self,
        columns: NDArray[np.intp],
        holds: Callable[[slice, NDArray[np.intp]], NDArray[np.bool_]],
    ) -> NDArray[np.intp]:
        """The columns of which something holds in every row.

        The first few rows rule out nearly all, so that the rest costs next to nothing.

        Parameters
        ----------
        columns : (c,)
            Columns to look at.
        holds : callable
            Says of some rows and columns where it holds, (rows, columns).
        """
        first, count, m = 0, _FIRST_ROWS, self.shape[0]
        while first < m and columns.size:
            rows = slice(first, min(first + count, m))
            columns = columns[holds(rows, columns).all(axis=0)]
            first = rows.stop
            count = min(8 * count, max(1, _VALUES_AT_ONCE // max(1, columns.size)))
        return columns
