"""Objects as plain values and arrays, and back.

Every object that a fit is made of becomes an entry of a table: the name of its class and its
fields. Entries refer to earlier ones only, so that reading is a loop over the table, whatever a
file says, and an object that is held twice is one object again.

A value is written as JSON where that has the same value: None, truth values, whole numbers, finite
numbers (with all their bits), texts; a list is a tuple. All else has a mark::

    {"float": "nan"}                a number that JSON has not
    {"list": […]}, {"dict": [[key, value], …]}
    {"array": 3}, {"scalar": 3}     an array, or a NumPy number, by its place among the arrays
    {"at": 5}                       an entry of the table
    {"withheld": [100, 2]}          rows that are not in the file, with their shape if they have one
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.errors import FileFormatError, NewerFileError, NotAvailableError
from cstonet.files.frames import (
    columns_of_frame,
    frame_of_columns,
    index_of_parts,
    parts_of_index,
)
from cstonet.files.hints import field_hints, fits
from cstonet.files.registry import ALL, KINDS, class_of, name_of
from cstonet.files.withheld import Withheld

# Tuples of so many items are entries of the table, because covariates' names are held repeatedly.
_LONG = 16
_ARRAY_KINDS = "biuf"
# Fields that are the machine's, not the fit's: at most what this one has.
_OF_THE_MACHINE = "threads"


class Encoder:
    """Collects entries and arrays.

    Parameters
    ----------
    with_data : bool
        Whether rows of the data are kept.

    Attributes
    ----------
    entries : list
        The table.
    arrays : list of ndarray
        What it refers to.
    """

    def __init__(self, *, with_data: bool) -> None:
        self.entries: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self._with_data = with_data
        # Objects are kept alive, so that their numbers stay theirs.
        self._known: dict[int, tuple[object, dict[str, Any]]] = {}

    def encode(self, value: Any) -> Any:
        """A value in terms of JSON, entries and arrays.

        Raises
        ------
        NotAvailableError
            If files have no place for it.
        """
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, Withheld):
            return value.refuse() if self._with_data else _withheld(value.known_shape)
        if id(value) in self._known:
            return self._known[id(value)][1]
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))["array"]}
        if type(value) is tuple and len(value) < _LONG:
            return [self.encode(item) for item in value]
        reference = self._by_reference(value)
        self._known[id(value)] = (value, reference)
        return reference

    def replace(self, value: object, other: object) -> None:
        """Write an object as another one, wherever it is held."""
        if value is not other:
            self._known[id(value)] = (value, self.encode(other))

    def _by_reference(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, tuple):
            return self._entry({"type": "tuple", "items": [self.encode(item) for item in value]})
        if isinstance(value, list):
            return {"list": [self.encode(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, pd.DataFrame):
            return self._entry({"type": "frame", "parts": self.encode(columns_of_frame(value))})
        if isinstance(value, pd.Index):
            return self._entry({"type": "index", "parts": self.encode(parts_of_index(value))})
        if type(value).__name__ == "csc_array":
            parts = (value.data, value.indices, value.indptr, value.shape)
            return self._entry({"type": "sparse", "parts": self.encode(parts)})
        return self._object(value)

    def _object(self, value: Any) -> dict[str, Any]:
        name = name_of(value)
        kind = KINDS[name]
        if ALL in kind.rows and not self._with_data:
            return _withheld(None)
        if kind.by_json:
            return self._entry({"type": name, "json": value.to_json()})
        if kind.condensed and not self._with_data:
            value = value.condensed()
        fields = {
            field: self._row_field(item) if field in kind.rows else self.encode(item)
            for field, item in ingredients(value).items()
        }
        return self._entry({"type": name, "fields": fields})

    def _row_field(self, value: Any) -> Any:
        if self._with_data or value is None or isinstance(value, Withheld):
            return self.encode(value)
        return _withheld(getattr(value, "shape", None))

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        if value.dtype.kind not in _ARRAY_KINDS or value.dtype.itemsize > 8:
            raise NotAvailableError(f"An array of {value.dtype} cannot be saved.")
        # Sums depend on the order in which memory holds their terms, to the last bit.
        by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        kept = np.asarray(value.T if by_columns else value)
        kept = np.ascontiguousarray(kept, dtype=value.dtype.newbyteorder("=")).reshape(kept.shape)
        self.arrays.append(kept)
        reference: dict[str, Any] = {"array": len(self.arrays) - 1}
        return reference | {"order": "F"} if by_columns else reference

    def _entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        self.entries.append(entry)
        return {"at": len(self.entries) - 1}


def _withheld(shape: tuple[int, ...] | None) -> dict[str, Any]:
    return {"withheld": None if shape is None else list(shape)}


def ingredients(value: Any) -> dict[str, Any]:
    """What an object is made of: its fields, or what it says itself."""
    if hasattr(value, "ingredients"):
        return dict(value.ingredients())
    if not dataclasses.is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


class Decoder:
    """Makes objects of the entries of a file.

    Parameters
    ----------
    arrays : sequence of ndarray
        What the entries refer to.
    made_by : str
        The version that saved the file, for messages.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]], made_by: str) -> None:
        self._arrays = arrays
        self._made_by = made_by
        self._made: list[Any] = []

    def read(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Make the objects of a table, one after the other.

        Raises
        ------
        FileFormatError
            If one is not what its class declares.
        NewerFileError
            If one is of a class, or has a field, that this version does not know.
        """
        for entry in entries:
            self._made.append(self._object(entry))

    def decode(self, value: Any, where: str = "the file") -> Any:
        """The value that `Encoder.encode` described."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return tuple(self.decode(item, where) for item in value)
        if "at" in value:
            return self._made[_place(value["at"])]
        if "array" in value:
            array = self._arrays[_place(value["array"])]
            return array.T if value.get("order") == "F" else array
        if "scalar" in value:
            return self._arrays[_place(value["scalar"])][()]
        if "withheld" in value:
            return Withheld(where, _shape(value["withheld"]))
        if "list" in value:
            return [self.decode(item, where) for item in value["list"]]
        if "dict" in value:
            return {self.decode(k, where): self.decode(v, where) for k, v in value["dict"]}
        if value.get("float") in ("nan", "inf", "-inf"):
            return float(value["float"])
        raise FileFormatError(f"{where} holds a value that no fit has")

    def _object(self, entry: Mapping[str, Any]) -> Any:
        name = entry["type"]
        if name == "tuple":
            return tuple(self.decode(item) for item in entry["items"])
        if name == "frame":
            return frame_of_columns(self.decode(entry["parts"]))
        if name == "index":
            return index_of_parts(self.decode(entry["parts"]))
        if name == "sparse":
            return _sparse(*self.decode(entry["parts"]))
        if name not in KINDS:
            raise self._newer(f"a {name}")
        cls = class_of(name)
        if KINDS[name].by_json:
            return cls.from_json(entry["json"])
        fields = {
            field: self.decode(item, f"{name}.{field}") for field, item in entry["fields"].items()
        }
        if dataclasses.is_dataclass(cls):
            self._check(cls, fields)
        return cls(**fields)

    def _check(self, cls: Any, fields: dict[str, Any]) -> None:
        """Refuse fields that the class has not, or that are not what it declares."""
        hints = field_hints(cls)
        for field, value in fields.items():
            if field not in hints:
                raise self._newer(f"{cls.__name__}.{field}")
            if not fits(value, hints[field]):
                raise FileFormatError(f"{cls.__name__}.{field} is not what it should be")
            if field == _OF_THE_MACHINE:
                fields[field] = max(1, min(value, os.cpu_count() or 1))

    def _newer(self, what: str) -> NewerFileError:
        return NewerFileError(
            f"it holds {what}, which this version of cstonet does not know: cstonet "
            f"{self._made_by} saved it. Update cstonet, or refit"
        )


def _place(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise FileFormatError(f"{number!r} is no place in a table")
    return number


def _shape(numbers: Any) -> tuple[int, ...] | None:
    return None if numbers is None else tuple(_place(number) for number in numbers)


def _sparse(
    data: NDArray[Any], indices: NDArray[Any], first: NDArray[Any], shape: tuple[int, int]
) -> Any:
    from scipy.sparse import csc_array  # not at the top: only sparse covariates need it

    matrix = csc_array((data, indices, first), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
