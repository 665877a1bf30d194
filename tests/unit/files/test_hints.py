"""Values against declared types: what a file may put into a field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from cstonet.files.hints import field_hints, fits
from cstonet.files.withheld import Withheld

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Parent:
    size: int
    hidden: Decimal


@dataclass(frozen=True)
class Child(Parent):
    names: tuple[str, ...] = ()


def test_hints_of_inherited_fields_and_of_types_for_the_type_checker():
    assert field_hints(Child) == {"size": int, "hidden": Any, "names": tuple[str, ...]}


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (int, [0, -3], [True, 1.0, "1", None]),
        (bool, [True], [1, None]),
        (float, [1.5, 2, float("nan")], [True, "1"]),
        (str, ["a"], [1, None]),
        (int | None, [1, None], ["a"]),
        (Literal["a", 1], ["a", 1], ["b", True, 1.0]),
        (tuple[int, ...], [(), (1, 2)], [(1, "a"), [1], 1]),
        (tuple[int, str], [(1, "a")], [(1,), ("a", 1), (1, "a", 2)]),
        (Mapping[int, tuple[int, ...]], [{}, {1: (2,)}], [{"a": (2,)}, {1: 2}, []]),
        (NDArray[np.float64], [np.zeros(2), np.zeros(2, np.float32)], [np.arange(2), [0.0]]),
        (NDArray[np.integer], [np.arange(2)], [np.zeros(2), np.ones(2, bool)]),
        (NDArray[np.bool_], [np.ones(2, bool)], [np.arange(2)]),
        (Parent, [Parent(1, None), Child(1, None)], ["a", None]),
        (Any, [1, None, "a"], []),
    ],
)
def test_fits(hint, good, bad):
    assert all(fits(value, hint) for value in good)
    assert not any(fits(value, hint) for value in bad)
    assert fits(Withheld("rows"), hint)
