"""Predictions as arrays with one row per unit: averaged, and put together from parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

P = TypeVar("P", bound="RowArrays")


@dataclass(frozen=True, slots=True, eq=False)
class RowArrays:
    """Arrays that share their first dimension, the units. Children are dataclasses of such."""

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def averaged(parts: Sequence[P], weights: NDArray[np.float64] | None = None) -> P:
    """The average of K predictions of the same m rows; weights (m, K) sum to one in each row."""
    if len(parts) == 1 and weights is None:
        return parts[0]
    arrays = [part.arrays() for part in parts]

    def mean(name: str) -> NDArray[np.float64]:
        if weights is None:
            total = np.array(arrays[0][name], dtype=np.float64)
            for one in arrays[1:]:
                total += one[name]
            total /= len(arrays)
            return total
        stacked = np.stack([one[name] for one in arrays])
        return np.asarray(np.einsum("mk,km...->m...", weights, stacked))

    return type(parts[0])(**{name: mean(name) for name in arrays[0]})


def put_together(parts: Iterable[tuple[NDArray[np.int64], P]], n: int) -> P:
    """The prediction of n rows from those of some rows each, taken one after the other.

    Parameters
    ----------
    parts
        Rows, each of 0, …, n - 1 in one of them, and their prediction. There must be one at least.
    n
        Number of rows.
    """
    whole: P | None = None
    for rows, part in parts:
        if whole is None:
            whole = type(part)(
                **{
                    name: np.empty((n, *array.shape[1:]), array.dtype)
                    for name, array in part.arrays().items()
                }
            )
        for name, array in whole.arrays().items():
            array[rows] = getattr(part, name)
    if whole is None:
        raise ValueError("a prediction needs at least one part")
    return whole


def with_rows(whole: P, rows: NDArray[np.int64], part: P) -> P:
    """The same prediction with other values in some rows."""
    changed = {name: array.copy() for name, array in whole.arrays().items()}
    for name, array in part.arrays().items():
        changed[name][rows] = array
    return type(whole)(**changed)
