"""Plain computations on columns: the one list of what a safe formula and a saved fit may say.

Such code is read by a small parser (:mod:`cstonet.data.plain_parser`) and becomes a tree of the
nodes below; what is not on these lists is refused while it is read. Neither Python's parser nor its
compiler nor ``eval`` ever sees the text, no attribute of anything is looked up, and no name has a
meaning other than the columns and the functions listed here: there is nothing that a text could
call. How long, how deep and how large what it asks for may be is bounded too, before anything is
computed.

Every function of the lists takes each row by itself or remembers what it learned from the data of
the fit, so a plain computation gives a row the same value in any company.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

ADMITTED = (
    "names of columns, Q(\"any name\"), '.', '-', ':' and '*' between terms, C(), I() of "
    "arithmetic and comparisons, NumPy's functions of single numbers by name (log, log1p, exp, "
    "sqrt, abs, np.sin, …), and center, standardize, scale, bs, cr, cc and te"
)
"""What plain code may hold, for messages."""

# NumPy's functions that take every element by itself and give one number each.
ELEMENTWISE: dict[str, np.ufunc] = {
    name: function
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and function.signature is None and function.nout == 1
}

MOST_FACTORS = 6
"""Factors that one term may join, and smooth terms that ``te`` may."""
_MOST_SHOWN = 60  # characters of a refused part in a message


class NotPlain(Exception):  # a finding, of which callers make errors of their own
    """Code is more than a plain computation.

    Attributes
    ----------
    part : str
        The part of the code that is too much.
    reason : str
        Why, as the end of a sentence about this part.
    """

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(part, reason)
        self.part = part if len(part) <= _MOST_SHOWN else f"{part[:_MOST_SHOWN]} ..."
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the data, by its name letter for letter."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text, truth value, None, or a tuple of such."""

    value: Any


@dataclass(frozen=True, slots=True)
class Contrast:
    """A coding of levels: the name of one of `CONTRASTS`, and its arguments if it has brackets."""

    name: str
    arguments: tuple[tuple[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator between one or two operands."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function of `ELEMENTWISE`."""

    name: str
    arguments: tuple[Node, ...]
    of_numpy: bool  # written np.log, not log


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`.

    Attributes
    ----------
    name : str
        Which.
    arguments : tuple of nodes
        What it is computed from.
    settings : tuple of (str, value or Contrast)
        Its other arguments, by name.
    place : int
        Number of this one among the calls that learn from the data, as they stand in the code.
    """

    name: str
    arguments: tuple[Node, ...]
    settings: tuple[tuple[str, Any], ...]
    place: int


Node: TypeAlias = Column | Literal | Operation | Elementwise | Call


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a function: how many computed ones, then settings by name."""

    computed: tuple[int, int]
    settings: tuple[str, ...] = ()
    learns: bool = False


_STANDARDIZE = Signature((1, 1), ("center", "rescale", "ddof"), learns=True)
_CUBIC = Signature((1, 1), ("df", "knots", "lower_bound", "upper_bound", "constraints"), True)
_BS_SETTINGS = ("df", "knots", "degree", "include_intercept", "lower_bound", "upper_bound")
FUNCTIONS: dict[str, Signature] = {
    "I": Signature((1, 1)),
    "C": Signature((1, 1), ("contrast", "levels")),
    "center": Signature((1, 1), learns=True),
    "standardize": _STANDARDIZE,
    "scale": _STANDARDIZE,
    "bs": Signature((1, 1), _BS_SETTINGS, learns=True),
    "cr": _CUBIC,
    "cc": _CUBIC,
    "te": Signature((1, MOST_FACTORS), ("constraints",), learns=True),
}
"""Functions of patsy, beside ``Q``, which is a way to write a column."""

SPLINES = ("bs", "cr", "cc", "te")
"""Those that give several columns."""

CONTRASTS: dict[str, tuple[str, ...]] = {
    "Treatment": ("reference",),
    "Sum": ("omit",),
    "Poly": ("scores",),
    "Helmert": (),
    "Diff": (),
    "ContrastMatrix": ("matrix", "column_suffixes"),
}
"""Codings of levels, with the names of their arguments."""

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
# Operators between two operands, and before one.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "+": operator.pos,
    "-": operator.neg,
    "~": operator.invert,
}


def walk(node: Node) -> Iterator[Node]:
    """A node and all those below it."""
    yield node
    if isinstance(node, Operation):
        below = node.operands
    else:
        below = node.arguments if isinstance(node, Elementwise | Call) else ()
    for child in below:
        yield from walk(child)


def columns_of(node: Node) -> tuple[str, ...]:
    """Names of the columns, once each, in the order in which they appear."""
    return tuple(dict.fromkeys(part.name for part in walk(node) if isinstance(part, Column)))


def names_of(node: Node) -> set[str]:
    """Names of functions and contrasts; of ``np.log``, that is ``np``."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, Elementwise):
            found.add("np" if part.of_numpy else part.name)
        if isinstance(part, Call):
            found.add(part.name)
            found |= {value.name for _, value in part.settings if isinstance(value, Contrast)}
    return found
