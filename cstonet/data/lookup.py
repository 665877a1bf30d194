"""Columns of the user's data after the fit: those of the formula, and those beside it.

Questions after a fit name columns that no model has seen: the region by which effects are grouped,
an outcome that the treatment cannot move. The frame is kept for them as it was given, not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.arrow import ArrowTable
from cstonet.data.columns import take, unknown_column


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Where columns can be looked up, for the rows of a design.

    Attributes
    ----------
    data : DataFrame or ArrowTable
        The data as they were given.
    kept : (N,) bool or None
        Which of their rows the design has; None: all.
    """

    data: pd.DataFrame | ArrowTable
    kept: NDArray[np.bool_] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(map(str, self.data.columns))

    def rows(self, keep: NDArray[np.bool_]) -> Lookup:
        """The same for some of the rows."""
        return replace(self, kept=keep)

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
