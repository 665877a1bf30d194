"""Columns of the user's data after the fit: those of the formula, and those beside it.

Questions after a fit name columns that no model has seen: the region by which effects are grouped,
an outcome that the treatment cannot move. The frame is kept for them as it was given; a small one
is copied by the fit, so that nobody changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.arrow import ArrowTable
from cstonet.data.columns import take, unknown_column
from cstonet.data.matrix import SMALL_COPY
from cstonet.data.native import native
from cstonet.errors import DataError

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Where columns can be looked up, for the rows of a design.

    Attributes
    ----------
    data : DataFrame or ArrowTable
        The data as they were given.
    kept : (N,) bool or None
        Which of their rows the design has; None: all.
    owned : bool
        Whether nobody else holds the data.
    """

    data: pd.DataFrame | ArrowTable
    kept: NDArray[np.bool_] | None = None
    owned: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(map(str, self.data.columns))

    def rows(self, keep: NDArray[np.bool_]) -> Lookup:
        """The same for some of the rows."""
        return replace(self, kept=keep)

    def of_its_own(self, X: Matrix, own: Matrix) -> Lookup:
        """The same with a copy of the data, if they are a frame that is small.

        Parameters
        ----------
        X, own
            Covariates, and a copy of them that serves where the data are nothing else.
        """
        data = self.data
        if self.owned or isinstance(data, ArrowTable):
            return self
        if own is not X and isinstance(own, np.ndarray) and _is_array(data, X):
            data = pd.DataFrame(own, data.index, data.columns, copy=False)
        else:
            small = data.memory_usage(index=False).sum() <= SMALL_COPY
            data = data.copy(deep=bool(small))
        return replace(self, data=data, owned=True)

    def columns(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns, a row for every unit of the design.

        Raises
        ------
        UnknownColumnError
            If there is no such column.
        """
        absent = [name for name in names if name not in self.names]
        if absent:
            raise unknown_column(absent[0], list(self.names), formula=False)
        if isinstance(self.data, ArrowTable):
            frame = self.data.frame((), tuple(names))
        else:
            frame = take(self.data, names)
        return frame if self.kept is None else frame.loc[self.kept]


def _is_array(frame: pd.DataFrame, X: Matrix) -> bool:
    """Whether a frame is nothing but an array with names."""
    if frame.shape != X.shape or len(set(frame.dtypes)) != 1:
        return False
    return isinstance(X, np.ndarray) and np.may_share_memory(frame.to_numpy(), X)


def one_per_unit(
    values: Any, n: int, kept: NDArray[np.bool_] | None, index: pd.Index | None, what: str
) -> pd.Series | None:
    """Values that a user gives for the n units of a design, matched by position.

    Parameters
    ----------
    values : array-like
        One for each unit, or for each row of the data that the design was made of.
    n : int
        Number of units.
    kept : (N,) bool or None
        Which rows of the data they are; None: all.
    index : pandas.Index of length n or None
        Labels of the units.
    what : str
        The argument that gave the values.

    Returns
    -------
    Series or None
        With labels 0, …, n-1; None if there is not one value for each.

    Raises
    ------
    DataError
        If they have the labels of the units, in another order.
    """
    try:
        if isinstance(values, str | bytes) or np.ndim(values) != 1:
            return None
        series = native(values if isinstance(values, pd.Series) else pd.Series(values))
    except Exception:  # ragged, or nothing that has values
        return None
    if kept is not None and len(series) == len(kept) != n:
        series = series.iloc[np.flatnonzero(kept)]
    if len(series) != n:
        return None
    if isinstance(values, pd.Series) and index is not None and _reordered(series.index, index):
        raise DataError(
            f"{what} has the row labels (index) of the units in another order. Bring it into that "
            f"of the data, with {what}.loc[data.index], or pass {what}.to_numpy() if the order is "
            "right already."
        )
    return series.reset_index(drop=True)


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of what a user gave; none of what is ragged, or has none."""
    try:
        shape = np.shape(values)
    except Exception:  # ragged, or the code of the values' own class
        return ()
    return shape if isinstance(shape, tuple) else ()


def _reordered(labels: pd.Index, others: pd.Index) -> bool:
    """Whether the same labels stand in another order."""
    if labels.equals(others) or not (labels.is_unique and others.is_unique):
        return False
    return bool(labels.isin(others).all())
