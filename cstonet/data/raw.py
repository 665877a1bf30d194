"""The variables that a formula or arrays name, before any check of their values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd
from numpy.typing import ArrayLike

from cstonet.data.arrays import array_to_frame
from cstonet.data.arrow import open_table
from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import as_frame, check_unique, unknown_column
from cstonet.data.covariates import Source
from cstonet.data.formula import Selected, parse_formula, select_columns
from cstonet.data.frames import is_dictionary
from cstonet.data.gaps import gap_advice
from cstonet.data.lookup import Lookup
from cstonet.data.matrix import is_sparse
from cstonet.data.mediators import RawMediators, check_parts, named_columns
from cstonet.data.opened import OpenedData
from cstonet.data.partitions import PartitionedColumns
from cstonet.data.received import Received
from cstonet.data.safe_terms import check as check_safety
from cstonet.data.sources import Gaps, Sources
from cstonet.data.sparse import SparseColumns
from cstonet.data.variables import Vector
from cstonet.errors import (
    DataError,
    EmptyDataError,
    FormulaError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
)

Missing = Literal["raise", "drop", "mar", "mnar"]


@dataclass(frozen=True, slots=True, eq=False)
class RawData:
    """The variables of an analysis before any check of their values.

    Attributes
    ----------
    outcome, treatment, weights, cluster : Vector
        One value per row each; there may be no weights and no clusters.
    received : Received
        How to find the treatment in new data.
    sources, selected, source
        The columns of the covariates, which of them were chosen, and where they came from.
    formula : str or None
        As typed.
    mediators : RawMediators or None
        The third part of the formula.
    n_dropped : int
        Rows left out already.
    lookup : Lookup or None
        Where other columns of the data can be looked up; None: nowhere.
    safe : bool
        Whether the formula was limited to plain computations.
    """

    outcome: Vector
    treatment: Vector
    received: Received
    weights: Vector | None
    sources: Sources
    selected: Selected
    source: Source
    formula: str | None
    mediators: RawMediators | None = None
    n_dropped: int = 0
    lookup: Lookup | None = None
    cluster: Vector | None = None
    safe: bool = False

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        weights: ArrayLike | str | None = None,
        cluster: ArrayLike | str | None = None,
        *,
        safe: bool = False,
    ) -> RawData:
        """Read ``outcome ~ treatment | covariates [| mediators]``, take the columns from a frame.

        Parameters
        ----------
        formula : str
            E.g. ``"y ~ treat | ."`` or ``"np.log(y) ~ treat | . - id + C(region) + bs(age, 4)"``.
            Terms other than column names are Python code, which is run, unless `safe`.
        data : DataFrame, Arrow table or dataset, or path of a Parquet or Arrow file, n rows
            The data. Never changed. Of all but a frame, only the columns named are read.
            The covariates of a Dask DataFrame stay on its workers.
        weights : array-like (n,) or str, optional
            Observation weights, or the name of their column.
        cluster : array-like (n,) or str, optional
            Labels of the clusters that rows belong to, or the name of their column.
        safe : bool
            Whether the formula is limited to plain computations, which run no code.

        Raises
        ------
        FormulaError, DataError
            Or one of their children, each saying what to do.
        """
        parsed = parse_formula(formula, safe=safe)
        opened = OpenedData.of(data, parsed, weights, cluster)
        frame, header = opened.frame, opened.header
        _check_rows((len(frame), header.shape[1]))
        if safe:
            check_safety(parsed, opened.columns)
        y = Vector.from_expression(parsed.outcome, frame, safe=safe)
        treat = Vector.from_expression(parsed.treatment, frame, safe=safe)
        if set(y.columns) & set(treat.columns):
            raise FormulaError(f"Outcome and treatment share a column in {formula!r}.")
        w = _column_or_values("weights", weights, frame)
        c = _column_or_values("cluster", cluster, frame)
        _check_cluster_role(c, y, treat)
        aside = tuple(name for role in (w, c) if role is not None for name in role.columns)
        check_parts(parsed, header)
        selected = select_columns(
            parsed.covariates,
            opened.columns,
            outcome=y.columns,
            treatment=treat.columns,
            set_aside=(*aside, *named_columns(parsed.mediators, header)),
        )
        sources = opened.sources(selected)
        mediators = None
        if parsed.mediators:
            mediators = RawMediators.from_formula(parsed, frame, opened.columns, y, treat, aside)
        return cls(
            outcome=y,
            treatment=treat,
            received=Received.of(treat, frame, safe=safe),
            weights=w,
            sources=sources,
            selected=selected,
            source="frame",
            formula=formula,
            mediators=mediators,
            lookup=opened.lookup,
            cluster=c,
            safe=safe,
        )

    @classmethod
    def from_arrays(
        cls,
        y: ArrayLike | pd.Series,
        treat: ArrayLike | pd.Series,
        X: ArrayLike | pd.DataFrame,
        *,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        mediators: ArrayLike | pd.DataFrame | pd.Series | None = None,
    ) -> RawData:
        """Take outcome, treatment and covariates from arrays.

        Parameters
        ----------
        y, treat : array-like (n,)
            Outcome and treatment.
        X : array or sparse matrix (n, p), or DataFrame
            Covariates. Columns of text, categories or booleans in a frame are coded by levels.
        names : sequence of p str, optional
            Names of the columns of an array; by default x1, …, xp.
        weights : array-like (n,), optional
            Observation weights.
        cluster : array-like (n,), optional
            Labels of the clusters that rows belong to.
        mediators : array-like (n,) or (n, J), or DataFrame, optional
            What lies between treatment and outcome.

        Raises
        ------
        DataError, OptionError
            Or one of their children, each saying what to do.
        """
        for role, given in (("weights", weights), ("cluster", cluster)):
            if isinstance(given, str):
                raise OptionError(
                    f"{role}={given!r} names a column, which needs a formula and a frame. Pass the "
                    "values themselves, one for each row."
                )
        frame, source = _covariate_frame(X, names)
        _check_rows(frame.shape)
        n = frame.shape[0]
        index = _common_index(
            n, X=X, y=y, treat=treat, weights=weights, cluster=cluster, mediators=mediators
        )
        columns = tuple(frame.columns)
        if isinstance(frame, SparseColumns):
            sources = Sources(replace(frame, index=index), pd.DataFrame(index=index))
        else:
            if source == "array":
                frame.index = index  # a frame of our own; set_axis would copy it under pandas 2
            sources = Sources.select(frame, columns, ())
        treatment = Vector.from_values(treat, "treat", index)
        return cls(
            outcome=Vector.from_values(y, "y", index),
            treatment=treatment,
            received=Received(treatment.name),
            weights=_values("weights", weights, index),
            sources=sources,
            selected=Selected(columns),
            source=source,
            formula=None,
            mediators=None if mediators is None else RawMediators.from_values(mediators, n),
            lookup=Lookup(frame) if isinstance(frame, pd.DataFrame) else None,
            cluster=_values("cluster", cluster, index),
        )

    def without_gaps(self) -> RawData:
        """The rows without gaps, the same ones for every variable."""
        gaps = self._role_gaps() | self.sources.gaps()
        if not gaps.counts:
            return self
        keep = ~gaps.rows
        n, n_kept = len(keep), int(keep.sum())
        if n_kept == 0:
            raise EmptyDataError(
                f"missing='drop' leaves no row: each of the {n} rows has a missing value. Leave "
                "out the columns with many gaps, or fill the gaps in before the fit."
            )
        if n_kept < n / 2:
            warnings.warn(
                f"missing='drop' leaves {n_kept} of {n} rows; the effects are those of these rows.",
                stacklevel=caller_stacklevel(),
            )
        return replace(
            self,
            outcome=self.outcome.rows(keep),
            treatment=self.treatment.rows(keep),
            weights=None if self.weights is None else self.weights.rows(keep),
            sources=self.sources.rows(keep),
            mediators=None if self.mediators is None else self.mediators.rows(keep),
            n_dropped=n - n_kept,
            lookup=None if self.lookup is None else self.lookup.rows(keep),
            cluster=None if self.cluster is None else self.cluster.rows(keep),
        )

    def check_gaps(self, missing: Missing, blocked: str | None) -> None:
        """Raise an error about gaps that the user's choice or the analysis does not allow.

        Parameters
        ----------
        missing : {"raise", "drop", "mar", "mnar"}
            What to do about missing values. Only those of covariates are ever imputed.
        blocked : str or None
            What the analysis has that no imputation can be combined with.

        Raises
        ------
        MissingValuesError
        """
        gaps = self._role_gaps()
        spread = isinstance(self.sources.numeric, PartitionedColumns)
        if spread and missing in ("mar", "mnar"):
            raise NotAvailableError(
                f"missing={missing!r} is not available for a Dask DataFrame. Leave out rows with "
                "gaps, or fill these in, before the fit."
            )
        if missing in ("raise", "drop") or (blocked is not None and not gaps.counts):
            gaps |= self.sources.gaps()
        if gaps.counts:
            raise gaps.error(self._advice(missing, blocked))

    def _advice(self, missing: Missing, blocked: str | None) -> str:
        """What to do about gaps that `missing` does not allow: something that works here."""
        roles = [vector for vector in self._vectors if vector.gaps.counts]
        return gap_advice(
            missing,
            tuple(role.name for role in roles),
            blocked,
            plain=all(role.columns == (role.name,) for role in roles),
        )

    @property
    def _vectors(self) -> list[Vector]:
        """The variables with one value per row that there are."""
        optional = (self.weights, self.cluster)
        return [self.outcome, self.treatment, *(role for role in optional if role is not None)]

    def _role_gaps(self) -> Gaps:
        """Gaps outside the covariates, which are never imputed."""
        gaps = self.outcome.gaps
        for vector in self._vectors[1:]:
            gaps |= vector.gaps
        return gaps if self.mediators is None else gaps | self.mediators.sources.gaps()


def _covariate_frame(
    X: Any, names: Sequence[str] | None
) -> tuple[pd.DataFrame | SparseColumns, Source]:
    """The covariates as named columns, and what they came as."""
    if is_sparse(X):
        return SparseColumns.of_matrix(X, names), "array"
    if isinstance(X, pd.DataFrame):
        if names is not None:
            raise OptionError(
                "names is for arrays; a DataFrame brings its own. Rename its columns instead."
            )
        return as_frame(X).copy(deep=False), "frame"  # see OpenedData.of
    if is_dictionary(X):
        return as_frame(X), "frame"
    table = None if isinstance(X, str) else open_table(X)
    if table is not None:
        return as_frame(table.frame(tuple(table.columns), ())), "frame"
    frame = array_to_frame(X, names)
    check_unique(frame.columns)
    return frame, "array"


def _check_rows(shape: tuple[int, int]) -> None:
    rows, columns = shape
    if rows == 0 or columns == 0:
        raise EmptyDataError(
            f"The data are empty: {rows} rows, {columns} columns. Check the file, or the filter "
            "that selected the rows."
        )


def _values(role: str, values: ArrayLike | None, index: pd.Index) -> Vector | None:
    return None if values is None else Vector.from_values(values, role, index)


def _column_or_values(
    role: str, given: ArrayLike | str | None, frame: pd.DataFrame
) -> Vector | None:
    """A variable that is named, or given with one value per row of a frame."""
    if isinstance(given, str):
        if given not in frame.columns:
            error = unknown_column(given, frame.columns, formula=False)
            raise UnknownColumnError(f"{role}: {error}")
        return Vector.from_column(given, frame)
    _common_index(len(frame), data=frame, **{role: given})
    return _values(role, given, frame.index)


def _check_cluster_role(cluster: Vector | None, outcome: Vector, treatment: Vector) -> None:
    """Refuse a column as cluster that is outcome or treatment."""
    for role, vector in (("outcome", outcome), ("treatment", treatment)):
        if cluster is not None and set(cluster.columns) & set(vector.columns):
            raise OptionError(
                f"cluster={cluster.name!r} is the {role}. Name the column that says which rows "
                "belong together, such as a village, a school or a person."
            )


def _common_index(n: int, **arguments: object) -> pd.Index:
    """The index of the n rows, which all pandas arguments must share.

    Rows are matched by position, so different labels mean that rows would be mixed up. Arguments
    of another length are left to the check of lengths.
    """
    labelled = {
        name: value.index
        for name, value in arguments.items()
        if isinstance(value, pd.Series | pd.DataFrame) and len(value) == n
    }
    if not labelled:
        return pd.RangeIndex(n)
    first, index = next(iter(labelled.items()))
    for name, other in labelled.items():
        if not other.equals(index):
            raise DataError(
                f"{first} and {name} have different row labels (index). Bring the rows into the "
                f"same order, e.g. with {name}.loc[{first}.index], or pass {name}.to_numpy() if "
                "the order is right already."
            )
    return index
