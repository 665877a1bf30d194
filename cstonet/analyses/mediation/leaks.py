"""Mediators that are other variables, or each other, or cannot be compared between the arms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.data.columns import listing
from cstonet.data.matrix import Rows
from cstonet.data.other_units import copies_of, not_far
from cstonet.errors import ConstantMediatorError, MediatorLeakError

# What others leave of a standardised mediator, below which it is made of them.
_NOTHING = 1e-6
# Up to so many mediators are compared with all others together, which costs J^2 n.
_MOST_TOGETHER = 1000


def check_leaks(
    names: tuple[str, ...],
    values: NDArray[np.float64],
    y: NDArray[np.float64],
    codes: NDArray[np.int64],
    X: Rows,
    covariates: Sequence[str],
) -> None:
    """Refuse mediators that are the outcome, the treatment, a covariate or each other."""
    for other, what, why in (
        (y, "the outcome", "an outcome cannot explain itself"),
        (codes.astype(np.float64), "the treatment", "nothing of it is left to act directly"),
    ):
        for j in copies_of(other, Rows(values)):
            raise MediatorLeakError(
                f"The mediator {names[j]!r} is {what}, possibly in other units or relabelled: "
                f"{why}. Take it out of the mediators."
            )
    for j, own in enumerate(values.T):
        for k in copies_of(own, Rows(values[:, j + 1 :])):
            raise MediatorLeakError(
                f"The mediators {names[j]!r} and {names[j + 1 + k]!r} are the same up to units. "
                "Keep one."
            )
    if len(names) <= min(_MOST_TOGETHER, len(values) - 2):
        _check_together(names, values)
    for name, own in zip(names, values.T, strict=True):
        for near in copies_of(own, X):
            raise MediatorLeakError(
                f"The mediator {name!r} is also among the covariates, as {covariates[near]!r}. A "
                "covariate comes before the treatment, a mediator after it: keep one."
            )


def _check_together(names: tuple[str, ...], values: NDArray[np.float64]) -> None:
    """Refuse a mediator that is made of others: their joint law has no density."""
    made = _made_of_others(values)
    if made.any():
        # Codes such as 99999999 that mediators share make them look so.
        near = np.all([not_far(column) for column in values.T], axis=0)
        if not near.all():
            made &= near.sum() >= len(names) + 2 and _made_of_others(values[near])
    for j in np.flatnonzero(made):
        raise MediatorLeakError(
            f"The mediator {names[j]!r} is a sum of multiples of others ({listing(names[:j])}) and "
            "of a constant, as shares that add up to one are. Leave one of them out."
        )


def _made_of_others(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each column (n, J) that varies is a sum of multiples of those before it."""
    scaled = _standardised(values)
    # The diagonal of R is what the columns before leave of each.
    left = np.abs(np.diag(np.linalg.qr(scaled / np.sqrt(len(scaled)), mode="r")))
    return np.asarray((left < _NOTHING) & scaled.any(axis=0))


def check_arms_of(
    names: tuple[str, ...],
    values: NDArray[np.float64],
    codes: NDArray[np.int64],
    binary: NDArray[np.bool_],
) -> None:
    """Refuse mediators that never vary in an arm, as far as direct effects need them to.

    The effects ask for the outcomes of treated units with mediators as under control. If all of an
    arm have one value of a number, treated units have none to compare with; nor have they any if a
    mediator with two levels is always the same under treatment. Always the same under control is
    possible (a treatment without which nobody has it).
    """
    for name, column, two in zip(names, values.T, binary, strict=True):
        for arm in (1,) if two else (0, 1):
            found = column[codes == arm]
            if (found == found[0]).all():
                which = "treated" if arm else "control"
                raise ConstantMediatorError(
                    f"The mediator {name!r} has one value in the {which} arm, so no data say what "
                    "treated units' outcomes are with the mediator as under control: direct and "
                    "indirect effects cannot be told apart. Take it out of the mediators"
                    + ("." if two else f", or use two groups, for example I({name} > c).")
                )


def _standardised(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns (n, k) with mean zero and mean square one; constant ones become zero."""
    centred = columns - columns.mean(axis=0)
    size = np.sqrt(np.mean(centred**2, axis=0))
    return np.asarray(centred / np.where(size > 0, size, 1.0))
