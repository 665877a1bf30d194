"""Covariates that are spread over the workers of a cluster: the partitions of a Dask DataFrame.

What is asked of them is computed where they are. Only sums and few columns or rows travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.columns import check_unique, is_number, listing, numbers, unknown_column
from cstonet.errors import ColumnTypeError, MissingPackageError, NotAvailableError

Places = slice | NDArray[np.integer]


def is_dask_frame(data: object) -> bool:
    """Whether these are a Dask DataFrame, without an import of Dask."""
    return type(data).__module__.startswith("dask") and hasattr(data, "to_delayed")


@dataclass(frozen=True, eq=False)
class PartitionedMatrix:
    """A matrix (n, p) in parts of neighbouring rows, each an array on a worker.

    Attributes
    ----------
    client
        The connection to the cluster.
    parts
        Futures of the arrays. What is lost with a worker is made again by Dask.
    first : (parts + 1,)
        Number of each part's first row, and of the row after the last.
    dtype
        Of the values.
    width
        Number p of columns.
    derived
        What was made of it and is kept with it, by the class of what was made.
    """

    client: Any
    parts: tuple[Any, ...]
    first: NDArray[np.int64]
    dtype: np.dtype[Any]
    width: int
    derived: dict[type, Any] = field(default_factory=dict)
    # Tells it from a matrix that is at hand, without an import of this module.
    on_workers: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return int(self.first[-1]), self.width

    def map(self, function: Callable[..., Any], *each: Sequence[Any]) -> list[Any]:
        """What a function gives of every part, in their order.

        Parameters
        ----------
        function
            Of a part's array and one of each of the further arguments.
        each
            Further arguments, one per part.
        """
        return self.compute(
            lambda: [self.submit(function, k, *given) for k, given in self._given(each)]
        )

    def submit(self, function: Callable[..., Any], part: int, *given: Any) -> Any:
        """A future of what a function gives of one part."""
        return self.client.submit(function, self.parts[part], *given, pure=False)

    def compute(self, submit: Callable[[], list[Any]]) -> list[Any]:
        """Values of futures, under the names that this package has for what may go wrong.

        Parameters
        ----------
        submit
            Makes the futures. It is asked again if what they were sent is lost with a worker.
        """
        from cstonet.cluster_client import gathered

        return gathered(self.client, submit)

    def _given(self, each: tuple[Sequence[Any], ...]) -> list[tuple[int, tuple[Any, ...]]]:
        return [(k, tuple(argument[k] for argument in each)) for k in range(len(self.parts))]

    def cut(self, rows: NDArray[np.integer]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of every part: places in `rows` of those that lie there, and their numbers there."""
        owner = np.searchsorted(self.first, rows, side="right") - 1
        order = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[order], np.arange(len(self.parts) + 1))
        places = [order[a:b] for a, b in pairwise(ends)]
        return [(here, rows[here] - self.first[k]) for k, here in enumerate(places)]

    def sliced(self, values: NDArray[Any] | None) -> list[NDArray[Any] | None]:
        """Values (n, ...) of all rows, cut into those of each part."""
        if values is None:
            return [None] * len(self.parts)
        return [values[a:b] for a, b in pairwise(self.first)]

    def __getitem__(self, wanted: tuple[Any, Any]) -> NDArray[np.floating]:
        """Some rows and columns, brought here: (m, k)."""
        rows, columns = (np.ravel(one) if not isinstance(one, slice) else one for one in wanted)
        numbered = np.arange(self.shape[0])[rows]
        chosen = np.arange(self.width)[columns]
        cut = self.cut(numbered)
        parts = [k for k, (here, _) in enumerate(cut) if len(here)]
        found = self.compute(lambda: [self.submit(_taken, k, cut[k][1], chosen) for k in parts])
        out = np.empty((len(numbered), len(chosen)), dtype=self.dtype)
        for k, values in zip(parts, found, strict=True):
            out[cut[k][0]] = values
        return out

    @cached_property
    def not_finite(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Missing and infinite values per column, and which rows have missing ones (n,)."""
        missing, infinite, rows = zip(*self.map(_not_finite), strict=True)
        return np.sum(missing, axis=0), np.sum(infinite, axis=0), np.concatenate(rows)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedColumns:
    """Named columns on the workers of a cluster, in the place of a frame.

    Attributes
    ----------
    matrix
        The values.
    columns : Index
        Their names.
    index : Index
        Labels of the rows.
    """

    matrix: PartitionedMatrix
    columns: pd.Index
    index: pd.Index

    @classmethod
    def of_frame(cls, frame: Any, names: Sequence[str], index: pd.Index) -> PartitionedColumns:
        """Columns of a Dask DataFrame, held by the workers from now on.

        Raises
        ------
        ColumnTypeError
            If a column holds no numbers.
        MissingPackageError
            If the package that talks to a cluster is not installed.
        SchedulerError
            If there is no cluster.
        """
        if find_spec("distributed") is None:
            raise MissingPackageError(
                "data: a Dask DataFrame is fitted on the workers of a cluster, by the package "
                "distributed, which is not installed. Install it with pip install 'cstonet[dask]', "
                "or bring the data into memory with data.compute()."
            )
        from cstonet.cluster_client import check_workers, connected_client

        check_unique(names)
        dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
        others = [name for name in names if not is_number(dtypes[name])]
        if others:
            raise ColumnTypeError(
                f"Covariates of a Dask DataFrame must be numbers; {listing(others)} "
                f"{'is' if len(others) == 1 else 'are'} not. Turn categories into indicators with "
                "dask.dataframe.get_dummies before the fit."
            )
        client = connected_client()
        check_workers(client)
        frames = client.compute(frame[list(names)].to_delayed())
        parts = tuple(client.submit(_values, part, pure=False) for part in frames)
        empty = numbers(frame._meta[list(names)])
        matrix = PartitionedMatrix(client, parts, np.zeros(1, np.int64), empty.dtype, len(names))
        lengths = matrix.map(len)
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        matrix = PartitionedMatrix(client, parts, first, empty.dtype, len(names))
        return cls(matrix, pd.Index(names, dtype=object), index)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k)."""
        return self.matrix.shape

    def __len__(self) -> int:
        return len(self.index)

    def take(self, names: Sequence[str]) -> PartitionedMatrix:
        """The columns, which are asked for all together or not at all."""
        for name in names:
            if name not in self.columns:
                raise unknown_column(name, list(self.columns), formula=False)
        return self.matrix

    def rows(self, keep: NDArray[np.bool_]) -> PartitionedColumns:
        """Rows of partitions are not left out here."""
        raise NotAvailableError(
            f"missing='drop' is not available for a Dask DataFrame ({int((~keep).sum())} rows have "
            "gaps). Leave these rows out before the fit, with data.dropna()."
        )


def _values(frame: pd.DataFrame) -> NDArray[np.floating]:
    """A partition as an array of floating-point numbers whose rows lie together."""
    return np.ascontiguousarray(numbers(frame))


def _taken(
    part: NDArray[np.floating], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.floating]:
    return part[np.ix_(rows, columns)]


def _not_finite(
    part: NDArray[np.floating],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Missing and infinite values of every column, and which rows have missing ones."""
    with np.errstate(all="ignore"):
        if np.isfinite(part.sum()):  # one pass, no temporary: a summand would spoil it
            nothing = np.zeros(part.shape[1], dtype=np.int64)
            return nothing, nothing, np.zeros(len(part), dtype=bool)
    missing = np.isnan(part)
    return missing.sum(axis=0), np.isinf(part).sum(axis=0), missing.any(axis=1)
