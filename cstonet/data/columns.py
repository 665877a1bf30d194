"""The columns of a user's frame: what kind they are, what is missing, which numbers they hold.

Nothing here writes into the frame it is given.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.frames import frame_of_columns, is_dictionary
from cstonet.data.matrix import dense_part, is_partitioned, is_sparse, parts
from cstonet.data.native import is_extended, native_frame, no_unicode
from cstonet.errors import (
    ColumnTypeError,
    DataError,
    DuplicateColumnError,
    InfiniteValuesError,
    MissingValuesError,
    NotAvailableError,
    UnknownColumnError,
    UnseenLevelError,
)
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

ColumnKind = Literal["numeric", "boolean", "string", "category", "opaque"]

_SHOWN = 5  # how many columns, levels, … a message lists before it says "and k more"


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the fit saw it, which is what new data are held to.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"numeric", "boolean", "string", "category", "opaque"}
        What it holds; "opaque" is a column that only terms of the formula can read.
    levels : tuple
        The values it can take, first the reference; empty for numeric and opaque columns.
    """

    name: str
    kind: ColumnKind
    levels: tuple[Any, ...] = ()

    def codes(self, values: pd.Series) -> NDArray[np.intp]:
        """Positions of the values among the levels, shape (n,).

        Raises
        ------
        UnseenLevelError
            If a value is no level.
        """
        levels = pd.Index(self.levels, dtype=object, tupleize_cols=False)
        try:
            plain = pd.Index(values, dtype=object, tupleize_cols=False)
            codes: NDArray[np.intp] = levels.get_indexer(plain)
        except Exception:  # the code of the values' own classes
            raise ColumnTypeError(
                f"Column {self.name!r} holds {listing(values.tolist())}, which are no levels; "
                f"those of the fit are {listing(self.levels)}."
            ) from None
        unseen = codes < 0
        if unseen.any():
            raise UnseenLevelError(
                f"Column {self.name!r} holds {listing(different(values[unseen]))}, which the fit "
                f"never saw; its levels are {listing(self.levels)}. Leave out or recode these "
                f"{int(unseen.sum())} rows, or refit with data that hold such rows."
            )
        return codes

    def to_json(self) -> dict[str, Any]:
        """The column as plain values.

        Raises
        ------
        NotAvailableError
            If a level is no text, number or boolean.
        """
        for level in self.levels:
            if not isinstance(level, str | bool | int | float):
                raise NotAvailableError(
                    f"Column {self.name!r} cannot be saved: its level {level!r} is no text, number "
                    "or boolean. Convert the levels before the fit, e.g. with .astype(str)."
                )
        return {"name": self.name, "kind": self.kind, "levels": list(self.levels)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Column:
        """The column that :meth:`to_json` described."""
        return cls(saved["name"], saved["kind"], tuple(saved["levels"]))


def listing(
    items: Iterable[object], few: int = _SHOWN, form: Callable[[object], str] = shown
) -> str:
    """The first few items for a message: ``'a', 'b' and 3 more``."""
    values = [item.item() if isinstance(item, np.generic) else item for item in items]
    text = ", ".join(form(value) for value in values[:few])
    return text if len(values) <= few else f"{text} and {len(values) - few} more"


def different(values: pd.Series) -> Sequence[object]:
    """The different values, for a message; some of them, if they cannot be compared."""
    try:
        with np.errstate(all="ignore"):
            found: list[object] = values.unique().tolist()
    except Exception:  # the code of the values' own classes
        return values.head(_SHOWN).tolist()
    return found


def as_frame(data: object) -> pd.DataFrame:
    """The data, a frame or a dictionary of columns, as a frame with names that are unique strings.

    Raises
    ------
    DataError
        If the data are neither, or have hierarchical columns.
    DuplicateColumnError
        If a name occurs twice.
    """
    if is_dictionary(data):
        data = frame_of_columns(data)
    if not isinstance(data, pd.DataFrame):
        raise DataError(
            "The data must be a frame of pandas or polars, an Arrow table, a dictionary of "
            "columns, or the path of a Parquet or Arrow file; got "
            f"{type(data).__name__}. Convert them, for example with pandas.DataFrame(data)."
        )
    if data.columns.nlevels > 1:
        raise DataError(
            "The data have hierarchical column names (a MultiIndex). Flatten them, for example "
            "with data.columns = ['_'.join(map(str, c)) for c in data.columns]."
        )
    if not all(isinstance(name, str) for name in data.columns):
        data = data.set_axis([str(name) for name in data.columns], axis=1)
    check_unique(data.columns)
    return native_frame(data)


def check_unique(names: Iterable[str]) -> None:
    """Refuse names that occur more than once, and what is no text."""
    listed = list(names)
    try:
        "".join(listed).encode("utf-8")
    except UnicodeEncodeError:
        wrong = next(name for name in listed if name != name.encode("utf-8", "ignore").decode())
        raise no_unicode(f"The name {shown(wrong)} of a column") from None
    index: pd.Index = pd.Index(listed, dtype=object)
    if not index.is_unique:
        repeated = listing(index[index.duplicated()].unique())
        raise DuplicateColumnError(
            f"These column names occur more than once: {repeated}. "
            "Rename or drop the extra columns; data.columns.duplicated() finds them."
        )


def unknown_column(
    name: str, columns: Collection[str], *, formula: bool = True
) -> UnknownColumnError:
    """The error for a name that is no column, with the nearest name there is.

    Parameters
    ----------
    name, columns
        The name, and those there are.
    formula
        Whether it was typed in a formula, where some names need quotes.
    """
    hint = did_you_mean(name, columns, form=_as_typed if formula else repr)
    return UnknownColumnError(
        f"There is no column {shown(name)} in the data. The columns are {listing(columns)}. "
        f'Names that are not plain words are written Q("name") in a formula.{hint}'
    )


def in_formula(name: str) -> str:
    """How the column is written inside an expression of a formula."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    quote = "'" if '"' in name else '"'
    return f"Q({quote}{name}{quote})"


def _as_typed(name: str) -> str:
    typed = in_formula(name)
    return repr(name) if typed == name else typed


def take(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The named columns in that order; neighbours are taken without a copy.

    Raises
    ------
    UnknownColumnError
        If a name is no column.
    """
    positions = frame.columns.get_indexer(pd.Index(names, dtype=object))
    absent = positions < 0
    if absent.any():
        missing = [name for name, gone in zip(names, absent, strict=True) if gone]
        error = unknown_column(missing[0], frame.columns, formula=False)
        if len(missing) == 1:
            raise error
        raise UnknownColumnError(f"{len(missing)} columns are missing: {listing(missing)}. {error}")
    if len(positions) and (np.diff(positions) == 1).all():
        return frame.iloc[:, positions[0] : positions[-1] + 1]
    return frame.iloc[:, positions]


def is_number(dtype: Any) -> bool:
    """Whether a dtype holds real numbers; booleans are levels, not numbers."""
    return (
        not isinstance(dtype, pd.CategoricalDtype)
        and pdt.is_numeric_dtype(dtype)
        and not pdt.is_bool_dtype(dtype)
        and not pdt.is_complex_dtype(dtype)
        and not is_extended(dtype)
    )


def describe(values: pd.Series) -> Column:
    """Kind and levels of a column without missing values.

    Raises
    ------
    ColumnTypeError
        If the column is neither numeric nor has well-defined levels.
    """
    name, dtype = str(values.name), values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Column(name, "category", _written(name, dtype.categories.tolist()))
    if is_number(dtype):
        return Column(name, "numeric")
    content = pdt.infer_dtype(values, skipna=True)
    if content == "boolean":
        return Column(name, "boolean", (False, True))
    if content != "string":
        raise ColumnTypeError(_why_not(values))
    check_no_identifier(values)
    return Column(name, "string", _written(name, sorted(values.unique().tolist())))


def _written(name: str, levels: Iterable[Any]) -> tuple[Any, ...]:
    """Levels, which names of covariates and files must be able to write."""
    found = tuple(levels)
    for level in found:
        try:
            str(level).encode("utf-8")
        except UnicodeEncodeError:
            raise no_unicode(f"Column {name!r}") from None
        except Exception:  # the code of the level's own class
            raise ColumnTypeError(
                f"Column {name!r} has a level that cannot be written, {shown(level)}. Convert the "
                "levels to text."
            ) from None
    return found


def check_no_identifier(values: pd.Series) -> None:
    """Refuse a column of texts, missing ones left out, that are all different."""
    if values.is_unique:
        raise ColumnTypeError(
            f"Column {str(values.name)!r} holds a different text in every row: an identifier, not "
            "a covariate. Leave it out ('- name' in a formula), or declare its levels with "
            ".astype('category')."
        )


def _why_not(values: pd.Series) -> str:
    """Why a column cannot be a covariate, and what to do."""
    what = f"Column {str(values.name)!r} ({values.dtype})"
    if pdt.is_datetime64_any_dtype(values.dtype) or isinstance(values.dtype, pd.PeriodDtype):
        return (
            f"{what} holds dates. Turn them into a number, for example the days since the first "
            "with (d - d.min()).dt.days, or leave the column out."
        )
    if pdt.is_timedelta64_dtype(values.dtype):
        return f"{what} holds durations. Turn them into a number, e.g. d.dt.total_seconds()."
    if is_extended(values.dtype):
        return (
            f"{what} holds numbers that double precision would make infinite or equal. Rescale "
            "them, or subtract a constant, and convert them with .astype(float)."
        )
    if values.dtype == object:
        kinds = listing(sorted({type(value).__name__ for value in values}))
        return (
            f"{what} holds objects of type {kinds}, which have no common levels. Convert it: "
            "pandas.to_numeric for numbers, .astype(str) or .astype('category') for labels."
        )
    return (
        f"{what} is neither numeric nor categorical. Convert it to numbers, to text or to "
        "'category', or leave it out."
    )


def numbers(frame: pd.DataFrame) -> NDArray[np.floating]:
    """Numeric columns as one array (n, k), float32 where that loses nothing, else float64.

    It is a view of the frame where the frame holds its columns as one such array.

    Raises
    ------
    ColumnTypeError
        If a column holds no numbers.
    """
    dtypes = set(frame.dtypes)
    for dtype in dtypes:
        if not is_number(dtype) and not pdt.is_bool_dtype(dtype):
            wrong = frame.loc[:, frame.dtypes == dtype].iloc[:, 0]
            raise ColumnTypeError(f"Numbers are expected. {_why_not(wrong)}")
    exact = np.result_type(np.float32, *map(numpy_dtype, dtypes))
    target = np.float32 if exact == np.float32 else np.float64
    if all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return frame.to_numpy(dtype=target)
    return frame.to_numpy(dtype=target, na_value=np.nan)


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype behind a pandas one (Int8 -> int8, Sparse[float32] -> float32)."""
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, pd.SparseDtype):
        return np.dtype(dtype.subtype)
    return np.dtype(getattr(dtype, "numpy_dtype", np.float64))


def check_finite(X: Matrix, names: Sequence[str]) -> None:
    """Refuse NaN and infinities in a design matrix (n, p) whose sources had no gaps."""
    if is_sparse(X) and np.isfinite(X.data).all():
        return  # zeros that are not stored are finite
    infinite, nan = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
    if is_partitioned(X):
        nan, infinite, _ = X.not_finite
    for rows, columns in () if is_partitioned(X) else parts(X):
        part = dense_part(X, rows, columns)
        # One pass, no temporary: a sum is finite only if every summand is.
        with np.errstate(all="ignore"):
            if np.isfinite(part.sum()):
                continue
        infinite[columns] += np.isinf(part).sum(axis=0)
        nan[columns] += np.isnan(part).sum(axis=0)
    for counts, error, what in (
        (infinite, InfiniteValuesError, "infinite values"),
        (nan, MissingValuesError, "NaN although its columns have no gaps"),
    ):
        bad = np.flatnonzero(counts)
        if bad.size:
            others = f" So have {listing([names[j] for j in bad[1:]])}." if bad.size > 1 else ""
            raise error(
                f"The covariate {names[bad[0]]!r} has {what}, in {counts[bad[0]]} of {X.shape[0]} "
                f"rows.{others} Correct these rows, replace the values by finite ones, or "
                "leave the covariate out."
            )
