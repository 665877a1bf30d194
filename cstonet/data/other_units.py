"""Variables that hold the numbers of another in other units: affine and monotone copies of it.

Logarithms, other currencies and reversed scales have the order of a variable, or its reverse, and
its ties. A few rows rule out nearly every column, so that wide data cost next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.data.matrix import Rows

FloatArray = NDArray[np.float64]

# Two variables that correlate to this accuracy hold the same numbers on a line.
_SAME = 1e-10
# Rows that rule out nearly every other column, and columns of which they are read together.
_PROBE, _COLUMNS = 64, 2**15
# Rows further from the median than so many times the usual distance are set aside: codes such as
# 99999999 that two variables share make them correlate to any accuracy, nearer values cannot.
_FAR = 1000.0
# A copy may have been rounded to float32, or computed in another order: its values are off by so
# much of themselves, and of their range at most.
_ROUNDING, _OF_RANGE = 4 * float(np.finfo(np.float32).eps), 1e-3
# Share of the steps between different values that a copy has, too: rounding takes some away.
_STEPS = 0.9
# Share of the variance of ranks that a variable explains if it is all but a copy, and rows that
# this is judged by.
_NEARLY_ALL, _RANKED = 0.999, 4096
# Such a variable has the order of the other in rows of the probe that are so many places apart.
_APART = (_PROBE // 8, _PROBE // 2)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Columns that hold the numbers of a variable.

    Attributes
    ----------
    copies : (c,)
        Those that do, by number.
    near : (k,)
        Those that explain nearly all of the variance of its ranks without being copies. Looked for
        only if it has many different values: what agrees with a few in nearly all rows is no
        matter of units.
    """

    copies: NDArray[np.intp]
    near: NDArray[np.intp]


def find_in(others: Rows, one: FloatArray) -> Found:
    """Columns of others (m, k) that hold the numbers of one (m,), which are not all the same.

    Copies correlate with it perfectly, with and without the rows where either is far from all else,
    or are a strictly monotone function of it, rising or falling, up to rounding.
    """
    ranked = _Ranked.of(one)
    few, rises = ranked.probe()
    copies, near = set(_on_a_line(one, others, few)), []
    for j, column in _candidates(others, few, rises):
        if j in copies:
            continue
        if _same_order(column[ranked.order, np.newaxis], ranked.rises)[0]:
            copies.add(j)
        elif ranked.n_values >= _PROBE and _explains_ranks(column, one):
            near.append(j)
    return Found(np.array(sorted(copies), dtype=np.intp), np.array(near, dtype=np.intp))


def copies_of(one: FloatArray, others: Rows) -> NDArray[np.intp]:
    """The columns of others (m, k) that are copies of one (m,), see :func:`find_in`."""
    return find_in(others, one).copies


def log_arrangements(values: FloatArray) -> float:
    """Logarithm of the number of ways in which values (m,) can be dealt to the m rows.

    There are m! / Π m_v! of them, m_v being the rows with value v, and one in which the ranks are
    those of another variable, ties included: that is how likely such a coincidence is where rows
    are exchangeable.
    """
    _, counts = np.unique(values, return_counts=True)
    sizes, times = np.unique(counts, return_counts=True)
    ties = sum(k * math.lgamma(m + 1) for m, k in zip(sizes, times, strict=True))
    return math.lgamma(len(values) + 1) - float(ties)


def not_far(values: FloatArray) -> NDArray[np.bool_]:
    """Rows of the values (n,), not all the same, that are not very far from the others."""
    distance = np.abs(values - np.median(values))
    # Most may be one and the same value: then the others' usual distance from it counts.
    usual = np.median(distance) or np.median(distance[distance > 0])
    return np.asarray(distance <= _FAR * usual)


# Monotone copies ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The order of a variable with m values.

    Attributes
    ----------
    order : (m,)
        Its rows by value.
    rises : (m - 1,)
        Whether the next of these has a larger value.
    """

    order: NDArray[np.intp]
    rises: NDArray[np.bool_]

    @classmethod
    def of(cls, one: FloatArray) -> _Ranked:
        order = np.argsort(one, kind="stable")
        ascending = one[order]
        return cls(order, ascending[1:] > ascending[:-1])

    @property
    def n_values(self) -> int:
        """Number of different values."""
        return int(np.count_nonzero(self.rises)) + 1

    def probe(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """A few rows in order, of as many values as possible, and where they rise."""
        starts = np.r_[0, np.flatnonzero(self.rises) + 1]
        ends = np.r_[starts[1:], len(self.order)]
        few = np.unique(np.linspace(0, len(starts) - 1, _PROBE).astype(np.intp))
        each = -(-_PROBE // len(few))
        places = [np.arange(starts[v], min(starts[v] + each, ends[v])) for v in few]
        chosen = np.concatenate(places)
        value = np.repeat(few, [len(rows) for rows in places])
        return self.order[chosen], np.diff(value) > 0


def _candidates(
    others: Rows, rows: NDArray[np.intp], rises: NDArray[np.bool_]
) -> Iterator[tuple[int, FloatArray]]:
    """Columns whose order on a few rows does not rule them out, with all their values (m,)."""
    many = np.count_nonzero(rises) + 1 >= _PROBE

    def passes(x: FloatArray) -> NDArray[np.bool_]:
        return _same_order(x, rises) | (_about_in_order(x) if many else False)

    for j in _passing(others, rows, passes):
        yield j, _column(others, j)


def _same_order(x: FloatArray, rises: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns (m, k) rise or fall strictly where another variable rises, and only there.

    The rows are in the order of that variable, rises (m - 1,) says where it does.
    """
    x = _within_one(x)
    x = np.where(x[-1] < x[0], -x, x)
    rounding = np.minimum(_ROUNDING * np.abs(x), _OF_RANGE * (x.max(axis=0) - x.min(axis=0)))
    falls = np.maximum.accumulate(x, axis=0) - x > rounding
    starts = np.r_[0, np.flatnonzero(rises) + 1]
    top, low = np.maximum.reduceat(x, starts), np.minimum.reduceat(x, starts)
    tied = (top - low <= rounding[starts]).all(axis=0)
    steps = np.count_nonzero(top[1:] > top[:-1], axis=0)
    return np.asarray(tied & ~falls.any(axis=0) & (steps >= _STEPS * (len(starts) - 1)))


def _about_in_order(x: FloatArray) -> NDArray[np.bool_]:
    """Which columns (m, k) rise or fall over some distance, as those that explain ranks do."""
    up = np.concatenate([np.sign(x[apart:] - x[:-apart]) for apart in _APART])
    one_way = (up >= 0).all(axis=0) | (up <= 0).all(axis=0)
    return np.asarray(one_way & (np.abs(up).mean(axis=0) >= 0.5))


def _explains_ranks(column: FloatArray, one: FloatArray) -> bool:
    """Whether nearly all of the variance of the ranks of one (m,) is that of the column's ranks."""
    rows = np.linspace(0, len(one) - 1, min(len(one), _RANKED)).astype(np.intp)
    return float(np.corrcoef(_ranks(column[rows]), _ranks(one[rows]))[0, 1]) ** 2 > _NEARLY_ALL


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks of values (m,), their mean where values are equal."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[place])


# Affine copies ------------------------------------------------------------------------------------


def _on_a_line(one: FloatArray, others: Rows, few: NDArray[np.intp]) -> Iterator[int]:
    """Columns that correlate with a variable perfectly; a few rows rule out most."""
    near = not_far(one)
    rows = np.flatnonzero(near)
    ends = rows[[np.argmin(one[rows]), np.argmax(one[rows])]]
    few = np.concatenate([ends, few[near[few]]])
    direction = one[few] / np.abs(one[few]).max()
    for j in _passing(others, few, lambda x: _parallel(x, direction)):
        if _same(one, _column(others, j)):
            yield j


def _same(one: FloatArray, other: FloatArray) -> bool:
    """Whether two variables (n,), neither constant, are the same up to units."""
    # Squares of huge numbers would overflow.
    one, other = one / np.abs(one).max(), other / np.abs(other).max()
    near = not_far(one) & not_far(other)
    return _correlate(one, other) and (bool(near.all()) or _correlate(one[near], other[near]))


def _correlate(one: FloatArray, other: FloatArray) -> bool:
    """Whether the correlation is 1 or -1 to the last digits; that with a constant is none."""
    if len(one) == 0:
        return False
    one, other = one - one.mean(), other - other.mean()
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return size > 0 and abs(float(one @ other)) > (1 - _SAME) * size


def _parallel(columns: FloatArray, one: FloatArray) -> NDArray[np.bool_]:
    """Columns (m, k), not constant, that are affine in one (m,) up to float32's rounding."""
    columns = _within_one(columns)
    columns, direction = _within_one(columns - columns[0]), one - one[0]
    size = np.linalg.norm(columns, axis=0) * np.linalg.norm(direction)
    return np.asarray((size > 0) & (np.abs(direction @ columns) >= (1 - 1e-5) * size))


# Columns of others --------------------------------------------------------------------------------


def _passing(
    others: Rows,
    rows: NDArray[np.intp],
    passes: Callable[[FloatArray], NDArray[np.bool_]],
) -> Iterator[int]:
    """Columns of which something holds, (m, k) to (k,), on a few rows."""
    for first in range(0, others.shape[1], _COLUMNS):
        some = others.part(rows, slice(first, min(first + _COLUMNS, others.shape[1])))
        yield from (first + np.flatnonzero(passes(some.astype(np.float64)))).tolist()


def _column(others: Rows, j: int) -> FloatArray:
    """All rows of a column, (m,)."""
    return others.part(slice(None), np.array([j]))[:, 0].astype(np.float64)


def _within_one(columns: FloatArray) -> FloatArray:
    """Columns (m, k) over their largest size: squares and differences of huge ones overflow."""
    largest = np.abs(columns).max(axis=0)
    return np.asarray(columns / np.where(largest > 0, largest, 1.0))
