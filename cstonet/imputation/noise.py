"""Random numbers for draws of missing covariates: fresh for every row, or shared by all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from cstonet.imputation.regressions import FloatArray


class Noise(Protocol):
    """Random numbers for one variable in some draws of some rows."""

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Standard normal numbers of shape (draws, rows)."""

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Numbers between 0 and 1 of shape (draws, rows)."""


class NoiseSource(Protocol):
    """Where a Gibbs sampler takes its random numbers from."""

    def at(self, variable: int, left: int, draws: slice) -> Noise:
        """Those of a variable, with a number of sweeps left, for some of the draws."""


@dataclass(frozen=True, slots=True)
class FreshNoise:
    """Other numbers for every row, whatever they are for."""

    rng: np.random.Generator

    def at(self, variable: int, left: int, draws: slice) -> FreshNoise:
        """The stream goes on."""
        del variable, left, draws
        return self

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Standard normal numbers of shape (draws, rows)."""
        return self.rng.standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Numbers between 0 and 1 of shape (draws, rows)."""
        return self.rng.random(shape)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """One number per draw, the same in all rows."""

    numbers: FloatArray

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        return np.broadcast_to(ndtri(self.numbers), shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        return np.broadcast_to(self.numbers, shape)


class SharedNoise:
    """The same numbers for all rows, so that the draws for a row depend on it alone.

    Numbers belong to a variable, a draw, and the sweeps that are left. Which other variables are
    missing in other rows, or how many sweeps those need, then makes no difference.

    Parameters
    ----------
    seed
        First words of the seed sequences.
    sweeps, draws
        The most there can be of each.
    """

    def __init__(self, seed: tuple[int, ...], *, sweeps: int, draws: int) -> None:
        self._seed, self._shape = seed, (sweeps, draws)
        self._known: dict[int, FloatArray] = {}

    def at(self, variable: int, left: int, draws: slice) -> Noise:
        """Those of a variable, with a number of sweeps left, for some of the draws."""
        if variable not in self._known:
            rng = np.random.default_rng([*self._seed, variable])
            # An error that all rows share does not average out over them: the draws of a sweep are
            # spread evenly over (0, 1). A generator may give zero, which has no normal number.
            place = rng.permuted(np.tile(np.arange(self._shape[1]), (self._shape[0], 1)), axis=1)
            numbers = (place + rng.random(self._shape)) / self._shape[1]
            self._known[variable] = np.maximum(numbers, 2.0**-54)
        return _Repeated(self._known[variable][left, draws, None])
