"""Outcome, treatment and weights: one value per row each, read and checked."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.columns import is_number, listing, take
from cstonet.data.formula import named_column
from cstonet.data.sources import Gaps
from cstonet.errors import (
    ConstantOutcomeError,
    ConstantTreatmentError,
    DataError,
    InfiniteValuesError,
    LengthMismatchError,
    OneArmedError,
    OptionError,
    OutcomeTypeError,
    TreatmentTypeError,
    UnknownLevelError,
)

_Scalar = TypeVar("_Scalar", bound=np.generic)
Family = Literal["gaussian", "binomial"]
TreatmentKind = Literal["binary", "multilevel", "continuous"]

_MIN_ARM = 2  # a variance within each arm needs two units
_FEW_LEVELS = 10  # a numeric treatment with more values than this is called continuous


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """A variable with one value per row, as the user gave it.

    Attributes
    ----------
    name : str
        Column name, expression, or name of the argument.
    values : Series of length n
        The values.
    gaps : Gaps
        What is missing.
    columns : tuple of str
        The columns of the frame that it is made of; none for an array.
    """

    name: str
    values: pd.Series
    gaps: Gaps
    columns: tuple[str, ...] = ()

    @classmethod
    def from_expression(cls, code: str, frame: pd.DataFrame) -> Vector:
        """A column, or a Python expression of columns.

        Raises
        ------
        UnknownColumnError, FormulaError
            If it is neither.
        """
        name = named_column(code, frame.columns)
        if name is not None:
            return cls.from_column(name, frame)
        if code.isidentifier():
            return cls.from_column(code, frame)
        from cstonet.data import patsy_terms  # not at the top: plain formulas never load patsy

        columns = patsy_terms.columns_in(code, frame.columns)
        values = patsy_terms.evaluate(code, frame)
        # The expression may hide a gap: NaN > 0 is False, not missing.
        hidden = take(frame, columns).isna().to_numpy().any(axis=1)
        missing = hidden | values.isna().to_numpy()
        return cls(code, values, Gaps.of_column(code, missing), columns)

    @classmethod
    def from_column(cls, name: str, frame: pd.DataFrame) -> Vector:
        """A column of a frame.

        Raises
        ------
        UnknownColumnError
            If there is no such column.
        """
        values = take(frame, [name]).iloc[:, 0]
        return cls(name, values, Gaps.of_column(name, values.isna().to_numpy()), (name,))

    @classmethod
    def from_values(cls, values: Any, name: str, index: pd.Index) -> Vector:
        """An array, list or Series; a Series brings its own name.

        Parameters
        ----------
        values : array-like (n,) or (n, 1)
            The values, in the order of the rows.
        name : str
            What to call it if it has no name.
        index : Index of length n
            Labels of the rows.

        Raises
        ------
        DataError
            If the values are not one-dimensional.
        LengthMismatchError
            If there are not n of them.
        """
        if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
            values = values.iloc[:, 0]
        elif np.ndim(values) == 2 and np.shape(values)[1] == 1:
            values = np.ravel(values)
        if np.ndim(values) != 1:
            raise DataError(
                f"{name} must hold one value per row; its shape is {np.shape(values)}. Pass a "
                "one-dimensional array or a Series."
            )
        if len(values) != len(index):
            raise LengthMismatchError(
                f"{name} has {len(values)} values but there are {len(index)} rows. Pass one value "
                "per row."
            )
        label: Hashable | None = getattr(values, "name", None)
        series = pd.Series(values).set_axis(index)
        name = name if label is None else str(label)
        return cls(name, series, Gaps.of_column(name, series.isna().to_numpy()))

    def rows(self, keep: NDArray[np.bool_]) -> Vector:
        """The variable for some of the rows."""
        gaps = Gaps.of_column(self.name, self.gaps.rows[keep])
        return Vector(self.name, self.values.loc[keep], gaps, self.columns)


def counted(values: NDArray[_Scalar], weights: NDArray[np.float64] | None) -> NDArray[_Scalar]:
    """The rows of `values` (n, ...) that count: those of positive weight. A view if all do."""
    return values if weights is None or weights.all() else values[weights > 0]


def rows_that_count(own: NDArray[Any], weights: NDArray[np.float64] | None) -> str:
    """How many rows count, for a message."""
    return f"{len(own)} rows" + ("" if weights is None else " with positive weight")


def outcome_values(
    outcome: Vector, family: Family | None, weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], Family]:
    """The outcome as numbers, and its family.

    Parameters
    ----------
    outcome : Vector
        The outcome, without gaps.
    family : {"gaussian", "binomial"} or None
        None: binomial for a boolean or 0/1 outcome, otherwise gaussian.
    weights : (n,) or None
        Row weights; an outcome that varies only in rows of weight zero is constant.

    Returns
    -------
    y : ndarray (n,)
        A copy.
    family : {"gaussian", "binomial"}
    """
    values = outcome.values.infer_objects()
    if not _is_number_or_boolean(values.dtype):
        raise OutcomeTypeError(
            f"The outcome {outcome.name!r} ({values.dtype}) is not numeric; it holds "
            f"{listing(values.unique(), 3)}. Code it as numbers; two classes as 0 and 1, for "
            "example with I(outcome == 'yes')."
        )
    y = values.to_numpy(dtype=np.float64, copy=True)
    _check_finite(y, f"outcome {outcome.name!r}")
    own = counted(y, weights)
    if (own == own[0]).all():
        raise ConstantOutcomeError(
            f"The outcome {outcome.name!r} is {own[0]:g} in all {rows_that_count(own, weights)}, "
            "so there is nothing to explain. Check the column, or the filter that selected the "
            "rows."
        )
    zero_one = bool(np.isin(y, (0.0, 1.0)).all())
    if family == "binomial" and not zero_one:
        raise OutcomeTypeError(
            f"The outcome {outcome.name!r} must be 0 or 1 (or boolean) for family='binomial'; it "
            f"holds {listing(np.unique(y), 3)}. Recode it, or use family='gaussian'."
        )
    if family is None:
        return y, "binomial" if zero_one else "gaussian"
    return y, family


def treatment_codes(
    treatment: Vector, kind: TreatmentKind | None = None, reference: Any = None
) -> tuple[NDArray[np.int64], tuple[Any, ...], TreatmentKind]:
    """Codes, levels and kind of a treatment.

    Parameters
    ----------
    treatment : Vector
        The treatment, without gaps.
    kind : {"binary", "multilevel", "continuous"} or None
        None: binary for two levels; multilevel for more, unless they are numbers that look like
        amounts, which make it continuous.
    reference : level or None
        The level that the others are compared with; None: the first.

    Returns
    -------
    codes : ndarray (n,)
        0, …, L-1; zeros for a continuous treatment.
    levels : tuple of L values
        The reference, then the others: sorted, or in the order of a pandas category. None for a
        continuous treatment.
    kind : {"binary", "multilevel", "continuous"}
    """
    values = treatment.values.infer_objects()
    levels = _levels(values, treatment.name)
    if len(levels) == 1:
        raise ConstantTreatmentError(
            f"The treatment {treatment.name!r} is {levels[0]!r} in all {len(values)} rows, so "
            "there is nothing to compare. Check the column, or the filter that selected the rows."
        )
    if kind is None:
        kind = _kind(values, levels)
    if kind == "continuous":
        if reference is not None:
            raise OptionError(
                f"reference={reference!r}: the continuous treatment {treatment.name!r} has no "
                "reference level. Leave it out, or use treatment='multilevel'."
            )
        return np.zeros(len(values), dtype=np.int64), (), kind
    if kind == "binary" and len(levels) > 2:
        raise TreatmentTypeError(
            f"The treatment {treatment.name!r} is not binary: it has {len(levels)} values "
            f"({listing(levels)}). Use treatment='multilevel' to compare them all, keep the rows "
            f"of two levels, or define two groups in the formula, for example "
            f"I({treatment.name} > c) or I({treatment.name} == 'a')."
        )
    if reference is not None:
        first = level_code(reference, levels, treatment.name, "reference")
        levels = (levels[first], *levels[:first], *levels[first + 1 :])
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values, dtype=object))
    return codes.astype(np.int64), levels, kind


def _kind(values: pd.Series, levels: tuple[Any, ...]) -> TreatmentKind:
    """The kind of a treatment about which the user said nothing."""
    if len(levels) == 2:
        return "binary"
    whole = all(isinstance(level, int) for level in levels)
    if is_number(values.dtype) and not (whole and len(levels) <= _FEW_LEVELS):
        return "continuous"
    return "multilevel"


def looks_continuous(treatment: Vector, kind: TreatmentKind | None) -> bool:
    """Whether a treatment, which may have gaps, would be analysed as continuous."""
    if kind is not None:
        return kind == "continuous"
    values = treatment.values[~treatment.gaps.rows].infer_objects()
    if values.empty:
        return False
    try:
        return _kind(values, _levels(values, treatment.name)) == "continuous"
    except TreatmentTypeError:
        return False


def level_code(value: object, levels: tuple[Any, ...], name: str, what: str) -> int:
    """Position of a level that the user named, or an error that lists the levels."""
    try:
        return levels.index(value)
    except ValueError:
        raise UnknownLevelError(
            f"{what}: the treatment {name!r} has no level {value!r}. Choose one of "
            f"{listing(levels)}."
        ) from None


def weight_values(weights: Vector) -> NDArray[np.float64]:
    """Weights as numbers with mean 1, shape (n,); a copy."""
    values = weights.values.infer_objects()
    if not _is_number_or_boolean(values.dtype):
        raise DataError(
            f"The weights {weights.name!r} ({values.dtype}) are not numeric. Pass one "
            "non-negative number per row."
        )
    w = values.to_numpy(dtype=np.float64, copy=True)
    _check_finite(w, f"weights {weights.name!r}")
    if (w < 0).any():
        raise DataError(
            f"The weights {weights.name!r} are negative in {int((w < 0).sum())} rows. Weights "
            "must be at least 0; leave out rows that should not count."
        )
    if not w.any():
        raise DataError(f"The weights {weights.name!r} are all zero, so no row would count.")
    # Divided by the largest first: a sum of huge weights could overflow.
    w /= w.max()
    return np.asarray(w / w.mean())


def check_arms(
    codes: NDArray[np.int64],
    levels: tuple[Any, ...],
    name: str,
    weights: NDArray[np.float64] | None = None,
) -> None:
    """Refuse a treatment with too few units in an arm, not counting those of weight zero."""
    sizes = np.bincount(counted(codes, weights), minlength=len(levels))
    for level, size in zip(levels, sizes, strict=True):
        if size < _MIN_ARM:
            units = "unit" if size == 1 else "units"
            positive = "" if weights is None else " with positive weight"
            amounts = (
                " Its levels are numbers written as text: if they are amounts, convert them with "
                "pandas.to_numeric."
            )
            raise OneArmedError(
                f"The arm {name} = {level!r} has {size} {units}{positive}; at least {_MIN_ARM} "
                "are needed in each arm. Add rows, or check the filter that selected them."
                + (amounts if numbers_as_text(pd.Series(levels, dtype=object)) else "")
            )


def numbers_as_text(values: pd.Series) -> bool:
    """Whether a column of text, of more than two levels, holds nothing but numbers."""
    if isinstance(values.dtype, pd.CategoricalDtype) or pdt.infer_dtype(values) != "string":
        return False
    different = pd.Series(values.unique())
    return len(different) > 2 and bool(pd.to_numeric(different, errors="coerce").notna().all())


def _levels(values: pd.Series, name: str) -> tuple[Any, ...]:
    """The distinct values, in order, as plain Python values where possible."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return tuple(values.cat.remove_unused_categories().cat.categories.tolist())
    if is_number(values.dtype):
        numbers = values.to_numpy(dtype=np.float64)
        _check_finite(numbers, f"treatment {name!r}")
        return tuple(int(v) if v.is_integer() else v for v in np.unique(numbers).tolist())
    kind = pdt.infer_dtype(values, skipna=True)
    if kind not in ("boolean", "string"):
        raise TreatmentTypeError(
            f"The treatment {name!r} ({values.dtype}, {kind}) holds neither numbers, booleans, "
            "text nor categories. Code it as 0 and 1, or as two labels."
        )
    return tuple(sorted(values.unique().tolist()))


def _is_number_or_boolean(dtype: Any) -> bool:
    boolean = pdt.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)
    return is_number(dtype) or boolean


def _check_finite(values: NDArray[np.float64], what: str) -> None:
    infinite = int((~np.isfinite(values)).sum())
    if infinite:
        raise InfiniteValuesError(
            f"The {what} is infinite in {infinite} of {len(values)} rows. Correct these rows or "
            "leave them out."
        )
