"""Whether a value from a file is what a field of a class is declared to be."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

from cstonet.files.withheld import Withheld


@cache
def field_hints(cls: type[Any]) -> Mapping[str, Any]:
    """Declared types of the fields of a dataclass; `Any` for those only a type checker can read."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        namespace = vars(sys.modules[base.__module__])
        for name, text in vars(base).get("__annotations__", {}).items():
            try:
                hints[name] = eval(text, dict(namespace)) if isinstance(text, str) else text
            except NameError:  # imported for the type checker alone
                hints[name] = Any
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, as far as files can hold it."""
    if hint is Any or hint is object or isinstance(value, Withheld):
        return True
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None or fits(value, hint.__bound__)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inner)
    if origin is tuple:
        return _fits_tuple(value, inner)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _fits_dtype(value.dtype, inner)
    if isinstance(origin, type):
        return _fits_generic(value, origin, inner)
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return type(value) in (int, float)
    if hint in (int, bool, str):
        return type(value) is hint
    if getattr(hint, "_is_protocol", False):  # any object of the list may stand there
        return dataclasses.is_dataclass(value) or isinstance(value, np.ndarray)
    return not isinstance(hint, type) or isinstance(value, hint)


def _fits_tuple(value: Any, inner: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(inner) == 2 and inner[1] is Ellipsis:
        return all(fits(item, inner[0]) for item in value)
    return len(value) == len(inner) and all(map(fits, value, inner))


def _fits_generic(value: Any, origin: type[Any], inner: tuple[Any, ...]) -> bool:
    if not isinstance(value, origin):
        return False
    if issubclass(origin, Mapping):
        return all(fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items())
    return True


def _fits_dtype(dtype: np.dtype[Any], inner: tuple[Any, ...]) -> bool:
    """Whether an array holds what is declared, ``ndarray[shape, dtype[float64]]``, in any size."""
    declared = get_args(inner[-1])
    if not declared or not isinstance(declared[0], type):
        return dtype.kind in "biuf"
    families = {np.bool_: "b", np.integer: "iu", np.floating: "f"}
    return any(
        issubclass(declared[0], family) and dtype.kind in kinds
        for family, kinds in families.items()
    )
