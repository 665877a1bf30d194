"""Mediators: what lies between treatment and outcome, read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cstonet.analyses.mediation.leaks import check_arms_of, check_leaks
from cstonet.data.columns import as_frame, check_unique, describe, listing
from cstonet.data.covariates import CovariateSpec, array_to_frame
from cstonet.data.formula import Formula, Selected, Term, select_columns
from cstonet.data.roles import Family, Vector, counted, numbers_as_text
from cstonet.data.sources import Sources
from cstonet.errors import (
    ConstantMediatorError,
    DataError,
    DuplicateColumnError,
    FormulaError,
    InfiniteValuesError,
    LengthMismatchError,
    MediatorTypeError,
    NotAvailableError,
)


@dataclass(frozen=True, slots=True, eq=False)
class Mediators:
    """J mediators of n units.

    Attributes
    ----------
    names : tuple of str
        Their names.
    values : ndarray (n, J) of float64
        Their values; 0 and 1 for those with two levels.
    families : tuple of {"gaussian", "binomial"}
        Distribution of each.
    levels : tuple
        The two levels of each binary mediator, that coded 0 first; empty for the others.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    families: tuple[Family, ...]
    levels: tuple[tuple[Any, ...], ...]

    @property
    def binary(self) -> NDArray[np.bool_]:
        """Which of them are binary, shape (J,)."""
        return np.array([family == "binomial" for family in self.families])


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
        outcome: Vector,
        treatment: Vector,
        weights: Vector | None,
    ) -> RawMediators:
        """The third part of a formula.

        ``.`` among the mediators is every column that has no other part, the covariates included.
        """
        weight_columns = () if weights is None else weights.columns
        selected = select_columns(
            parsed.mediators,
            frame.columns,
            outcome=outcome.columns,
            treatment=treatment.columns,
            set_aside=(*weight_columns, *named_columns(parsed.covariates, frame)),
            what="mediator",
        )
        if not selected.columns and not selected.terms:
            raise FormulaError(f"The formula {parsed.text!r} selects no mediators.")
        inputs = selected.inputs(frame.columns)
        return cls(selected, Sources.select(frame, selected.columns, inputs))

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
            frame = array_to_frame(array, [f"m{j + 1}" for j in range(array.shape[1])])
        if len(frame) != n:
            raise LengthMismatchError(
                f"mediators has {len(frame)} rows but there are {n} outcomes. Pass one row per "
                "unit."
            )
        names = tuple(map(str, frame.columns))
        if not names:
            raise DataError("mediators has no columns. Pass one column per mediator.")
        return cls(Selected(names), Sources.select(frame, names, ()))

    def rows(self, keep: NDArray[np.bool_]) -> RawMediators:
        """The mediators of some of the rows."""
        return replace(self, sources=self.sources.rows(keep))

    def check(
        self,
        y: NDArray[np.float64],
        codes: NDArray[np.int64],
        X: NDArray[np.floating],
        covariates: Sequence[str],
        kind: str,
        weights: NDArray[np.float64] | None = None,
    ) -> Mediators:
        """The mediators as numbers, or the error that says what is wrong with them.

        Parameters
        ----------
        y, codes : (n,)
            Outcome, and codes of the treatment.
        X : (n, p)
            Covariates, called `covariates`.
        kind
            Kind of treatment.
        weights : (n,) or None
            Row weights; what the mediators are is decided by the rows of positive weight.
        """
        if kind != "binary":
            raise NotAvailableError(
                f"Mediation needs a treatment with two levels; this one is {kind}. Keep the rows "
                "of two levels, or define two groups in the formula, for example I(dose > c)."
            )
        order = {name: position for position, name in enumerate(self.selected.columns)}
        columns = sorted(
            self._columns(weights), key=lambda column: order.get(column[0], len(order))
        )
        names = tuple(name for name, _, _ in columns)
        check_unique(names)
        for name in set(names) & set(covariates):
            raise DuplicateColumnError(
                f"A covariate and a mediator are both called {name!r}. Rename one of them."
            )
        values = np.column_stack([values for _, values, _ in columns])
        levels = tuple(levels for _, _, levels in columns)
        own, arms = counted(values, weights), counted(codes, weights)
        check_leaks(names, own, counted(y, weights), arms, counted(X, weights), covariates)
        check_arms_of(names, own, arms, np.array([bool(found) for found in levels]))
        return Mediators(
            names=names,
            values=values,
            families=tuple("binomial" if found else "gaussian" for found in levels),
            levels=levels,
        )

    def _columns(
        self, weights: NDArray[np.float64] | None
    ) -> Iterator[tuple[str, NDArray[np.float64], tuple[Any, ...]]]:
        """Name, numbers and levels (none if gaussian) of each mediator.

        A row of weight zero may have a value that is none of two levels: it gets the first.
        """
        numeric = tuple(n for n in self.selected.columns if n in self.sources.numeric.columns)
        for name in self.selected.columns:
            if name not in numeric:
                yield self._labelled(name, weights)
        if not numeric and not self.selected.terms:
            return
        for name in numeric:
            infinite = int(np.isinf(self.sources.numeric[name].to_numpy()).sum())
            if infinite:
                raise InfiniteValuesError(
                    f"The mediator {name!r} is infinite in {infinite} of {len(self.sources)} rows. "
                    "Correct these rows or leave them out."
                )
        spec = CovariateSpec.fit(Selected(numeric, self.selected.terms), self.sources)
        built = spec.build(self.sources).astype(np.float64)
        for name, column in zip(spec.names, built.T, strict=True):
            values = np.unique(counted(column, weights))
            if len(values) == 1:
                raise _constant(name, values[0].item(), weights)
            if len(values) == 2:
                yield name, (column == values[1]).astype(np.float64), tuple(values.tolist())
            else:
                yield name, column, ()

    def _labelled(
        self, name: str, weights: NDArray[np.float64] | None
    ) -> tuple[str, NDArray[np.float64], tuple[Any, ...]]:
        """A column of booleans, text or categories, which must have two levels."""
        if numbers_as_text(self.sources.other[name]):
            raise MediatorTypeError(
                f"The mediator {name!r} holds numbers that are written as text. Convert it with "
                "pandas.to_numeric."
            )
        column = describe(self.sources.other[name])
        codes = column.codes(self.sources.other[name])
        present = np.unique(counted(codes, weights))
        if len(present) == 1:
            raise _constant(name, column.levels[present[0]], weights)
        if len(present) > 2:
            found = [column.levels[code] for code in present]
            raise MediatorTypeError(
                f"The mediator {name!r} has {len(found)} levels ({listing(found)}); mediators are "
                f"numbers, or have two levels. Compare two groups, for example I({name} == "
                f"{found[0]!r})."
            )
        levels = tuple(column.levels[code] for code in present)
        return name, (codes == present[1]).astype(np.float64), levels


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


def _constant(name: str, value: Any, weights: NDArray[np.float64] | None) -> ConstantMediatorError:
    positive = "" if weights is None else " with positive weight"
    return ConstantMediatorError(
        f"The mediator {name!r} is {value!r} in all rows{positive}, so nothing can act through it. "
        "Take it out of the mediators, or check the filter that selected the rows."
    )
