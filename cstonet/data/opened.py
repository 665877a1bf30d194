"""Data that a formula is read from: a frame, a table of which some columns are read, or Dask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cstonet.data.arrow import open_table
from cstonet.data.columns import as_frame, unknown_column
from cstonet.data.formula import Formula, Selected, select_columns
from cstonet.data.lookup import Lookup
from cstonet.data.mediators import named_columns
from cstonet.data.partitions import PartitionedColumns, is_dask_frame
from cstonet.data.sources import Sources
from cstonet.data.variables import expression_columns
from cstonet.errors import NotAvailableError


@dataclass(frozen=True, slots=True, eq=False)
class OpenedData:
    """The user's data, with what a formula needs of them in memory.

    Attributes
    ----------
    frame : DataFrame
        The columns in memory: all of a frame, those that the formula reads of a table, and all but
        the covariates of a Dask DataFrame.
    header : DataFrame
        Columns with their types; its rows do not count.
    columns : Index
        Names of all columns that there are.
    lookup : Lookup or None
        Where columns beside the formula can be looked up; None: nowhere.
    partitioned : dask.dataframe.DataFrame or None
        Where the covariates stay, if not in memory.
    """

    frame: pd.DataFrame
    header: pd.DataFrame
    columns: pd.Index
    lookup: Lookup | None
    partitioned: Any = None

    @classmethod
    def of(cls, data: Any, parsed: Formula, *others: object) -> OpenedData:
        """Open data for a formula.

        Parameters
        ----------
        data
            A frame, an Arrow table or dataset, the path of a file, or a Dask DataFrame.
        parsed
            The formula.
        *others
            Further variables such as weights: those that are text name columns.
        """
        aside = tuple(other for other in others if isinstance(other, str))
        if is_dask_frame(data):
            return cls(_roles(parsed, data, aside), data._meta, data.columns, None, data)
        table = open_table(data)
        if table is None:
            # Columns that the user replaces stay as they are here; under pandas 3, values, too.
            frame = as_frame(data).copy(deep=False)
            return cls(frame, frame, frame.columns, Lookup(frame))
        frame = table.frame(*_columns_read(parsed, table.columns, aside))
        return cls(frame, frame, table.columns, Lookup(table))

    def sources(self, selected: Selected) -> Sources:
        """The columns of the covariates, where they are."""
        if self.partitioned is None:
            return Sources.select(self.frame, selected.columns, selected.inputs(self.columns))
        if selected.terms:
            raise NotAvailableError(
                "Covariates of a Dask DataFrame are plain columns, or '.'. Compute other terms "
                "before the fit, with data.assign(...)."
            )
        index = self.frame.index
        columns = PartitionedColumns.of_frame(self.partitioned, selected.columns, index)
        return Sources(columns, pd.DataFrame(index=index))


def _roles(parsed: Formula, data: Any, aside: Sequence[str]) -> pd.DataFrame:
    """Outcome, treatment, and columns such as weights, of a Dask DataFrame, brought here."""
    if parsed.mediators:
        raise NotAvailableError(
            "Mediation is not available for a Dask DataFrame. Bring the columns that matter into "
            "memory, with data[[...]].compute()."
        )
    roles = [parsed.outcome, parsed.treatment, *aside]
    for name in roles:
        if name not in data.columns:
            raise unknown_column(name, list(data.columns))
    return as_frame(data[list(dict.fromkeys(roles))].compute())


def _columns_read(
    parsed: Formula, columns: pd.Index, aside: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns that a formula reads: those that are covariates as they are, and the others."""
    for name in aside:
        if name not in columns:
            raise unknown_column(name, list(columns), formula=False)
    header = pd.DataFrame(columns=columns)
    outcome = expression_columns(parsed.outcome, columns, safe=parsed.safe)
    treatment = expression_columns(parsed.treatment, columns, safe=parsed.safe)
    between = named_columns(parsed.mediators, header)
    selected = select_columns(
        parsed.covariates,
        columns,
        outcome=outcome,
        treatment=treatment,
        set_aside=(*aside, *between),
    )
    own = selected.columns
    if any(term.text == "." for term in parsed.mediators):
        between = tuple(columns.drop([*outcome, *treatment, *aside, *own], errors="ignore"))
    return own, (*outcome, *treatment, *aside, *selected.inputs(columns), *between)
