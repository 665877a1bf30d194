"""Frames and indexes of pandas as tuples of plain values and arrays, and back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cstonet.errors import FileFormatError, NotAvailableError

# Types of columns that are written value by value: texts, mixed values, pandas' own numbers.
_LISTED = re.compile(r"object|str|string|boolean|U?Int(8|16|32|64)|Float(32|64)")
_MOMENTS = re.compile(r"(datetime64|timedelta64)\[(s|ms|us|ns)(, [\w/+:-]+)?\]")
_PLAIN = (bool, int, float, str, type(None))


def columns_of_frame(frame: pd.DataFrame) -> tuple[Any, ...]:
    """A frame as its index, its labels, and a column each."""
    columns = tuple(_parts_of_values(frame.iloc[:, j]) for j in range(frame.shape[1]))
    return parts_of_index(frame.index), parts_of_index(frame.columns), columns


def frame_of_columns(parts: tuple[Any, ...]) -> pd.DataFrame:
    """The frame that :func:`columns_of_frame` described."""
    index, labels = index_of_parts(parts[0]), index_of_parts(parts[1])
    columns = {
        j: pd.Series(_values_of_parts(column), index=index) for j, column in enumerate(parts[2])
    }
    return pd.DataFrame(columns, index=index).set_axis(labels, axis=1)


def parts_of_index(index: pd.Index) -> tuple[Any, ...]:
    """An index as plain values and arrays."""
    if isinstance(index, pd.RangeIndex):
        return "range", _name(index.name), (index.start, index.stop, index.step)
    if isinstance(index, pd.MultiIndex):
        names = tuple(_name(name) for name in index.names)
        levels = [index.get_level_values(k) for k in range(index.nlevels)]
        return "multi", names, tuple(parts_of_index(level) for level in levels)
    return "index", _name(index.name), _parts_of_values(index)


def index_of_parts(parts: tuple[Any, ...]) -> pd.Index:
    """The index that :func:`parts_of_index` described."""
    kind, name, content = parts
    if kind == "range":
        start, stop, step = content
        return pd.RangeIndex(start, stop, step, name=name)
    if kind == "multi":
        levels = [index_of_parts(level) for level in content]
        return pd.MultiIndex.from_arrays(levels, names=list(name))
    if kind != "index":
        raise FileFormatError(f"{kind!r} is no kind of index")
    index: pd.Index = pd.Index(_values_of_parts(content), name=name)
    return index


def _parts_of_values(values: Any) -> tuple[Any, ...]:
    """Values of one type as the name of the type and what they are."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = parts_of_index(dtype.categories)
        return "category", np.asarray(pd.Categorical(values).codes), categories, bool(dtype.ordered)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return "numbers", np.asarray(values)
    if _MOMENTS.fullmatch(str(dtype)):
        return "moments", str(dtype), np.asarray(pd.Index(values).asi8)
    if not _LISTED.fullmatch(str(dtype)):
        raise NotAvailableError(f"A column of {dtype} cannot be saved: convert it before the fit.")
    listed = [None if value is pd.NA else value for value in values]
    if all(type(value) is str for value in listed):
        # Each text once, as those of a training history repeat themselves.
        codes, texts = pd.factorize(np.array(listed, dtype=object))
        return "texts", str(dtype), codes.astype(np.int32), tuple(texts)
    strange = [value for value in listed if not isinstance(value, (*_PLAIN, np.generic))]
    if strange:
        raise NotAvailableError(
            f"A column that holds {strange[0]!r} cannot be saved: convert it before the fit."
        )
    return "values", str(dtype), tuple(listed)


def _values_of_parts(parts: tuple[Any, ...]) -> Any:
    """The values that :func:`_parts_of_values` described."""
    kind, *content = parts
    if kind == "numbers":
        return content[0]
    if kind == "category":
        codes, categories, ordered = content
        return pd.Categorical.from_codes(
            codes, categories=index_of_parts(categories), ordered=ordered
        )
    if kind == "moments" and _MOMENTS.fullmatch(content[0]):
        return pd.Series(content[1]).astype(content[0]).array
    if kind == "texts":
        dtype, codes, texts = content
        each = np.array(texts, dtype=object)[codes] if len(codes) else np.empty(0, dtype=object)
        return pd.array(each, dtype=_known_type(dtype))
    if kind == "values":
        dtype, listed = content
        filled = [pd.NA if value is None and dtype != "object" else value for value in listed]
        return pd.array(np.array([*filled, None], dtype=object)[:-1], dtype=_known_type(dtype))
    raise FileFormatError(f"{kind!r} is no kind of column")


def _known_type(name: str) -> Any:
    """A type of pandas by its name; texts of a newer pandas are those of this one."""
    if not _LISTED.fullmatch(name):
        raise FileFormatError(f"{name!r} is no type of a column")
    if name == "str" and pd.Index(["a"]).dtype == object:
        return "object"
    return name


def _name(name: Any) -> Any:
    """The name of an index, which may be anything."""
    return name if isinstance(name, _PLAIN) else str(name)
