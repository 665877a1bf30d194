"""The mediators of a formula or an argument before any check: the columns they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cstonet.data.arrays import array_to_frame
from cstonet.data.columns import as_frame, is_number
from cstonet.data.formula import Formula, Selected, Term, select_columns
from cstonet.data.native import doubles, native
from cstonet.data.sources import Sources
from cstonet.data.variables import Vector
from cstonet.errors import DataError, FormulaError, LengthMismatchError


@dataclass(frozen=True, slots=True, eq=False)
class RawMediators:
    """Mediators before any check of their values: the columns they are made of."""

    selected: Selected
    sources: Sources

    @classmethod
    def from_formula(
        cls,
        parsed: Formula,
        frame: pd.DataFrame,
        columns: pd.Index,
        outcome: Vector,
        treatment: Vector,
        aside: Sequence[str],
    ) -> RawMediators:
        """The third part of a formula, from a frame that holds at least the columns it reads.

        ``.`` among the mediators is every one of the columns that has no other part: neither in the
        formula, the covariates included, nor `aside`, such as that of the weights.
        """
        selected = select_columns(
            parsed.mediators,
            columns,
            outcome=outcome.columns,
            treatment=treatment.columns,
            set_aside=(*aside, *named_columns(parsed.covariates, frame)),
            what="mediator",
        )
        if not selected.columns and not selected.terms:
            raise FormulaError(f"The formula {parsed.text!r} selects no mediators.")
        inputs = selected.inputs(columns)
        return cls(selected, _sources(frame, selected.columns, inputs))

    @classmethod
    def from_values(cls, values: ArrayLike | pd.DataFrame | pd.Series, n: int) -> RawMediators:
        """An array (n,) or (n, J), a Series or a frame; columns without names are m1, m2, …."""
        if isinstance(values, pd.Series):
            values = values.to_frame(name="m1" if values.name is None else str(values.name))
        if isinstance(values, pd.DataFrame):
            frame = as_frame(values)
        else:
            try:
                # A mask is left on, for array_to_frame to see.
                array = np.asanyarray(values)
            except ValueError:
                raise DataError(
                    "mediators must have one row per unit and a column per mediator; its rows "
                    "differ in length."
                ) from None
            array = array[:, None] if array.ndim == 1 else array
            if array.ndim != 2:
                raise DataError(
                    f"mediators must have one row per unit and a column per mediator; its shape "
                    f"is {array.shape}."
                )
            names = [f"m{j + 1}" for j in range(array.shape[1])]
            frame = array_to_frame(array, names, "mediators")
        if len(frame) != n:
            raise LengthMismatchError(
                f"mediators has {len(frame)} rows but there are {n} outcomes. Pass one row per "
                "unit."
            )
        columns = tuple(map(str, frame.columns))
        if not columns:
            raise DataError("mediators has no columns. Pass one column per mediator.")
        return cls(Selected(columns), _sources(frame, columns, ()))

    def rows(self, keep: NDArray[np.bool_]) -> RawMediators:
        """The mediators of some of the rows."""
        return replace(self, sources=self.sources.rows(keep))


def _sources(frame: pd.DataFrame, names: Sequence[str], inputs: Sequence[str]) -> Sources:
    """Columns of mediators, which are few: none stays sparse, and none loses what it tells apart.

    Whether a mediator has two levels is seen in double precision.
    """
    for name in names:
        column = native(frame[name])
        if is_number(column.dtype):
            doubles(column.dropna(), f"The mediator {name!r}")
        if column.dtype != frame[name].dtype:
            frame = frame.assign(**{name: column})
    return Sources.select(frame, names, inputs)


def named_columns(terms: Sequence[Term], frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that a part of a formula names or computes with, ``.`` aside."""
    named = (term for term in terms if not term.removed and term.text != ".")
    selected = select_columns(named, frame.columns, outcome=(), treatment=())
    return (*selected.columns, *selected.inputs(frame.columns))


def check_parts(parsed: Formula, frame: pd.DataFrame) -> None:
    """Refuse a column that is covariate and mediator, and a formula that does not say which."""
    both = set(named_columns(parsed.covariates, frame)) & set(
        named_columns(parsed.mediators, frame)
    )
    if both:
        raise FormulaError(
            f"{sorted(both)[0]!r} is named among the covariates and among the mediators in "
            f"{parsed.text!r}. A covariate comes before the treatment, a mediator after it: name "
            "it once."
        )
    parts = (parsed.covariates, parsed.mediators)
    if all(any(term.text == "." for term in part) for part in parts):
        raise FormulaError(
            f"'.' stands among the covariates and among the mediators in {parsed.text!r}. Name the "
            "columns of one of the two parts."
        )
