"""Units of a variable: what its mean and its spread are, and how to do without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
        mean, spread = weighted_moments(values[:, None], weights)
        if family == "poisson":
            return cls(0.0, float(mean[0]))
        return cls(float(mean[0]), float(spread[0]))

    def standardise(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values to network units."""
        return (values - self.center) / self.scale

    def restore(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Network units to the variable's."""
        return values * self.scale + self.center


def weighted_moments(
    x: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations of columns (n, k), each shape (k,)."""
    mean = np.average(x, axis=0, weights=weights)
    return mean, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights))
