"""Conditions that choose units: ``age > 50 and region in ['north', 'west']``.

The text is read by Python's own grammar and never run: comparisons, chained ones too, ``in`` and
``not in`` with lists, ``and``, ``or``, ``not`` and brackets; nothing else has a meaning here. One
equals sign says the same as two, ``&``, ``|`` and ``~`` the same as the words. Text is written in
quotes. Names that are no plain words stand in backticks; known ones, such as
``C(region)[T.south]``, may do without.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data.columns import is_number, listing
from cstonet.data.lookup import one_per_unit, shape_of
from cstonet.errors import (
    ColumnTypeError,
    MissingValuesError,
    NotAvailableError,
    OptionError,
    UnknownColumnError,
    UnknownLevelError,
)
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean

Mask: TypeAlias = NDArray[np.bool_]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
# Words of the grammar, which are names of columns only in backticks.
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "True", "False", "None"})
# Text in quotes, then names in backticks; what is between them may be rewritten.
_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)")
_SYMBOLS = (
    (re.compile(r"(?<![<>=!])=(?!=)"), "=="),
    (re.compile(r"&+"), " and "),
    (re.compile(r"\|+"), " or "),
    (re.compile(r"~"), " not "),
)
# Thousands apart, right after a comparison: elsewhere a comma separates.
_THOUSANDS = re.compile(r"([<>=]\s*-?)(\d{1,3}(?:,\d{3})+)(?![\d,])")
_MOST_SHOWN = 200  # characters of a condition in a message
_HELP = (
    "conditions compare columns with values, such as \"age > 50 and region == 'north'\", joined by "
    "and, or, not; in and not in take lists, such as region in ['north', 'west']"
)


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """What conditions are about.

    Attributes
    ----------
    names : collection of str
        The variables there are.
    column : callable
        Gives the values of one by its name, n of them.
    n : int
        Number of units.
    kept : (N,) bool or None
        Which rows of the user's data the units are; None: all.
    forbidden : dict of str
        Variables that may not choose units, and why.
    index : pandas.Index or None
        Labels of the units, if they have any.
    """

    names: Collection[str]
    column: Callable[[str], pd.Series]
    n: int
    kept: Mask | None
    forbidden: dict[str, str]
    index: pd.Index | None = None

    def values(self, name: str, what: str) -> pd.Series:
        """The values of a variable, or the error that says why there are none.

        Parameters
        ----------
        name
            The variable.
        what
            The argument that named it.
        """
        if not isinstance(name, str):
            raise OptionError(f"{what} must be the name of a column; got {shown(name)}.")
        if name in self.forbidden:
            raise NotAvailableError(f"{what}: {self.forbidden[name]}")
        if name not in self.names:
            raise UnknownColumnError(
                f"{what}: there is neither a column nor a covariate {shown(name)}; known are "
                f"{listing(self.names)}.{did_you_mean(name, self.names)}"
            )
        values = self.column(name)
        gaps = int(values.isna().sum())
        if gaps:
            raise MissingValuesError(
                f"{what}: column {name!r} is missing for {gaps} of the {self.n} units, of which "
                "nothing can be said. Fill it, or give one value for each unit that says where "
                "these belong."
            )
        return values


def chosen(where: Any, variables: Variables) -> Mask:
    """The units that a user chooses: by conditions as text, or one truth value for each.

    Parameters
    ----------
    where
        Text, or booleans: one for each unit of the fit, or for each row of the data it came from.
    variables
        What conditions are about.

    Raises
    ------
    OptionError, UnknownColumnError, UnknownLevelError, ColumnTypeError, MissingValuesError
        If it says nothing that can be understood, or nobody is chosen.
    """
    n = variables.n
    if isinstance(where, str):
        if where and not where.strip():
            raise OptionError(f"where is blank; {_HELP}. Leave it out for all units.")
        # No text at all is the condition of a support that is everyone.
        mask = holds(where, variables) if where else np.ones(n, dtype=bool)
    else:
        values = one_per_unit(where, n, variables.kept, variables.index, "where")
        if values is None or not pdt.is_bool_dtype(values.dtype) or values.isna().any():
            shape = shape_of(where)
            raise OptionError(
                f"where must be conditions as text, such as \"age < 30 and region == 'north'\", or "
                f"{n} truth values, one for each unit; got {type(where).__name__}"
                f"{f' of shape {shape}' if shape else ''}."
            )
        mask = values.to_numpy(dtype=bool)
    if not mask.any():
        said = repr(_shortened(where)) if isinstance(where, str) else "..."
        raise OptionError(f"where={said} holds for none of the {n} units.")
    return mask


def holds(text: str, variables: Variables) -> Mask:
    """For which units conditions hold, shape (n,); blank text holds for all."""
    if not text.strip():
        return np.ones(variables.n, dtype=bool)
    code, names = _translated(text, variables.names)
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise OptionError(f"where: cannot read {_shortened(text)!r}; {_HELP}.") from error
    return _Reader(variables, names).truth(tree.body)


def in_condition(name: str) -> str:
    """How a variable is written in a condition."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain or _is_odd(name) else f"`{name}`"


def _translated(text: str, known: Collection[str]) -> tuple[str, dict[str, str]]:
    """The text in Python's grammar, and the names that its placeholders stand for."""
    names: dict[str, str] = {}

    def placeholder(name: str) -> str:
        word = f"_column_{len(names)}_"
        names[word] = name
        return word

    # Those that are no identifiers, longest first: one may be part of another.
    odd = sorted((name for name in known if _is_odd(name) and name in text), key=len, reverse=True)
    bare = None
    if odd:
        bare = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in odd))
    parts = []
    for part in _QUOTED.split(_protected(text, bare)):
        if part.startswith("`"):
            parts.append(placeholder(part.strip("`")))
        elif part.startswith(("'", '"')):
            parts.append(part)
        else:
            part = _THOUSANDS.sub(lambda m: m[1] + m[2].replace(",", ""), part)
            for pattern, replacement in _SYMBOLS:
                part = pattern.sub(replacement, part)
            parts.append(part)
    return "".join(parts).replace("\n", " "), names


def _protected(text: str, names: re.Pattern[str] | None) -> str:
    """The text with names in backticks where they stand bare.

    A name may hold quotes, so it is looked for before these are.
    """
    if names is None:
        return text
    quoted = re.compile(f"{_QUOTED.pattern}|({names.pattern})")
    return quoted.sub(lambda m: m[0] if m[2] is None else f"`{m[0]}`", text)


def _is_odd(name: str) -> bool:
    """Whether a name is no plain word, but begins like one and so can stand in a text."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return not plain and name not in _WORDS and name[:1].isalpha() and "`" not in name


class _Reader:
    """Says for which units the nodes of a syntax tree hold."""

    def __init__(self, variables: Variables, names: dict[str, str]) -> None:
        self._variables, self._names = variables, names

    def truth(self, node: ast.expr) -> Mask:
        """For which units a condition holds, shape (n,)."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value) for value in node.values]
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return np.asarray(join.reduce(parts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.truth(node.operand)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            return np.asarray(np.logical_and.reduce([self._compared(*pair) for pair in pairs]))
        if isinstance(node, ast.Name):
            values = self._values(node)
            if pdt.is_bool_dtype(values.dtype):
                return values.to_numpy(dtype=bool)
        raise OptionError(f"where: cannot read {self._text(node)!r}; {_HELP}.")

    def _compared(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> Mask:
        """For which units one comparison holds."""
        if isinstance(how, ast.In | ast.NotIn):
            if not isinstance(left, ast.Name) or not isinstance(right, ast.List | ast.Tuple):
                raise OptionError(
                    f"where: cannot read {self._text(left)!r} in {self._text(right)!r}; on the "
                    "left is a column and on the right a list of values, such as region in "
                    "['north', 'west']."
                )
            values = self._values(left)
            ones = [self._constant(item) for item in right.elts]
            found = np.zeros(len(values), dtype=bool)
            for one in ones:
                found |= self._outcome(operator.eq, values, _matching(values, one))
            return found if isinstance(how, ast.In) else ~found
        compare = _COMPARE.get(type(how))
        if compare is None:
            raise OptionError(f"where: 'is' has no meaning here; {_HELP}.")
        sides = [self._side(left, right), self._side(right, left)]
        columns = [side for side in sides if isinstance(side, pd.Series)]
        if not columns:
            raise OptionError(
                f"where: {self._text(left)!r} and {self._text(right)!r} are both values: one of "
                "the sides of a comparison must be a column."
            )
        if len(columns) == 2:
            _check_alike(*columns)
            return self._outcome(compare, *columns)
        if isinstance(sides[0], pd.Series):
            _check_ordered(sides[0], how)
            return self._outcome(compare, sides[0], _matching(sides[0], sides[1]))
        _check_ordered(sides[1], how)
        return self._outcome(compare, _matching(sides[1], sides[0]), sides[1])

    @staticmethod
    def _outcome(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Mask:
        return np.asarray(compare(left, right), dtype=bool)

    def _side(self, node: ast.expr, other: ast.expr) -> Any:
        """A column, or a value to compare one with."""
        if not isinstance(node, ast.Name):
            return self._constant(node)
        name = self._names.get(node.id, node.id)
        if name not in self._variables.names and isinstance(other, ast.Name):
            beside = self._names.get(other.id, other.id)
            if beside in self._variables.names and not is_number(
                self._variables.values(beside, "where").dtype
            ):
                raise UnknownColumnError(
                    f"where: there is no column {name!r}. If it is a value of {beside!r}, write it "
                    f"in quotes: {name!r}.{did_you_mean(name, self._variables.names)}"
                )
        return self._values(node)

    def _values(self, node: ast.Name) -> pd.Series:
        name = self._names.get(node.id, node.id)
        # Positions, not labels, say which unit a value belongs to.
        return self._variables.values(name, "where").reset_index(drop=True)

    def _constant(self, node: ast.expr) -> Any:
        """A number, a text or a truth value."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self._constant(node.operand)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value if isinstance(node.op, ast.USub) else value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
            return node.value
        raise OptionError(f"where: {self._text(node)!r} is no value; {_HELP}.")

    def _text(self, node: ast.expr) -> str:
        """A part of the text as it was typed, or nearly so."""
        text = ast.unparse(node)
        for word, name in self._names.items():
            text = text.replace(word, f"`{name}`")
        return _shortened(text)


def _shortened(text: str) -> str:
    """The text, or the beginning of one that is too long for a message."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."


def _matching(values: pd.Series, one: Any) -> Any:
    """A value as those of a column are, so that the two can be compared.

    Raises
    ------
    ColumnTypeError
        If the column holds values of another kind.
    UnknownLevelError
        If it is a text that the column never holds.
    """
    name, dtype = str(values.name), values.dtype
    if pdt.is_datetime64_any_dtype(dtype):
        return _date(one, name, getattr(dtype, "tz", None))
    if is_number(dtype) or pdt.is_bool_dtype(dtype):
        if isinstance(one, str):
            kind = "numbers" if is_number(dtype) else "truth values"
            raise ColumnTypeError(
                f"where: column {name!r} holds {kind} and cannot be compared with the text "
                f"{one!r}. Categories that the models see are columns of zeros and ones, as in "
                "res.selection; the column they come from has its own name."
            )
        return one
    levels = list(dict.fromkeys(values.tolist()))
    if one not in levels:
        texts = [level for level in levels if isinstance(level, str)]
        hint = did_you_mean(one, texts) if isinstance(one, str) else ""
        raise UnknownLevelError(
            f"where: {one!r} is no value of column {name!r}, which holds {listing(levels)}.{hint}"
        )
    return one


def _date(one: Any, name: str, zone: Any) -> pd.Timestamp:
    """A date in text, in the time zone of the column of this name."""
    try:
        # A number would be read as nanoseconds.
        date = pd.Timestamp(one if isinstance(one, str) else "NaT")
        if not pd.isna(date):
            return date.tz_localize(zone)
    except (ValueError, TypeError):
        pass
    raise ColumnTypeError(
        f"where: column {name!r} holds dates, and {one!r} is none. Write it like '2020-12-31'."
    )


def _check_ordered(values: pd.Series, how: ast.cmpop) -> None:
    """Refuse less and more where values have no order."""
    dtype = values.dtype
    if isinstance(how, ast.Eq | ast.NotEq) or is_number(dtype) or pdt.is_bool_dtype(dtype):
        return
    ordered = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    if not ordered and not pdt.is_datetime64_any_dtype(dtype):
        raise ColumnTypeError(
            f"where: the values of column {str(values.name)!r} have no order, so none is less than "
            "another. Name them with == or in, or make the column an ordered category."
        )


def _check_alike(left: pd.Series, right: pd.Series) -> None:
    """Refuse to compare columns of different kinds; two columns of numbers may be."""
    if not (is_number(left.dtype) and is_number(right.dtype)):
        raise ColumnTypeError(
            f"where: columns {str(left.name)!r} and {str(right.name)!r} cannot be compared with "
            "each other: only columns of numbers can."
        )
