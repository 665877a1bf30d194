"""Standardisation: the network sees columns of mean zero and variance one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core

# Columns whose moments are computed together: bounds the memory of the float64 temporaries.
_COLUMNS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Scaling:
    """``(x - center) * inverse_scale`` per column, held within ``± limit``.

    Constant columns become zero.
    """

    center: NDArray[np.float64]
    inverse_scale: NDArray[np.float64]
    limit: float

    def dataset(self, X: NDArray[np.floating], pack_bytes: int) -> _core.Dataset:
        """The covariates as the kernel reads them, shape (n, p)."""
        return _core.Dataset(X, self.center, self.inverse_scale, self.limit, pack_bytes)


def column_scaling(X: NDArray[np.floating], limit: float) -> Scaling:
    """Mean and standard deviation of every column of ``X``, shape (n, p), without a copy of it."""
    p = X.shape[1]
    center, inverse_scale = np.empty(p), np.zeros(p)
    for first in range(0, p, _COLUMNS_AT_ONCE):
        block = np.asarray(X[:, first : first + _COLUMNS_AT_ONCE], dtype=np.float64)
        mean = block.mean(axis=0)
        spread = np.sqrt(np.mean((block - mean) ** 2, axis=0))
        center[first : first + block.shape[1]] = mean
        # A column is constant when its spread is rounding error of its level.
        varies = spread > 1e-12 * np.maximum(np.abs(mean), np.finfo(float).tiny)
        np.divide(1.0, spread, out=inverse_scale[first : first + block.shape[1]], where=varies)
    return Scaling(center, inverse_scale, limit)


@dataclass(frozen=True, slots=True)
class OutcomeScale:
    """Location and scale of the outcome; (0, 1) for a binary one."""

    center: float
    scale: float

    @classmethod
    def of(cls, y: NDArray[np.float64], family: str) -> OutcomeScale:
        """The scale the network works on for this outcome, shape (n,)."""
        if family == "binomial":
            return cls(0.0, 1.0)
        return cls(float(np.mean(y)), float(np.std(y)))

    def standardise(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outcome to network units."""
        return (y - self.center) / self.scale

    def restore(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Network units to the outcome's."""
        return mean * self.scale + self.center
