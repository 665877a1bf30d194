"""Residuals times directions: what a new weight's contribution to a model is multiplied by.

A description, which the kernel evaluates for some rows at a time: where they are many, columns of
all rows are never stored together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cstonet.network.spec import NetworkSpec


class Kind(IntEnum):
    """What a direction is; the numbers are the kernel's (csrc/core/directions)."""

    ONE = 0
    GIVEN = 1
    SLOPE = 2
    MEMBER = 3


class SlopeNetwork(Protocol):
    """A network whose slopes are directions."""

    @property
    def spec(self) -> NetworkSpec:
        """Layers, on the connected covariates only."""

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Indices of these covariates, (q,)."""

    @property
    def weights(self) -> tuple[NDArray[np.float32], ...]:
        """Per layer, (inputs, units)."""

    @property
    def biases(self) -> tuple[NDArray[np.float32], ...]:
        """Per layer, (units,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Columns g_k = residual x scale x factor of m rows, k of them.

    Everything with a row per row can be cut by rows (:meth:`on_rows`): sums over rows are sums of
    those over their parts.

    Attributes
    ----------
    residuals : (m, r) float32
        Of every predictor.
    given : (m, e) float32
        Factors that are given as numbers.
    treatment : (m, L-1) float32
        What the treatment's units are clamped to; of any width where there is no network.
    network
        Whose slopes are factors; None: no factor is one.
    table : (k, 3) int64
        Of every column: its predictor; the :class:`Kind` of its factor; which: the column of
        `given`, the slope (visible unit times units of the first layer, plus unit), the covariate.
    scale : (k,) float32
        Of every column.
    """

    residuals: NDArray[np.float32]
    given: NDArray[np.float32]
    treatment: NDArray[np.float32]
    network: SlopeNetwork | None
    table: NDArray[np.int64]
    scale: NDArray[np.float32]

    @property
    def covariates(self) -> NDArray[np.int64]:
        """Covariates that the columns are made of, ascending."""
        members = self.table[self.table[:, 1] == Kind.MEMBER, 2]
        needs_network = self.network is not None and bool((self.table[:, 1] == Kind.SLOPE).any())
        inputs = self.network.inputs if self.network is not None and needs_network else members[:0]
        return np.unique(np.concatenate([members, inputs]))

    def on_rows(self, part: slice | NDArray[np.int64]) -> Products:
        """The same columns of some of the rows, by their places."""
        return replace(
            self,
            residuals=np.ascontiguousarray(self.residuals[part]),
            given=np.ascontiguousarray(self.given[part]),
            treatment=np.ascontiguousarray(self.treatment[part]),
        )

    def only(self, columns: NDArray[np.int64] | list[int]) -> Products:
        """Some of the columns."""
        return replace(self, table=self.table[columns], scale=self.scale[columns])

    def with_residuals(self, residuals: NDArray[np.float64]) -> Products:
        """The same directions of other residuals, (m, r)."""
        return replace(self, residuals=np.ascontiguousarray(residuals, dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """What covariates explain of others, which are scored without it.

    Attributes
    ----------
    others : (s,)
        The covariates that explain.
    slopes : (s + 1, q) float32
        Of each of q covariates: a constant, and the slopes of these.
    """

    others: NDArray[np.int64]
    slopes: NDArray[np.float32]


def main_effects(residuals: NDArray[np.float64]) -> Products:
    """Residuals (m, r) as they are: the columns of main effects alone."""
    number = np.arange(residuals.shape[1])
    none = np.empty((len(residuals), 0), dtype=np.float32)
    return Products(
        residuals=np.ascontiguousarray(residuals, dtype=np.float32),
        given=none,
        treatment=none,
        network=None,
        table=np.column_stack([number, np.full_like(number, Kind.ONE), np.zeros_like(number)]),
        scale=np.ones(len(number), dtype=np.float32),
    )
