"""Columns as the rest of the package can take them: other storages of the same values, translated.

Users bring byte orders of other machines, digits beyond double precision, dtypes of Arrow that
pandas passes on, and text that is no Unicode. Values never change here: what cannot be translated
is left, or refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.errors import ColumnTypeError, DataError

# Bits that values must keep of what they differ by, where rounding makes some of them equal.
_BITS_KEPT = 20
# Of so few values, each is a level that matters.
_FEW = 10


def native(values: pd.Series) -> pd.Series:
    """The same values in a dtype that pandas and NumPy compute with; mostly the column itself."""
    dtype: Any = values.dtype
    if not _is_foreign(dtype):
        return values
    if isinstance(dtype, np.dtype):
        if not dtype.isnative:
            values = values.astype(dtype.newbyteorder("="))
        return _in_double(values) if is_extended(dtype) else values
    if isinstance(dtype, pd.SparseDtype):
        dense: pd.Series = values.astype(dtype.subtype)
        return dense
    if _is_arrow(dtype, "bool"):
        return values.astype("boolean")
    return values.astype("category")


def native_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose columns are native; sparse columns stay sparse."""
    foreign = {
        dtype
        for dtype in _dtypes(frame)
        if _is_foreign(dtype) and not isinstance(dtype, pd.SparseDtype)
    }
    if not foreign:
        return frame
    found = {name: native(column) for name, column in frame.items() if column.dtype in foreign}
    return frame.assign(**{str(name): column for name, column in found.items()})


def is_extended(dtype: Any) -> bool:
    """Whether a dtype has more digits than double precision."""
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8


def inferred(values: pd.Series, what: str) -> pd.Series:
    """The values in the dtype that all of them have, if they are stored as objects.

    Parameters
    ----------
    values : Series
        Any values.
    what : str
        What to call them.

    Raises
    ------
    ColumnTypeError
        If a text is no Unicode.
    """
    try:
        return values.infer_objects()
    except UnicodeEncodeError:
        raise no_unicode(what) from None


def no_unicode(what: str) -> ColumnTypeError:
    """The error about text with lone surrogates, which can be neither printed nor saved."""
    return ColumnTypeError(
        f"{what} holds text that is no Unicode (a lone surrogate), mostly from a file that was "
        "read with the wrong encoding. Read it again with the right one."
    )


def as_series(values: Any, name: str, index: pd.Index) -> pd.Series:
    """One value per row as a native Series with these labels.

    Raises
    ------
    DataError
        If pandas has no column for such values.
    """
    try:
        series: pd.Series = pd.Series(values).set_axis(index)
        series.isna()  # what has no notion of a gap is no column of values
    except (TypeError, ValueError, NotImplementedError):
        raise DataError(
            f"{name} must hold one value per row; it holds {type(values).__name__} of dtype "
            f"{getattr(values, 'dtype', None)}. Pass an array of numbers or labels, or a Series."
        ) from None
    return native(series)


def doubles(values: pd.Series, what: str) -> NDArray[np.float64]:
    """Numbers in double precision, shape (n,); a copy.

    Parameters
    ----------
    values : Series
        Numbers without gaps.
    what : str
        What to call them.

    Raises
    ------
    DataError
        If rounding makes values equal that differ, and these are few or it hardly leaves any
        digits of the others.
    """
    numbers: NDArray[np.float64] = values.to_numpy(dtype=np.float64, copy=True)
    dtype: Any = values.dtype
    wide = getattr(dtype, "kind", "O") in "iuO" and np.abs(numbers).max(initial=0.0) >= 2.0**53
    if not wide and not _is_arrow(dtype, "decimal"):
        return numbers
    with np.errstate(all="ignore"):
        step, spread = np.spacing(np.abs(numbers).max(initial=0.0)), np.ptp(numbers)
        crowded = bool(spread < step * 2.0**_BITS_KEPT)
    left = np.unique(numbers).size
    if (crowded or left <= _FEW) and values.nunique() > left:
        raise DataError(
            f"{what} holds numbers that are too close to each other for their size: double "
            f"precision, which models compute in, rounds {numbers[0]:.17g} and its neighbours to "
            f"multiples of {step:g}. Subtract a constant from them before the fit."
        )
    return numbers


def _dtypes(frame: pd.DataFrame) -> set[Any]:
    try:
        return set(frame.dtypes)
    except Exception:  # that of a category is made of its levels' code
        for name, dtype in frame.dtypes.items():
            try:
                hash(dtype)
            except Exception:
                raise ColumnTypeError(
                    f"Column {str(name)!r} has categories that cannot be told apart. Convert it, "
                    "e.g. with .astype(str)."
                ) from None
        raise


def _is_foreign(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return not dtype.isnative or is_extended(dtype)
    if isinstance(dtype, pd.SparseDtype):
        return True
    return _is_arrow(dtype, "bool") or _is_arrow(dtype, "dictionary")


def _is_arrow(dtype: Any, kind: str) -> bool:
    """Whether a dtype of pandas stands for such a type of Arrow."""
    return isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype).startswith(kind)


def _in_double(values: pd.Series) -> pd.Series:
    """Extended precision as double, where that keeps different values apart and finite."""
    with np.errstate(all="ignore"):
        rounded = values.astype(np.float64)
    own = values.to_numpy()
    kept = np.unique(rounded.dropna()).size == np.unique(own[~np.isnan(own)]).size
    finite = np.isinf(rounded).sum() == np.isinf(own).sum()
    return rounded if kept and finite else values
