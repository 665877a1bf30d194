"""Variables with one value per row: as the user gave them, as numbers, clusters as codes."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.columns import different, is_number, listing, take, unknown_column
from cstonet.data.formula import named_column
from cstonet.data.native import as_series, doubles, inferred, is_extended, native
from cstonet.data.sources import Gaps
from cstonet.data.units import beyond_rounding, careful_moments
from cstonet.errors import (
    ColumnTypeError,
    ConstantOutcomeError,
    DataError,
    ExtremeScaleError,
    InfiniteValuesError,
    LengthMismatchError,
    OutcomeTypeError,
    TooFewClustersError,
    UnevenWeightsError,
)
from cstonet.shown import shown

# Powers of ten that are a variable's largest size and, with a minus, its least range: squares of
# what is many times larger, and sums of millions of these, are numbers.
_LARGEST_POWER = 145

_Scalar = TypeVar("_Scalar", bound=np.generic)
Family = Literal["gaussian", "binomial", "poisson"]
# Families of the units of a network, by which treatments, mediators and outcomes are modelled.
BlockFamily = Literal["gaussian", "bernoulli", "categorical", "poisson"]

# Weight, with a mean of one, of rows that count for nothing; rows of equal weight that those of an
# arm must be worth, (Σ w)² / Σ w².
_NEGLIGIBLE, _FEWEST_WORTH = 1e-16, 2.0


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
    def from_expression(cls, code: str, frame: pd.DataFrame, *, safe: bool = False) -> Vector:
        """A column, or an expression of columns.

        Parameters
        ----------
        code : str
            The column or the expression.
        frame : DataFrame
            The data.
        safe : bool
            Whether an expression must be a plain computation; else it is Python code, which is run.

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
        terms = _reader_of_terms(safe)
        columns = terms.columns_in(code, frame.columns)
        values = terms.evaluate(code, frame)
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
        values = native(take(frame, [name]).iloc[:, 0])
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
        expected = f"{name} must hold one value per row"
        try:
            shape = np.shape(values)
        except ValueError:
            raise DataError(f"{expected}; it holds lists that differ in length.") from None
        except Exception:  # the code of the values' own class
            shape = None
        if not isinstance(shape, tuple):
            raise DataError(f"{expected}; it is {shown(values)}.")
        if len(shape) == 2 and shape[1] == 1:
            frame = isinstance(values, pd.DataFrame)
            values, shape = values.iloc[:, 0] if frame else np.ravel(values), shape[:1]
        if len(shape) != 1:
            raise DataError(
                f"{expected}; its shape is {shape}. Pass a one-dimensional array or a Series."
            )
        if shape[0] != len(index):
            raise LengthMismatchError(
                f"{name} has {shape[0]} values but there are {len(index)} rows. Pass one value "
                "per row."
            )
        label: Hashable | None = getattr(values, "name", None)
        series = as_series(values, name, index)
        name = name if label is None else str(label)
        return cls(name, series, Gaps.of_column(name, series.isna().to_numpy()))

    def rows(self, keep: NDArray[np.bool_]) -> Vector:
        """The variable for some of the rows."""
        gaps = Gaps.of_column(self.name, self.gaps.rows[keep])
        return Vector(self.name, self.values.loc[keep], gaps, self.columns)


def expression_columns(code: str, columns: pd.Index, *, safe: bool = False) -> tuple[str, ...]:
    """The columns that a variable is made of: one, or those of an expression.

    Raises
    ------
    UnknownColumnError, FormulaError
        If it is neither.
    """
    name = named_column(code, columns)
    if name is not None:
        return (name,)
    if code.isidentifier():
        raise unknown_column(code, columns)
    used: tuple[str, ...] = _reader_of_terms(safe).columns_in(code, columns)
    return used


def _reader_of_terms(safe: bool) -> Any:
    """The module that reads expressions; not at the top: plain formulas never load patsy."""
    if safe:
        from cstonet.data import safe_terms

        return safe_terms
    from cstonet.data import patsy_terms

    return patsy_terms


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
    family : {"gaussian", "binomial", "poisson"} or None
        None: binomial for a boolean or 0/1 outcome, otherwise gaussian.
    weights : (n,) or None
        Row weights; an outcome that varies only in rows of weight zero is constant.

    Returns
    -------
    y : ndarray (n,)
        A copy.
    family : {"gaussian", "binomial", "poisson"}
    """
    values = inferred(outcome.values, f"The outcome {outcome.name!r}")
    if not _is_number_or_boolean(values.dtype):
        raise OutcomeTypeError(
            f"The outcome {outcome.name!r} ({values.dtype}) is not numeric; it holds "
            f"{listing(different(values), 3)}. Code it as numbers; two classes as 0 and 1, for "
            "example with I(outcome == 'yes')."
        )
    y = doubles(values, f"The outcome {outcome.name!r}")
    check_finite_values(y, f"outcome {outcome.name!r}")
    own = counted(y, weights)
    if not differ(own):
        raise ConstantOutcomeError(
            f"The outcome {outcome.name!r} is {own[0]:g} in all {rows_that_count(own, weights)}, "
            "so there is nothing to explain. Check the column, or the filter that selected the "
            "rows."
        )
    check_scale(y, own, f"outcome {outcome.name!r}")
    zero_one = bool(np.isin(y, (0.0, 1.0)).all())
    if family == "binomial" and not zero_one:
        raise OutcomeTypeError(
            f"The outcome {outcome.name!r} must be 0 or 1 (or boolean) for family='binomial'; it "
            f"holds {listing(np.unique(y), 3)}. Recode it, or use family='gaussian'."
        )
    if family == "poisson" and (y < 0).any():
        raise OutcomeTypeError(
            f"The outcome {outcome.name!r} must not be negative for family='poisson', whose means "
            f"are above zero; it is in {int((y < 0).sum())} rows. Recode it, or use "
            "family='gaussian'."
        )
    if family is None:
        return y, "binomial" if zero_one else "gaussian"
    return y, family


def may_be_counts(y: NDArray[np.float64]) -> bool:
    """Whether an outcome is a whole number that starts at zero and goes beyond one."""
    return bool(y.min() == 0 and y.max() > 1 and (y == np.floor(y)).all())


def weight_values(weights: Vector) -> NDArray[np.float64]:
    """Weights as numbers with mean 1, shape (n,); a copy."""
    values = inferred(weights.values, f"The weights {weights.name!r}")
    if not _is_number_or_boolean(values.dtype):
        raise DataError(
            f"The weights {weights.name!r} ({values.dtype}) are not numeric. Pass one "
            "non-negative number per row."
        )
    w = doubles(values, f"The weights {weights.name!r}")
    check_finite_values(w, f"weights {weights.name!r}")
    if (w < 0).any():
        raise DataError(
            f"The weights {weights.name!r} are negative in {int((w < 0).sum())} rows. Weights "
            "must be at least 0; leave out rows that should not count."
        )
    if not w.any():
        raise DataError(f"The weights {weights.name!r} are all zero, so no row would count.")
    # Divided by the largest first: a sum of huge weights could overflow.
    w /= w.max()
    w /= w.mean()
    # Sums over all rows do not see these, and minibatches of nothing else would have no weight in
    # single precision: they count as what they are.
    w[w < _NEGLIGIBLE] = 0.0
    check_weights(w, "all data")
    return w


def check_weights(weights: NDArray[np.float64], where: str) -> None:
    """Refuse weights (m,) of the rows of a part of the data, of which one has nearly all.

    Raises
    ------
    UnevenWeightsError
    """
    worth = float(weights.sum() ** 2 / np.sum(weights**2))
    if worth < _FEWEST_WORTH:
        raise UnevenWeightsError(
            f"One row has {weights.max() / weights.sum():.0%} of the weight of {where}, whose "
            f"{len(weights)} rows are worth {worth:.1f} of equal weight: from one row nothing can "
            "be learned. Check the weights, and trim those that are above all others."
        )


def cluster_codes(cluster: Vector, weights: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    """Codes 0, …, G-1 of the clusters, in the order in which they appear, shape (n,).

    Parameters
    ----------
    cluster : Vector
        Labels of any kind, without gaps.
    weights : (n,) or None
        Row weights; clusters of weight zero do not count.

    Raises
    ------
    ColumnTypeError
        If the values cannot be told apart.
    TooFewClustersError
        If only one cluster counts.
    """
    try:
        if is_extended(cluster.values.dtype):
            raise TypeError("pandas would round them")
        codes, _ = pd.factorize(cluster.values)
    except Exception:  # also what the code of the labels' own classes raises
        raise ColumnTypeError(
            f"The clusters {cluster.name!r} ({cluster.values.dtype}) are not labels. Pass a number "
            "or a text for each row, the same for rows that belong together."
        ) from None
    own = counted(codes, weights)
    if (own == own[0]).all():
        raise TooFewClustersError(
            f"The clusters {cluster.name!r} are one and the same in all "
            f"{rows_that_count(own, weights)}, so that nothing is independent and no standard "
            "error can be had. Name another column, or leave cluster= out."
        )
    return codes.astype(np.int64)


def numbers_as_text(values: pd.Series) -> bool:
    """Whether a column of text, of more than two levels, holds nothing but numbers."""
    if isinstance(values.dtype, pd.CategoricalDtype) or pdt.infer_dtype(values) != "string":
        return False
    texts = pd.Series(values.unique(), dtype=object)
    return len(texts) > 2 and bool(pd.to_numeric(texts, errors="coerce").notna().all())


def _is_number_or_boolean(dtype: Any) -> bool:
    boolean = pdt.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)
    return is_number(dtype) or boolean


def check_finite_values(values: NDArray[np.float64], what: str) -> None:
    """Refuse infinite values of a variable, called `what` in the message."""
    infinite = int((~np.isfinite(values)).sum())
    if infinite:
        raise InfiniteValuesError(
            f"The {what} is infinite in {infinite} of {len(values)} rows. Correct these rows or "
            "leave them out."
        )


def differ(own: NDArray[np.float64]) -> bool:
    """Whether values (m,) differ by more than rounding errors."""
    if (own == own[0]).all():
        return False
    return bool(beyond_rounding(*careful_moments(own[:, np.newaxis], None))[0])


def check_scale(
    values: NDArray[np.float64],
    own: NDArray[np.float64],
    what: str,
    most: int = _LARGEST_POWER,
) -> None:
    """Refuse a variable, called `what` in the message, if its squares would be no numbers.

    Parameters
    ----------
    values : (n,)
        Its values.
    own : (m,)
        Those of the rows that count, which differ.
    what : str
        The role and the name.
    most : int
        The power of ten that it may reach; its range may be one over this.

    Raises
    ------
    ExtremeScaleError
    """
    low, high = float(values.min()), float(values.max())
    power = math.floor(math.log10(max(-low, high)))
    if power >= most:
        raise ExtremeScaleError(
            f"The {what} ranges from {low:.3g} to {high:.3g}: powers of such numbers are too large "
            f"to be computed with. Divide it by 1e{power}, or correct the rows that are wrong."
        )
    power = power_of_range(own)
    if power < -most:
        raise ExtremeScaleError(
            f"The {what} ranges from {low:.6g} to {high:.6g}: powers of such differences are too "
            f"small to be computed with. Multiply it by 1e{-power}."
        )


def power_of_range(own: NDArray[np.float64]) -> int:
    """The power of ten in the range of values (m,) that differ."""
    return math.floor(math.log10(own.max() - own.min()))


def block_family(family: Family) -> BlockFamily:
    """Family of the units that model a variable of this family."""
    return "bernoulli" if family == "binomial" else family
