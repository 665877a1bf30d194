"""Units of a variable: what its mean and its spread are, and how to do without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Columns whose largest size is beyond 2^±300 are multiplied by a power of two before anything is
# squared, which changes no digit.
_EXTREME = 300
# Powers of two that are numbers themselves, and whose inverse is.
_LARGEST_POWER = 1000
# Values that differ by less than this share of themselves are counted from the smallest: the
# difference is exact, while sums of the values would lose it.
_LEVEL = 1e-6
# A spread of so much of the level is that of rounding errors: about twenty values side by side.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Units:
    """Location and scale of an outcome, a dose or a mediator; (0, 1) for a binary one.

    Counts have no location: in units of their mean, the log of what is expected is about zero.
    """

    center: float
    scale: float

    @classmethod
    def of(
        cls, values: NDArray[np.float64], family: str, weights: NDArray[np.float64] | None = None
    ) -> Units:
        """The units in which a network works on these values, shape (n,)."""
        if family == "binomial":
            return cls(0.0, 1.0)
        mean, spread = careful_moments(values[:, None], weights)
        if family == "poisson":
            return cls(0.0, float(mean[0]))
        return cls(float(mean[0]), float(spread[0]))

    def standardise(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values to network units."""
        return (values - self.center) / self.scale

    def restore(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Network units to the variable's."""
        return values * self.scale + self.center


@dataclass(frozen=True, slots=True, eq=False)
class Footing:
    """From where k columns are looked at, so that squares and sums of them keep their digits.

    Attributes
    ----------
    factor : (k,)
        Powers of two, one for numbers of ordinary size.
    start : (k,)
        What is taken from the multiplied values: zero, unless these hardly differ.
    """

    factor: NDArray[np.float64]
    start: NDArray[np.float64]

    @classmethod
    def of(cls, low: NDArray[np.float64], high: NDArray[np.float64]) -> Footing:
        """That of columns with these smallest and largest values, (k,) each."""
        size = np.maximum(np.abs(low), np.abs(high))
        factor = factor_of(size)
        low, high, size = low * factor, high * factor, size * factor
        differ = high - low
        return cls(factor, np.where((differ > 0) & (differ <= _LEVEL * size), low, 0.0))

    @property
    def special(self) -> NDArray[np.intp]:
        """Columns that are not looked at as they are, by number."""
        return np.flatnonzero((self.factor != 1) | (self.start != 0))

    def of_columns(self, columns: NDArray[np.intp] | slice) -> Footing:
        """That of some of the columns."""
        return Footing(self.factor[columns], self.start[columns])

    def seen(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows (m, k) as they are looked at."""
        return np.asarray(x * self.factor - self.start)

    def place(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means (k,) of what was seen, in the units of the columns."""
        return np.asarray((mean + self.start) / self.factor)

    def size(self, spread: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spreads (k,) of what was seen, in the units of the columns."""
        return np.asarray(spread / self.factor)


def factor_of(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Powers of two that make extreme sizes (k,) ordinary; one for those that are."""
    exponent = np.frexp(size)[1]
    extreme = (np.abs(exponent) > _EXTREME) & (size > 0)
    power = np.clip(-exponent, -_LARGEST_POWER, _LARGEST_POWER)
    return np.asarray(np.ldexp(1.0, np.where(extreme, power, 0)))


def weighted_moments(
    x: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations of columns (n, k) of ordinary size, each shape (k,)."""
    mean = np.average(x, axis=0, weights=weights)
    return mean, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights))


def careful_moments(
    x: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations of columns (n, k) of any size and level, each shape (k,)."""
    own = x if weights is None else x[weights > 0]
    footing = Footing.of(own.min(axis=0), own.max(axis=0))
    mean, spread = weighted_moments(footing.seen(x), weights)
    return footing.place(mean), footing.size(spread)


def beyond_rounding(mean: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether columns (k,) differ by more than rounding errors from their mean."""
    return np.asarray(spread > _ROUNDING * np.abs(mean))


def varies(mean: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether columns (k,) differ by more than that, and their spread has an inverse."""
    return beyond_rounding(mean, spread) & (spread >= np.finfo(np.float64).tiny)
