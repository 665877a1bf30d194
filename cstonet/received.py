"""The treatments that new units received: a column of theirs, or an expression of columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .columns import as_frame, listing
from .errors import FormulaError, MissingValuesError, NotAvailableError, UnknownColumnError
from .roles import Vector


@dataclass(frozen=True, slots=True)
class Received:
    """How to find the treatment in new data.

    Attributes
    ----------
    name : str
        Column, or expression as typed in the formula.
    inputs : tuple of str
        The columns that an expression is made of; none if the treatment is a column.
    by_rows : bool
        Whether the expression gives a row its value from this row alone: ``d - d.mean()`` does
        not, and would mean something else in other data.
    """

    name: str
    inputs: tuple[str, ...] = ()
    by_rows: bool = True

    @classmethod
    def of(cls, treatment: Vector, frame: pd.DataFrame) -> Received:
        """The rule behind the treatment of the fit's frame."""
        if treatment.columns in ((), (treatment.name,)):
            return cls(treatment.name)
        return cls(treatment.name, treatment.columns, _is_by_rows(treatment, frame))

    def read(self, data: object, instead: str) -> pd.Series:
        """The treatments of m new units, without gaps.

        Parameters
        ----------
        data : DataFrame
            The new units.
        instead : str
            What else a user can do who does not have them.

        Raises
        ------
        UnknownColumnError, MissingValuesError
            If there are none, or not all.
        FormulaError, NotAvailableError
            If the expression cannot be evaluated, or not for new data.
        """
        wanted = f"the treatment column {self.name!r}"
        if self.inputs:
            wanted = f"{listing(self.inputs)} (for the treatment {self.name!r})"
        if not isinstance(data, pd.DataFrame):
            raise UnknownColumnError(f"data: a frame with {wanted} is needed; {instead}")
        frame = as_frame(data)
        if self.name in frame.columns:
            vector = Vector.from_column(self.name, frame)
        elif not self.inputs or any(name not in frame.columns for name in self.inputs):
            raise UnknownColumnError(f"data: a frame with {wanted} is needed; {instead}")
        elif not self.by_rows:
            raise NotAvailableError(
                f"data: the treatment {self.name!r} depends on all rows of the data it is computed "
                "from, so for new units it would mean something else. Compute it as for the fit, "
                f"and pass it as a column of this name; {instead}"
            )
        else:
            vector = Vector.from_expression(self.name, frame)
        if vector.gaps.counts:
            raise MissingValuesError(
                f"data: the treatment {self.name!r} has {vector.gaps.counts[self.name]} missing "
                f"values; fill or drop them; {instead}"
            )
        return vector.values


def _is_by_rows(treatment: Vector, frame: pd.DataFrame) -> bool:
    """Whether the expression gives the first half of the rows the same values by themselves."""
    half = frame.iloc[: (len(frame) + 1) // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already, of all rows
        try:
            again = Vector.from_expression(treatment.name, half).values
        except FormulaError:
            return False
    values = treatment.values.iloc[: len(half)]
    if pd.api.types.is_float_dtype(values.dtype) and pd.api.types.is_float_dtype(again.dtype):
        # The last bit of a function may depend on where in memory its argument is.
        return bool(np.allclose(values, again, rtol=1e-12, atol=0.0, equal_nan=True))
    return bool(values.astype(object).equals(again.astype(object)))
