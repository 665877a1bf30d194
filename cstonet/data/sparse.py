"""Sparse covariates: columns of a ``scipy.sparse`` matrix, or of a frame with sparse dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.arrays import as_names, wrong_names
from cstonet.data.columns import check_unique, listing, numpy_dtype, unknown_column
from cstonet.errors import ColumnTypeError, DataError, LengthMismatchError

if TYPE_CHECKING:
    from scipy.sparse import csc_array


@dataclass(frozen=True, slots=True, eq=False)
class SparseColumns:
    """Named columns that are kept sparse, in the place of a frame.

    Attributes
    ----------
    matrix : csc_array (n, k)
        The values, float32 or float64. Shares its arrays with the user's matrix where it can: not
        to be written to.
    columns : Index
        The k names.
    index : Index
        Labels of the n rows.
    """

    matrix: csc_array
    columns: pd.Index
    index: pd.Index

    @classmethod
    def of_matrix(
        cls, matrix: Any, names: Sequence[str] | None, index: pd.Index | None = None
    ) -> SparseColumns:
        """The columns of any sparse matrix of scipy (n, p).

        Raises
        ------
        LengthMismatchError
            If the number of names is not p.
        ColumnTypeError
            If the values are no real numbers.
        """
        if len(matrix.shape) != 2:
            raise DataError(
                f"X must have the shape (n, p); this sparse array has {matrix.shape}. One column "
                "is X.reshape(-1, 1)."
            )
        n, p = matrix.shape
        listed = tuple(f"x{j}" for j in range(1, p + 1)) if names is None else as_names(names)
        if listed is None:
            raise wrong_names(names)
        names = listed
        if len(names) != p:
            raise LengthMismatchError(
                f"X has {p} columns where {len(names)} are expected: {listing(names)}."
            )
        check_unique(names)
        if matrix.dtype.kind not in "fiub":
            raise ColumnTypeError(
                f"X is a sparse matrix of {matrix.dtype}: real numbers are expected."
            )
        rows = pd.RangeIndex(n) if index is None else index
        return cls(_canonical(matrix), pd.Index(names, dtype=object), rows)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> SparseColumns:
        """Numeric columns of a frame, some of them sparse; dense ones have every value stored."""
        from scipy.sparse import csc_array

        exact = np.result_type(np.float32, *map(numpy_dtype, set(frame.dtypes)))
        dtype = np.float32 if exact == np.float32 else np.float64
        values, rows, ends = [], [], [0]
        for _, column in frame.items():
            stored, where = _stored(column)
            values.append(stored.astype(dtype, copy=False))
            rows.append(where)
            ends.append(ends[-1] + len(where))
        arrays = (np.concatenate(values), np.concatenate(rows), np.array(ends))
        return cls(csc_array(arrays, shape=frame.shape), frame.columns, frame.index)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k)."""
        return len(self.index), len(self.columns)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> pd.Series:
        """One column, dense."""
        values = self.take([name])[:, [0]].toarray()[:, 0]
        return pd.Series(values, index=self.index, name=name)

    def take(self, names: Sequence[str]) -> csc_array:
        """The named columns in that order; all of them without a copy."""
        places = self.columns.get_indexer(pd.Index(names, dtype=object))
        if (places < 0).any():
            missing = names[int(np.argmin(places))]
            raise unknown_column(missing, list(self.columns), formula=False)
        if len(places) == len(self.columns) and (np.diff(places) == 1).all():
            return self.matrix
        return self.matrix[:, places]

    def rows(self, keep: NDArray[np.bool_]) -> SparseColumns:
        """Some of the rows."""
        kept = self.matrix.tocsr()[np.flatnonzero(keep)].tocsc()
        return SparseColumns(kept, self.columns, self.index[keep])

    def missing(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of the missing values, column by column."""
        places = np.flatnonzero(np.isnan(self.matrix.data))
        columns = np.searchsorted(self.matrix.indptr, places, side="right") - 1
        return self.matrix.indices[places].astype(np.int64), columns.astype(np.int64)


def has_sparse(frame: pd.DataFrame) -> bool:
    """Whether a frame holds a sparse column whose zeros are left out."""
    return any(map(_leaves_out_zeros, set(frame.dtypes)))


def indicators(codes: NDArray[np.integer], levels: int) -> csc_array:
    """Indicators (n, L - 1) of all levels but the first, one stored value per row at most."""
    from scipy.sparse import csc_array

    others = np.flatnonzero(codes > 0)
    order = others[np.argsort(codes[others], kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=levels)[1:])
    pointers = np.concatenate([[0], ends])
    ones = np.ones(len(order), dtype=np.float32)
    return csc_array((ones, order, pointers), shape=(len(codes), levels - 1))


def joined(blocks: Sequence[Any]) -> csc_array:
    """Blocks of columns, some sparse and some arrays, side by side."""
    from scipy.sparse import csc_array, hstack

    return csc_array(hstack([csc_array(block) for block in blocks], format="csc"))


def _canonical(matrix: Any) -> csc_array:
    """The matrix in floating point and by columns, rows ascending and each once."""
    from scipy.sparse import csc_array

    exact = np.result_type(np.float32, matrix.dtype)
    dtype = np.float32 if exact == np.float32 else np.float64
    found = csc_array(matrix)
    if not found.has_canonical_format:
        found = found.copy() if np.shares_memory(found.data, matrix.data) else found
        found.sum_duplicates()
    return found.astype(dtype, copy=False)


def _leaves_out_zeros(dtype: Any) -> bool:
    return isinstance(dtype, pd.SparseDtype) and bool(dtype.fill_value == 0)


def _stored(column: pd.Series) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Values of a column and their rows, ascending; zeros may be left out."""
    if _leaves_out_zeros(column.dtype):
        array: Any = column.array
        return array.sp_values, array.sp_index.indices
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return values, np.arange(len(values), dtype=np.int32)
