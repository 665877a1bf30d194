"""From the user's formula or arrays to checked arrays: outcome, treatment, covariates, weights.

Whatever can be wrong with data is found here, before anything is computed. Nothing is ever written
into what the user passed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cstonet.analyses.doses.reading import dose_values
from cstonet.analyses.mediation.reading import Mediators, RawMediators, check_parts, named_columns
from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import as_frame, check_unique, listing
from cstonet.data.covariates import CovariateSpec, Source, array_to_frame
from cstonet.data.formula import Selected, parse_formula, select_columns
from cstonet.data.gaps import CovariateGaps, fill_sources, gap_advice, warn_of_empty_arms
from cstonet.data.leaks import check_copies
from cstonet.data.received import Received
from cstonet.data.roles import (
    Family,
    TreatmentKind,
    Vector,
    check_arms,
    looks_continuous,
    outcome_values,
    treatment_codes,
    weight_values,
)
from cstonet.data.sources import Gaps, Sources
from cstonet.errors import (
    DataError,
    EmptyDataError,
    FormulaError,
    OptionError,
)

__all__ = ["Design", "Family", "Missing", "TreatmentKind"]

Missing = Literal["raise", "drop", "mar", "mnar"]


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The data of one analysis, checked.

    Attributes
    ----------
    y : ndarray (n,) of float64
        Outcome; 0 and 1 for the binomial family.
    treatment : ndarray (n,) of int64
        Codes into `treatment_levels`; zeros for a continuous treatment, see `dose`.
    X : ndarray (n, p) of float32 or float64
        Covariates, in C or Fortran order as the data came. May be a view of the user's data: not
        to be written to.
    covariates : tuple of str
        The p names.
    outcome_name, treatment_name : str
        Names of the two.
    treatment_levels : tuple
        The L values of the treatment: the reference first, the others sorted or in the order of a
        pandas category. Of two, the second is "treated". None for a continuous treatment.
    treatment_kind : {"binary", "multilevel", "continuous"}
        Kind of treatment.
    family : {"gaussian", "binomial"}
        Distribution of the outcome.
    family_inferred : bool
        Whether the family was read off the outcome rather than given.
    weights : ndarray (n,) of float64, or None
        Non-negative, with mean 1.
    formula : str or None
        As typed; None for arrays.
    spec : CovariateSpec
        How X was made, to make it again for new data.
    index : pandas.Index
        Labels of the n rows.
    n_dropped : int
        Rows left out because of missing values.
    dose : ndarray (n,) of float64, or None
        Values of a continuous treatment.
    mediators : Mediators or None
        What lies between treatment and outcome, if the formula names any.
    gaps : CovariateGaps, or None
        Missing values of the covariates, where they are to be imputed; X holds start values there.
    received : Received
        How to find the treatment in new data.
    """

    y: NDArray[np.float64]
    treatment: NDArray[np.int64]
    X: NDArray[np.floating]
    covariates: tuple[str, ...]
    outcome_name: str
    treatment_name: str
    treatment_levels: tuple[Any, ...]
    treatment_kind: TreatmentKind
    family: Family
    family_inferred: bool
    weights: NDArray[np.float64] | None
    formula: str | None
    spec: CovariateSpec
    received: Received
    index: pd.Index
    n_dropped: int
    dose: NDArray[np.float64] | None = None
    mediators: Mediators | None = None
    gaps: CovariateGaps | None = None

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame,
        *,
        family: Family | None = None,
        treatment: TreatmentKind | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | str | None = None,
    ) -> Design:
        """Read ``outcome ~ treatment | covariates [| mediators]``, take the columns from a frame.

        Parameters
        ----------
        formula : str
            E.g. ``"y ~ treat | ."`` or ``"np.log(y) ~ treat | . - id + C(region) + bs(age, 4)"``.
            Terms other than column names are Python code, which is run.
        data : DataFrame, n rows
            The data. Never changed.
        family : {"gaussian", "binomial"}, optional
            Distribution of the outcome; by default binomial for a boolean or 0/1 outcome.
        treatment : {"binary", "multilevel", "continuous"}, optional
            Kind of treatment; by default found from the data.
        reference : level of the treatment, optional
            What the other levels are compared with; by default the first of the sorted levels, or
            of a pandas category.
        missing : {"raise", "drop", "mar", "mnar"}
            What to do about missing values: refuse them, leave out rows that have any, or impute
            those of covariates, assuming that they are missing at random given everything
            observed ("mar"), or not at random ("mnar").
        weights : array-like (n,) or str, optional
            Observation weights, or the name of their column.

        Raises
        ------
        FormulaError, DataError, OptionError
            Or one of their children, each saying what to do.
        """
        _check_options(family, treatment, missing)
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
        raw = _Raw(y, treat, received, w, sources, selected, "frame", formula, mediators)
        return raw.check(family, treatment, reference, missing)

    @classmethod
    def from_arrays(
        cls,
        y: ArrayLike | pd.Series,
        treat: ArrayLike | pd.Series,
        X: ArrayLike | pd.DataFrame,
        *,
        names: Sequence[str] | None = None,
        family: Family | None = None,
        treatment: TreatmentKind | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | None = None,
        mediators: ArrayLike | pd.DataFrame | pd.Series | None = None,
    ) -> Design:
        """Take outcome, treatment and covariates from arrays.

        Parameters
        ----------
        y, treat : array-like (n,)
            Outcome and treatment.
        X : array (n, p) or DataFrame
            Covariates. Columns of text, categories or booleans in a frame are coded by levels.
        names : sequence of p str, optional
            Names of the columns of an array; by default x1, …, xp.
        family, treatment, reference, missing
            As in :meth:`from_formula`.
        weights : array-like (n,), optional
            Observation weights.
        mediators : array-like (n,) or (n, J), or DataFrame, optional
            What lies between treatment and outcome.

        Raises
        ------
        DataError, OptionError
            Or one of their children, each saying what to do.
        """
        _check_options(family, treatment, missing)
        if isinstance(weights, str):
            raise OptionError(
                f"weights={weights!r} names a column, which needs a formula and a frame. Pass the "
                "weights themselves."
            )
        source: Source
        if isinstance(X, pd.DataFrame):
            if names is not None:
                raise OptionError(
                    "names is for arrays; a DataFrame brings its own. Rename its columns instead."
                )
            frame, source = as_frame(X), "frame"
        else:
            frame, source = array_to_frame(X, names), "array"
            check_unique(frame.columns)
        _check_rows(frame)
        index = _common_index(
            len(frame), X=X, y=y, treat=treat, weights=weights, mediators=mediators
        )
        if source == "array":
            frame.index = index
        received = Vector.from_values(treat, "treat", frame.index)
        return _Raw(
            outcome=Vector.from_values(y, "y", frame.index),
            treatment=received,
            received=Received(received.name),
            weights=_weights(weights, frame),
            sources=Sources.select(frame, tuple(frame.columns), ()),
            selected=Selected(tuple(frame.columns)),
            source=source,
            formula=None,
            mediators=None
            if mediators is None
            else RawMediators.from_values(mediators, len(frame)),
        ).check(family, treatment, reference, missing)


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """The variables of an analysis before any check of their values."""

    outcome: Vector
    treatment: Vector
    received: Received
    weights: Vector | None
    sources: Sources
    selected: Selected
    source: Source
    formula: str | None
    mediators: RawMediators | None = None

    def check(
        self,
        family: Family | None,
        kind: TreatmentKind | None,
        reference: Any,
        missing: Missing,
    ) -> Design:
        """The design, or the error that says why there is none."""
        raw = self._complete(missing, kind)
        weights = None if raw.weights is None else weight_values(raw.weights)
        y, found_family = outcome_values(raw.outcome, family, weights)
        codes, levels, found_kind = treatment_codes(raw.treatment, kind, reference)
        dose = None
        if found_kind == "continuous":
            dose = dose_values(raw.treatment, weights)
        else:
            check_arms(codes, levels, raw.treatment.name, weights)
        sources, filled = raw.sources, None
        if missing in ("mar", "mnar") and sources.gaps().counts:
            if found_kind == "continuous" or raw.mediators is not None:
                raise sources.gaps().error(raw._advice(missing, kind))
            filled = fill_sources(sources)
            sources = filled.sources
        spec = CovariateSpec.fit(raw.selected, sources, source=raw.source)
        X = spec.build(sources)
        names, gaps = spec.names, None
        if filled is not None:
            gaps = CovariateGaps.find("mnar" if missing == "mnar" else "mar", spec, X, filled)
        counts = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        if gaps is not None:
            warn_of_empty_arms(gaps, np.where(counts, codes, -1), levels, raw.treatment.name)
        check_copies(
            X,
            names,
            y=y,
            codes=codes,
            dose=dose,
            counts=counts,
            outcome=raw.outcome.name,
            treatment=raw.treatment.name,
            gaps=() if gaps is None else [(v.columns, v.missing) for v in gaps.variables],
        )
        return Design(
            y=y,
            treatment=codes,
            X=X,
            covariates=names,
            outcome_name=raw.outcome.name,
            treatment_name=raw.treatment.name,
            treatment_levels=levels,
            treatment_kind=found_kind,
            family=found_family,
            family_inferred=family is None,
            weights=weights,
            formula=raw.formula,
            spec=spec,
            received=raw.received,
            index=raw.sources.index,
            n_dropped=len(self.sources) - len(raw.sources),
            dose=dose,
            mediators=None
            if raw.mediators is None
            else raw.mediators.check(y, codes, X, names, found_kind, weights),
            gaps=gaps,
        )

    def _advice(self, missing: Missing, kind: TreatmentKind | None) -> str:
        """What to do about gaps that `missing` does not allow: something that works here."""
        blocked = None
        if self.mediators is not None:
            blocked = "mediators"
        elif looks_continuous(self.treatment, kind):
            blocked = "a continuous treatment"
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

    def _complete(self, missing: Missing, kind: TreatmentKind | None) -> _Raw:
        """The rows without gaps, the same ones for every variable; imputation keeps them all."""
        gaps = self._role_gaps()
        if missing in ("mar", "mnar"):
            if gaps.counts:
                raise gaps.error(self._advice(missing, kind))
            return self
        gaps |= self.sources.gaps()
        if not gaps.counts:
            return self
        if missing == "raise":
            raise gaps.error(self._advice(missing, kind))
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
        )


def _check_options(family: object, treatment: object, missing: object) -> None:
    for name, value, choices in (
        ("family", family, ("gaussian", "binomial", None)),
        ("treatment", treatment, ("binary", "multilevel", "continuous", None)),
        ("missing", missing, get_args(Missing)),
    ):
        if value not in choices:
            raise OptionError(f"{name}={value!r} is not available; choose from {listing(choices)}.")


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
