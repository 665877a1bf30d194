"""The variables that a formula or arrays name, before any check of their values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd
from numpy.typing import ArrayLike

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import as_frame, check_unique
from cstonet.data.covariates import Source, array_to_frame
from cstonet.data.formula import Selected, parse_formula, select_columns
from cstonet.data.gaps import gap_advice
from cstonet.data.mediators import RawMediators, check_parts, named_columns
from cstonet.data.received import Received
from cstonet.data.sources import Gaps, Sources
from cstonet.data.variables import Vector
from cstonet.errors import DataError, EmptyDataError, FormulaError, OptionError

Missing = Literal["raise", "drop", "mar", "mnar"]


@dataclass(frozen=True, slots=True, eq=False)
class RawData:
    """The variables of an analysis before any check of their values.

    Attributes
    ----------
    outcome, treatment, weights : Vector
        One value per row each; there may be no weights.
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

    @classmethod
    def from_formula(
        cls, formula: str, data: pd.DataFrame, weights: ArrayLike | str | None = None
    ) -> RawData:
        """Read ``outcome ~ treatment | covariates [| mediators]``, take the columns from a frame.

        Parameters
        ----------
        formula : str
            E.g. ``"y ~ treat | ."`` or ``"np.log(y) ~ treat | . - id + C(region) + bs(age, 4)"``.
            Terms other than column names are Python code, which is run.
        data : DataFrame, n rows
            The data. Never changed.
        weights : array-like (n,) or str, optional
            Observation weights, or the name of their column.

        Raises
        ------
        FormulaError, DataError
            Or one of their children, each saying what to do.
        """
        parsed = parse_formula(formula)
        frame = as_frame(data)
        _check_rows(frame)
        y = Vector.from_expression(parsed.outcome, frame)
        treat = Vector.from_expression(parsed.treatment, frame)
        if set(y.columns) & set(treat.columns):
            raise FormulaError(f"Outcome and treatment share a column in {formula!r}.")
        w = _weights(weights, frame)
        check_parts(parsed, frame)
        selected = select_columns(
            parsed.covariates,
            frame.columns,
            outcome=y.columns,
            treatment=treat.columns,
            set_aside=(*(() if w is None else w.columns), *named_columns(parsed.mediators, frame)),
        )
        sources = Sources.select(frame, selected.columns, selected.inputs(frame.columns))
        mediators = None
        if parsed.mediators:
            mediators = RawMediators.from_formula(parsed, frame, y, treat, w)
        received = Received.of(treat, frame)
        return cls(y, treat, received, w, sources, selected, "frame", formula, mediators)

    @classmethod
    def from_arrays(
        cls,
        y: ArrayLike | pd.Series,
        treat: ArrayLike | pd.Series,
        X: ArrayLike | pd.DataFrame,
        *,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        mediators: ArrayLike | pd.DataFrame | pd.Series | None = None,
    ) -> RawData:
        """Take outcome, treatment and covariates from arrays.

        Parameters
        ----------
        y, treat : array-like (n,)
            Outcome and treatment.
        X : array (n, p) or DataFrame
            Covariates. Columns of text, categories or booleans in a frame are coded by levels.
        names : sequence of p str, optional
            Names of the columns of an array; by default x1, …, xp.
        weights : array-like (n,), optional
            Observation weights.
        mediators : array-like (n,) or (n, J), or DataFrame, optional
            What lies between treatment and outcome.

        Raises
        ------
        DataError, OptionError
            Or one of their children, each saying what to do.
        """
        if isinstance(weights, str):
            raise OptionError(
                f"weights={weights!r} names a column, which needs a formula and a frame. Pass the "
                "weights themselves."
            )
        frame, source = _covariate_frame(X, names)
        _check_rows(frame)
        index = _common_index(
            len(frame), X=X, y=y, treat=treat, weights=weights, mediators=mediators
        )
        if source == "array":
            frame.index = index
        treatment = Vector.from_values(treat, "treat", frame.index)
        return cls(
            outcome=Vector.from_values(y, "y", frame.index),
            treatment=treatment,
            received=Received(treatment.name),
            weights=_weights(weights, frame),
            sources=Sources.select(frame, tuple(frame.columns), ()),
            selected=Selected(tuple(frame.columns)),
            source=source,
            formula=None,
            mediators=None
            if mediators is None
            else RawMediators.from_values(mediators, len(frame)),
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
        if missing in ("raise", "drop") or (blocked is not None and not gaps.counts):
            gaps |= self.sources.gaps()
        if gaps.counts:
            raise gaps.error(self._advice(missing, blocked))

    def _advice(self, missing: Missing, blocked: str | None) -> str:
        """What to do about gaps that `missing` does not allow: something that works here."""
        vectors = [self.outcome, self.treatment, *([] if self.weights is None else [self.weights])]
        roles = [vector for vector in vectors if vector.gaps.counts]
        return gap_advice(
            missing,
            tuple(role.name for role in roles),
            blocked,
            plain=all(role.columns == (role.name,) for role in roles),
        )

    def _role_gaps(self) -> Gaps:
        """Gaps outside the covariates, which are never imputed."""
        gaps = self.outcome.gaps | self.treatment.gaps
        if self.weights is not None:
            gaps |= self.weights.gaps
        return gaps if self.mediators is None else gaps | self.mediators.sources.gaps()


def _covariate_frame(
    X: ArrayLike | pd.DataFrame, names: Sequence[str] | None
) -> tuple[pd.DataFrame, Source]:
    """The covariates as a frame, and what they came as."""
    if isinstance(X, pd.DataFrame):
        if names is not None:
            raise OptionError(
                "names is for arrays; a DataFrame brings its own. Rename its columns instead."
            )
        return as_frame(X), "frame"
    frame = array_to_frame(X, names)
    check_unique(frame.columns)
    return frame, "array"


def _check_rows(frame: pd.DataFrame) -> None:
    if frame.empty:
        rows, columns = frame.shape
        raise EmptyDataError(
            f"The data are empty: {rows} rows, {columns} columns. Check the file, or the filter "
            "that selected the rows."
        )


def _weights(weights: ArrayLike | str | None, frame: pd.DataFrame) -> Vector | None:
    if weights is None:
        return None
    if isinstance(weights, str):
        return Vector.from_column(weights, frame)
    _common_index(len(frame), data=frame, weights=weights)
    return Vector.from_values(weights, "weights", frame.index)


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
