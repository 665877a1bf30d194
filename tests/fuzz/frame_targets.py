"""Frames of every type: a design, or a named error that a person can use."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from cstonet import CausalStoNet
from cstonet.errors import CStoNetError

from .chance import NUMBERS, TEXTS, often, several
from .targets import as_json

FORMULAS = (
    "y ~ treat | .",
    "y ~ treat | x1",
    "y ~ treat | x1 + x2 + Q('x 1')",
    "y ~ treat | C(x1) + x2:x1",
    "y ~ treat | np.log(x1) + bs(x2, 4)",
    "y ~ treat | . - x1 | x1",
    "y ~ np.exp(treat / 4) | .",
    "np.log(y) ~ treat | .",
)
NAMES = ("x2", "x 1", "z", "treat2", "", "é", "1", "index", "weights", "None", ".")
# Rows of a frame that has any: enough for an analysis, or hardly any.
SIZES = (0, 1, 2, 5, 24, 40)
EXTREMES = (
    0.0,
    -0.0,
    1e-320,
    1e-165,
    1e154,
    1e308,
    -1e308,
    2.0**53 + 2,
    float("inf"),
    float("nan"),
)


def _numbers(dtype: str) -> Callable[[np.random.Generator, int], Any]:
    def draw(rng: np.random.Generator, n: int) -> Any:
        with np.errstate(all="ignore"):
            return (10 * rng.normal(size=n)).astype(dtype)

    return draw


def _objects(*choices: Any) -> Callable[[np.random.Generator, int], Any]:
    def draw(rng: np.random.Generator, n: int) -> Any:
        drawn = np.empty(n, dtype=object)
        for place, choice in enumerate(rng.integers(0, len(choices), n)):
            drawn[place] = choices[choice]
        return drawn

    return draw


def _extension(dtype: str) -> Callable[[np.random.Generator, int], Any]:
    def draw(rng: np.random.Generator, n: int) -> Any:
        values = pd.Series(rng.integers(0, 2, n), dtype=dtype)
        return values.mask(rng.random(n) < 0.1).array

    return draw


def _sparse(rng: np.random.Generator, n: int) -> Any:
    return pd.arrays.SparseArray(rng.integers(0, 2, n).astype(float))


def _moments(kind: str) -> Callable[[np.random.Generator, int], Any]:
    def draw(rng: np.random.Generator, n: int) -> Any:
        days = pd.to_datetime(rng.integers(0, 10**9, n), unit="s")
        return {
            "naive": lambda: days,
            "zoned": lambda: days.tz_localize("UTC"),
            "spans": lambda: days - pd.Timestamp(0),
            "periods": lambda: days.to_period("D"),
        }[kind]()

    return draw


def _categories(ordered: bool) -> Callable[[np.random.Generator, int], Any]:
    def draw(rng: np.random.Generator, n: int) -> Any:
        levels = ["a", "b", "never", "é"]
        return pd.Categorical.from_codes(rng.integers(-1 if ordered else 0, 2, n), levels, ordered)

    return draw


def _intervals(rng: np.random.Generator, n: int) -> Any:
    return pd.arrays.IntervalArray.from_breaks(np.arange(n + 1))


# Every kind of column, by its name in an input.
COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    **{
        dtype: _numbers(dtype)
        for dtype in (
            "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "float32", "float64", "longdouble", "complex64", "complex128", ">f8", ">i4",
        )
    },
    **{dtype: _extension(dtype) for dtype in ("Int64", "UInt8", "boolean", "Float64", "string")},
    "two": lambda rng, n: rng.integers(0, 2, n),
    "truth": lambda rng, n: rng.random(n) < 0.5,
    "constant": lambda rng, n: np.full(n, 3.0),
    "huge": lambda rng, n: rng.integers(2**63 - 9, 2**63 - 1, n),
    "wide": lambda rng, n: np.array([10**30 + k for k in range(n)], dtype=object),
    "extreme": lambda rng, n: rng.choice(EXTREMES, n),
    "tiny": lambda rng, n: 1e-165 * rng.normal(size=n),
    "shifted": lambda rng, n: 1e12 + rng.normal(size=n),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    "missing": lambda rng, n: np.full(n, np.nan),
    "texts": _objects("a", "b"),
    "strange": _objects(*TEXTS),
    "mixed": _objects(1, "1", 1.0, None, pd.NA, True, b"1"),
    "numbers": _objects(*NUMBERS),
    "bytes": _objects(b"a", b"\xff"),
    "decimals": _objects(decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal(3)),
    "dates": _objects(dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
    "nested": _objects([1, 2], (1,), {"a": 1}, np.arange(3)),
    "classes": _objects(int, object(), len),
    "category": _categories(ordered=False),
    "ordered": _categories(ordered=True),
    "sparse": _sparse,
    "intervals": _intervals,
    **{kind: _moments(kind) for kind in ("naive", "zoned", "spans", "periods")},
}  # fmt: skip
INDEXES: dict[str, Callable[[int], Any]] = {
    "range": lambda n: pd.RangeIndex(n),
    "equal": lambda n: pd.Index([7] * n),
    "texts": lambda n: pd.Index([f"row {k}" for k in range(n)]),
    "missing": lambda n: pd.Index([float("nan")] * n),
    "pairs": lambda n: pd.MultiIndex.from_arrays([range(n), ["a"] * n]),
    "moments": lambda n: pd.date_range("2020-01-01", periods=n),
}


class Frames:
    """A frame that is described by JSON, and a formula for it."""

    def draw(self, chance: random.Random) -> bytes:
        kinds, names = list(COLUMNS), list(NAMES)

        def further() -> list[Any]:
            kind, seed = chance.choice(kinds), chance.randrange(2**16)
            if often(chance, 0.9):  # most frames have no name twice
                return [names.pop(chance.randrange(len(names))), kind, seed]
            return [chance.choice((*NAMES, 1, None, 2.5)), kind, seed]

        usual = often(chance, 0.7)
        treatments = ("two", "texts", "float64") if usual else kinds
        first = [
            ["y", "float64" if usual else chance.choice(kinds), 1],
            ["treat", chance.choice(treatments), 2],
            ["x1", chance.choice(kinds), 3],
        ]
        if often(chance, 0.8):
            first += [[name, chance.choice(kinds), 4] for name in ("x2", "x 1")]
            names = names[2:]
        return as_json(
            {
                "rows": chance.choice(SIZES) if often(chance, 0.3) else 40,
                "columns": first + several(chance, further, 4),
                "index": chance.choice(list(INDEXES)),
                "formula": chance.choice(FORMULAS),
                "missing": chance.choice(("raise", "drop", "mar", "mnar")),
                "weights": chance.choice((None,) * 7 + ("x1", "x2", "nowhere")),
                "cluster": chance.choice((None,) * 7 + ("x1", "x2", "nowhere")),
            }
        )

    def run(self, content: bytes) -> str:
        asked = json.loads(content)
        # Made twice, not copied: pandas' copies have other types now and then.
        frame, before = self._frame(asked), self._frame(asked)
        with warnings.catch_warnings():
            # As for all tests: of the package's own code, only its own warnings are expected.
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning, module=r"cstonet\.")
            try:
                CausalStoNet.from_formula(
                    asked["formula"],
                    frame,
                    missing=asked["missing"],
                    weights=asked["weights"],
                    cluster=asked["cluster"],
                )
                outcome = "read"
            except CStoNetError as error:
                outcome = type(error).__name__
        assert _same(frame, before), "the user's frame was changed"
        return outcome

    def _frame(self, asked: dict[str, Any]) -> pd.DataFrame:
        n, columns = asked["rows"], asked["columns"]
        drawn = [COLUMNS[kind](np.random.default_rng(seed), n) for _, kind, seed in columns]
        # Objects stay what they are: pandas would make texts of its own type of them.
        series = [pd.Series(v, dtype=object if v.dtype == object else None) for v in drawn]
        frame = pd.concat(series, axis=1).set_axis([name for name, _, _ in columns], axis=1)
        frame.index = INDEXES[asked["index"]](n)
        return frame

    def close(self) -> None:
        pass


def _same(frame: pd.DataFrame, before: pd.DataFrame) -> bool:
    """Whether nothing of a frame was changed, types and labels included."""
    return (
        frame.dtypes.tolist() == before.dtypes.tolist()
        and list(map(repr, frame.columns)) == list(map(repr, before.columns))
        and all(
            repr(frame.iloc[:, j].tolist()) == repr(before.iloc[:, j].tolist())
            for j in range(frame.shape[1])
        )
    )
