"""What is given as X, as the data, and as names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse

import cstonet as cs
from cstonet.data.design import AnyDesign
from tests.bad_inputs.columns import N
from tests.bad_inputs.outcome import Case
from tests.bad_inputs.roles import base
from tests.bad_inputs.values import VALUES

# Eighths are exact in half precision.
_X = np.random.default_rng(3).integers(-40, 40, size=(N, 3)) / 8.0
_WHOLE = np.random.default_rng(4).integers(0, 100, size=(N, 3))

_GOOD: dict[str, Any] = {
    **{f"of {code}": _X.astype(code) for code in ("f2", "f4", "f8", ">f2", ">f4", ">f8", "g")},
    **{f"of {code}": _WHOLE.astype(code) for code in ("i1", "u1", ">i2", "i4", ">u8", "u8", "?")},
    "in columns": np.asfortranarray(_X),
    "transposed": np.ascontiguousarray(_X.T).T,
    "strided": np.repeat(np.repeat(_X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": _X[::-1, ::-1][::-1, ::-1],
    "broadcast rows": np.lib.stride_tricks.as_strided(_X, _X.shape, _X.strides, writeable=False),
    "lists": _X.tolist(),
    "tuples": tuple(map(tuple, _X.tolist())),
    "rows of arrays": list(_X),
    "matrix": np.asmatrix(_X),
    "masked without mask": np.ma.MaskedArray(_X),
    "frame": pd.DataFrame(_X, columns=["a", "b", "c"]),
    "frame of numbered columns": pd.DataFrame(_X),
    "frame of big-endian columns": pd.DataFrame(_X.astype(">f8"), columns=["a", "b", "c"]),
    "frame of nullable columns": pd.DataFrame(_X, columns=["a", "b", "c"]).astype("Float64"),
    "frame of arrow columns": pd.DataFrame(_X, columns=["a", "b", "c"]).astype("float64[pyarrow]"),
    "frame of mixed columns": pd.DataFrame(_WHOLE, columns=["a", "b", "c"]).astype(
        {"a": ">i2", "b": "Int16", "c": "f2"}
    ),
    "frame with repeated labels": pd.DataFrame(_X, index=[7] * N, columns=["a", "b", "c"]),
    "frame with labels of NaN": pd.DataFrame(_X, index=[np.nan] * N, columns=["a", "b", "c"]),
    "frame with two-level labels": pd.DataFrame(
        _X, index=pd.MultiIndex.from_arrays([range(N), range(N)]), columns=["a", "b", "c"]
    ),
    "dictionary of columns": {name: _X[:, j] for j, name in enumerate("abc")},
    "polars": pl.DataFrame(_X, schema=["a", "b", "c"]),
    "arrow": pa.table({name: _X[:, j] for j, name in enumerate("abc")}),
    **{
        f"scipy {kind}": getattr(scipy.sparse, f"{kind}_{form}")(_X)
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for form in ("array", "matrix")
    },
    "sparse of float32": scipy.sparse.csr_array(_X.astype("f4")),
    "sparse of whole numbers": scipy.sparse.csc_array(_WHOLE),
    "sparse of truths": scipy.sparse.csc_array(_WHOLE > 50),
    "sparse with entries twice": scipy.sparse.coo_array(
        (np.r_[np.ones(N), np.ones(N)], (np.r_[0:N, 0:N], np.r_[[0] * N, [0] * N])), shape=(N, 2)
    )
    + scipy.sparse.coo_array(np.c_[_X[:, 0], _X[:, 1]]),
}
_BAD: dict[str, Any] = {
    "of complex": _X.astype(complex),
    "of dates": _WHOLE.astype("M8[D]"),
    "of durations": _WHOLE.astype("m8[D]"),
    "of text": _X.astype(str),
    "of bytes": _X.astype("S"),
    "of raw bytes": np.zeros((N, 3), dtype="V8"),
    "structured": np.zeros(N, dtype=[("a", "f8"), ("b", "f8")]),
    "structured in two dimensions": np.zeros((N, 3), dtype=[("a", "f8")]),
    "of lists": np.array([[[1], [1, 2], None]] * N, dtype=object),
    "of None": np.full((N, 3), None),
    "of NaN": np.full((N, 3), np.nan),
    "of infinities": np.full((N, 3), np.inf),
    "of long doubles beyond double": np.full((N, 3), np.longdouble(10) ** 4000),
    "of huge numbers": np.full((N, 3), 10**400, dtype=object),
    "masked": np.ma.MaskedArray(_X, mask=_X > 0),
    "without columns": np.empty((N, 0)),
    "without rows": np.empty((0, 3)),
    "one row less": _X[:-1],
    "one row more": np.vstack([_X, _X[:1]]),
    "one dimension": _X[:, 0],
    "no dimension": np.array(1.0),
    "three dimensions": _X[:, :, None],
    "ragged": [[1.0], [1.0, 2.0]] * (N // 2),
    "ragged in depth": [[[1.0]], [[1.0], [2.0]]] * (N // 2),
    "ragged arrays": [np.ones(2), np.ones(3)] * (N // 2),
    "a frame without columns": pd.DataFrame(index=range(N)),
    "a frame without rows": pd.DataFrame(columns=["a", "b"]),
    "two columns of one name": pd.DataFrame(_X, columns=["a", "a", "b"]),
    "columns that read the same": pd.DataFrame(_X, columns=[1, "1", "b"]),
    "two-level columns": pd.DataFrame(
        _X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    ),
    "a dictionary that is ragged": {"a": _X[:, 0], "b": _X[:-1, 1]},
    "a dictionary of numbers": {"a": 1.0, "b": 2.0},
    "a dictionary of matrices": {"a": _X, "b": _X},
    "sparse of complex": scipy.sparse.csr_array(_X.astype(complex)),
    "sparse with NaN": scipy.sparse.csr_array(np.where(_X > 2, np.nan, _X)),
    "sparse with inf": scipy.sparse.csr_array(np.where(_X > 2, np.inf, _X)),
    "sparse, one row less": scipy.sparse.csr_array(_X[:-1]),
    "sparse of one dimension": scipy.sparse.coo_array(_X[:, 0]),
    "polars with lists": pl.DataFrame({"a": [[1]] * N, "b": _X[:, 0]}),
    "polars with structs": pl.DataFrame({"a": [{"u": 1}] * N, "b": _X[:, 0]}),
    "polars with objects": pl.DataFrame({"a": pl.Series([object()] * N, dtype=pl.Object)}),
    "polars with bytes": pl.DataFrame({"a": [b"1", b"2"] * (N // 2)}),
    "polars with dates": pl.DataFrame({"a": pl.Series(range(N)).cast(pl.Date)}),
    "polars with nothing": pl.DataFrame({"a": [None] * N}),
    "polars, lazily": pl.LazyFrame({"b": _X[:-1, 0]}),
    "a series of polars": pl.Series(_X[:, 0]),
    "arrow with lists": pa.table({"a": [[1]] * N}),
    "arrow with nothing": pa.table({"a": pa.nulls(N)}),
    "arrow with two columns of one name": pa.Table.from_arrays(
        [pa.array(_X[:, 0]), pa.array(_X[:, 1])], names=["a", "a"]
    ),
    "an array of arrow": pa.array(_X[:, 0]),
    "schema of arrow": pa.schema([("a", pa.int64())]),
}
_NAMES: dict[str, Any] = {
    "empty": "",
    "a blank": " ",
    "blanks around": " x ",
    "a newline": "a\nb",
    "a tab": "a\tb",
    "a null character": "a\x00b",
    "a quote": "a'b",
    "two quotes": "a\"b'c",
    "a backslash": "a\\b",
    "brackets": "f(x)[0]{1}",
    "braces of a format": "{x}",
    "a percent sign": "100%s",
    "a dollar sign": "$x$",
    "a plus": "a + b",
    "a tilde": "a ~ b",
    "a bar": "a | b",
    "a colon": "a:b",
    "a dot": ".",
    "a digit": "1",
    "zero": "0",
    "a number": 3,
    "a float": 2.5,
    "nan": float("nan"),
    "None": None,
    "a tuple": ("a", "b"),
    "a truth": True,
    "a date": pd.Timestamp("2020-01-01"),
    "bytes": b"x",
    "a keyword": "class",
    "a builtin": "print",
    "a term": "C(x1)",
    "an intercept": "Intercept",
    "a level": "g[T.b]",
    "greek": "σ²",
    "composed": "\u00e9",
    "not composed": "e\u0301",
    "from right to left": "\u202eabc",
    "an emoji": "\U0001f600",
    "a surrogate": "\ud800",
    "an escape": "\x1b[31mred",
    "long": "x" * 50_000,
    "html": "<script>alert(1)</script>",
    "latex": "\\input{/etc/passwd}",
    "a column of the answer": "ATE",
}


def cases() -> Iterator[Case]:
    """X of every kind, data of every kind, columns of every name."""
    for name, X in _GOOD.items():
        yield Case("X", name, partial(_of_arrays, X), (), partial(_same_X, X))
    for name, X in _BAD.items():
        yield Case("X", name, partial(_of_arrays, X), ("X", "'a'", "x1", "data", "covari", "rows"))
    for name, value in VALUES.items():
        yield Case("X", name, partial(_of_arrays, value), ("X", "data", "rows"))
        yield Case("data", name, partial(_of_data, value), ("data", "no path", "column 'y'"))
        yield Case(
            "names", name, partial(_named, value), ("names", "expected"), _named_right(value)
        )
        yield Case("formula", name, partial(_of_formula, value), ("formula", "Formula"))
    for name, label in _NAMES.items():
        says = ("name", "formula", "column", "covariate")
        yield Case("column name", f"{name} among '.'", partial(_beside, label), (), _kept)
        yield Case("column name", f"{name} in Q()", partial(_quoted, label), says, _kept)
        yield Case("column name", f"{name} twice", partial(_twice, label), ("more than once",))
        yield Case("column name", f"{name} as weights", partial(_weighted, label), says, _has_two)


def _of_arrays(X: Any) -> AnyDesign:
    frame = base()
    return cs.CausalStoNet(frame["y"].to_numpy(), frame["treat"].to_numpy(), X).design


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def _same_X(X: Any, design: AnyDesign) -> bool:
    if type(X) is dict:
        X = np.column_stack(list(X.values()))
    if isinstance(X, pa.Table):
        X = X.to_pandas()
    expected = _dense(X).astype(np.float64)
    return bool(np.array_equal(_dense(design.X).astype(np.float64), expected))


def _of_data(data: Any) -> AnyDesign:
    return cs.CausalStoNet.from_formula("y ~ treat | x1", data).design


def _of_formula(formula: Any) -> AnyDesign:
    return cs.CausalStoNet.from_formula(formula, base()).design


def _named(names: Any) -> AnyDesign:
    frame = base()
    y, treat = frame["y"].to_numpy(), frame["treat"].to_numpy()
    return cs.CausalStoNet(y, treat, _X[:, :2], names=names).design


def _named_right(names: Any) -> Any:
    if names is None:
        return lambda design: design.covariates == ("x1", "x2")
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return lambda design: design.covariates == names
    return None


def _beside(label: Any) -> AnyDesign:
    frame = base()
    frame.columns = pd.Index(["y", label, "x2", "treat"], dtype=object, tupleize_cols=False)
    try:
        str(label).encode()
    except UnicodeEncodeError:  # refused, as it must be
        frame = base()
    return cs.CausalStoNet.from_formula("y ~ treat | .", frame).design


def _kept(design: AnyDesign) -> bool:
    # What only patsy can evaluate comes last.
    found = sorted(map(tuple, np.asarray(design.X).T))
    return found == sorted(map(tuple, base()[["x1", "x2"]].to_numpy().T))


def _quoted(label: Any) -> AnyDesign:
    frame = base()
    frame.columns = pd.Index(["y", label, "x2", "treat"], dtype=object, tupleize_cols=False)
    return cs.CausalStoNet.from_formula(f"y ~ treat | Q({str(label)!r}) + x2", frame).design


def _twice(label: Any) -> AnyDesign:
    frame = base()
    frame.columns = pd.Index(["y", label, label, "treat"], dtype=object, tupleize_cols=False)
    try:
        str(label).encode()
    except UnicodeEncodeError:
        frame.columns = pd.Index(["y", "x", "x", "treat"])
    return cs.CausalStoNet.from_formula("y ~ treat | .", frame).design


def _weighted(label: Any) -> AnyDesign:
    frame = base()
    frame["w"] = np.arange(1.0, N + 1)
    frame.columns = pd.Index([*frame.columns[:-1], label], dtype=object, tupleize_cols=False)
    return cs.CausalStoNet.from_formula("y ~ treat | .", frame, weights=str(label)).design


def _has_two(design: AnyDesign) -> bool:
    return len(design.covariates) == 2 and design.weights is not None
