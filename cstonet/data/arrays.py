"""Arrays without names, such as X, as frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.columns import listing
from cstonet.data.native import is_extended
from cstonet.errors import ColumnTypeError, DataError, LengthMismatchError
from cstonet.shown import shown


def array_to_frame(values: Any, names: Sequence[str] | None, what: str = "X") -> pd.DataFrame:
    """An array (n, p) as a frame, without a copy.

    Parameters
    ----------
    values : array-like (n, p)
        The covariates.
    names : sequence of str, or None
        Their names, by default x1, …, xp.
    what : str
        The argument that gave it.

    Raises
    ------
    DataError
        If it is not two-dimensional, or no array.
    LengthMismatchError
        If the number of names is not p.
    """
    # A masked array would otherwise silently show what is behind its mask.
    if isinstance(values, np.ma.MaskedArray):
        kind = float if values.dtype.kind in "biuf" else object
        values = np.ma.filled(values.astype(kind), np.nan)
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(
            f"{what} must be a DataFrame or an array of shape (n, p); the rows of this "
            f"{type(values).__name__} differ in length."
        ) from None
    if is_extended(array.dtype):
        with np.errstate(over="ignore"):  # what is too large is refused as infinite
            array = array.astype(np.float64)
    if array.dtype.kind in "US" and _are_numbers(array):
        raise ColumnTypeError(
            f"{what} holds numbers that are written as text. Convert them, with .astype(float)."
        )
    if array.dtype.kind == "V":
        raise DataError(
            f"{what} holds records ({array.dtype}), no numbers. Pass a DataFrame, with a column "
            "for each field: pandas.DataFrame(records)."
        )
    if array.ndim != 2:
        raise DataError(
            f"{what} must be a DataFrame or an array of shape (n, p); got {type(values).__name__} "
            f"of shape {array.shape}. One column is {what}.reshape(-1, 1)."
        )
    default = tuple(f"x{j}" for j in range(1, array.shape[1] + 1))
    labels = default if names is None else as_names(names)
    if labels is None:
        raise wrong_names(names)
    if array.shape[1] != len(labels):
        raise LengthMismatchError(
            f"{what} has {array.shape[1]} columns where {len(labels)} are expected: "
            f"{listing(labels)}."
        )
    # A boolean array is a matrix of indicators already.
    array = array.view(np.uint8) if array.dtype == bool else array
    return pd.DataFrame(array, columns=list(labels), copy=False)


def wrong_names(names: object) -> DataError:
    """The error about names that are none."""
    return DataError(f"names must be a list of texts, one for each column; got {shown(names)}.")


def as_names(names: Any) -> tuple[str, ...] | None:
    """Names as a tuple; None if they are no list of texts."""
    try:
        listed = () if isinstance(names, str) else tuple(names)
    except Exception:  # nothing that can be listed
        return None
    named = not isinstance(names, str) and all(isinstance(name, str) for name in listed)
    return listed if named else None


def _are_numbers(texts: NDArray[Any]) -> bool:
    try:
        texts.astype(np.float64)
    except ValueError:
        return False
    return texts.size > 0
