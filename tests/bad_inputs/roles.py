"""Every column in every part of a model, in a frame and as an array, at the fit and in new data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

import cstonet as cs
from cstonet.data.design import AnyDesign
from cstonet.errors import CStoNetError
from tests.bad_inputs.columns import Column, N, columns, ordinary
from tests.bad_inputs.outcome import Case

NAME = "zz"
FORMULAS = {
    "outcome": "zz ~ treat | x1 + x2",
    "treatment": "y ~ zz | x1 + x2",
    "covariate": "y ~ treat | x1 + x2 + zz",
    "level": "y ~ treat | x1 + x2 + C(zz)",
    "number": "y ~ treat | x1 + x2 + I(zz * 1)",
    "weights": "y ~ treat | x1 + x2",
    "cluster": "y ~ treat | x1 + x2",
    "mediator": "y ~ treat | x1 + x2 | zz",
}
ARGUMENTS = {"outcome": "y", "treatment": "treat", "covariate": "X"}


def cases() -> Iterator[Case]:
    """A case for each column and each part of a model that it could be."""
    for column in columns():
        if not column.alone:
            for role in FORMULAS:
                says = () if _must_work(role, column) else (NAME,)
                run = partial(in_frame, role, column.values)
                yield Case(f"frame: {role}", column.name, run, says, _right(role, column))
        for role in ("outcome", "treatment", "weights", "cluster", "mediator"):
            argument = ARGUMENTS.get(role, "mediators" if role == "mediator" else role)
            says = (argument, "m1", NAME)
            if not column.alone and _must_work(role, column):
                says = ()
            run = partial(as_argument, role, column.values)
            yield Case(f"array: {role}", column.name, run, says, _right(role, column))


def base() -> pd.DataFrame:
    """Rows of an ordinary model."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["y", "x1", "x2"])
    return frame.assign(treat=rng.permutation(np.arange(N) % 2))


def in_frame(role: str, values: Any) -> AnyDesign:
    """The design of a model in which a column of the frame has a part."""
    frame = base()
    frame[NAME] = pd.Series(values).reset_index(drop=True)
    aside = {role: NAME} if role in ("weights", "cluster") else {}
    return cs.CausalStoNet.from_formula(FORMULAS[role], frame, **aside).design


def as_argument(role: str, values: Any) -> AnyDesign:
    """The design of a model of arrays, one of which is given."""
    frame = base()
    given: dict[str, Any] = {"y": frame["y"].to_numpy(), "treat": frame["treat"].to_numpy()}
    given["X"] = frame[["x1", "x2"]].to_numpy()
    given[ARGUMENTS.get(role, "mediators" if role == "mediator" else role)] = values
    return cs.CausalStoNet(**given).design


@cache
def _works(role: str, content: str) -> bool:
    """Whether an ordinary column is accepted in a part of a model."""
    try:
        in_frame(role, ordinary()[content].values)
    except CStoNetError:
        return False
    return True


def _must_work(role: str, column: Column) -> bool:
    # Arithmetic with labels is up to the library that holds them.
    if column.like is None or (role == "number" and column.like in ("labels", "booleans")):
        return False
    return _works(role, column.like)


def _right(role: str, column: Column) -> Callable[[AnyDesign], bool] | None:
    """What an answer must be, from what the values say; None: it must be refused."""
    truth = column.truth
    if truth is None or any(value is None for value in truth):
        return None
    if role in ("outcome", "weights") and not all(map(_is_number, truth)):
        return None
    return partial(_SAME[role], truth)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) or type(value).__name__ == "Decimal"


def floats_of(truth: list[Any]) -> np.ndarray | None:
    """The values as double precision, if they are numbers that fit."""
    if not all(map(_is_number, truth)):
        return None
    try:
        floats = np.array([float(value) for value in truth])
    except OverflowError:
        return None
    return floats if np.isfinite(floats).all() else None


def _same_outcome(truth: list[Any], design: AnyDesign) -> bool:
    floats = floats_of(truth)
    return floats is not None and bool(np.array_equal(design.y, floats))


def _same_weights(truth: list[Any], design: AnyDesign) -> bool:
    floats = floats_of(truth)
    if floats is None or design.weights is None:
        return False
    scaled = floats / floats.max()
    return bool(np.allclose(design.weights, scaled / scaled.mean(), rtol=1e-12))


def _same_treatment(truth: list[Any], design: AnyDesign) -> bool:
    treatment: Any = design.treatment
    if treatment.kind == "continuous":
        return bool(np.array_equal(treatment.values, floats_of(truth)))
    named = [treatment.levels[code] for code in treatment.codes]
    return same_groups(truth, treatment.codes) and all(map(_alike, named, truth))


def _alike(level: object, value: object) -> bool:
    """Whether a level is the value, not one that was made of it."""
    return bool(level == value) or str(level) == str(value)


def _same_clusters(truth: list[Any], design: AnyDesign) -> bool:
    return design.clusters is not None and same_groups(truth, design.clusters)


def _same_covariate(truth: list[Any], design: AnyDesign) -> bool:
    own = [j for j, name in enumerate(design.covariates) if NAME in name]
    X: Any = design.X
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)[:, own]
    return _same_columns(truth, X)


def _same_mediator(truth: list[Any], design: AnyDesign) -> bool:
    values = getattr(design, "mediators").values  # noqa: B009 — of a mediation alone
    return _same_columns(truth, values)


def _same_columns(truth: list[Any], X: np.ndarray) -> bool:
    """Whether columns are the numbers, or tell the levels apart."""
    floats = floats_of(truth)
    if floats is not None and X.shape[1] == 1:
        as_stored = floats.astype(X.dtype)
        if np.array_equal(X[:, 0], as_stored) and math.isfinite(float(np.abs(as_stored).max())):
            return True
    return same_groups(truth, [tuple(row) for row in X.tolist()])


def same_groups(truth: list[Any], codes: Any) -> bool:
    """Whether rows share a code exactly if they share a value."""
    pairs = set(zip(map(_hashable, truth), list(codes), strict=True))
    values, groups = {value for value, _ in pairs}, {code for _, code in pairs}
    return len(pairs) == len(values) == len(groups)


def _hashable(value: Any) -> Any:
    return value if value.__hash__ else repr(value)


_SAME: dict[str, Callable[[list[Any], Any], bool]] = {
    "outcome": _same_outcome,
    "treatment": _same_treatment,
    "covariate": _same_covariate,
    "level": _same_covariate,
    "number": _same_covariate,
    "weights": _same_weights,
    "cluster": _same_clusters,
    "mediator": _same_mediator,
}
