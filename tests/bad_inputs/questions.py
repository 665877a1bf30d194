"""New units, and questions after the fit: every column of them, every argument of each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

import cstonet as cs
from tests.bad_inputs.columns import Column, N, columns
from tests.bad_inputs.outcome import Case
from tests.bad_inputs.roles import base, floats_of
from tests.bad_inputs.values import VALUES
from tests.conftest import options_for_quick_fits

_LEVELS = ("low", "middle", "high")
_LARGE = (2**53, 2**53 + 1, 2**53 + 2)
_FORMULAS = {
    "arms": "y ~ treat | x1 + x2 + g + large",
    "levels": "y ~ large | x1 + x2 + treat",
    "doses": "y ~ dose | x1 + x2 + g",
    "mediation": "y ~ treat | x1 + x2 | m",
}
# What asks for more fits, writes files, or draws: `certify` and others have tests of their own.
_ELSEWHERE = ("certify", "placebo", "sensitivity", "report", "save", "heterogeneity")


def cases() -> Iterator[Case]:
    """New data of every kind, then every argument of every question."""
    for column in columns():
        if column.alone:
            continue
        run = partial(_predicted, "arms", "x1", column.values)
        yield Case("new data: a number", column.name, run, ("x1",), _right_number(column))
        run = partial(_predicted, "arms", "g", column.values)
        yield Case("new data: a level", column.name, run, ("'g'", " g "), _right_level(column))
        run = partial(_predicted, "arms", "large", column.values)
        says = ("large",)
        yield Case("new data: a large level", column.name, run, says, _right_large(column))
    for kind in _FORMULAS:
        for name, value in VALUES.items():
            if value is not None:
                run = partial(_asked, kind, "predictions", {"data": value})
                yield Case("new data", f"{kind}: {name}", run, ("data", "x1", "column", "no path"))
    for kind in ("arms", "doses", "mediation"):
        yield from _of_methods(kind)
    for name, value in VALUES.items():
        yield Case("compare and load", f"load: {name}", partial(cs.load, value), _PATH)
        run = partial(_compared, value)
        yield Case("compare and load", f"compare: {name}", run, ("compare", "results", "fit"))


_PATH = ("path", "file", "no such", "cannot be read", "long")


def _of_methods(kind: str) -> Iterator[Case]:
    owner = {"arms": cs.ArmsResults, "doses": cs.DoseResults}.get(kind, cs.MediationResults)
    for method, function in inspect.getmembers(owner, callable):
        if method.startswith("_") or method in (*_ELSEWHERE, "summary_parts", "ingredients"):
            continue
        for argument in inspect.signature(function).parameters:
            if argument in ("self", "data"):
                continue
            for name, value in VALUES.items():
                run = partial(_asked, kind, method, _NEEDED.get(method, {}) | {argument: value})
                says = (argument, method, *_OTHER_WORDS.get(argument, ()), str(argument))
                # Whether an answer is right is for the tests of the question.
                yield Case("question", f"{kind}.{method}({argument}={name})", run, says, _answered)


_NEEDED = {"gate": {"by": "g"}, "effect_along": {"by": "x1"}, "projection": {"terms": "x1"}}
_OTHER_WORDS = {
    "r_matrix": ("hypoth", "restriction", "matrix"),
    "by": ("column", "group"),
    "name": ("effect", "params"),
    "where": ("column", "condition", "units"),
    "terms": ("term", "column", "expression"),
    "at": ("knots", "values"),
    "grid": ("dose",),
    "covariates": ("column",),
    "contrast": ("level", "treatment"),
    "cost": ("level",),
    "intervals": ("level", "limits"),
}


def _answered(answer: Any) -> bool:
    return answer is not None


@cache
def _rows() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    frame = pd.concat([base()] * 3, ignore_index=True)
    n = len(frame)
    frame = frame.assign(
        x1=rng.normal(size=n),
        x2=rng.normal(size=n),
        g=rng.permutation(np.resize(_LEVELS, n)),
        large=pd.Categorical(rng.permutation(np.resize(_LARGE, n)), _LARGE),
        dose=rng.normal(size=n),
        m=rng.normal(size=n),
        treat=rng.permutation(np.arange(n) % 2),
    )
    effect = frame["treat"] + (frame["large"].cat.codes == 1) + (frame["g"] == "low")
    return frame.assign(y=effect + frame["x1"] + rng.normal(size=n))


@cache
def fitted(kind: str) -> Any:
    """A quick fit of each kind."""
    searches = {} if kind == "mediation" else {"search": None, "backbone": False}
    options = options_for_quick_fits(epochs=3, starts=1, **searches)
    frame = _rows()
    if kind == "levels":
        frame = frame.assign(large=frame["large"].astype(np.int64))
    return cs.fit(_FORMULAS[kind], frame, seed=1, n_jobs=1, options=options, progress=False)


def _new_rows() -> pd.DataFrame:
    return _rows().head(N).reset_index(drop=True)


def _predicted(kind: str, name: str, values: Any) -> pd.DataFrame:
    new = _new_rows()
    new[name] = pd.Series(values).reset_index(drop=True)
    frame: pd.DataFrame = fitted(kind).predictions(new)
    return frame


def _asked(kind: str, method: str, arguments: dict[str, Any]) -> Any:
    return getattr(fitted(kind), method)(**arguments)


def _compared(other: Any) -> Any:
    return cs.compare({"one": fitted("arms"), "other": other})


def _same(name: str, values: list[Any], found: pd.DataFrame) -> bool:
    expected = _predicted("arms", name, pd.Series(values, dtype=object).infer_objects())
    return bool(np.array_equal(found.to_numpy(), expected.to_numpy()))


def _right_number(column: Column) -> Any:
    truth = column.truth
    floats = None if truth is None or any(v is None for v in truth) else floats_of(truth)
    return None if floats is None else partial(_same, "x1", floats.tolist())


def _right_level(column: Column) -> Any:
    if not _among(column, _LEVELS):
        return None
    return partial(_same, "g", column.truth)


def _right_large(column: Column) -> Any:
    if not _among(column, _LARGE):
        return None
    return partial(_same_large, column.truth)


def _among(column: Column, levels: tuple[Any, ...]) -> bool:
    """Whether every value is a level: a float that is one counts, a text that reads so does not."""
    values = None if column.truth is None else column.truth
    hashable = values is not None and all(getattr(v, "__hash__", None) for v in values)
    try:
        return hashable and set(values or ()) <= set(levels)
    except Exception:  # the values' own
        return False


def _same_large(values: list[int], found: pd.DataFrame) -> bool:
    new = _new_rows().assign(large=pd.Series(values, dtype=object))
    expected = fitted("arms").predictions(new)
    return bool(np.array_equal(found.to_numpy(), expected.to_numpy()))
