"""Covariates with gaps: where values are missing, of which kind they are, how they start out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from cstonet.data.columns import check_no_identifier, listing
from cstonet.data.covariates import CovariateSpec, LevelBlock, NumericBlock
from cstonet.data.sources import Sources
from cstonet.data.sparse import SparseColumns
from cstonet.errors import MissingValuesError, NotAvailableError

Mechanism = Literal["mar", "mnar"]


@dataclass(frozen=True, slots=True, eq=False)
class Incomplete:
    """A column of the user's data in which values are missing.

    Attributes
    ----------
    name : str
        Its name.
    columns : tuple of int
        The covariates that it is coded by: one for a number, L - 1 indicators for L levels.
    levels : ndarray (L, columns) or None
        What these covariates are at each level; None for a number that takes many values.
    missing : ndarray (n,) of bool
        Rows without a value.
    start : object
        The value that stands in the gaps before anything is known: mean, or most frequent level.
    """

    name: str
    columns: tuple[int, ...]
    levels: NDArray[np.float64] | None
    missing: NDArray[np.bool_]
    start: Any


@dataclass(frozen=True, slots=True, eq=False)
class CovariateGaps:
    """What is missing in the covariates of a design, and what is assumed about it.

    Attributes
    ----------
    mechanism : {"mar", "mnar"}
        Whether missingness may depend on what is missing.
    variables : tuple of Incomplete
        The columns with gaps, in the order of the covariates.
    n_values, n_rows : int
        Number of missing values, and of rows that have any.
    """

    mechanism: Mechanism
    variables: tuple[Incomplete, ...]
    n_values: int
    n_rows: int

    @classmethod
    def of(cls, mechanism: Mechanism, variables: tuple[Incomplete, ...]) -> CovariateGaps:
        """Count the gaps of columns."""
        missing = np.column_stack([variable.missing for variable in variables])
        return cls(mechanism, variables, int(missing.sum()), int(missing.any(axis=1).sum()))

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows with a gap, ascending."""
        missing = [variable.missing for variable in self.variables]
        return np.flatnonzero(np.logical_or.reduce(missing)).astype(np.int64)

    @property
    def covariates(self) -> NDArray[np.int64]:
        """The covariates with gaps, ascending."""
        return np.array(sorted(j for v in self.variables for j in v.columns), dtype=np.int64)

    @classmethod
    def find(
        cls,
        mechanism: Mechanism,
        spec: CovariateSpec,
        X: NDArray[np.floating],
        filled: Filled,
    ) -> CovariateGaps | None:
        """Describe the gaps of a covariate matrix (n, p) that was built from filled columns.

        None if they are all in columns of one level, which leave nothing to impute.

        Raises
        ------
        NotAvailableError
            If a term of the formula computes with a column that has gaps.
        """
        variables, first = [], 0
        for block in spec.blocks:
            width = len(block.names)
            gappy = [name for name in block.columns if name in filled.missing]
            if isinstance(block, NumericBlock):
                places = {name: first + j for j, name in enumerate(block.columns)}
                for name in gappy:
                    variables.append(_number(name, places[name], X, filled))
            elif isinstance(block, LevelBlock):
                columns = tuple(range(first, first + width))
                # Indicators of all levels but the first, which is zero in all of them.
                levels = np.eye(width + 1)[:, 1:]
                for name in gappy if width else ():
                    missing, start = filled.missing[name], filled.start[name]
                    variables.append(Incomplete(name, columns, levels, missing, start))
            elif gappy:
                raise NotAvailableError(
                    f"The formula computes with {listing(gappy)}, where values are missing. Only "
                    "plain columns can be imputed: put the term into the data as a column of its "
                    "own (a 'category' column instead of C(...)), or use missing='drop'."
                )
            first += width
        return cls.of(mechanism, tuple(variables)) if variables else None

    def transform(
        self, spec: CovariateSpec, data: pd.DataFrame | NDArray[Any]
    ) -> tuple[NDArray[np.floating], NDArray[np.bool_] | None]:
        """Covariates (m, p) of new data, start values in the gaps, and where these are.

        Returns
        -------
        X : (m, p)
            The covariates.
        missing : (m, number of variables), or None
            Missing values of the variables; None if there are none.

        Raises
        ------
        MissingValuesError
            If a column has gaps that had none at the fit, or a row has no value at all.
        """
        sources = spec.sources(data)
        if not sources.gaps().counts:
            return spec.build(sources), None
        filled = fill_sources(sources, {v.name: v.start for v in self.variables})
        none = np.zeros(len(sources), dtype=bool)
        missing = [filled.missing.get(variable.name, none) for variable in self.variables]
        return spec.build(filled.sources), np.column_stack(missing)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Columns whose gaps hold start values.

    Attributes
    ----------
    sources : Sources
        The columns, complete.
    missing : dict of ndarray (n,) of bool
        Per column with gaps: where they were.
    start : dict
        Per column with gaps: the value that stands there.
    """

    sources: Sources
    missing: dict[str, NDArray[np.bool_]]
    start: dict[str, Any]


def fill_sources(sources: Sources, start: Mapping[str, Any] | None = None) -> Filled:
    """Put start values into the gaps of covariates.

    Parameters
    ----------
    sources : Sources
        Columns with gaps. They are not changed.
    start : mapping, optional
        Value of each column that may have gaps, from the fit; by default taken from the columns.

    Raises
    ------
    MissingValuesError
        If a column or a row has no value at all, or a column has gaps that had none at the fit.
    ColumnTypeError
        If the observed values of a column are identifiers.
    """
    if isinstance(sources.numeric, SparseColumns):
        raise NotAvailableError(
            "Missing values of sparse covariates are not imputed: leave these rows out with "
            "missing='drop', fill the gaps in before the fit, or pass dense columns."
        )
    missing = _missing_of(sources)
    _check_rows(sources, missing)
    if start is None:
        values = {}
        for name, gaps in missing.items():
            if gaps.all():
                raise MissingValuesError(
                    f"The column {name!r} has no value in any of the {len(gaps)} rows, so nothing "
                    "can be imputed from. Leave it out of the formula, for example with "
                    f"'. - {name}'."
                )
            observed = _column(sources, name)[~gaps]
            # Start values would make them look alike. A single one is no more than a constant.
            if len(observed) > 1 and infer_dtype(observed) == "string":
                check_no_identifier(observed)
            values[name] = _start_value(observed)
    else:
        new = [name for name in missing if name not in start]
        if new:
            raise MissingValuesError(
                f"Values are missing in {listing(new)}, which had no gaps when the model was "
                "fitted, so there is no distribution to impute them from. Leave these rows out, "
                "or fill these gaps in."
            )
        values = {name: start[name] for name in missing}
    numeric, other = sources.numeric, sources.other
    in_numeric = [name for name in missing if name in numeric.columns]
    if in_numeric:
        array: Any = cast("pd.DataFrame", numeric).to_numpy(copy=True)
        places = {name: j for j, name in enumerate(numeric.columns)}
        for name in in_numeric:
            array[missing[name], places[name]] = values[name]
        numeric = pd.DataFrame(array, index=numeric.index, columns=numeric.columns, copy=False)
    in_other = {name: values[name] for name in missing if name in other.columns}
    if in_other:
        other = sources.filled(in_other).other
    return Filled(Sources(numeric, other), missing, values)


def _missing_of(sources: Sources) -> dict[str, NDArray[np.bool_]]:
    found = {}
    counts = sources.gaps().counts
    for name in counts:
        found[name] = _column(sources, name).isna().to_numpy()
    return found


def _check_rows(sources: Sources, missing: dict[str, NDArray[np.bool_]]) -> None:
    """Refuse rows of which nothing is known."""
    columns = sources.numeric.shape[1] + sources.other.shape[1]
    if len(missing) < columns:
        return
    empty = np.logical_and.reduce(list(missing.values()))
    if empty.any():
        first = sources.index.tolist()[int(np.argmax(empty))]
        raise MissingValuesError(
            f"{int(empty.sum())} of {len(empty)} rows have no covariate at all (first: row "
            f"{first!r}), so there is nothing to impute from. Leave these rows out."
        )


def _column(sources: Sources, name: str) -> pd.Series:
    frame: Any = sources.numeric if name in sources.numeric.columns else sources.other
    return cast("pd.Series", frame[name])


def _start_value(observed: pd.Series) -> Any:
    """Mean of a number with many values, most frequent of few or of levels."""
    counts = observed.value_counts()
    if pd.api.types.is_numeric_dtype(observed.dtype) and len(counts) > 2:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(observed.mean())
        # Infinite values are refused later, where they are; they must not spread into the gaps.
        finite = observed[np.isfinite(observed.to_numpy(dtype=np.float64))]
        return mean if np.isfinite(mean) or finite.empty else float(finite.median())
    return counts.index[0]


def _number(name: str, column: int, X: NDArray[np.floating], filled: Filled) -> Incomplete:
    """A numeric column; two values are levels, which no imputation may leave."""
    missing = filled.missing[name]
    values = np.unique(X[~missing, column].astype(np.float64))
    levels = values[:, None] if len(values) <= 2 else None
    return Incomplete(name, (column,), levels, missing, filled.start[name])


def gap_advice(missing: str, roles: tuple[str, ...], blocked: str | None, *, plain: bool) -> str:
    """What to do about gaps that an analysis does not allow: something that works.

    Parameters
    ----------
    missing : {"raise", "mar", "mnar"}
        What the user asked for.
    roles : tuple of str
        Outcome, treatment, weights or mediators, as far as they have gaps.
    blocked : str or None
        What the analysis has that no imputation can be combined with.
    plain : bool
        Whether the roles are columns of the user's frame.
    """
    if blocked is not None:
        drop = "leave these rows out with missing='drop', or fill the gaps in before the fit"
        if missing == "raise":
            return f"{drop.capitalize()}; with {blocked} nothing is imputed."
        return f"missing={missing!r} is not available with {blocked}: {drop}."
    if not roles:
        return (
            "Impute covariates with missing='mar' (missing at random given what is observed) or "
            "missing='mnar' (not at random), or leave these rows out with missing='drop'."
        )
    how = f", e.g. with data.dropna(subset={list(roles)})" if plain else ""
    rest = f"leave out those without {' or '.join(roles)}{how}, and impute covariates"
    if missing == "raise":
        return (
            "Leave all of these rows out with missing='drop'; or "
            f"{rest} with missing='mar' or 'mnar'."
        )
    return (
        f"missing={missing!r} imputes covariates only: {rest}; or leave out all rows with gaps, "
        "with missing='drop'."
    )
