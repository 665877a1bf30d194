"""Covariates that give away what is to be explained: copies of the treatment or the outcome."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.data.caller import caller_stacklevel
from cstonet.data.columns import listing
from cstonet.data.matrix import Rows
from cstonet.data.other_units import copies_of, find_in, log_arrangements
from cstonet.errors import OutcomeLeakError, OutcomeLeakWarning, TreatmentLeakError

_PROBE = 8  # rows that rule out nearly every covariate as equal to the outcome
# Covariates that say the same as a few levels or events of the outcome do so by chance, too, if
# there are many. They are refused if fewer than so many of such data sets would have one.
_COINCIDENCE = 1e-3
_FEW_LEVELS = 10  # of an outcome: more are no labels


def check_no_treatment(
    X: Rows, names: Sequence[str], codes: NDArray[np.int64], treatment: str
) -> None:
    """Refuse a covariate that is a function of the treatment: one value per arm, not all equal."""
    candidates = _functions_of(codes, X, np.arange(X.shape[1]))
    if candidates.size:
        raise TreatmentLeakError(
            f"The covariate {names[candidates[0]]!r} is the treatment {treatment!r}, possibly "
            "relabelled: it has one value in each arm. Take it out of the covariates"
            f"{_also(names, candidates)}."
        )


def check_no_dose(X: Rows, names: Sequence[str], dose: NDArray[np.float64], treatment: str) -> None:
    """Refuse a covariate that is the dose in other units: affine, or strictly monotone in it."""
    low, high = int(np.argmin(dose)), int(np.argmax(dose))
    share = (dose - dose[low]) / (dose[high] - dose[low])
    ends = X.part(np.array([low, high]), slice(None)).astype(np.float64)
    with np.errstate(over="ignore"):
        rise = ends[1] - ends[0]
    # A covariate may have been rounded to float32 after its units were changed.
    rounding = 4 * np.finfo(np.float32).eps * np.abs(ends).max(axis=0)
    rounding = np.minimum(rounding, 1e-3 * np.abs(rise))

    def on_the_line(rows: slice, of: NDArray[np.intp]) -> NDArray[np.bool_]:
        line = ends[0, of] + np.outer(share[rows], rise[of])
        return np.asarray(np.abs(X.part(rows, of) - line) <= rounding[of])

    candidates = np.union1d(
        X.surviving(np.flatnonzero((rise != 0) & np.isfinite(rise)), on_the_line),
        copies_of(dose, X),
    )
    if candidates.size:
        raise TreatmentLeakError(
            f"The covariate {names[candidates[0]]!r} is the treatment {treatment!r}, possibly in "
            f"other units. Take it out of the covariates{_also(names, candidates)}."
        )


def check_dose_is_no_outcome(
    dose: NDArray[np.float64], y: NDArray[np.float64], treatment: str, outcome: str
) -> None:
    """Refuse a dose that is the outcome in other units."""
    if copies_of(dose, Rows(y[:, np.newaxis])).size:
        raise TreatmentLeakError(
            f"The treatment {treatment!r} is the outcome {outcome!r}, possibly in other units: it "
            "cannot be its own cause. Check the formula."
        )


def check_no_outcome(
    X: Rows,
    names: Sequence[str],
    y: NDArray[np.float64],
    outcome: str,
    independent: NDArray[np.intp] | slice = slice(None),
) -> None:
    """Refuse covariates that hold the outcome, in these units or in others.

    Parameters
    ----------
    X : Rows, (m, p)
        The covariates.
    names : sequence of str, length p
        Their names.
    y : (m,)
        The outcome.
    outcome : str
        Its name.
    independent : (g,) of int, optional
        Rows of different clusters: others agree with these for reasons of their own.

    Raises
    ------
    OutcomeLeakError
        If a covariate equals the outcome in every row, or is a strictly monotone function of it,
        and no coincidence.

    Warns
    -----
    OutcomeLeakWarning
        If it may be a coincidence, or if a covariate explains nearly all of the outcome's ranks.
    """
    expected = y.astype(X.X.dtype)[:, np.newaxis]
    # Rows unlike the first: beside a rare outcome, rare covariates are zero in the others.
    unlike = np.flatnonzero(expected[:, 0] != expected[0, 0])[:_PROBE]
    same = (X.part(unlike, slice(None)) == expected[unlike]).all(axis=0)
    equal = X.surviving(np.flatnonzero(same), lambda rows, of: X.part(rows, of) == expected[rows])
    if equal.size:
        raise OutcomeLeakError(
            f"The covariate {names[equal[0]]!r} equals the outcome {outcome!r} in every row. Take "
            f"it out of the covariates{_also(names, equal)}."
        )
    found = find_in(X, y)
    if found.copies.size:
        # Rising or falling, and each of the covariates might have been the one.
        chance = math.log(2 * X.shape[1]) - log_arrangements(y[independent])
        what = f"The covariate {names[found.copies[0]]!r} holds the outcome {outcome!r} in other "
        if chance < math.log(_COINCIDENCE):
            raise OutcomeLeakError(
                f"{what}units: in every row it has the outcome's place among all values, or the "
                "place from the other end. It would explain the effect away. Take it out of the "
                f"covariates{_also(names, found.copies)}."
            )
        _warn(
            f"{what}labels, which with so few events and {X.shape[1]} covariates may be chance. If "
            f"it is made of the outcome, take it out of the covariates{_also(names, found.copies)}."
        )
    if found.near.size:
        _warn(
            f"The covariate {names[found.near[0]]!r} nearly is the outcome {outcome!r}: it "
            "explains more than 99.9% of the variance of its ranks, and leaves hardly anything for "
            "the treatment to explain. If it was measured after the treatment, or is made of the "
            f"outcome, take it out of the covariates{_also(names, found.near)}."
        )


def check_no_outcome_levels(
    X: Rows, columns: Mapping[str, Sequence[int]], y: NDArray[np.float64], outcome: str
) -> None:
    """Refuse a column whose levels are those of the outcome under other names.

    Parameters
    ----------
    X : Rows, (m, p)
        The covariates.
    columns : mapping
        Which of them, by number, are the indicators of the levels of which column, but the first.
    y : (m,)
        The outcome.
    outcome : str
        Its name.
    """
    # Columns with two levels are one covariate, which is compared with the outcome as any other.
    different = {len(own) + 1 for own in columns.values()} - {2}
    if not different:
        return
    levels = np.unique(y)
    alike = {name: own for name, own in columns.items() if len(own) + 1 == len(levels)}
    if len(levels) not in different or len(levels) > _FEW_LEVELS:
        return
    # As many levels can be matched in any order.
    chance = math.lgamma(len(levels) + 1) + math.log(len(alike)) - log_arrangements(y)
    if chance > math.log(_COINCIDENCE):
        return
    wanted = np.array([j for own in alike.values() for j in own], dtype=np.intp)
    found = _functions_of(np.searchsorted(levels, y), X, wanted)
    for name, own in alike.items():
        if np.isin(own, found).all():
            raise OutcomeLeakError(
                f"The covariate {name!r} has the levels of the outcome {outcome!r} under other "
                "names, in every row. Take it out of the covariates."
            )


def _functions_of(codes: NDArray[np.int64], X: Rows, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Which of some columns have one value for every code (m,), and not the same for all."""
    found, firsts = np.unique(codes, return_index=True)
    values = X.part(firsts, slice(None))
    columns = columns[(values != values[0]).any(axis=0)[columns]]
    group = np.searchsorted(found, codes)
    return X.surviving(columns, lambda rows, of: X.part(rows, of) == values[:, of][group[rows]])


def _warn(text: str) -> None:
    warnings.warn(text, OutcomeLeakWarning, stacklevel=caller_stacklevel())


def _also(names: Sequence[str], found: NDArray[np.intp]) -> str:
    return f", and so {listing([names[j] for j in found[1:]])}" if len(found) > 1 else ""
