"""Terms that only patsy can evaluate: ``np.log(x)``, ``C(g)``, ``x1:x2``, ``bs(x, df=4)``.

A formula of plain names never imports this module. Terms are Python code and run with the names
visible to the caller, so a formula deserves the same trust as a script.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import patsy
from numpy.typing import NDArray
from pandas.api import types as pdt

from cstonet.data import safe_terms
from cstonet.data.caller import caller_frame
from cstonet.data.columns import Column, describe, listing, numbers, numpy_dtype, unknown_column
from cstonet.data.formula import named_column
from cstonet.data.patsy_json import info_from_json, info_to_json, round_states
from cstonet.data.plain_factor import BUILTINS, PlainFactor, check_room
from cstonet.data.row_by_row import check_rows
from cstonet.data.sources import Sources
from cstonet.errors import CStoNetError, FormulaError, MissingValuesError, UnseenLevelError
from cstonet.shown import shown

_RAISE = patsy.NAAction(on_NA="raise")


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
        A column by its name if patsy has nothing to compute, else a term.
    """
    try:
        terms = patsy.ModelDesc.from_formula(text).rhs_termlist
    # Some operators without operands fail an assertion of patsy.
    except (patsy.PatsyError, RecursionError, AssertionError) as error:
        raise FormulaError(
            f"The term {shown(text)} cannot be read: {_reason(error)}. Arithmetic goes inside I(), "
            "column names that are not plain words inside Q(\"name\"), and '.' stands alone."
        ) from error
    for code in (factor.code for term in terms for factor in term.factors):
        _check_names(code, known)
    return tuple(_column(term, known) or term for term in terms if term.factors)


def term_matrix(
    text: str,
    known: Collection[str],
    column: Callable[[str], pd.Series],
    n: int,
    *,
    safe: bool = False,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The columns that a sum of terms stands for, with a constant unless it says ``0 +``.

    Parameters
    ----------
    text : str
        The terms, such as ``age + C(sex)``.
    known : collection of str
        The variables there are.
    column : callable
        Gives the values of one, without gaps.
    n : int
        Number of rows.
    safe : bool
        Whether the terms must be plain computations; else they are Python code, which is run.

    Returns
    -------
    matrix, names
        (n, k), and what patsy calls the k columns.
    """
    if not isinstance(text, str) or not text.strip():
        raise FormulaError(f"terms must be a text, such as 'age + C(sex)'; got {shown(text)}.")
    terms = safe_terms.parse_sum(text, known) if safe else _parse_sum(text, known)
    frame = pd.DataFrame({name: column(name) for name in columns_used(terms, known)})
    if frame.shape[1] == 0 and any(term.factors for term in terms):
        raise FormulaError(f"The terms {shown(text)} use no column of the data.")
    if frame.shape[1] == 0:
        return np.ones((n, 1)), tuple(term.name() for term in terms)
    data = _prepare([_input(frame[name]) for name in frame], frame)
    _check_room(terms, data, n)
    with _translated_errors(terms):
        (info,) = patsy.design_matrix_builders(
            [terms], lambda: iter([data]), _caller_environment(), _RAISE
        )
    return _built(info, data, n).astype(np.float64), tuple(info.column_names)


def _parse_sum(text: str, known: Collection[str]) -> list[patsy.Term]:
    """The terms of a sum of Python expressions, with a constant unless it says otherwise."""
    try:
        described = patsy.ModelDesc.from_formula(text)
    except (patsy.PatsyError, RecursionError, AssertionError) as error:
        raise FormulaError(
            f"The terms {shown(text)} cannot be read: {_reason(error)}. Write them as a sum, such "
            "as 'age + C(sex)'; column names that are not plain words go inside Q(\"name\")."
        ) from error
    terms = described.rhs_termlist
    if described.lhs_termlist or not terms:
        raise FormulaError(f"{text!r} must be a sum of terms without '~', such as 'age + C(sex)'.")
    for code in (factor.code for term in terms for factor in term.factors):
        _check_names(code, known)
    return list(terms)


def columns_used(terms: Iterable[patsy.Term], known: Collection[str]) -> tuple[str, ...]:
    """The columns that terms are made of, in order of appearance."""
    factors = (factor for term in terms for factor in term.factors)
    return tuple(dict.fromkeys(name for each in factors for name in _columns_of(each, known)))


def columns_in(code: str, known: Collection[str]) -> tuple[str, ...]:
    """The columns that a Python expression is made of, in order of appearance."""
    return tuple(dict.fromkeys(name for name in _names(code) if name in known))


def session_names(code: str, known: Collection[str]) -> tuple[str, ...]:
    """What an expression takes from where the user called: neither columns nor always there."""
    always = {*known, *BUILTINS, *dir(builtins), "np"}
    return tuple(dict.fromkeys(name for name in _names(code) if name not in always))


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
    """
    _check_names(code, frame.columns)
    # C() asks for levels, which an outcome or a treatment has or has not by itself.
    namespace = {"C": _identity, **{name: frame[name] for name in columns_in(code, frame.columns)}}
    try:
        environment = _caller_environment().with_outer_namespace(BUILTINS)
        values = environment.eval(code, inner_namespace=namespace)
        return pd.Series(values, index=frame.index, name=code)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        raise FormulaError(
            f"{shown(code)} cannot be evaluated as one value per row: {_reason(error)}."
        ) from error


@dataclass(frozen=True, slots=True, eq=False)
class PatsyBlock:
    """Covariates that patsy computes, with what it needs to compute them for new rows.

    Attributes
    ----------
    inputs : tuple of Column
        The columns the terms are made of.
    info : patsy.DesignInfo
        Patsy's description, including what stateful transforms learned from the data.
    kept : tuple of int
        Columns of patsy's matrix that are covariates; the rest serve to choose the coding.
    """

    inputs: tuple[Column, ...]
    info: patsy.DesignInfo
    kept: tuple[int, ...]

    @classmethod
    def fit(
        cls, terms: Sequence[patsy.Term], plain: Collection[str], sources: Sources
    ) -> PatsyBlock:
        """Learn levels and transforms from the data.

        Parameters
        ----------
        terms : sequence of patsy.Term
            The terms.
        plain : collection of str
            Columns that are covariates by themselves, outside this block.
        sources : Sources
            The data, without missing values.
        """
        frame = sources.other
        inputs = tuple(_input(frame[name]) for name in columns_used(terms, frame.columns))
        margins = _margins(terms, plain)
        # With an intercept, so that C(g) is coded against a reference level.
        everything = [patsy.INTERCEPT, *margins, *terms]
        data = _prepare(inputs, frame)
        _check_room(everything, data, len(frame))
        with _translated_errors(terms):
            (info,) = patsy.design_matrix_builders(
                [everything], lambda: iter([data]), _caller_environment(), _RAISE
            )
        round_states(info)
        used = {factor: _columns_of(factor, frame.columns) for factor in info.factor_infos}
        with _translated_errors(terms):
            check_rows(info, data, used, len(frame))
        kept = [j for term in terms for j in range(len(info.column_names))[info.term_slices[term]]]
        return cls(inputs, info, tuple(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(self.info.column_names[j] for j in self.kept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns the block reads."""
        return tuple(column.name for column in self.inputs)

    @property
    def terms(self) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """Per term: its covariates, by number in the block, and the columns it is made of."""
        found = {}
        for term, columns in self.info.term_slices.items():
            own = range(len(self.info.column_names))[columns]
            places = tuple(k for k, j in enumerate(self.kept) if j in own)
            if places:
                found[term.name()] = places, columns_used([term], self.columns)
        return found

    def build(self, sources: Sources) -> NDArray[np.floating]:
        """The block's covariates (n, k) from columns without missing values."""
        data = _prepare(self.inputs, sources.other)
        return _built(self.info, data, len(sources.other))[:, self.kept]

    def __copy__(self) -> PatsyBlock:
        return self

    def __deepcopy__(self, _memo: object) -> PatsyBlock:
        # Nothing changes a block after the fit, so that copies in this process can share it.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Patsy's own objects refuse to be pickled.
        from cstonet.data.patsy_pickle import info_to_record

        record = info_to_record(self.info, self.columns)
        return _unpickled, (self.inputs, record, self.kept)

    def to_json(self) -> dict[str, Any]:
        """Everything :meth:`build` needs, as plain values.

        Raises
        ------
        NotAvailableError
            If a term uses something that lives only in the running session.
        """
        return {
            "kind": "patsy",
            "inputs": [column.to_json() for column in self.inputs],
            "info": info_to_json(self.info, self.columns),
            "kept": list(self.kept),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> PatsyBlock:
        """The block that :meth:`to_json` described."""
        inputs = tuple(Column.from_json(column) for column in saved["inputs"])
        info = info_from_json(saved["info"], [column.name for column in inputs])
        return cls(inputs, info, tuple(saved["kept"]))


def _unpickled(
    inputs: tuple[Column, ...], record: Mapping[str, Any], kept: tuple[int, ...]
) -> PatsyBlock:
    """The block that :meth:`PatsyBlock.__reduce__` took apart."""
    from cstonet.data.patsy_pickle import info_from_record

    return PatsyBlock(inputs, info_from_record(record), kept)


def _identity(values: Any) -> Any:
    return values


def _columns_of(factor: Any, known: Collection[str]) -> tuple[str, ...]:
    """The columns that one factor is made of."""
    if isinstance(factor, PlainFactor):
        return tuple(name for name in factor.columns if name in known)
    return columns_in(factor.code, known)


def _column(term: patsy.Term, known: Collection[str]) -> str | None:
    """The column that a term is, if patsy has nothing to compute."""
    return named_column(term.factors[0].code, known) if len(term.factors) == 1 else None


def _margins(terms: Iterable[patsy.Term], plain: Collection[str]) -> list[patsy.Term]:
    """Plain covariates that also take part in an interaction.

    Patsy must know them: the columns of ``g:x`` depend on whether ``x`` and ``g`` are in as well.
    """
    inside = [factor for term in terms if len(term.factors) > 1 for factor in term.factors]
    margins = (patsy.Term([factor]) for factor in inside)
    return [margin for margin in dict.fromkeys(margins) if _column(margin, plain)]


def _prepare(inputs: Iterable[Column], frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Columns in dtypes that patsy understands: no extension dtypes, categories as in the fit."""
    return {column.name: _prepared(column, frame[column.name]) for column in inputs}


def _prepared(column: Column, values: pd.Series) -> pd.Series:
    if column.kind == "opaque":
        return values.astype(object) if pdt.is_string_dtype(values.dtype) else values
    if column.kind == "numeric":
        numbers(values.to_frame())  # refuses a column that held numbers and no longer does
        return values.astype(numpy_dtype(values.dtype))
    codes = column.codes(values)
    if column.kind == "boolean":
        return pd.Series(codes.astype(bool), index=values.index)
    levels = pd.Index(list(column.levels), tupleize_cols=False)
    return pd.Series(pd.Categorical.from_codes(codes, levels), index=values.index)


def _check_room(terms: Sequence[patsy.Term], data: Mapping[str, pd.Series], n: int) -> None:
    """Refuse safe terms that memory has no room for; whoever writes code is free to fill it."""
    factors = {factor for term in terms for factor in term.factors}
    if all(isinstance(factor, PlainFactor) for factor in factors):
        check_room(terms, factors, data, n)


def _input(values: pd.Series) -> Column:
    """How a column is handed to patsy.

    Text and dates go as they are: what a term makes of them is up to the term, and patsy itself
    watches the levels of what comes out.
    """
    if pdt.is_numeric_dtype(values.dtype) or isinstance(values.dtype, pd.CategoricalDtype):
        return describe(values)
    return Column(str(values.name), "opaque")


def _caller_environment() -> patsy.EvalEnvironment:
    """The names visible where the user called this package, and ``np`` in any case."""
    frame = caller_frame()
    scopes = [] if frame is None else [frame.f_locals, frame.f_globals]
    return patsy.EvalEnvironment([*scopes, {"np": np}])


def _names(code: str) -> Iterator[str]:
    """The names an expression refers to, those inside ``Q()`` included."""
    try:
        nodes = list(ast.walk(ast.parse(code, mode="eval")))
    # Besides wrong syntax: characters that no source may hold, nesting too deep for the parser.
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(
            f"{shown(code)} cannot be read as an expression: {_reason(error)}. Column names that "
            'are not plain words are written Q("name").'
        ) from error
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in bound:
            yield node.id
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Q":
            yield from (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))


def _check_names(code: str, known: Collection[str]) -> None:
    """Refuse names that are neither columns nor defined where the user called."""
    namespace = _caller_environment().with_outer_namespace(BUILTINS).namespace
    for name in _names(code):
        if name not in known and name not in namespace and not hasattr(builtins, name):
            raise unknown_column(name, known)


def _built(info: patsy.DesignInfo, data: dict[str, pd.Series], n: int) -> NDArray[np.floating]:
    """The matrix of terms, which must have a row for each of the n rows of the data."""
    with _translated_errors(info.terms):
        (matrix,) = patsy.build_design_matrices([info], data, _RAISE)
    if len(matrix) != n:
        raise FormulaError(
            f"Of the terms {_named(info.terms)}, one gives {len(matrix)} values for {n} rows. Each "
            "must give one number, or one level, for every row."
        )
    return np.asarray(matrix)


def _named(terms: Iterable[patsy.Term]) -> str:
    return listing(term.name() for term in terms if term.factors)


def _reason(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it nests or adds too many terms; write long sums outside of brackets"
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


@contextmanager
def _translated_errors(terms: Iterable[patsy.Term]) -> Iterator[None]:
    """What evaluating terms may raise, in this package's classes."""
    try:
        yield
    except patsy.PatsyError as error:
        code = "" if error.origin is None else f" {error.origin.relevant_code()!r}"
        if "expected levels" in error.message:
            raise UnseenLevelError(
                f"The term{code} met a level that the fit never saw: {error.message}. Leave "
                "out or recode these rows, or refit with data that hold such rows."
            ) from error
        if "missing values" in error.message:
            raise MissingValuesError(
                f"The term{code} gives missing values, although its columns have none. "
                "Change the term or correct the rows where it is not defined."
            ) from error
        raise FormulaError(f"The term{code} cannot be evaluated: {_reason(error)}.") from error
    except (CStoNetError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # a term is code, which may raise anything
        raise FormulaError(
            f"Of the terms {_named(terms)}, one cannot be evaluated: {_reason(error)}. Each must "
            "give one number, or one level, for every row."
        ) from error
