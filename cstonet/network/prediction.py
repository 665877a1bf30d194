"""Predictions as arrays with one row per unit: averaged, and put together from parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
    arrays = [part.arrays() for part in parts]

    def mean(name: str) -> NDArray[np.float64]:
        stacked = [one[name] for one in arrays]
        if weights is None:
            return np.asarray(np.mean(stacked, axis=0))
        return np.asarray(np.einsum("mk,km...->m...", weights, np.stack(stacked)))

    return type(parts[0])(**{name: mean(name) for name in arrays[0]})


def joined(parts: Sequence[P], order: NDArray[np.int64]) -> P:
    """Predictions of different rows, one after the other, brought into order."""
    arrays = [part.arrays() for part in parts]
    return type(parts[0])(
        **{name: np.concatenate([one[name] for one in arrays])[order] for name in arrays[0]}
    )


def with_rows(whole: P, rows: NDArray[np.int64], part: P) -> P:
    """The same prediction with other values in some rows."""
    changed = {name: array.copy() for name, array in whole.arrays().items()}
    for name, array in part.arrays().items():
        changed[name][rows] = array
    return type(whole)(**changed)
