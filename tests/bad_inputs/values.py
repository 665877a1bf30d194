"""Values that are wrong wherever they are given, or nearly everywhere."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
from typing import Any

import numpy as np
import pandas as pd


class Hostile:
    """An object whose every method fails."""

    def _no(self, *_: object) -> Any:
        raise RuntimeError("no such thing")

    __eq__ = __lt__ = __gt__ = __repr__ = __str__ = __hash__ = _no  # type: ignore[assignment]
    __float__ = __int__ = __index__ = __len__ = __bool__ = __iter__ = _no


VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "NumPy's True": np.True_,
    "an empty text": "",
    "a blank": " ",
    "a word": "no such thing",
    "auto": "auto",
    "a number as text": "3",
    "a surrogate": "\ud800",
    "a null character": "\x00",
    "a long text": "x" * 100_000,
    "bytes": b"ATE",
    "zero": 0,
    "minus one": -1,
    "one": 1,
    "two": 2,
    "a half": 0.5,
    "a third": 1 / 3,
    "minus zero": -0.0,
    "a subnormal": 5e-324,
    "huge": 1e308,
    "nan": float("nan"),
    "inf": float("inf"),
    "minus inf": float("-inf"),
    "2**31": 2**31,
    "2**63": 2**63,
    "2**64": 2**64,
    "minus 2**63": -(2**63) - 1,
    "digits by the hundred": 10**400,
    "digits by the thousand": 10**5000,
    "a float of NumPy": np.float64(0.3),
    "half precision": np.float16(0.25),
    "a byte of NumPy": np.int8(1),
    "an array of no dimension": np.array(1),
    "an array": np.array([1.0, 2.0]),
    "an empty array": np.array([]),
    "a matrix": np.eye(2),
    "a series": pd.Series([1, 2]),
    "a frame": pd.DataFrame({"a": [1]}),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "an empty list": [],
    "a list of a number": [1],
    "a list of None": [None],
    "a list of lists": [[1], [2, 3]],
    "a list of a word": ["no such thing"],
    "an empty tuple": (),
    "a tuple of words": ("a", "b"),
    "a tuple of nan": (float("nan"), 0.1),
    "an empty dictionary": {},
    "a dictionary": {"a": 1},
    "a dictionary of lists": {"no such thing": ["neither"]},
    "a set": {1, 2},
    "a range": range(2),
    "complex": 1j,
    "a decimal": decimal.Decimal("0.1"),
    "a decimal NaN": decimal.Decimal("NaN"),
    "a fraction": fractions.Fraction(1, 2),
    "a date": dt.date(2020, 1, 1),
    "a duration": np.timedelta64(1, "D"),
    "a function": len,
    "a class": int,
    "a module": np,
    "an ellipsis": ...,
    "an object": object(),
    "hostile": Hostile(),
}


def same_value(stored: Any, given: Any) -> bool:
    """Whether an option holds what was given: neither a truth value as a number, nor another."""
    if isinstance(given, bool | np.bool_) != isinstance(stored, bool | np.bool_):
        return False
    try:
        if stored in (None, ()) and hasattr(given, "__len__") and not isinstance(given, str):
            return len(given) == 0
        if isinstance(stored, tuple) and not isinstance(given, str | bytes):
            return list(stored) == list(given) or dict(stored) == {
                name: tuple(others) for name, others in dict(given).items()
            }
        return bool(stored == given) or stored == (given,) or bool(float(given) == stored)
    except Exception:  # the value's own
        return stored is given
