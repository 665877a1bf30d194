"""Covariates that give away what is to be explained: copies of the treatment or the outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.data.columns import listing
from cstonet.data.matrix import Rows
from cstonet.errors import DataError, TreatmentLeakError

# Two variables that correlate to this accuracy hold the same numbers in other units.
_SAME = 1e-10
_PROBE = 8  # rows that rule out nearly every covariate as a copy of the outcome
_PROBE_UNITS = 64  # rows that do so if the units may differ
# Rows further from the median than so many times the usual distance are set aside: codes such as
# 99999999 that two variables share make them correlate to any accuracy, nearer values cannot.
_FAR = 1000.0


def check_no_treatment(
    X: Rows, names: Sequence[str], codes: NDArray[np.int64], treatment: str
) -> None:
    """Refuse a covariate that is a function of the treatment: one value per arm, not all equal."""
    found, firsts = np.unique(codes, return_index=True)
    values = X.part(firsts, slice(None))
    candidates = np.flatnonzero((values != values[0]).any(axis=0))
    arm = np.searchsorted(found, codes)
    candidates = X.surviving(
        candidates, lambda rows, of: X.part(rows, of) == values[:, of][arm[rows]]
    )
    if candidates.size:
        raise TreatmentLeakError(
            f"The covariate {names[candidates[0]]!r} is the treatment {treatment!r}, possibly "
            "relabelled: it has one value in each arm. Take it out of the covariates"
            f"{_also(names, candidates)}."
        )


def check_no_dose(X: Rows, names: Sequence[str], dose: NDArray[np.float64], treatment: str) -> None:
    """Refuse a covariate that is the dose in other units: an affine function of it."""
    low, high = int(np.argmin(dose)), int(np.argmax(dose))
    share = (dose - dose[low]) / (dose[high] - dose[low])
    ends = X.part(np.array([low, high]), slice(None))
    rise = ends[1].astype(np.float64) - ends[0]
    # A covariate may have been rounded to float32 after its units were changed.
    rounding = 4 * np.finfo(np.float32).eps * np.abs(ends).max(axis=0)
    rounding = np.minimum(rounding, 1e-3 * np.abs(rise))

    def on_the_line(rows: slice, of: NDArray[np.intp]) -> NDArray[np.bool_]:
        line = ends[0, of] + np.outer(share[rows], rise[of])
        return np.asarray(np.abs(X.part(rows, of) - line) <= rounding[of])

    candidates = X.surviving(np.flatnonzero(rise != 0), on_the_line)
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


def check_no_outcome(X: Rows, names: Sequence[str], y: NDArray[np.float64], outcome: str) -> None:
    """Refuse a covariate that equals the outcome in every row."""
    expected = y.astype(X.X.dtype)[:, np.newaxis]
    # Rows unlike the first: beside a rare outcome, rare covariates are zero in the others.
    unlike = np.flatnonzero(expected[:, 0] != expected[0, 0])[:_PROBE]
    same = (X.part(unlike, slice(None)) == expected[unlike]).all(axis=0)
    found = X.surviving(np.flatnonzero(same), lambda rows, of: X.part(rows, of) == expected[rows])
    if found.size:
        raise DataError(
            f"The covariate {names[found[0]]!r} equals the outcome {outcome!r} in every row. Take "
            f"it out of the covariates{_also(names, found)}."
        )


def copies_of(one: NDArray[np.float64], others: Rows) -> NDArray[np.intp]:
    """The columns of others (n, k) that hold the same numbers as one (n,), in other units.

    They correlate with it perfectly, with and without the rows where either is far from all else.
    The numbers of `one` must not be all the same.
    """
    rows = np.flatnonzero(not_far(one))
    ends = rows[[np.argmin(one[rows]), np.argmax(one[rows])]]
    few = np.concatenate([ends, rows[:_PROBE_UNITS]])
    # These rows rule out nearly every column, so that wide data cost next to nothing.
    columns = others.part(few, slice(None)).astype(np.float64)
    near = _parallel(columns - columns[0], one[few] - one[few[0]])
    found = (others.part(slice(None), np.array([j]))[:, 0] for j in near)
    same = [_same(one, column.astype(np.float64)) for column in found]
    return np.asarray(near[np.array(same, dtype=bool)])


def not_far(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows of the values (n,), not all the same, that are not very far from the others."""
    distance = np.abs(values - np.median(values))
    # Most may be one and the same value: then the others' usual distance from it counts.
    usual = np.median(distance) or np.median(distance[distance > 0])
    return np.asarray(distance <= _FAR * usual)


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether two variables (n,), neither constant, are the same up to units."""
    # Squares of huge numbers would overflow.
    one, other = one / np.abs(one).max(), other / np.abs(other).max()
    near = not_far(one) & not_far(other)
    return _correlate(one, other) and (bool(near.all()) or _correlate(one[near], other[near]))


def _correlate(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether the correlation is 1 or -1 to the last digits; that with a constant is none."""
    if len(one) == 0:
        return False
    one, other = one - one.mean(), other - other.mean()
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return size > 0 and abs(float(one @ other)) > (1 - _SAME) * size


def _parallel(columns: NDArray[np.float64], direction: NDArray[np.float64]) -> NDArray[np.intp]:
    """Columns (m, k), not zero, that are multiples of a direction (m,) up to float32's rounding."""
    direction = direction / np.abs(direction).max()
    largest = np.abs(columns).max(axis=0)
    columns = columns / np.where(largest > 0, largest, 1.0)
    size = np.linalg.norm(columns, axis=0) * np.linalg.norm(direction)
    return np.flatnonzero((largest > 0) & (np.abs(direction @ columns) >= (1 - 1e-5) * size))


def _also(names: Sequence[str], found: NDArray[np.intp]) -> str:
    return f", and so {listing([names[j] for j in found[1:]])}" if len(found) > 1 else ""
