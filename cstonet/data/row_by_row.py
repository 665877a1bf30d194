"""Whether a term gives a row the same value in any company, as predictions of new units need.

``I(x1 - x1.mean())`` does not: a unit by itself would always be the average one. Patsy remembers
what its own transforms learned (``center(x1)``); what any other code makes of a whole column cannot
be known, so it is tried: some rows by themselves, and some together in another order.

Plain computations (:mod:`cstonet.data.plain_code`) take each row by itself or remember, by
construction, and are not tried.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import patsy
from numpy.typing import NDArray

from cstonet.data.patsy_json import is_plain
from cstonet.errors import FormulaError

Values: TypeAlias = NDArray[np.float64]

_RAISE = patsy.NAAction(on_NA="raise")
# NumPy promises its functions to a few units in the last place, 4 at most, for any layout of their
# argument. A term nests a handful of these, and may subtract: 2**10 units cover both, and are
# still only the 10^-13th part of the largest value. A mean over rows differs by far more.
_UNITS_IN_LAST_PLACE = 2**10
# Telling rows that are tried by themselves, before all of them together.
_ALONE = 3


def check_rows(
    info: patsy.DesignInfo,
    data: Mapping[str, pd.Series],
    used: Mapping[Any, Sequence[str]],
    n: int,
) -> None:
    """Refuse terms that give a row another value by itself than among all rows.

    Parameters
    ----------
    info : patsy.DesignInfo
        What patsy learned from these data.
    data : mapping
        Columns by name.
    used : mapping
        Per factor: the columns it is made of.
    n : int
        Number of rows.

    Raises
    ------
    FormulaError
        Naming the term, and transforms that remember.
    """
    for factor, own in info.factor_infos.items():
        if factor.code in data or is_plain(own, used[factor]):
            continue
        inputs = {name: data[name] for name in used[factor]}
        if not _by_rows(own, inputs, n):
            name = next(iter(inputs), "x")
            raise FormulaError(
                f"The term {factor.code!r} gives a row another value by itself than among all "
                "rows: it uses the whole column, or draws at random, so that it would mean "
                "something else for new units. Use a transform that remembers the data of the "
                f"fit, such as center({name}), standardize({name}), bs({name}, df=4) or "
                f"cr({name}, df=4), or compute the term as a column of the data before the fit."
            )


def _by_rows(own: patsy.FactorInfo, inputs: Mapping[str, pd.Series], n: int) -> bool:
    """Whether some rows, by themselves and together, have the values that they have among all."""
    design = _design_of(own)

    def values(rows: NDArray[np.int64] | slice) -> Values:
        some = {name: column.iloc[rows] for name, column in inputs.items()}
        (matrix,) = patsy.build_design_matrices([design], some, _RAISE)
        return np.asarray(matrix, dtype=np.float64)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already, of all rows
        whole = values(slice(None))
        if len(whole) != n:
            return True  # one value for all rows, or another number: refused when X is built
        finite = np.isfinite(whole)
        largest = np.max(np.abs(whole), axis=0, initial=0.0, where=finite)
        tolerance = _precision(inputs.values()) * largest
        rows = _telling_rows(whole)
        for some in (*([row] for row in rows[:_ALONE]), rows):
            try:
                again = values(np.array(some, dtype=np.int64))
            except MemoryError:
                raise
            except Exception:
                return False  # code of a user's, which may say no in any way
            if again.shape != whole[some].shape or not _same(again, whole[some], tolerance):
                return False
    return True


def _telling_rows(values: Values) -> list[int]:
    """Rows of (n, k) values that are unlike each other: extremes of columns, ends; not in order."""
    if values.size == 0:
        return []
    n, first, last = len(values), values[:, 0], values[:, -1]
    rows = [int(first.argmax()), n - 1, int(first.argmin()), int(last.argmin()), int(last.argmax())]
    return list(dict.fromkeys([*rows, n // 2, 0]))


def _same(one: Values, other: Values, tolerance: Values) -> bool:
    with np.errstate(invalid="ignore"):  # infinities are refused elsewhere
        return bool(np.all((one == other) | (np.abs(one - other) <= tolerance)))


def _precision(columns: Iterable[pd.Series]) -> float:
    """Relative differences that rounding alone may make, in the coarsest of some columns."""
    kinds: list[Any] = [np.dtype(np.float64), *(column.dtype for column in columns)]
    floats = [kind for kind in kinds if isinstance(kind, np.dtype) and kind.kind == "f"]
    return _UNITS_IN_LAST_PLACE * max(float(np.finfo(kind).eps) for kind in floats)


def _design_of(own: patsy.FactorInfo) -> patsy.DesignInfo:
    """A design of one factor alone: its columns, or the number of its level."""
    contrasts, width = {}, own.num_columns
    if own.type == "categorical":
        codes = np.arange(len(own.categories), dtype=np.float64)[:, None]
        contrasts, width = {own.factor: patsy.ContrastMatrix(codes, [""])}, 1
    names = [str(j) for j in range(width)]
    subterm = patsy.SubtermInfo([own.factor], contrasts, width)
    coding = OrderedDict([(patsy.Term([own.factor]), [subterm])])
    return patsy.DesignInfo(names, {own.factor: own}, coding)
