"""Pickling what patsy learned from the data, for copies in other processes.

Unlike a file to share, a pickle is trusted: it may name whatever can be imported there. What lives
in this session alone cannot go with it, and is refused by name.
"""

from __future__ import annotations

import ast
import importlib
import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import patsy

from cstonet.data.patsy_json import described, made, restore
from cstonet.data.plain_factor import BUILTINS, PlainFactor
from cstonet.errors import NotAvailableError


@dataclass(frozen=True, slots=True)
class _Imported:
    """What a name of a term means: a module, or something in it."""

    module: str
    path: str = ""

    def found(self) -> Any:
        """The thing itself, imported."""
        module = importlib.import_module(self.module)
        return operator.attrgetter(self.path)(module) if self.path else module


def info_to_record(info: patsy.DesignInfo, columns: Collection[str]) -> dict[str, Any]:
    """A design as values that can be pickled.

    Parameters
    ----------
    info : patsy.DesignInfo
        The design.
    columns : collection of str
        The data columns its terms are made of.

    Raises
    ------
    NotAvailableError
        If a term uses something that lives only in the running session.
    """
    return described(info, lambda factor: _factor_to_record(factor, columns))


def info_from_record(record: Mapping[str, Any]) -> patsy.DesignInfo:
    """The design that :func:`info_to_record` took apart."""
    return made(record, _factor_from_record)


def _factor_to_record(info: patsy.FactorInfo, columns: Collection[str]) -> dict[str, Any]:
    plain = isinstance(info.factor, PlainFactor)
    return {
        "code": info.factor.code,
        "names": None if plain else _names(info, columns),
        "type": info.type,
        "num_columns": info.num_columns,
        "categories": info.categories,
        "transforms": {
            name: dict(vars(transform)) for name, transform in info.state["transforms"].items()
        },
    }


def _factor_from_record(record: Mapping[str, Any]) -> patsy.FactorInfo:
    names, state = record["names"], dict[str, Any]()
    if names is None:
        factor: Any = PlainFactor(record["code"])
        factor.memorize_passes_needed(state)
    else:
        factor = patsy.EvalFactor(record["code"])
        namespace = {
            name: value.found() if isinstance(value, _Imported) else value
            for name, value in names.items()
        }
        factor.memorize_passes_needed(state, patsy.EvalEnvironment([namespace]))
    restore(state, record["transforms"])
    return patsy.FactorInfo(
        factor,
        record["type"],
        state,
        num_columns=record["num_columns"],
        categories=record["categories"],
    )


def _names(info: patsy.FactorInfo, columns: Collection[str]) -> dict[str, Any]:
    """What the names in a term mean beside columns and what patsy brings itself."""
    code, namespace = info.factor.code, info.state["eval_env"].namespace
    return {
        name: _carried(name, namespace[name], code)
        for name in _names_in(code)
        if name in namespace
        and name not in columns
        and namespace[name] is not BUILTINS.get(name, namespace)
    }


def _names_in(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code, mode="eval")):
        if isinstance(node, ast.Name):
            yield node.id


def _carried(name: str, value: Any, code: str) -> Any:
    """A value that a pickle can carry: a constant, or where it is imported from."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, ModuleType):
        return _Imported(value.__name__)
    place = _Imported(
        str(getattr(value, "__module__", None)), str(getattr(value, "__qualname__", ""))
    )
    try:
        if place.module != "__main__" and place.path and place.found() is value:
            return place
    except (ImportError, AttributeError):
        pass
    raise NotAvailableError(
        f"The term {code!r} cannot be pickled: {name!r} is defined only in this session. Put it "
        "into a module that can be imported, or compute the term as a column of the data before "
        "the fit. Within this process, copy.copy and copy.deepcopy work."
    )
