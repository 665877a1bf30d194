"""Saving what patsy learned from the data, which patsy itself cannot do.

Patsy's ``DesignInfo`` refuses to be pickled, and a pickle would be no file to share. Here it
becomes plain values: the code of each factor, its levels, the state of patsy's own stateful
transforms (``center``, ``standardize``, ``bs``, …) and the coding of each term.

A formula is Python code. A saved one is limited to plain computations on columns, both when it is
written and when it is read, so that reading a file runs nothing else.
"""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import patsy
import patsy.builtins

from cstonet.errors import NotAvailableError

BUILTINS: dict[str, Any] = {name: getattr(patsy.builtins, name) for name in patsy.builtins.__all__}
"""What patsy offers to every formula."""

_PORTABLE_NAMES: dict[str, Any] = {**BUILTINS, "np": np}
_PORTABLE_NODES = (
    ast.Expression,
    ast.Call,
    ast.keyword,
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.expr_context,
)


# Of a constant: enough for any unit, and no memory is filled by it.
_LARGEST_POWER = 1000


def round_states(info: patsy.DesignInfo) -> None:
    """Round what patsy's transforms learned to double precision.

    Patsy adds up in extended precision, which no text format holds. Rounding at the fit makes a
    saved description give the same bits as the one that was fitted.
    """
    for factor_info in info.factor_infos.values():
        for transform in factor_info.state["transforms"].values():
            if _is_patsys(transform):
                for name, value in vars(transform).items():
                    if isinstance(value, np.ndarray):
                        setattr(transform, name, value.astype(np.float64))


def info_to_json(info: patsy.DesignInfo, columns: Collection[str]) -> dict[str, Any]:
    """A design as plain values.

    Parameters
    ----------
    info : patsy.DesignInfo
        The design, after :func:`round_states`.
    columns : collection of str
        The data columns its terms are made of.

    Raises
    ------
    NotAvailableError
        If a term is more than a plain computation on the columns.
    """
    factors = list(info.factor_infos)
    return {
        "names": list(info.column_names),
        "factors": [_factor_to_json(info.factor_infos[factor], columns) for factor in factors],
        "terms": [
            {
                "factors": [factors.index(factor) for factor in term.factors],
                "subterms": [_subterm_to_json(subterm, factors) for subterm in subterms],
            }
            for term, subterms in info.term_codings.items()
        ],
    }


def info_from_json(saved: Mapping[str, Any], columns: Collection[str]) -> patsy.DesignInfo:
    """The design that :func:`info_to_json` described.

    Raises
    ------
    NotAvailableError
        If a term is more than a plain computation on the columns.
    """
    infos = [_factor_from_json(factor, columns) for factor in saved["factors"]]
    factors = [info.factor for info in infos]
    codings = OrderedDict(
        (
            patsy.Term([factors[j] for j in term["factors"]]),
            [_subterm_from_json(subterm, factors) for subterm in term["subterms"]],
        )
        for term in saved["terms"]
    )
    return patsy.DesignInfo(saved["names"], dict(zip(factors, infos, strict=True)), codings)


def _factor_to_json(info: patsy.FactorInfo, columns: Collection[str]) -> dict[str, Any]:
    code = info.factor.code
    _check_portable(code, columns, info.state["eval_env"].namespace)
    categories = info.categories
    return {
        "code": code,
        "type": info.type,
        "num_columns": info.num_columns,
        "categories": None if categories is None else [_plain(c, code) for c in categories],
        "transforms": {
            name: {key: _plain(value, code) for key, value in vars(transform).items()}
            for name, transform in info.state["transforms"].items()
        },
    }


def _factor_from_json(saved: Mapping[str, Any], columns: Collection[str]) -> patsy.FactorInfo:
    _check_portable(saved["code"], columns, _PORTABLE_NAMES)
    factor = patsy.EvalFactor(saved["code"])
    state: dict[str, Any] = {}
    # Patsy prepares blank transforms; they are then given back what they had learned.
    factor.memorize_passes_needed(state, patsy.EvalEnvironment([_PORTABLE_NAMES]))
    for name, learned in saved["transforms"].items():
        attributes = vars(state["transforms"][name])
        attributes.clear()
        attributes.update({key: _restored(value) for key, value in learned.items()})
    return patsy.FactorInfo(
        factor,
        saved["type"],
        state,
        num_columns=saved["num_columns"],
        categories=saved["categories"],
    )


def _subterm_to_json(subterm: patsy.SubtermInfo, factors: Sequence[Any]) -> dict[str, Any]:
    return {
        "factors": [factors.index(factor) for factor in subterm.factors],
        "num_columns": subterm.num_columns,
        "contrasts": [
            {
                "factor": factors.index(factor),
                "matrix": contrast.matrix.tolist(),
                "suffixes": list(contrast.column_suffixes),
            }
            for factor, contrast in subterm.contrast_matrices.items()
        ],
    }


def _subterm_from_json(saved: Mapping[str, Any], factors: Sequence[Any]) -> patsy.SubtermInfo:
    contrasts = {
        factors[c["factor"]]: patsy.ContrastMatrix(c["matrix"], c["suffixes"])
        for c in saved["contrasts"]
    }
    return patsy.SubtermInfo(
        [factors[j] for j in saved["factors"]], contrasts, saved["num_columns"]
    )


def _is_patsys(transform: object) -> bool:
    return type(transform).__module__.partition(".")[0] == "patsy"


def _plain(value: Any, code: str) -> Any:
    """A value for a JSON file; arrays are marked, because lists are not arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    raise _not_portable(code, f"it holds a {type(value).__name__}")


def _restored(value: Any) -> Any:
    return np.array(value["array"]) if isinstance(value, dict) else value


def is_portable(code: str, columns: Collection[str]) -> bool:
    """Whether code is no more than a computation on columns with patsy's and NumPy's functions."""
    try:
        _check_portable(code, columns, _PORTABLE_NAMES)
    except (NotAvailableError, SyntaxError, ValueError):
        return False
    return True


def _check_portable(code: str, columns: Collection[str], namespace: Mapping[str, Any]) -> None:
    """Refuse code that is more than a computation on columns with patsy's and NumPy's functions.

    Parameters
    ----------
    code : str
        A Python expression.
    columns : collection of str
        Names that are data.
    namespace : mapping
        What the other names mean where the code is to be evaluated.
    """
    nodes = list(ast.walk(ast.parse(code, mode="eval")))
    for node in nodes:
        if not isinstance(node, _PORTABLE_NODES):
            raise _not_portable(code, f"it holds a {type(node).__name__.lower()}")
        if isinstance(node, ast.BinOp) and not _is_bounded(node, columns):
            raise _not_portable(code, f"{ast.unparse(node)} may be too large for any memory")
    for name in _free_names(nodes, columns):
        if name not in _PORTABLE_NAMES or namespace[name] is not _PORTABLE_NAMES[name]:
            raise _not_portable(code, f"{name!r} is defined only in this session")
    for node in nodes:
        if isinstance(node, ast.Attribute) and not _is_numpy_function(node):
            raise _not_portable(code, f"{ast.unparse(node)} is no elementwise NumPy function")


def _is_bounded(node: ast.BinOp, columns: Collection[str]) -> bool:
    """Whether an operation on constants has a result of some size: 9**9**9 and "a" * 9**9 have not.

    Columns hold numbers of fixed size, whatever is done to them.
    """
    sequences = (ast.List, ast.Tuple)
    for side in (node.left, node.right):
        if isinstance(side, sequences) or isinstance(getattr(side, "value", None), str | bytes):
            return False
    if not isinstance(node.op, ast.Pow | ast.LShift):
        return True
    if any(isinstance(part, ast.Name) and part.id in columns for part in ast.walk(node.left)):
        return True
    power = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
    if not isinstance(node.left, ast.Constant) or not isinstance(power, ast.Constant):
        return False
    return isinstance(power.value, int | float) and abs(power.value) <= _LARGEST_POWER


def _free_names(nodes: Iterable[ast.AST], columns: Collection[str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in columns:
            yield node.id


def _is_numpy_function(node: ast.Attribute) -> bool:
    of_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
    return of_numpy and isinstance(getattr(np, node.attr, None), np.ufunc)


def _not_portable(code: str, reason: str) -> NotAvailableError:
    return NotAvailableError(
        f"The term {code!r} cannot be kept in a file: {reason}. Compute it as a column of "
        "the data before the fit and name that column in the formula."
    )
