"""The treatments that new units received: a column of theirs, or an expression of columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cstonet.data.columns import as_frame, listing
from cstonet.data.variables import Vector
from cstonet.errors import FormulaError, MissingValuesError, NotAvailableError, UnknownColumnError
from cstonet.suggestions import did_you_mean

# Rows with different treatments that an expression is tried on.
_PROBED = 8


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
    session : tuple of str
        Names in the expression that the user's session gave a meaning, which may have changed.
    portable : bool
        Whether the expression may be evaluated. That of a file may be if it is a plain computation
        on columns: files are not to run code.
    safe : bool
        Whether it is evaluated as a plain computation, and not as Python code.
    """

    name: str
    inputs: tuple[str, ...] = ()
    by_rows: bool = True
    session: tuple[str, ...] = ()
    portable: bool = True
    safe: bool = False

    @classmethod
    def of(cls, treatment: Vector, frame: pd.DataFrame, *, safe: bool) -> Received:
        """The rule behind the treatment of the fit's frame."""
        if treatment.columns in ((), (treatment.name,)):
            return cls(treatment.name)
        from cstonet.data.patsy_terms import (
            session_names,  # not at the top: plain formulas never load patsy
        )

        return cls(
            treatment.name,
            treatment.columns,
            _is_by_rows(treatment, frame, safe),
            () if safe else session_names(treatment.name, frame.columns),
            safe=safe,
        )

    def to_json(self) -> dict[str, Any]:
        """The rule as plain values."""
        return {
            "name": self.name,
            "inputs": list(self.inputs),
            "by_rows": self.by_rows,
            "session": list(self.session),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Received:
        """The rule that :meth:`to_json` described."""
        name, inputs = str(saved["name"]), tuple(map(str, saved["inputs"]))
        portable = True
        if inputs:
            from cstonet.data.patsy_json import is_portable

            portable = is_portable(name, inputs)
        session = tuple(map(str, saved["session"]))
        return cls(name, inputs, bool(saved["by_rows"]), session, portable, safe=True)

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
            raise UnknownColumnError(f"data: a frame with {wanted} is needed; {instead}.")
        frame = as_frame(data)
        absent = [name for name in self.inputs or (self.name,) if name not in frame.columns]
        if self.name in frame.columns:
            vector = Vector.from_column(self.name, frame)
        elif absent:
            near = did_you_mean(absent[0], frame.columns)
            raise UnknownColumnError(f"data: a frame with {wanted} is needed; {instead}.{near}")
        elif not self.by_rows:
            raise NotAvailableError(
                f"data: the treatment {self.name!r} depends on all rows of the data it is computed "
                "from, so for new units it would mean something else. Compute it as for the fit, "
                f"and pass it as a column of this name; {instead}"
            )
        elif self.session:
            raise NotAvailableError(
                f"data: the treatment {self.name!r} uses {listing(self.session)}, which may have "
                "changed since the fit. Write its value into the formula, or pass the treatment as "
                f"a column of this name; {instead}"
            )
        elif not self.portable:
            raise NotAvailableError(
                f"data: the treatment {self.name!r} is more than a plain computation on columns, "
                "which a fit from a file does not repeat. Pass the treatment as a column of this "
                f"name; {instead}"
            )
        else:
            vector = Vector.from_expression(self.name, frame, safe=self.safe)
        if vector.gaps.counts:
            raise MissingValuesError(
                f"data: the treatment {self.name!r} has {vector.gaps.counts[self.name]} missing "
                f"values; fill or drop them; {instead}"
            )
        return vector.values


def _is_by_rows(treatment: Vector, frame: pd.DataFrame, safe: bool) -> bool:
    """Whether the expression gives rows the same values by themselves: some of them, one by one."""
    rows = _telling_rows(treatment.values)
    return all(_alone(treatment, frame.iloc[[row]], row, safe) for row in rows)


def _telling_rows(values: pd.Series) -> list[int]:
    """Rows that are unlike each other: the ends of the frame, the extremes, different values."""
    rows = [0, len(values) // 2, len(values) - 1]
    rows += np.flatnonzero(~values.duplicated().to_numpy())[:_PROBED].tolist()
    if pd.api.types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isfinite(numbers).any():
            rows += [int(np.nanargmin(numbers)), int(np.nanargmax(numbers))]
    return list(dict.fromkeys(rows))


def _alone(treatment: Vector, row: pd.DataFrame, number: int, safe: bool) -> bool:
    """Whether a row by itself has the value that it has among all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already, of all rows
        try:
            again = Vector.from_expression(treatment.name, row, safe=safe).values
        except FormulaError:
            return False
    value = treatment.values.iloc[[number]]
    if pd.api.types.is_float_dtype(value.dtype) and pd.api.types.is_float_dtype(again.dtype):
        # The last bit of a function may depend on where in memory its argument is.
        return bool(np.allclose(value, again, rtol=1e-12, atol=0.0, equal_nan=True))
    return bool(value.astype(object).equals(again.astype(object)))
