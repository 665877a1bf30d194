"""Columns of every dtype and content, each with what it says as plain Python values."""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import fractions
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.bad_inputs.values import Hostile

N = 40
_RNG = np.random.default_rng(18)


@dataclass(frozen=True)
class Column:
    """One value per row, stored in some way.

    Attributes
    ----------
    name : str
        What is special about it.
    values : object
        As a user would pass them.
    truth : list or None
        What they say, row by row, None being a gap; None: nothing that any part of a model could
        be made of.
    like : str or None
        The ordinary column that it is another storage of: where that is accepted, this is, too.
    alone : bool
        Whether it is only an argument of its own, and no column of a frame.
    """

    name: str
    values: Any
    truth: list[Any] | None
    like: str | None = None
    alone: bool = False


def _pattern(*values: Any) -> list[Any]:
    """The values in a fixed random order, each as often as the others."""
    return [values[i] for i in _RNG.permutation(np.arange(N) % len(values))]


# Eighths are exact in half precision.
ORDINARY: dict[str, list[Any]] = {
    "floats": [float(v) / 8 for v in _RNG.permutation(np.arange(1, N + 1))],
    "whole numbers": [int(v) for v in _RNG.permutation(np.arange(N) % 13)],
    "zeros and ones": _pattern(0, 1),
    "booleans": _pattern(True, False),
    "labels": _pattern("low", "middle", "high"),
}


def _readonly(values: list[Any]) -> np.ndarray:
    frozen = np.array(values)
    frozen.flags.writeable = False
    return frozen


def _strided(values: list[Any]) -> np.ndarray:
    return np.repeat(np.array(values), 3)[::3]


def _reversed(values: list[Any]) -> np.ndarray:
    return np.array(values[::-1])[::-1]


def _unaligned(values: list[Any]) -> np.ndarray:
    raw = bytearray(8 * len(values) + 1)
    array_of = np.frombuffer(raw, dtype="f8", count=len(values), offset=1)
    array_of[:] = values
    return array_of


def _numpy(dtype: str) -> Callable[[list[Any]], Any]:
    return lambda values: np.array(values).astype(dtype)


def _pandas(dtype: Any) -> Callable[[list[Any]], Any]:
    return lambda values: pd.Series(values).astype(dtype)


def _arrow(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda values: pd.Series(pd.array(pa.array(values, kind), dtype=pd.ArrowDtype(kind)))


def _decimals(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda values: _arrow(kind)([decimal.Decimal(value) for value in values])


_ANY_STORAGE: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array": np.array,
    "array of objects": partial(np.array, dtype=object),
    "series of objects": partial(pd.Series, dtype=object),
    "index": pd.Index,
    "read-only array": _readonly,
    "strided array": _strided,
    "reversed array": _reversed,
    "masked array without mask": np.ma.MaskedArray,
    "category": _pandas("category"),
}
_LOOSE = ("array of objects", "series of objects", "category")
_ALONE: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "series with other labels": lambda values: pd.Series(values, index=range(100, 100 + N)),
    "column of an array": lambda values: np.array(values)[:, None],
    "frame of one column": lambda values: pd.DataFrame({"zz": values}),
    "polars series": pl.Series,
    "arrow array": pa.array,
    "deque": collections.deque,
}
_STORAGE: dict[str, dict[str, Callable[[list[Any]], Any]]] = {
    "floats": {
        **{code: _numpy(code) for code in ("f2", "f4", "f8", ">f2", ">f4", ">f8", "g")},
        **{code: _pandas(code) for code in ("Float32", "Float64", "Sparse[float64]")},
        **{f"arrow {kind}": _arrow(kind) for kind in (pa.float32(), pa.float64())},
        "arrow decimals": _decimals(pa.decimal128(12, 4)),
        "unaligned array": _unaligned,
        "array.array": partial(array.array, "d"),
        "memoryview": lambda values: memoryview(np.array(values)),
    },
    "whole numbers": {
        **{code: _numpy(code) for code in ("i1", "i2", "i8", "u1", "u4", "u8", ">i2", ">i8")},
        **{code: _numpy(code) for code in (">u8", "f4", ">f8", "q", "Q")},
        **{code: _pandas(code) for code in ("Int8", "Int32", "Int64", "UInt8", "UInt64")},
        **{code: _pandas(code) for code in ("Float64", "Sparse[int64]", "Sparse[uint8]")},
        **{f"arrow {kind}": _arrow(kind) for kind in (pa.int8(), pa.int64(), pa.uint64())},
        "array.array": partial(array.array, "l"),
    },
    "zeros and ones": {
        **{code: _numpy(code) for code in ("i1", "u8", ">i4", "f2", ">f8", "?")},
        **{code: _pandas(code) for code in ("boolean", "Int8", "Sparse[int8]", "Float32")},
        "arrow bool": lambda values: _arrow(pa.bool_())([bool(value) for value in values]),
    },
    "booleans": {
        **{code: _pandas(code) for code in ("boolean", "Sparse[bool]", "bool")},
        "arrow bool": _arrow(pa.bool_()),
    },
    "labels": {
        **{code: _numpy(code) for code in ("U", ">U8")},
        **{code: _pandas(code) for code in ("string[python]", "string[pyarrow]", "str")},
        **{f"arrow {kind}": _arrow(kind) for kind in (pa.string(), pa.large_string())},
        "arrow dictionary": lambda values: pd.Series(
            pd.array(
                pa.array(values).dictionary_encode(),
                dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
            )
        ),
        "ordered category": lambda values: pd.Series(
            pd.Categorical(values, ["low", "middle", "high"], ordered=True)
        ),
        "category with unused levels": lambda values: pd.Series(
            pd.Categorical(values, ["a", "high", "low", "middle", "z"])
        ),
        "numpy strings": lambda values: np.array([np.str_(value) for value in values], object),
        "StringDType": lambda values: np.array(values, dtype=np.dtypes.StringDType()),
    },
}

_TWO_53, _TWO_63, _TWO_64 = 2**53, 2**63, 2**64
_DAY = dt.date(2020, 2, 29)
_MOMENT = dt.datetime(2020, 2, 29, 12)
_NEAR = {
    "2**53 and the next": (_TWO_53, _TWO_53 + 1),
    "three from 2**53 on": (_TWO_53, _TWO_53 + 1, _TWO_53 + 2),
    "the largest of 64 bits": (_TWO_63 - 1, _TWO_63 - 2),
    "the least of 64 bits": (-_TWO_63, -_TWO_63 + 1),
    "negative beyond 2**53": (-_TWO_53, -_TWO_53 - 1),
    "beyond 2**53 and zero": (0, _TWO_53, _TWO_53 + 1),
    "identifiers": (10**17 + 1, 10**17 + 2, 10**17 + 3),
}
_UNSIGNED = {
    "the largest without sign": (_TWO_64 - 1, _TWO_64 - 2),
    "beyond 2**63": (_TWO_63, _TWO_63 + 1),
}
_INEXACT = {
    "next floats": (1.0, 1.0 + 2.0**-52),
    "sums that differ": (0.1 + 0.2, 0.3),
    "two zeros and one": (0.0, -0.0, 1.0),
    "subnormals": (5e-324, 1e-323),
    "the largest floats": (1.7976931348623157e308, 1.7976931348623155e308),
    "far apart": (1e-300, 1e300),
}
_TEXTS = {
    "case": ("a", "A"),
    "spaces": ("a", "a ", " a"),
    "composed and not": ("\u00e9", "e\u0301"),
    "empty text": ("", "a"),
    "newlines": ("a\nb", "a b"),
    "null characters": ("a\x00", "a"),
    "null characters inside": ("a\x00b", "a\x00c"),
    "surrogates": ("\ud800", "\udfff"),
    "numbers as text": ("1", "1.0", "01"),
    "large numbers as text": (str(_TWO_53), str(_TWO_53 + 1)),
    "texts that mean gaps": ("NA", "nan", "None"),
    "truths as text": ("True", "true"),
    "brackets": ("a[T.b]", "a]"),
    "long texts": ("x" * 5000 + "a", "x" * 5000 + "b"),
    "right to left": ("\u05d0", "\u202ea"),
    "control characters": ("\x1b[31m", "\x07"),
}
_MIXED = {
    "truths and numbers": (True, 1, 0),
    "numbers and their text": (1, "1"),
    "truths and their text": (True, "True"),
    "text and float": ("a", 0.5),
    "beyond 64 bits": (2**70, 2**70 + 1),
    "beyond 64 bits and small": (2**70, 1),
    "whole and float of one size": (_TWO_53 + 1, 2.0**53),
    "whole and broken": (3, 0.5),
    "digits by the thousand": (10**5000, 10**5000 + 1),
    "complex": (1 + 2j, 1 - 2j),
    "complex without imaginary part": (1 + 0j, 2 + 0j),
    "bytes": (b"a", b"b"),
    "decimals": (decimal.Decimal("0.1"), decimal.Decimal("0.2")),
    "decimals that differ late": (
        decimal.Decimal("0.1"),
        decimal.Decimal("0.10000000000000000000001"),
    ),
    "fractions": (fractions.Fraction(1, 3), fractions.Fraction(2, 3)),
    "dates": (_DAY, _DAY + dt.timedelta(1)),
    "moments": (_MOMENT, _MOMENT + dt.timedelta(1)),
    "times": (dt.time(1), dt.time(2)),
    "durations": (dt.timedelta(1), dt.timedelta(2)),
    "tuples": ((1, 2), (1, 3)),
    "intervals": (pd.Interval(0, 1), pd.Interval(1, 2)),
    "periods": (pd.Period("2020-01", "M"), pd.Period("2020-02", "M")),
    "functions": (len, print),
    "classes": (int, str),
}
# What has no hash, and so no place among labels.
_NO_LABELS = {
    "lists": ([1], [2]),
    "lists that differ in length": ([1], [1, 2]),
    "dictionaries": ({"a": 1}, {"a": 2}),
    "sets": ({1}, {2}),
    "arrays": (np.array([1, 2]), np.array([1, 3])),
    "frames": (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
    "series": (pd.Series([1]), pd.Series([2])),
    "hostile objects": (Hostile(), Hostile()),
}
_GAPS: dict[str, list[Any]] = {
    "nan": [0.5, 1.5, float("nan")],
    "None among numbers": [0.5, 1.5, None],
    "None among texts": ["a", "b", None],
    "NA among numbers": [1, 2, pd.NA],
    "NA among texts": ["a", "b", pd.NA],
    "NaT": [pd.Timestamp("2020"), pd.Timestamp("2021"), pd.NaT],
    "nothing but nan": [float("nan")],
    "nothing but None": [None],
    "nothing but NA": [pd.NA],
    "decimal NaN": [decimal.Decimal("1"), decimal.Decimal("2"), decimal.Decimal("NaN")],
}
_INFINITE = {
    "inf": (1.0, 2.0, np.inf),
    "minus inf": (1.0, 2.0, -np.inf),
    "inf as decimal": (decimal.Decimal(1), decimal.Decimal("Infinity")),
}


def ordinary() -> dict[str, Column]:
    """The columns that others are storages of, as plain lists."""
    return {name: Column(name, values, values) for name, values in ORDINARY.items()}


def columns() -> Iterator[Column]:
    """All columns; what the installed libraries cannot store is left out."""
    for content, values in ORDINARY.items():
        for storage, store in _ALONE.items():
            yield from _stored(f"{content} as {storage}", store, values, like=content, alone=True)
        for storage, store in {**_ANY_STORAGE, **_STORAGE[content]}.items():
            # Of objects and categories, numbers are not asked for: they may be refused.
            loose = content != "labels" and storage in _LOOSE
            like = None if loose else content
            yield from _stored(f"{content} as {storage}", store, values, like=like)
    for name, few in _NEAR.items():
        values = _pattern(*few)
        for storage in ("i8", ">i8", "object", "Int64", "category", "Sparse[int64]"):
            yield from _stored(f"{name} as {storage}", _pandas_or_numpy(storage), values)
        yield from _stored(f"{name} as arrow", _arrow(pa.int64()), values)
    for name, few in _UNSIGNED.items():
        values = _pattern(*few)
        for storage in ("u8", ">u8", "object", "UInt64", "category"):
            yield from _stored(f"{name} as {storage}", _pandas_or_numpy(storage), values)
        yield from _stored(f"{name} as arrow", _arrow(pa.uint64()), values)
    for name, floats in _INEXACT.items():
        for storage in ("f8", ">f8", "object", "Float64", "category", "g"):
            yield from _stored(f"{name} as {storage}", _pandas_or_numpy(storage), _pattern(*floats))
    yield from _long_doubles()
    for name, texts in _TEXTS.items():
        for storage in ("object", "string[python]", "category"):
            yield from _stored(f"{name} as {storage}", _pandas_or_numpy(storage), _pattern(*texts))
    for name, mixed in _MIXED.items():
        for storage in ("object", "category"):
            yield from _stored(f"{name} as {storage}", _objects(storage), _pattern(*mixed))
    for name, odd in _NO_LABELS.items():
        yield Column(name, _objects("object")(_pattern(*odd)), None)
    for name, gappy in _GAPS.items():
        values = _pattern(*gappy)
        truth = [
            None if value is None or value != value or value is pd.NA else value
            for value in map(_plain_gap, values)
        ]
        yield Column(f"{name} as objects", _objects("object")(values), truth)
        yield from _stored(f"{name} as found", pd.Series, values, truth=truth)
        yield from _stored(f"{name} as category", _pandas("category"), values, truth=truth)
        yield from _stored(f"{name} as nullable", lambda v: pd.array(v), values, truth=truth)
    for name, far in _INFINITE.items():
        for storage in ("f8", "object", "Float64", "category"):
            yield from _stored(f"{name} as {storage}", _pandas_or_numpy(storage), _pattern(*far))
    yield from _of_pandas()
    yield from _shapes()


def _plain_gap(value: Any) -> Any:
    return None if value is pd.NA or value is pd.NaT else value


def _pandas_or_numpy(dtype: str) -> Callable[[list[Any]], Any]:
    if dtype in ("object", "category"):
        return _objects(dtype)
    if dtype[0].isupper() or dtype.startswith("string"):
        return lambda values: pd.Series(pd.array(values, dtype=dtype))
    return lambda values: np.array(values, dtype=dtype)


def _objects(dtype: str) -> Callable[[list[Any]], Any]:
    def store(values: list[Any]) -> pd.Series:
        objects = np.empty(len(values), dtype=object)
        for row, value in enumerate(values):
            objects[row] = value
        return pd.Series(objects, dtype=object).astype(dtype)

    return store


def _stored(
    name: str,
    store: Callable[[list[Any]], Any],
    values: list[Any],
    *,
    truth: list[Any] | None = None,
    like: str | None = None,
    alone: bool = False,
) -> Iterator[Column]:
    try:
        stored = store(values)
    except Exception:  # another version of a library may have no such storage
        return
    yield Column(name, stored, values if truth is None else truth, like, alone)


def _long_doubles() -> Iterator[Column]:
    """More digits, and a wider range, than double precision has."""
    one, least = np.longdouble(1), np.finfo(np.longdouble).eps
    if least < np.finfo(np.float64).eps:
        near = _pattern(one, one + least)
        yield Column("long doubles that differ late", np.array(near), near)
        huge = np.longdouble(10) ** 4000
        for name, few in {"beyond": (huge, 2 * huge), "below": (one / huge, 2 / huge)}.items():
            values = _pattern(*few)
            yield Column(f"long doubles {name} double", np.array(values), values)


def _of_pandas() -> Iterator[Column]:
    """Dtypes that hold neither numbers nor labels, or levels of their own."""
    days = pd.date_range("2020-01-01", periods=N)
    few = pd.Series(days).dt.month
    for name, values in {
        "datetime64": days,
        "datetime64 with zone": days.tz_localize("Europe/Berlin"),
        "datetime64 in seconds": days.to_numpy().astype("M8[s]"),
        "timedelta64": days - days[0],
        "periods by day": days.to_period("D"),
        "intervals by index": pd.interval_range(0, N),
    }.items():
        yield Column(name, pd.Series(values), list(pd.Series(values)))
        yield Column(f"{name} as category", pd.Series(values).astype("category"), list(values))
    yield Column("months as category", few.astype("category"), few.tolist())
    yield Column("category without a value", pd.Series(pd.Categorical([None] * N)), [None] * N)
    yield Column("a single category", pd.Series(pd.Categorical(["a"] * N)), ["a"] * N)
    yield Column("constant", np.ones(N), [1.0] * N)
    yield Column("constant text", np.array(["a"] * N), ["a"] * N)
    names = [f"unit {i}" for i in range(N)]
    yield Column("a text for every row", names, names)
    for name, kind in {
        "binary": pa.binary(),
        "list": pa.list_(pa.int64()),
        "struct": pa.struct([("a", pa.int64())]),
        "timestamp": pa.timestamp("us"),
        "duration": pa.duration("us"),
        "null": pa.null(),
        "date": pa.date32(),
        "time": pa.time64("us"),
    }.items():
        content = {
            "binary": [b"a", b"b"],
            "list": [[1], [2, 3]],
            "struct": [{"a": 1}, {"a": 2}],
            "null": [None, None],
            "date": [_DAY, _DAY + dt.timedelta(1)],
            "time": [dt.time(1), dt.time(2)],
        }.get(name, [1, 2])
        values = _pattern(*content)
        truth = None if name in ("list", "struct") else values
        if name in ("timestamp", "duration"):
            truth = pd.Series(pd.array(pa.array(values, kind), dtype=pd.ArrowDtype(kind))).tolist()
        yield from _stored(f"arrow {name}", _arrow(kind), values, truth=truth or [None] * N)
    close = [decimal.Decimal("0.1"), decimal.Decimal("0.10000000000000000000001")]
    yield from _stored(
        "arrow decimals that differ late", _arrow(pa.decimal128(38, 30)), _pattern(*close)
    )


def _shapes() -> Iterator[Column]:
    """What is no column at all: other lengths, other shapes, no values."""
    floats = ORDINARY["floats"]
    for name, values in {
        "one value less": floats[:-1],
        "one value more": [*floats, 1.0],
        "no values": [],
        "one value": [1.0],
        "a number": 3.0,
        "an array of no dimension": np.array(3.0),
        "two columns": np.array([floats, floats]).T,
        "a row": np.array(floats)[None, :],
        "three dimensions": np.array(floats)[:, None, None],
        "ragged": [[1.0], [1.0, 2.0]] * (N // 2),
        "ragged arrays": [np.ones(2), np.ones(3)] * (N // 2),
        "a frame of two columns": pd.DataFrame({"a": floats, "b": floats}),
        "a set": set(floats),
        "a dictionary": dict(enumerate(floats)),
        "a generator": (value for value in floats),
        "a mapping of one column": {"a": floats},
        "structured": np.zeros(N, dtype=[("a", "f8"), ("b", "i4")]),
        "records": np.rec.array([(1.0, 2)] * N, dtype=[("a", "f8"), ("b", "i4")]),
        "raw bytes": np.zeros(N, dtype="V8"),
        "masked": np.ma.MaskedArray(floats, mask=[True] + [False] * (N - 1)),
        "a masked array, all of it": np.ma.MaskedArray(floats, mask=True),
        "a class": float,
        "a function": len,
        "bytes of the right length": bytes(range(N)),
        "text of the right length": "a" * N,
        "an iterator": iter(floats),
        "a view of keys": dict.fromkeys(floats).keys(),
        "an ellipsis": ...,
        "hostile": Hostile(),
    }.items():
        yield Column(name, values, None, alone=True)
