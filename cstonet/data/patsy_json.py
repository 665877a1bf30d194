"""Saving what patsy learned from the data, which patsy itself cannot do.

Patsy's ``DesignInfo`` refuses to be pickled, and a pickle would be no file to share. Here it
becomes plain values: the code of each factor, its levels, the state of patsy's own stateful
transforms (``center``, ``standardize``, ``bs``, …) and the coding of each term.

A saved formula is limited to plain computations on columns (:mod:`cstonet.data.plain_code`), both
when it is written and when it is read, and is not evaluated by Python afterwards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import patsy

from cstonet.data.plain_code import NotPlain, columns_of, names_of
from cstonet.data.plain_factor import BUILTINS, PlainFactor, meaning_of
from cstonet.data.plain_parser import expression
from cstonet.errors import NotAvailableError


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
    return described(info, lambda factor: _factor_to_json(factor, columns))


def info_from_json(saved: Mapping[str, Any], columns: Collection[str]) -> patsy.DesignInfo:
    """The design that :func:`info_to_json` described.

    Raises
    ------
    NotAvailableError
        If a term is more than a plain computation on the columns.
    """
    return made(saved, lambda factor: _factor_from_json(factor, columns))


def described(
    info: patsy.DesignInfo, factor_record: Callable[[patsy.FactorInfo], dict[str, Any]]
) -> dict[str, Any]:
    """A design by its parts, with the records of its factors."""
    factors = list(info.factor_infos)
    return {
        "names": list(info.column_names),
        "factors": [factor_record(info.factor_infos[factor]) for factor in factors],
        "terms": [
            {
                "factors": [factors.index(factor) for factor in term.factors],
                "subterms": [_subterm_to_json(subterm, factors) for subterm in subterms],
            }
            for term, subterms in info.term_codings.items()
        ],
    }


def made(
    saved: Mapping[str, Any], factor_of: Callable[[Mapping[str, Any]], patsy.FactorInfo]
) -> patsy.DesignInfo:
    """The design that :func:`described` took apart."""
    infos = [factor_of(factor) for factor in saved["factors"]]
    factors = [info.factor for info in infos]
    codings = OrderedDict(
        (
            patsy.Term([factors[j] for j in term["factors"]]),
            [_subterm_from_json(subterm, factors) for subterm in term["subterms"]],
        )
        for term in saved["terms"]
    )
    return patsy.DesignInfo(saved["names"], dict(zip(factors, infos, strict=True)), codings)


def restore(state: Mapping[str, Any], learned: Mapping[str, Mapping[str, Any]]) -> None:
    """Give blank transforms back what they had learned."""
    for name, values in learned.items():
        attributes = vars(state["transforms"][name])
        attributes.clear()
        attributes.update(values)


def _factor_to_json(info: patsy.FactorInfo, columns: Collection[str]) -> dict[str, Any]:
    code = info.factor.code
    if not isinstance(info.factor, PlainFactor):
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
    _check_portable(saved["code"], columns)
    factor = PlainFactor(saved["code"])
    state: dict[str, Any] = {}
    factor.memorize_passes_needed(state)
    learned = {
        name: {key: _restored(value) for key, value in values.items()}
        for name, values in saved["transforms"].items()
    }
    restore(state, learned)
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


def is_plain(info: patsy.FactorInfo, columns: Collection[str]) -> bool:
    """Whether a factor is a plain computation on columns, whoever evaluates it."""
    if isinstance(info.factor, PlainFactor):
        return True
    try:
        _check_portable(info.factor.code, columns, info.state["eval_env"].namespace)
    except NotAvailableError:
        return False
    return True


def is_portable(code: str, columns: Collection[str]) -> bool:
    """Whether code is no more than a plain computation on columns, which a file may hold."""
    try:
        _check_portable(code, columns)
    except NotAvailableError:
        return False
    return True


def _check_portable(
    code: str, columns: Collection[str], namespace: Mapping[str, Any] | None = None
) -> None:
    """Refuse code that is more than a plain computation on columns.

    Parameters
    ----------
    code : str
        An expression.
    columns : collection of str
        Names that are data.
    namespace : mapping or None
        What the other names mean where Python evaluates it; None: it does not.
    """
    try:
        tree = expression(code)
    except NotPlain as found:
        raise _not_portable(code, f"{found.part!r} {found.reason}") from found
    for name in columns_of(tree):
        if name not in columns:
            raise _not_portable(code, f"{name!r} is defined only in this session")
    if namespace is None:
        return
    for name in ("Q", *names_of(tree)):
        if namespace.get(name, BUILTINS["Q"]) is not meaning_of(name):
            raise _not_portable(code, f"{name!r} is defined only in this session")


def _not_portable(code: str, reason: str) -> NotAvailableError:
    return NotAvailableError(
        f"The term {code!r} cannot be kept in a file: {reason}. Compute it as a column of "
        "the data before the fit and name that column in the formula."
    )
