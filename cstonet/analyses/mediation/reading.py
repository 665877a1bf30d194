"""Mediators: what lies between treatment and outcome, read and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.mediation.leaks import check_arms_of, check_leaks
from cstonet.data.columns import check_unique, describe, listing
from cstonet.data.covariates import CovariateSpec
from cstonet.data.design import Design
from cstonet.data.formula import Selected
from cstonet.data.matrix import Rows, is_sparse
from cstonet.data.mediators import RawMediators
from cstonet.data.treatment import Arms
from cstonet.data.variables import Family, check_scale, counted, differ, numbers_as_text
from cstonet.errors import (
    ConstantMediatorError,
    DuplicateColumnError,
    InfiniteValuesError,
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
class MediationDesign(Design[Arms]):
    """The data of a mediation: those of any analysis, and the mediators."""

    mediators: Mediators = field(kw_only=True)


def read_mediators(design: Design[Arms], raw: RawMediators) -> Mediators:
    """The mediators of a checked design as numbers, or the error that says what is wrong.

    What they are is decided by the rows of positive weight.
    """
    arms = design.treatment
    if arms.kind != "binary":
        raise not_binary(arms.kind)
    if is_sparse(design.X):
        raise NotAvailableError(
            "Mediation is not available with sparse covariates. Pass dense columns: fewer of "
            "them, or all with X.toarray()."
        )
    y, X, weights = design.y, design.X, design.weights
    order = {name: position for position, name in enumerate(raw.selected.columns)}
    columns = sorted(_columns(raw, weights), key=lambda column: order.get(column[0], len(order)))
    names = tuple(name for name, _, _ in columns)
    check_unique(names)
    for name in set(names) & set(design.covariates):
        raise DuplicateColumnError(
            f"A covariate and a mediator are both called {name!r}. Rename one of them."
        )
    values = np.column_stack([values for _, values, _ in columns])
    levels = tuple(levels for _, _, levels in columns)
    own, codes = counted(values, weights), counted(arms.codes, weights)
    rows = Rows.counted(X, weights)
    check_leaks(names, own, counted(y, weights), codes, rows, design.covariates)
    check_arms_of(names, own, codes, np.array([bool(found) for found in levels]))
    return Mediators(
        names=names,
        values=values,
        families=tuple("binomial" if found else "gaussian" for found in levels),
        levels=levels,
    )


def not_binary(kind: str) -> NotAvailableError:
    """The error about a treatment that is not binary."""
    return NotAvailableError(
        f"Mediation needs a treatment with two levels; this one is {kind}. Keep the rows of two "
        "levels, or define two groups in the formula, for example I(dose > c)."
    )


def _columns(
    raw: RawMediators, weights: NDArray[np.float64] | None
) -> Iterator[tuple[str, NDArray[np.float64], tuple[Any, ...]]]:
    """Name, numbers and levels (none if gaussian) of each mediator.

    A row of weight zero may have a value that is none of two levels: it gets the first.
    """
    numeric = tuple(n for n in raw.selected.columns if n in raw.sources.numeric.columns)
    for name in raw.selected.columns:
        if name not in numeric:
            yield _labelled(raw, name, weights)
    if not numeric and not raw.selected.terms:
        return
    columns: Any = raw.sources.numeric  # mediators are never on workers
    for name in numeric:
        infinite = int(np.isinf(columns[name].to_numpy()).sum())
        if infinite:
            raise InfiniteValuesError(
                f"The mediator {name!r} is infinite in {infinite} of {len(raw.sources)} rows. "
                "Correct these rows or leave them out."
            )
    spec = CovariateSpec.fit(Selected(numeric, raw.selected.terms), raw.sources)
    built = spec.build(raw.sources).astype(np.float64)
    for name, column in zip(spec.names, built.T, strict=True):
        own = counted(column, weights)
        values = np.unique(own)
        if not differ(own):
            raise _constant(name, values[0].item(), weights)
        if len(values) == 2:
            yield name, (column == values[1]).astype(np.float64), tuple(values.tolist())
        else:
            check_scale(column, own, f"mediator {name!r}")
            yield name, column, ()


def _labelled(
    raw: RawMediators, name: str, weights: NDArray[np.float64] | None
) -> tuple[str, NDArray[np.float64], tuple[Any, ...]]:
    """A column of booleans, text or categories, which must have two levels."""
    if numbers_as_text(raw.sources.other[name]):
        raise MediatorTypeError(
            f"The mediator {name!r} holds numbers that are written as text. Convert it with "
            "pandas.to_numeric."
        )
    column = describe(raw.sources.other[name])
    codes = column.codes(raw.sources.other[name])
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


def _constant(name: str, value: Any, weights: NDArray[np.float64] | None) -> ConstantMediatorError:
    positive = "" if weights is None else " with positive weight"
    return ConstantMediatorError(
        f"The mediator {name!r} is {value!r} in all rows{positive}, so nothing can act through it. "
        "Take it out of the mediators, or check the filter that selected the rows."
    )
