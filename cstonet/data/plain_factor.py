"""Evaluating plain computations, node by node, and handing them to patsy as factors.

Patsy's own factors are text that Python evaluates. A :class:`PlainFactor` walks a tree of
:mod:`cstonet.data.plain_code` instead, so that patsy can make levels, codings and interactions of
a text that nobody trusts. It does to columns what Python would do with the same code: the same
functions, in the same order, with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import patsy
import patsy.builtins
from pandas.api import types as pdt
from patsy.origin import Origin
from patsy.tokens import normalize_token_spacing

from cstonet.data.plain_code import (
    BINARY,
    COMPARISONS,
    ELEMENTWISE,
    FUNCTIONS,
    SPLINES,
    UNARY,
    Call,
    Column,
    Contrast,
    Elementwise,
    Literal,
    Node,
    Operation,
    columns_of,
    walk,
)
from cstonet.data.plain_parser import expression, on_one_line
from cstonet.data.storage import fits_in_memory
from cstonet.errors import CStoNetError, FormulaError, NotEnoughMemoryError
from cstonet.memory import readable

BUILTINS: dict[str, Any] = {name: getattr(patsy.builtins, name) for name in patsy.builtins.__all__}
"""What patsy offers to every formula."""

# Patsy makes columns one by one, which takes long before it takes much room.
_MOST_COLUMNS = 10_000


def meaning_of(name: str) -> Any:
    """What a name of plain code that is no column means."""
    return np if name == "np" else BUILTINS.get(name) or ELEMENTWISE[name]


class PlainFactor:
    """A factor of patsy's that no Python code is run for.

    Parameters
    ----------
    code : str
        A plain computation, see :mod:`cstonet.data.plain_code`.

    Attributes
    ----------
    code : str
        The same, spaced as patsy spaces names.
    tree : Node
        What it says.
    columns : tuple of str
        The columns it is made of.
    origin : patsy.origin.Origin
        What patsy shows of it in messages.
    """

    __slots__ = ("code", "columns", "origin", "tree")

    def __init__(self, code: str) -> None:
        self.tree = expression(code)
        self.code: str = normalize_token_spacing(on_one_line(code))
        self.columns = columns_of(self.tree)
        self.origin = Origin(self.code, 0, len(self.code))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainFactor) and self.code == other.code

    def __hash__(self) -> int:
        return hash((PlainFactor, self.code))

    def __reduce__(self) -> tuple[type[PlainFactor], tuple[str]]:
        return PlainFactor, (self.code,)

    def name(self) -> str:
        """What the factor is called in names of covariates."""
        return self.code

    def memorize_passes_needed(self, state: dict[str, Any], _environment: object = None) -> int:
        """How often the data must be seen; prepares blank transforms, named as patsy would."""
        state["transforms"] = {
            _key(call): BUILTINS[call.name].__patsy_stateful_transform__()
            for call in self._learning()
        }
        return _passes(self.tree)

    def memorize_chunk(
        self, state: dict[str, Any], which_pass: int, data: Mapping[str, Any]
    ) -> None:
        """Show data to the transforms whose turn it is."""
        transforms = state["transforms"]
        with explained(self.code):
            for call in self._of_pass(which_pass):
                arguments = [value(part, data, transforms) for part in call.arguments]
                transforms[_key(call)].memorize_chunk(*arguments, **_settings(call))

    def memorize_finish(self, state: dict[str, Any], which_pass: int) -> None:
        """Let them conclude."""
        with explained(self.code):
            for call in self._of_pass(which_pass):
                state["transforms"][_key(call)].memorize_finish()

    def eval(self, state: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        """The values of the factor; patsy asks for them by this name."""
        with explained(self.code):
            return value(self.tree, data, state["transforms"])

    def _learning(self) -> list[Call]:
        return [
            node
            for node in walk(self.tree)
            if isinstance(node, Call) and FUNCTIONS[node.name].learns
        ]

    def _of_pass(self, which: int) -> list[Call]:
        return [call for call in self._learning() if _passes(call) == which + 1]


@contextmanager
def explained(code: str) -> Iterator[None]:
    """Turn what NumPy, pandas or patsy say into an error that names the code.

    Raises
    ------
    FormulaError
        If they cannot compute it.
    """
    try:
        yield
    except (CStoNetError, MemoryError):
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise FormulaError(f"The term {code!r} cannot be evaluated: {reason}.") from error


def value(node: Node, data: Mapping[str, Any], transforms: Mapping[str, Any] | None) -> Any:
    """What a node says of the data.

    Parameters
    ----------
    node : Node
        The computation.
    data : mapping
        Columns by name, n values each.
    transforms : mapping or None
        What learned from the data, by key. None: nothing has to, and ``C()`` is left out, which
        asks for levels that an outcome or a treatment has or has not by itself.
    """
    if isinstance(node, Column):
        return data[node.name]
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Operation):
        return _operated(node.operator, [value(part, data, transforms) for part in node.operands])
    arguments = [value(part, data, transforms) for part in node.arguments]
    if isinstance(node, Elementwise):
        _check_numbers(node.name, arguments)
        return ELEMENTWISE[node.name](*arguments)
    if node.name == "I" or (node.name == "C" and transforms is None):
        return arguments[0]
    if node.name == "C":
        return patsy.builtins.C(arguments[0], **_settings(node))
    if transforms is None:
        # Learns from these data, as a plain function does.
        return BUILTINS[node.name](*arguments, **_settings(node))
    return transforms[_key(node)].transform(*arguments, **_settings(node))


def check_room(
    terms: Iterable[patsy.Term],
    factors: Iterable[PlainFactor],
    data: Mapping[str, pd.Series],
    n: int,
) -> None:
    """Refuse terms with more columns than there is room for, before patsy makes them.

    Parameters
    ----------
    terms : iterable of patsy.Term
        The terms.
    factors : iterable of PlainFactor
        Their factors.
    data : mapping
        Columns by name.
    n : int
        Number of rows.

    Raises
    ------
    NotEnoughMemoryError
        Naming the term that has most.
    """
    widths: dict[PlainFactor, int] = {}
    for factor in factors:
        with explained(factor.code):
            widths[factor] = _width(factor.tree, data, n)
    columns = {term: math.prod(widths[factor] for factor in term.factors) for term in terms}
    total = sum(columns.values())
    # The columns, and patsy's square coding of the levels of each factor.
    size = 8.0 * (n * total + sum(width**2 for width in widths.values()))
    if columns and (total > _MOST_COLUMNS or not fits_in_memory(size)):
        largest = max(columns, key=columns.__getitem__)
        raise NotEnoughMemoryError(
            f"The term {largest.name()!r} would become up to {columns[largest]} columns, and all "
            f"terms together {readable(size)}. Merge levels, or leave terms out."
        )


def _width(node: Node, data: Mapping[str, pd.Series], n: int) -> int:
    """At most so many columns, or levels, has a computation."""
    if isinstance(node, Column):
        values = data[node.name]
        return 1 if pdt.is_numeric_dtype(values.dtype) else _levels(values)
    if isinstance(node, Literal):
        return 1
    if isinstance(node, Operation | Elementwise):
        below = node.operands if isinstance(node, Operation) else node.arguments
        compares = isinstance(node, Operation) and node.operator in COMPARISONS
        widths = [_width(part, data, n) for part in below if not isinstance(part, Column)]
        text = [_width(part, data, n) for part in below if isinstance(part, Column)]
        joined = math.prod(text) if isinstance(node, Operation) and node.operator == "+" else 1
        return max([1 + compares, min(n, joined), *widths])
    settings = dict(node.settings)
    widths = [_width(part, data, n) for part in node.arguments]
    learns = any(isinstance(part, Call) and FUNCTIONS[part.name].learns for part in walk(node))
    if node.name == "C" and not learns:
        levels = settings.get("levels")
        return len(levels) if levels is not None else _levels(value(node, data, None))
    if node.name == "C":
        return max(n, *widths)  # as many levels as rows, if it learns from the data
    if node.name == "te":
        return math.prod(widths)
    knots = settings.get("knots")
    own = max(int(settings.get("df") or 0), 8 + len(knots if isinstance(knots, tuple) else ()))
    return max(own if node.name in SPLINES else 1, *widths)


def _levels(values: Any) -> int:
    """How many different values there are."""
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return len(values.cat.categories)
    try:
        return max(1, pd.Series(values).nunique())
    except TypeError:
        return 1  # of what cannot be told apart, patsy says so itself


def _operated(sign: str, operands: Sequence[Any]) -> Any:
    if sign not in COMPARISONS and not (sign == "+" and all(map(_is_text, operands))):
        _check_numbers(sign, operands)
    return BINARY[sign](*operands) if len(operands) == 2 else UNARY[sign](*operands)


def _check_numbers(what: str, operands: Iterable[Any]) -> None:
    """Refuse arithmetic with text and other objects: ``text * 10**9`` fills any memory."""
    for operand in operands:
        if not _is_number(operand):
            kind = getattr(operand, "dtype", type(operand).__name__)
            raise TypeError(f"{what!r} needs numbers, and there is {kind}")


def _is_number(operand: Any) -> bool:
    if isinstance(operand, pd.DataFrame):
        return all(map(_is_number_dtype, operand.dtypes))
    if isinstance(operand, int | float):
        return True
    return _is_number_dtype(getattr(operand, "dtype", None))


def _is_number_dtype(dtype: Any) -> bool:
    if dtype is None or isinstance(dtype, pd.CategoricalDtype):
        return False
    return bool(pdt.is_numeric_dtype(dtype) or pdt.is_bool_dtype(dtype))


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) or pdt.is_string_dtype(getattr(operand, "dtype", float))


def _settings(call: Call) -> dict[str, Any]:
    """The arguments of a call that are not computed, as patsy takes them."""
    return {
        name: _contrast(setting) if isinstance(setting, Contrast) else setting
        for name, setting in call.settings
    }


def _contrast(contrast: Contrast) -> Any:
    kind = BUILTINS[contrast.name]
    return kind if contrast.arguments is None else kind(**dict(contrast.arguments))


def _passes(node: Node) -> int:
    """After how many passes over the data a node can be computed: one for each that learns."""
    if isinstance(node, Column | Literal):
        return 0
    below = node.operands if isinstance(node, Operation) else node.arguments
    learns = isinstance(node, Call) and FUNCTIONS[node.name].learns
    return learns + max(map(_passes, below))


def _key(call: Call) -> str:
    """The name patsy gives to what a call learns; files have it."""
    return f"_patsy_stobj{call.place}__{call.name}__"
