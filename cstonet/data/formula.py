"""Reading ``outcome ~ treatment | covariates [| mediators]``.

The formula is split here, before patsy sees any of it: to patsy ``a | x1`` would be a bitwise or.
Each part is a sum of terms. A term is, in this order of precedence,

* ``.``, every column that no other part names;
* a column, by its name, letter for letter, or as ``Q("any name")``;
* ``0`` or ``1``, an intercept, which changes nothing: the network has its own;
* anything else, e.g. ``np.log(x)``, ``C(g)``, ``x1:x2``: Python code, which patsy evaluates; in a
  safe formula, a plain computation that nobody evaluates as code (:mod:`cstonet.data.safe_terms`).

Only the last kind costs more than a look-up, and only the last kind runs code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cstonet.data.columns import unknown_column
from cstonet.errors import FormulaError, TreatmentLeakError
from cstonet.settings.checks import check_truth
from cstonet.shown import shown

if TYPE_CHECKING:
    import patsy

_HOW_TO_WRITE = (
    "Write it as 'outcome ~ treatment | covariates', for example "
    "'y ~ treat | x1 + x2' or 'y ~ treat | .' ('.' stands for all other columns)."
)

# Whole strings are one token, so that nothing inside quotes is taken for an operator; a quote left
# over is one that never closes.
_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[()\[\]{}'"~|+,-]""")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"""Q\(\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\)""")


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of a part, as typed.

    Attributes
    ----------
    text : str
        The term without its sign.
    removed : bool
        Whether it is subtracted (``- x3``).
    safe : bool
        Whether it is of a safe formula.
    """

    text: str
    removed: bool = False
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, split but not yet compared with any data.

    Attributes
    ----------
    text : str
        The formula as typed.
    outcome, treatment : str
        A column name or a Python expression each.
    covariates, mediators : tuple of Term
        The terms after the first and the second ``|``; without the latter there are no mediators.
    safe : bool
        Whether its parts are limited to plain computations, which run no code.
    """

    text: str
    outcome: str
    treatment: str
    covariates: tuple[Term, ...]
    mediators: tuple[Term, ...] = ()
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """The covariates that a part selects from a frame, in the order of the formula.

    Attributes
    ----------
    columns : tuple of str
        Columns taken as they are (the fast path).
    terms : tuple of patsy.Term
        What only patsy can evaluate.
    """

    columns: tuple[str, ...]
    terms: tuple[patsy.Term, ...] = ()

    def inputs(self, known: Collection[str]) -> tuple[str, ...]:
        """The columns of a frame that the terms compute with."""
        if not self.terms:
            return ()
        from cstonet.data import patsy_terms

        return patsy_terms.columns_used(self.terms, known)


def parse_formula(text: str, *, safe: bool = False) -> Formula:
    """Split ``outcome ~ treatment | covariates [| mediators]``.

    Parameters
    ----------
    text : str
        The formula.
    safe : bool
        Whether its parts are limited to plain computations, which run no code.

    Returns
    -------
    Formula

    Raises
    ------
    FormulaError
        If the text does not have that shape.
    OptionError
        If `safe` is not a truth value.
    """
    check_truth(safe, "safe")
    if not isinstance(text, str):
        raise FormulaError(
            f"The formula must be a string, got {type(text).__name__}. {_HOW_TO_WRITE}"
        )
    if safe:
        from cstonet.data.safe_terms import check_length

        check_length(text)
    sides = [side for _, side in _split(text, "~")]
    if len(sides) != 2:
        found = "no '~'" if len(sides) == 1 else f"{len(sides) - 1} times '~'"
        raise FormulaError(f"The formula {shown(text)} has {found}. {_HOW_TO_WRITE}")
    outcome, right = sides
    parts = [part for _, part in _split(right, "|")]
    if len(parts) == 1:
        raise FormulaError(
            f"The formula {shown(text)} has no '|' between treatment and covariates. "
            f"{_HOW_TO_WRITE}"
        )
    if len(parts) > 3:
        raise FormulaError(
            f"The formula {shown(text)} has {len(parts)} parts after '~', at most three make "
            "sense: treatment | covariates | mediators."
        )
    return Formula(
        text=text,
        outcome=_single_term(outcome, "outcome", text),
        treatment=_single_term(parts[0], "treatment", text),
        covariates=_terms(parts[1], "covariates", text, safe=safe),
        mediators=_terms(parts[2], "mediators", text, safe=safe) if len(parts) == 3 else (),
        safe=safe,
    )


def select_columns(
    terms: Iterable[Term],
    columns: Collection[str],
    *,
    outcome: Collection[str],
    treatment: Collection[str],
    set_aside: Collection[str] = (),
    what: str = "covariate",
) -> Selected:
    """Compare the terms of a part with the columns of a frame.

    Parameters
    ----------
    terms : iterable of Term
        The part.
    columns : collection of str
        All columns of the frame, in order.
    outcome, treatment : collection of str
        The columns that outcome and treatment are made of.
    set_aside : collection of str
        Further columns that ``.`` leaves out, such as the weights.
    what : str
        What a term of the part is, for messages.

    Returns
    -------
    Selected

    Raises
    ------
    UnknownColumnError, FormulaError
        If a term cannot be resolved, or uses the outcome.
    TreatmentLeakError
        If a term uses the treatment.
    """
    taken = {*outcome, *treatment, *set_aside}
    known = dict.fromkeys(columns)
    chosen: dict[Any, None] = {}
    for term in terms:
        if term.text == ".":
            found: tuple[Any, ...] = tuple(name for name in known if name not in taken)
        else:
            found = _resolve(term, known)
        if term.removed:
            for item in found:
                chosen.pop(item, None)
        else:
            chosen.update(dict.fromkeys(found))
    selected = Selected(
        columns=tuple(item for item in chosen if isinstance(item, str)),
        terms=tuple(item for item in chosen if not isinstance(item, str)),
    )
    _check_roles(selected, known, outcome, treatment, what)
    return selected


def named_column(text: str, columns: Collection[str]) -> str | None:
    """The column that a term names without any computation, if it does.

    Parameters
    ----------
    text : str
        A term: ``x1``, ``Q("BRCA-1")``, or any column name that survives the splitting.
    columns : collection of str
        The columns of the frame.
    """
    if text in columns:
        return text
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return None
    name = quoted[1] if quoted[1] is not None else quoted[2]
    return name if name in columns else None


def terms_of_sum(text: str, *, safe: bool = False) -> tuple[Term, ...]:
    """The terms of a sum by itself, such as ``0 + age + C(sex)``.

    Raises
    ------
    FormulaError
        If a term is empty, or a bracket or a quote is not closed.
    """
    return _terms(text.strip(), "terms", text, safe=safe)


def summands(text: str) -> list[str]:
    """The terms of a sum such as ``age + C(region)``; commas may stand for the plus signs.

    Raises
    ------
    FormulaError
        If a bracket or a quote is not closed.
    """
    return [piece for _, piece in _split(text, "+,")]


def formula_words(text: str) -> set[str]:
    """Everything in a formula that may be the name of a column.

    Raises
    ------
    FormulaError
        If the text is no formula.
    """
    parsed = parse_formula(text)
    terms = {term.text for term in (*parsed.covariates, *parsed.mediators)}
    words = {word for word in _WORD.findall(text) if not word.isdigit()}
    quoted = {one or other for one, other in _QUOTED.findall(text)}
    return ({parsed.outcome, parsed.treatment} | terms | words | quoted) - {"."}


def _resolve(term: Term, known: Collection[str]) -> tuple[Any, ...]:
    """Columns (str) and patsy terms that one term of the formula stands for."""
    text = term.text
    name = named_column(text, known)
    if name is not None:
        return (name,)
    if text in ("0", "1"):
        return ()
    quoted = _QUOTED.fullmatch(text)
    if text.isidentifier() or quoted:
        raise unknown_column((quoted[1] or quoted[2] or "") if quoted else text, known)
    # Here and not at the top: a formula of plain names must not pay for patsy.
    if term.safe:
        from cstonet.data import safe_terms

        return safe_terms.parse_term(text, known)
    from cstonet.data import patsy_terms

    return patsy_terms.parse_term(text, known)


def _check_roles(
    selected: Selected,
    known: Collection[str],
    outcome: Collection[str],
    treatment: Collection[str],
    what: str,
) -> None:
    """Refuse covariates, or mediators, made of the outcome or the treatment."""
    for label, used in _uses(selected, known, {*outcome, *treatment}):
        if used in treatment:
            raise TreatmentLeakError(
                f"The {what} {label!r} uses the treatment {used!r}. The treatment enters the "
                f"model by itself, interactions included: take the term out of the {what}s."
            )
        raise FormulaError(
            f"The {what} {label!r} uses the outcome {used!r}. An outcome cannot explain "
            f"itself: take the term out of the {what}s."
        )


def _uses(
    selected: Selected, known: Collection[str], reserved: set[str]
) -> Iterator[tuple[str, str]]:
    """Pairs (covariate, reserved column it is made of)."""
    for name in reserved.intersection(selected.columns):
        yield name, name
    if selected.terms:
        from cstonet.data import patsy_terms

        for term in selected.terms:
            for name in patsy_terms.columns_used([term], known):
                if name in reserved:
                    yield term.name(), name


def _single_term(part: str, role: str, formula: str) -> str:
    terms = _terms(part, role, formula)
    if len(terms) > 1 or terms[0].removed or terms[0].text == ".":
        raise FormulaError(
            f"The {role} in {shown(formula)} must be one column or one expression, got {part!r}. "
            f"Arithmetic goes inside I(), for example I({part}). {_HOW_TO_WRITE}"
            if part != "."
            else f"The {role} in {shown(formula)} is '.', but it must be named. {_HOW_TO_WRITE}"
        )
    return terms[0].text


def _terms(part: str, role: str, formula: str, *, safe: bool = False) -> tuple[Term, ...]:
    pieces = list(_split(part, "+-"))
    # A leading sign leaves an empty piece before it, which stands for nothing.
    if len(pieces) > 1 and not pieces[0][1]:
        pieces.pop(0)
    if not all(text for _, text in pieces):
        where = "is empty" if not part else f"has an empty term in {part!r}"
        raise FormulaError(f"The part for the {role} in {shown(formula)} {where}. {_HOW_TO_WRITE}")
    return tuple(Term(text, removed=sign == "-", safe=safe) for sign, text in pieces)


def _split(text: str, separators: str) -> Iterator[tuple[str, str]]:
    """Split at the separators that stand outside brackets and quotes.

    Yields
    ------
    separator, piece : str
        The piece, stripped, and the separator before it ("" for the first).
    """
    open_brackets: list[str] = []
    start, before = 0, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "([{":
            open_brackets.append(token)
        elif token in _CLOSES:
            if not open_brackets or open_brackets.pop() != _CLOSES[token]:
                raise FormulaError(f"The formula has {token!r} without its opening: {shown(text)}.")
        elif token in "'\"":
            raise FormulaError(f"The formula has a quote that is never closed: {shown(text)}.")
        elif token in separators and not open_brackets:
            yield before, text[start : match.start()].strip()
            start, before = match.end(), token
    if open_brackets:
        raise FormulaError(f"The formula has {open_brackets[-1]!r} never closed: {shown(text)}.")
    yield before, text[start:].strip()
