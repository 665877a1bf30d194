"""Standardisation: the network sees columns of mean zero and variance one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.matrix import SMALL_COPY, is_partitioned
from cstonet.data.units import varies
from cstonet.memory import available_bytes
from cstonet.network.moments import DenseColumns, SparseColumns

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix
    from cstonet.network.covariates import Covariates


def _copied_bytes(size: int, most: int) -> int:
    """Bytes that a copy of about this size may take, which are to be no more than `most`."""
    if size <= SMALL_COPY or size > most:  # the answer would change nothing
        return most
    left = available_bytes()
    return most if left is None else min(most, max(SMALL_COPY, left // 4))


@dataclass(frozen=True, slots=True)
class Scaling:
    """``(x - center) * inverse_scale`` per column, held within ``± limit``.

    Constant columns become zero.
    """

    center: NDArray[np.float64]
    inverse_scale: NDArray[np.float64]
    limit: float

    @property
    def constant(self) -> NDArray[np.intp]:
        """Columns that become zero, by number."""
        return np.flatnonzero(self.inverse_scale == 0)

    def check(self, columns: int) -> None:
        """Raise ValueError unless it is one of so many columns, in finite numbers."""
        if self.center.shape != (columns,) or self.inverse_scale.shape != (columns,):
            raise ValueError(f"the scaling is not one of {columns} columns")
        if not (np.isfinite(self.center).all() and np.isfinite(self.inverse_scale).all()):
            raise ValueError("the scaling is not finite")

    def dataset(self, X: Matrix, pack_bytes: int) -> Covariates:
        """The covariates as the kernel reads them, or as their workers do, shape (n, p).

        Parameters
        ----------
        X : (n, p)
            Dense, with any strides and maybe mapped from a file, or ``scipy.sparse``: what is not
            stored then stays so; or partitions on a cluster.
        pack_bytes
            A standardised copy is made if it takes no more; otherwise X is read in place, with the
            same bits. A large copy must not take more than a quarter of the memory that is left.
        """
        if is_partitioned(X):
            from cstonet.network.partitioned import PartitionedCovariates

            return PartitionedCovariates.of(X, self)
        if isinstance(X, np.ndarray):
            most = _copied_bytes(4 * X.size, pack_bytes)
            return _core.Dataset(X, self.center, self.inverse_scale, self.limit, most)
        columns = compressed_columns(X)
        return _core.Dataset.compressed(
            columns.data,
            columns.indices,
            columns.indptr,
            columns.shape[0],
            self.center,
            self.inverse_scale,
            self.limit,
        )


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedColumns:
    """Some covariates as the networks see them, made for the rows that are asked for.

    Attributes
    ----------
    scaling : Scaling
        That of all covariates.
    X : (n, p)
        The user's covariates.
    columns : (k,)
        The covariates wanted.
    """

    scaling: Scaling
    X: Matrix
    columns: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k)."""
        return self.X.shape[0], len(self.columns)

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        """Some neighbouring rows, shape (m, k)."""
        wanted = np.arange(self.X.shape[0])[rows]
        return self.scaling.dataset(self.X, 0).gather(wanted, self.columns)


def compressed_columns(X: Any) -> Any:
    """A ``scipy.sparse`` matrix column by column, each entry once and rows ascending."""
    columns = X.tocsc()
    if not columns.has_canonical_format:
        columns = columns.copy() if columns is X else columns
        columns.sum_duplicates()
    if columns.dtype not in (np.float32, np.float64):
        columns = columns.astype(np.float64)
    return columns


def column_scaling(X: Matrix, limit: float, weights: NDArray[np.float64] | None = None) -> Scaling:
    """Mean and standard deviation of every column, without a copy of the matrix.

    Where a column has values beyond ``limit`` standard deviations, its moments are taken again
    with such values brought in to a robust bound: one wild value must not flatten the others.

    Parameters
    ----------
    X : (n, p)
        Covariates, dense or ``scipy.sparse``.
    limit
        Bound on the standardised values.
    weights : (n,), optional
        Row weights.
    """
    if is_partitioned(X):
        from cstonet.network.partitioned import partitioned_scaling

        return partitioned_scaling(X, limit, weights)
    columns = (
        DenseColumns(X, weights)
        if isinstance(X, np.ndarray)
        else SparseColumns(compressed_columns(X), weights)
    )
    found = columns.moments()
    mean, spread = found.mean, found.spread
    with np.errstate(over="ignore"):  # nothing is further out than infinitely
        wild = np.flatnonzero(found.reach > limit * spread)
    if len(wild):
        tame = columns.brought_in(wild)
        mean[wild], spread[wild] = tame.mean, tame.spread
    return scaling_of_moments(mean, spread, limit)


def scaling_of_moments(
    mean: NDArray[np.float64], spread: NDArray[np.float64], limit: float
) -> Scaling:
    """The scaling of columns with these means and standard deviations."""
    inverse = np.divide(1.0, spread, out=np.zeros(len(mean)), where=varies(mean, spread))
    return Scaling(mean, inverse, limit)
