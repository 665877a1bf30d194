"""Range checks shared by the option dataclasses.

Each names the field, the range and the value; NumPy scalars and lists become plain Python values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    SupportsIndex,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from cstonet.errors import OptionError
from cstonet.shown import shown


def fail(owner: object, name: str, value: object, allowed: str) -> NoReturn:
    """Raise OptionError for a field of an option dataclass."""
    raise OptionError(f"{type(owner).__name__}.{name} must be {allowed}; got {shown(value)}.")


def check_number(
    owner: object,
    name: str,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    auto: bool = False,
) -> None:
    """Raise OptionError unless the field is a number in the given interval (or ``"auto"``)."""
    value = getattr(owner, name)
    allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if auto:
        if isinstance(value, str) and value == "auto":
            return
        allowed += ' or "auto"'
    # A duration of NumPy passes for a whole number.
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real):
        fail(owner, name, value, allowed)
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        fail(owner, name, value, allowed)
    inside = (low < number if open_low else low <= number) and (
        number < high if open_high else number <= high
    )
    if not inside:  # also for NaN
        fail(owner, name, value, allowed)
    # A NumPy scalar becomes a plain number; an int stays one, because plans are printed.
    object.__setattr__(owner, name, int(value) if isinstance(value, Integral) else number)


def as_whole(value: object) -> int | None:
    """The whole number that a value is, such as one of NumPy; None if it is none."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(cast(SupportsIndex, value))
    except Exception:  # no whole number, or the code of the value's own class
        return None


def is_real(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number that a float can hold; a truth value is none."""
    # A duration of NumPy passes for a whole number.
    if isinstance(value, bool | np.timedelta64):
        return False
    if not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def check_integer(owner: object, name: str, low: int, high: int, *, auto: bool = False) -> None:
    """Raise OptionError unless the field is a whole number in range (or ``"auto"``)."""
    value = getattr(owner, name)
    allowed = f"a whole number from {low} to {high}" + (' or "auto"' if auto else "")
    if auto and isinstance(value, str) and value == "auto":
        return
    whole = as_whole(value)
    if whole is None or not low <= whole <= high:
        fail(owner, name, value, allowed)
    object.__setattr__(owner, name, whole)


def check_choice(owner: object, name: str) -> None:
    """Raise OptionError unless the field is one of the strings that its annotation allows."""
    value, choices = getattr(owner, name), choices_of(type(owner), name)
    if not is_choice(value, choices):
        fail(owner, name, value, "one of " + ", ".join(map(repr, choices)))


def is_choice(value: object, choices: Collection[object]) -> bool:
    """Whether a value is one of some texts, or None if that is one of the choices."""
    return (value is None or isinstance(value, str)) and value in choices


def choices_of(owner: type, name: str) -> tuple[str, ...]:
    """The strings that the annotation of a field allows, in the order of its Literal."""
    literals = [kind for kind in members(_hints(owner)[name]) if get_origin(kind) is Literal]
    return tuple(choice for literal in literals for choice in get_args(literal))


def members(hint: object) -> tuple[object, ...]:
    """The members of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


@cache
def _hints(owner: type) -> dict[str, Any]:
    """The annotations of a class, as types: a module's annotations are texts until evaluated."""
    return get_type_hints(owner)


def check_bounds(owner: object, name: str, low: float, high: float) -> None:
    """Raise OptionError unless the field is ``"auto"``, a number in [low, high), or several.

    Several become a tuple.
    """
    value = getattr(owner, name)
    if not isinstance(value, (list, tuple)):
        check_number(owner, name, low, high, open_high=True, auto=True)
        return
    if len(value) < 2 or not all(is_real(bound) and low <= bound < 1 for bound in value):
        fail(owner, name, value, 'a number, one for each level, or "auto"')
    object.__setattr__(owner, name, tuple(float(bound) for bound in value))


def check_truth(value: object, what: str) -> None:
    """Raise OptionError unless an argument is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{what} must be True or False; got {shown(value)}.")


def check_flag(owner: object, name: str, *, auto: bool = False) -> None:
    """Raise OptionError unless the field is True or False (or ``"auto"``)."""
    value = getattr(owner, name)
    if auto and isinstance(value, str) and value == "auto":
        return
    if not isinstance(value, bool):
        fail(owner, name, value, 'True, False or "auto"' if auto else "True or False")


def check_units(owner: object, name: str) -> None:
    """Raise OptionError unless the field is a sequence of layer widths; make it a tuple."""
    units = getattr(owner, name)
    allowed = "a tuple of whole numbers such as (16, 8, 4)"
    if not isinstance(units, (tuple, list)) or not 1 <= len(units) <= 100:
        fail(owner, name, units, allowed)
    for width in units:
        whole = isinstance(width, Integral) and not isinstance(width, bool)
        if not whole or not 1 <= int(width) <= 10_000:
            fail(owner, name, units, allowed)
    object.__setattr__(owner, name, tuple(int(width) for width in units))


def check_kind(owner: object, name: str, kind: type, *, optional: bool = False) -> None:
    """Raise OptionError unless the field is a value of the class (or None where allowed)."""
    value = getattr(owner, name)
    if not isinstance(value, kind) and not (optional and value is None):
        fail(owner, name, value, f"a {kind.__name__}" + (" or None" if optional else ""))


def check_positive_tuple(owner: object, name: str) -> None:
    """A tuple of positive numbers, one per layer, or ``"auto"``."""
    value = getattr(owner, name)
    if isinstance(value, str) and value == "auto":
        return
    numbers = isinstance(value, tuple) and len(value) > 0
    if not numbers or not all(is_real(v) and v > 0 for v in value):
        fail(owner, name, value, 'a tuple of positive numbers, one per layer, or "auto"')
