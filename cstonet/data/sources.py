"""The columns that covariates are made of, and what is missing in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.columns import is_number, listing, numbers, take
from cstonet.data.matrix import parts
from cstonet.data.partitions import PartitionedColumns
from cstonet.data.sparse import SparseColumns, has_sparse
from cstonet.errors import InfiniteValuesError, MissingValuesError

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Missing values of one or several columns.

    Attributes
    ----------
    rows : ndarray (n,) of bool
        Rows with a gap in any of the columns.
    counts : dict
        Number of gaps of each column that has any.
    """

    rows: NDArray[np.bool_]
    counts: dict[str, int]

    @classmethod
    def of_column(cls, name: str, missing: NDArray[np.bool_]) -> Gaps:
        """The gaps of one column."""
        return cls(missing, {name: int(missing.sum())} if missing.any() else {})

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Gaps:
        """The gaps of all columns of a frame."""
        missing = frame.isna().to_numpy()
        rows: NDArray[np.bool_] = np.any(missing, axis=1)
        if not rows.any():
            return cls(rows, {})
        counts = zip(frame.columns, np.count_nonzero(missing, axis=0).tolist(), strict=True)
        return cls(rows, {name: count for name, count in counts if count})

    @classmethod
    def of_numbers(cls, columns: pd.DataFrame | SparseColumns | PartitionedColumns) -> Gaps:
        """The same for columns of floating-point numbers, without a mask of all their values."""
        if isinstance(columns, PartitionedColumns):
            missing, _, somewhere = columns.matrix.not_finite
            gone = np.flatnonzero(missing)
            return cls(somewhere, {str(columns.columns[int(j)]): int(missing[j]) for j in gone})
        rows, counts = np.zeros(len(columns), dtype=bool), np.zeros(columns.shape[1], dtype=int)
        if isinstance(columns, SparseColumns):
            where, which = columns.missing()
            rows[where] = True
            np.add.at(counts, which, 1)
        else:
            X = columns.to_numpy()
            for some, of in parts(X):
                # A sum is missing if a summand is, so that nearly always one pass is all.
                with np.errstate(all="ignore"):
                    if not np.isnan(X[some, of].sum()):
                        continue
                missing = np.isnan(X[some, of])
                rows[some] |= missing.any(axis=1)
                counts[of] += np.count_nonzero(missing, axis=0)
        found = np.flatnonzero(counts)
        return cls(rows, {str(columns.columns[int(j)]): int(counts[j]) for j in found})

    def __or__(self, other: Gaps) -> Gaps:
        return Gaps(self.rows | other.rows, self.counts | other.counts)

    def error(self, advice: str) -> MissingValuesError:
        """The error that counts the gaps.

        Parameters
        ----------
        advice : str
            What to do about them.
        """
        per_column = listing((f"{name} ({k})" for name, k in self.counts.items()), form=str)
        return MissingValuesError(
            f"Values are missing in {int(self.rows.sum())} of {len(self.rows)} rows; gaps per "
            f"column: {per_column}. {advice}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The columns that covariates are made of.

    Attributes
    ----------
    numeric : DataFrame, SparseColumns or PartitionedColumns (n, k)
        Columns that are covariates as they are, held as one floating-point array, as a sparse
        matrix, or by the workers of a cluster.
    other : DataFrame (n, l)
        Columns with levels, and columns that terms of the formula compute with.
    """

    numeric: pd.DataFrame | SparseColumns | PartitionedColumns
    other: pd.DataFrame

    @classmethod
    def select(cls, frame: pd.DataFrame, plain: Sequence[str], inputs: Sequence[str]) -> Sources:
        """Take columns from the data of the fit, where their dtypes decide.

        Parameters
        ----------
        frame : DataFrame
            The data.
        plain : sequence of str
            Columns that are covariates by themselves.
        inputs : sequence of str
            Columns that terms compute with.
        """
        dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
        numeric_dtypes = {dtype for dtype in set(dtypes.values()) if is_number(dtype)}
        numeric = [name for name in plain if dtypes.get(name) in numeric_dtypes]
        levels = [name for name in plain if dtypes.get(name) not in numeric_dtypes]
        return cls.read(frame, numeric, list(dict.fromkeys([*levels, *inputs])))

    @classmethod
    def read(cls, frame: pd.DataFrame, numeric: Sequence[str], other: Sequence[str]) -> Sources:
        """Take columns from a frame.

        Raises
        ------
        UnknownColumnError
            If a column does not exist.
        ColumnTypeError
            If a numeric column holds no numbers.
        """
        chosen = _with_numbers(take(frame, numeric))
        if has_sparse(chosen):
            return cls(SparseColumns.of_frame(chosen), take(frame, other))
        # Frames read from a file hold each column apart, which makes every later step slow, so
        # they are gathered once. Where they lie together already this is a view.
        values: Any = numbers(chosen)
        gathered = pd.DataFrame(values, index=frame.index, columns=chosen.columns, copy=False)
        return cls(gathered, take(frame, other))

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def index(self) -> pd.Index:
        """Labels of the rows."""
        return self.numeric.index

    def gaps(self) -> Gaps:
        """What is missing."""
        return Gaps.of_numbers(self.numeric) | Gaps.of_frame(self.other)

    def matrix(self, names: Sequence[str]) -> Matrix:
        """Some numeric columns as one matrix (n, k): a view if they are neighbours."""
        if isinstance(self.numeric, SparseColumns | PartitionedColumns):
            return self.numeric.take(names)
        return take(self.numeric, names).to_numpy()

    def filled(self, values: Mapping[str, Any]) -> Sources:
        """The same columns with a value in the gaps of some of `other`."""
        other = self.other.copy()
        for name, value in values.items():
            other[name] = _filled(other[name], value)
        return Sources(self.numeric, other)

    def rows(self, keep: NDArray[np.bool_]) -> Sources:
        """Some of the rows."""
        numeric = self.numeric
        kept = numeric.loc[keep] if isinstance(numeric, pd.DataFrame) else numeric.rows(keep)
        return Sources(kept, self.other.loc[keep])


def _with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose columns of objects are numbers where they hold only such, or gaps.

    A few rows without a value are no longer recognised as numbers by pandas.
    """
    if all(map(is_number, set(frame.dtypes))):
        return frame
    found = {
        str(name): _as_doubles(column)
        for name, column in frame.items()
        if not is_number(column.dtype) and _numbers_only(column)
    }
    return frame.assign(**found) if found else frame


def _as_doubles(column: pd.Series) -> pd.Series:
    try:
        return column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    except OverflowError:
        raise InfiniteValuesError(
            f"Column {str(column.name)!r} holds numbers that are too large for any model. Rescale "
            "it, e.g. to logarithms."
        ) from None


def _numbers_only(column: pd.Series) -> bool:
    if column.isna().all():
        return True
    kinds = ("floating", "integer", "mixed-integer-float")
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in kinds


def _filled(column: pd.Series, value: Any) -> pd.Series:
    """A column with a value in its gaps, in whatever dtype has room for it."""
    there = column.notna()
    if isinstance(column.dtype, pd.CategoricalDtype):
        if value not in column.cat.categories:
            column = column.cat.add_categories([value])
    elif is_number(column.dtype) and not isinstance(column.dtype, np.dtype):
        column = column.astype(np.float64)  # nullable whole numbers have no room for a mean
    try:
        return column.where(there, value)
    except (TypeError, ValueError):
        return column.astype(object).where(there, value)
