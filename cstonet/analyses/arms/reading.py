"""Arms: a treatment with levels, read from the user's column and checked."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import is_number, listing
from cstonet.data.design import Design
from cstonet.data.native import inferred
from cstonet.data.treatment import (
    Arms,
    ArmsKind,
    level_code,
    treatment_levels,
)
from cstonet.data.variables import Vector, counted, numbers_as_text
from cstonet.errors import EmptyArmWarning, OneArmedError, TreatmentTypeError

_MIN_ARM = 2  # a variance within each arm needs two units


def read_arms(
    treatment: Vector,
    kind: str | None,
    reference: Any,
    weights: NDArray[np.float64] | None,
) -> Arms:
    """The arms of a treatment without gaps.

    Parameters
    ----------
    treatment : Vector
        The treatment.
    kind : {"binary", "multilevel"} or None
        None: binary for two levels, multilevel for more.
    reference : level or None
        The level that the others are compared with; None: the first.
    weights : (n,) or None
        Row weights; units of weight zero do not count.

    Raises
    ------
    ConstantTreatmentError, TreatmentTypeError, UnknownLevelError, OneArmedError
    """
    levels = treatment_levels(treatment)
    if kind is None:
        kind = "binary" if len(levels) == 2 else "multilevel"
    if kind == "binary" and len(levels) > 2:
        raise _not_binary(treatment, levels)
    if reference is not None:
        first = level_code(reference, levels, treatment.name, "reference")
        levels = (levels[first], *levels[:first], *levels[first + 1 :])
    values = inferred(treatment.values, f"The treatment {treatment.name!r}")
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values, dtype=object))
    found: ArmsKind = "binary" if kind == "binary" else "multilevel"
    arms = Arms(treatment.name, codes.astype(np.int64), levels, found)
    _check_sizes(arms, weights)
    return arms


def warn_of_empty_arms(design: Design[Arms]) -> None:
    """Warn of columns without a value in an arm, not counting rows of weight zero."""
    if design.gaps is None:
        return
    counts = np.ones(len(design.y), dtype=bool) if design.weights is None else design.weights > 0
    arms = design.treatment
    for code, level in enumerate(arms.levels):
        arm = counts & (arms.codes == code)
        empty = [v.name for v in design.gaps.variables if v.missing[arm].all()]
        if empty:
            warnings.warn(
                f"{listing(empty)}: no value where {arms.name} is {level!r}. What is imputed there "
                "rests on the model alone, and so does adjusting for it: better leave such columns "
                "out.",
                EmptyArmWarning,
                stacklevel=caller_stacklevel(),
            )


def _not_binary(treatment: Vector, levels: tuple[Any, ...]) -> TreatmentTypeError:
    amounts = ""
    if is_number(inferred(treatment.values, f"The treatment {treatment.name!r}").dtype):
        amounts = " If its values are amounts, use treatment='continuous'."
    return TreatmentTypeError(
        f"The treatment {treatment.name!r} is not binary: it has {len(levels)} values "
        f"({listing(levels)}). Use treatment='multilevel' to compare them all, keep the rows "
        f"of two levels, or define two groups in the formula, for example "
        f"I({treatment.name} > c) or I({treatment.name} == 'a').{amounts}"
    )


def _check_sizes(arms: Arms, weights: NDArray[np.float64] | None) -> None:
    """Refuse a treatment with too few units in an arm, not counting those of weight zero."""
    sizes = np.bincount(counted(arms.codes, weights), minlength=len(arms.levels))
    for level, size in zip(arms.levels, sizes, strict=True):
        if size < _MIN_ARM:
            units = "unit" if size == 1 else "units"
            positive = "" if weights is None else " with positive weight"
            raise OneArmedError(
                f"The arm {arms.name} = {level!r} has {size} {units}{positive}; at least "
                f"{_MIN_ARM} are needed in each arm. Add rows, or check the filter that selected "
                f"them.{_if_amounts(arms)}"
            )


def _if_amounts(arms: Arms) -> str:
    """What to do if many levels are amounts rather than groups."""
    if numbers_as_text(pd.Series(arms.levels, dtype=object)):
        return (
            " Its levels are numbers written as text: if they are amounts, convert them with "
            "pandas.to_numeric."
        )
    if len(arms.levels) > 2 and all(isinstance(level, int | float) for level in arms.levels):
        return " Its levels are numbers: if they are amounts, use treatment='continuous'."
    return ""
