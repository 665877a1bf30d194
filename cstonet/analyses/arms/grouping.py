"""Units in groups: by labels, by the values of a column, by where a number is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.columns import is_number
from cstonet.data.conditions import Variables, in_condition
from cstonet.data.lookup import one_per_unit, shape_of
from cstonet.errors import (
    ColumnTypeError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
)
from cstonet.reporting.numbers import exact
from cstonet.shown import shown

# A number of quantile groups, or the numbers at which to cut.
Cuts: TypeAlias = int | Sequence[float] | None

# Groups beyond which a table says nothing.
MOST_GROUPS = 50
# Digits to which quantiles are rounded, if these tell the groups apart as well.
_DIGITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Groups of units.

    Attributes
    ----------
    codes : (n,) int64
        Numbers of the units' groups; -1: not asked about.
    labels : pandas.Index of length G
        The groups: labels in their order, or for numbers that are cut, conditions that
        ``effect(where=...)`` takes.
    """

    codes: NDArray[np.int64]
    labels: pd.Index

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text."""
        return tuple(map(str, self.labels))


def grouped(by: Any, cuts: Cuts, variables: Variables, among: NDArray[np.bool_] | None) -> Grouping:
    """The groups that a user asks for.

    Parameters
    ----------
    by : str, or array-like of length n
        A column or covariate by its name, or the labels themselves.
    cuts : int, sequence of float, or None
        For numbers: how many groups of about equal size, or where to cut them.
    variables
        What units can be grouped by.
    among : (n,) bool or None
        The units asked about; None: all.

    Raises
    ------
    UnknownColumnError, LengthMismatchError, MissingValuesError, ColumnTypeError, OptionError
        If there are no such groups.
    """
    values = _values(by, variables)
    inside = np.ones(len(values), dtype=bool) if among is None else among
    if cuts is None:
        codes, labels = _by_value(values, inside)
    else:
        codes, labels = _by_number(values, inside, cuts)
    if len(labels) > MOST_GROUPS:
        advice = "give cuts=4 for four groups" if _cuttable(values) else "merge some"
        raise OptionError(
            f"by: {values.name!r} has {len(labels)} different values, and there may be at most "
            f"{MOST_GROUPS} groups: {advice}, or pass labels of your own."
        )
    if len(labels) < 2:
        raise OptionError(
            f"by: all units are in one group ({labels[0]}); effect(where=...) is the effect among "
            "some."
        )
    return Grouping(np.where(inside, codes, -1), labels)


def _values(by: Any, variables: Variables) -> pd.Series:
    """What units are grouped by, without gaps and with its name."""
    if isinstance(by, str):
        return variables.values(by, "by").reset_index(drop=True)
    values = one_per_unit(by, variables.n, variables.kept, variables.index, "by")
    if values is None:
        shape = shape_of(by)
        raise LengthMismatchError(
            f"by must be the name of a column, or {variables.n} labels, one for each unit; got "
            f"{type(by).__name__}{f' of shape {shape}' if shape else ''}."
        )
    if values.name is None:
        values = values.rename("group")
    if str(values.name) in variables.forbidden:
        raise NotAvailableError(f"by: {variables.forbidden[str(values.name)]}")
    gaps = int(values.isna().sum())
    if gaps:
        raise MissingValuesError(
            f"by: {gaps} of the {variables.n} labels are missing. Give these units a label of "
            "their own, or leave them out with where=."
        )
    return values


def _by_value(values: pd.Series, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], pd.Index]:
    """A group for each value; categories keep their order, others are sorted."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        there = values[inside].unique()
        levels = [level for level in dtype.categories if level in set(there)]
    else:
        try:
            levels = sorted(values[inside].unique().tolist())
        except TypeError as error:
            raise ColumnTypeError(
                f"by: the values of {values.name!r} are of different kinds. Convert them, for "
                "example with .astype(str)."
            ) from error
    labels = pd.Index(levels, name=values.name)
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values.tolist(), dtype=object))
    return codes.astype(np.int64), labels


def _by_number(
    values: pd.Series, inside: NDArray[np.bool_], cuts: Any
) -> tuple[NDArray[np.int64], pd.Index]:
    """A group below each edge, and one from the last edge on."""
    if not _cuttable(values):
        raise ColumnTypeError(f"by: {values.name!r} holds no numbers, so cuts= cannot cut them.")
    numbers = values.to_numpy(dtype=np.float64)
    edges = _edges(numbers[inside], cuts)
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int64)
    there = np.unique(codes[inside])
    name = in_condition(str(values.name))
    labels = [_condition(name, edges, int(code)) for code in there]
    return np.searchsorted(there, codes), pd.Index(labels, name=values.name)


def _cuttable(values: pd.Series) -> bool:
    return bool(is_number(values.dtype) and not pdt.is_bool_dtype(values.dtype))


def _edges(numbers: NDArray[np.float64], cuts: Any) -> NDArray[np.float64]:
    """Where to cut, in ascending order."""
    if isinstance(cuts, int | np.integer) and not isinstance(cuts, bool):
        if int(cuts) < 2:
            raise OptionError(f"cuts must be at least 2 groups, not {shown(cuts)}")
        if int(cuts) > MOST_GROUPS:
            raise OptionError(f"cuts must be at most {MOST_GROUPS} groups, not {shown(cuts)}")
        if numbers.min() == numbers.max():
            raise OptionError(
                f"cuts: there is nothing to cut, as all units have the value {exact(numbers[0])}."
            )
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, int(cuts) + 1)[1:-1]))
        edges = edges[edges > numbers.min()]
        rounded = np.array([float(f"{edge:.{_DIGITS}g}") for edge in edges])
        sizes = np.bincount(np.searchsorted(edges, numbers, side="right"))
        others = np.bincount(np.searchsorted(rounded, numbers, side="right"))
        # About as many units in each group: else the quantiles need all of their digits.
        alike = len(sizes) == len(others) and np.all(np.abs(sizes - others) <= 0.1 * sizes)
        return rounded if alike and np.all(np.diff(rounded) > 0) else edges
    try:
        edges = np.asarray(cuts, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) == 0 or not np.isfinite(edges).all():
        raise OptionError(
            "cuts must be a number of groups of about equal size, such as 4, or the numbers at "
            f"which to cut, such as [30, 50]; got {shown(cuts)}"
        )
    if not np.all(np.diff(edges) > 0):
        raise OptionError(f"cuts must ascend, each larger than the one before; got {shown(cuts)}")
    return edges


def _condition(name: str, edges: NDArray[np.float64], code: int) -> str:
    """The group between two edges, as a condition."""
    texts = [exact(edge) for edge in edges]
    if code == 0:
        return f"{name} < {texts[0]}"
    if code == len(edges):
        return f"{name} >= {texts[-1]}"
    return f"{texts[code - 1]} <= {name} < {texts[code]}"
