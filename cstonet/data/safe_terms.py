"""Formulas of unknown origin: their terms are plain computations, or refused by name.

A safe formula is read by the parser of :mod:`cstonet.data.plain_parser` and evaluated node by node
by :mod:`cstonet.data.plain_factor`. No text reaches Python's ``compile``, ``exec`` or ``eval``, nor
patsy, which evaluates terms as Python code. The worst that it can say is a wrong model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pandas as pd

from cstonet.data.columns import unknown_column
from cstonet.data.formula import Formula, named_column, terms_of_sum
from cstonet.data.plain_code import (
    ADMITTED,
    SPLINES,
    Call,
    Column,
    Node,
    NotPlain,
    columns_of,
    walk,
)
from cstonet.data.plain_parser import expression, products
from cstonet.errors import FormulaError, UnsafeFormulaError
from cstonet.shown import shown

if TYPE_CHECKING:
    import patsy

_Read = TypeVar("_Read")
_LONGEST = 1_000_000


def check_length(formula: str) -> None:
    """Refuse a text that is no formula of anybody's, before it is looked at.

    Raises
    ------
    UnsafeFormulaError
        If it is longer than a million characters.
    """
    if len(formula) > _LONGEST:
        raise UnsafeFormulaError(
            f"A safe formula has at most {_LONGEST} characters, this one has {len(formula)}. Write "
            "'.' for all columns and take some out with '-', or pass arrays."
        )


def check(formula: Formula, known: Collection[str]) -> None:
    """Refuse a formula that says more than it may, before any of the data is touched.

    Raises
    ------
    UnsafeFormulaError, UnknownColumnError, FormulaError
        Naming the part.
    """
    for code in (formula.outcome, formula.treatment):
        if named_column(code, known) is None and not code.isidentifier():
            columns_in(code, known)
    for term in (*formula.covariates, *formula.mediators):
        if term.text not in (".", "0", "1") and named_column(term.text, known) is None:
            _expanded(term.text, known)


def columns_in(code: str, known: Collection[str]) -> tuple[str, ...]:
    """The columns that an expression is made of, in order of appearance.

    Raises
    ------
    UnsafeFormulaError, UnknownColumnError
        If it is no plain computation on columns.
    """
    return columns_of(_checked(code, known))


def evaluate(code: str, frame: pd.DataFrame) -> pd.Series:
    """Evaluate an expression for one column, such as ``np.log(y)`` or ``I(dose > 0)``.

    Parameters
    ----------
    code : str
        The expression.
    frame : DataFrame, n rows
        The data.

    Returns
    -------
    Series of length n, named after the code, with the index of the frame

    Raises
    ------
    UnsafeFormulaError, UnknownColumnError
        If it is no plain computation on columns.
    FormulaError
        If it does not give one value per row.
    """
    from cstonet.data.plain_factor import explained, value  # not at the top: it loads patsy

    tree = _checked(code, frame.columns)
    for part in walk(tree):
        if isinstance(part, Call) and part.name in SPLINES:
            raise FormulaError(f"{shown(code)} has several columns: {part.name}() is no variable.")
    with explained(code):
        values = value(tree, {name: frame[name] for name in columns_of(tree)}, None)
        return pd.Series(values, index=frame.index, name=code)


def parse_term(text: str, known: Collection[str]) -> tuple[Any, ...]:
    """Expand one term, e.g. ``x1*x2`` to ``x1``, ``x2`` and ``x1:x2``.

    Parameters
    ----------
    text : str
        The term as typed.
    known : collection of str
        The columns of the frame.

    Returns
    -------
    tuple of str and patsy.Term
        A column by its name if there is nothing to compute, else a term.

    Raises
    ------
    UnsafeFormulaError, UnknownColumnError
        If it is no term of a safe formula.
    """
    return tuple(dict.fromkeys(_column(term) or _term(term) for term in _expanded(text, known)))


def parse_sum(text: str, known: Collection[str]) -> list[patsy.Term]:
    """The terms of a sum, with a constant unless it says ``0 +`` or ``- 1``.

    Raises
    ------
    UnsafeFormulaError, UnknownColumnError, FormulaError
        If it is no sum of terms of a safe formula.
    """
    check_length(text)
    import patsy

    chosen: dict[patsy.Term, None] = {patsy.INTERCEPT: None}
    for term in terms_of_sum(text, safe=True):
        if term.text in ("0", "1"):
            found, removed = [patsy.INTERCEPT], term.removed is (term.text == "1")
        else:
            found, removed = list(map(_term, _expanded(term.text, known))), term.removed
        for each in found:
            if removed:
                chosen.pop(each, None)
            else:
                chosen[each] = None
    return list(chosen)


_Factors: TypeAlias = Sequence[tuple[str, Node]]


def _expanded(text: str, known: Collection[str]) -> list[_Factors]:
    """The terms that one term stands for, each by its factors."""
    joined: list[list[tuple[str, Node]]] = _read(text, products)
    for _, node in (factor for group in joined for factor in group):
        _check_columns(text, node, known)
    expanded: list[_Factors] = [joined[0]]
    for group in joined[1:]:
        expanded += [group, *([*others, *group] for others in expanded)]
    return expanded


def _column(factors: _Factors) -> str | None:
    """The column that a term is, if there is nothing to compute."""
    node = factors[0][1]
    return node.name if len(factors) == 1 and isinstance(node, Column) else None


def _term(factors: _Factors) -> patsy.Term:
    import patsy

    from cstonet.data.plain_factor import PlainFactor

    return patsy.Term([PlainFactor(code) for code, _ in factors])


def _checked(code: str, known: Collection[str]) -> Node:
    """The tree of an expression of columns that there are."""
    tree = _read(code, expression)
    _check_columns(code, tree, known)
    return tree


def _check_columns(code: str, tree: Node, known: Collection[str]) -> None:
    names = columns_of(tree)
    if not names:
        raise FormulaError(f"{shown(code)} is made of no column.")
    for name in names:
        if name not in known:
            raise unknown_column(name, known)


def _read(text: str, read: Callable[[str], _Read]) -> _Read:
    try:
        return read(text)
    except NotPlain as found:
        raise UnsafeFormulaError(
            f"{shown(text)} is no part of a safe formula: {found.part!r} {found.reason}. Safe "
            f"formulas hold {ADMITTED}. Compute anything else as a column of the data; or, if you "
            "trust whoever wrote the formula as you would trust a program of theirs, pass "
            "safe=False."
        ) from found
