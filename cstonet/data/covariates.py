"""From columns to the covariate matrix, at the fit and again for new data.

A :class:`CovariateSpec` remembers how X was made from the columns of the frame: which columns are
taken as they are, which are coded by levels, and which terms patsy computes. It is small, holds no
data, and becomes plain values for a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.data import sparse
from cstonet.data.arrays import array_to_frame
from cstonet.data.columns import (
    Column,
    as_frame,
    check_finite,
    check_unique,
    describe,
    listing,
)
from cstonet.data.formula import Selected
from cstonet.data.matrix import is_sparse
from cstonet.data.sources import Sources
from cstonet.data.sparse import SparseColumns
from cstonet.data.storage import fits_in_memory, room_for
from cstonet.errors import DataError, EmptyDataError

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

Source = Literal["frame", "array"]


class Block(Protocol):
    """Neighbouring covariates that are made in the same way."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns they are made of."""

    @property
    def terms(self) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """Per term: its covariates, by number in the block, and the columns it is made of."""

    def build(self, sources: Sources) -> Matrix:
        """The covariates (n, k) from columns without missing values."""

    def to_json(self) -> dict[str, Any]:
        """The block as plain values."""


@dataclass(frozen=True, slots=True)
class NumericBlock:
    """Numeric columns, taken as they are and all at once."""

    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates: those of the columns."""
        return self.columns

    @property
    def terms(self) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """Every column is a term by itself."""
        return {name: ((j,), (name,)) for j, name in enumerate(self.columns)}

    def build(self, sources: Sources) -> Matrix:
        """The columns (n, k), without a copy if they are neighbours."""
        return sources.matrix(self.columns)

    def to_json(self) -> dict[str, Any]:
        """The block as plain values."""
        return {"kind": "numeric", "columns": list(self.columns)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> NumericBlock:
        """The block that :meth:`to_json` described."""
        return cls(tuple(saved["columns"]))


@dataclass(frozen=True, slots=True)
class LevelBlock:
    """A column with L levels as L - 1 indicators; the first level is the reference."""

    column: Column

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, as in patsy: ``g[T.b]``, ``g[T.c]``."""
        return tuple(f"{self.column.name}[T.{level}]" for level in self.column.levels[1:])

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column that is read."""
        return (self.column.name,)

    @property
    def terms(self) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """The column is the term, with all its indicators."""
        return {self.column.name: (tuple(range(len(self.names))), self.columns)}

    def build(self, sources: Sources) -> Matrix:
        """The indicators (n, L - 1), sparse beside sparse columns."""
        codes = self.column.codes(sources.other[self.column.name])
        if isinstance(sources.numeric, SparseColumns):
            return sparse.indicators(codes, len(self.column.levels))
        indicators: NDArray[np.bool_] = codes[:, None] == np.arange(1, len(self.column.levels))
        # Zeros and ones are exact in float32, which leaves the precision to the numeric columns.
        return indicators.astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """The block as plain values."""
        return {"kind": "levels", "column": self.column.to_json()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> LevelBlock:
        """The block that :meth:`to_json` described."""
        return cls(Column.from_json(saved["column"]))


@dataclass(frozen=True, slots=True)
class CovariateSpec:
    """How the covariate matrix X is made.

    Attributes
    ----------
    blocks : tuple of Block
        The pieces of X from left to right: plain columns in the order of the formula, then what
        patsy computes.
    source : {"frame", "array"}
        Whether X came with column names of its own. If not, new data may be an array too.
    """

    blocks: tuple[Block, ...]
    source: Source = "frame"

    @classmethod
    def fit(
        cls, selected: Selected, sources: Sources, *, source: Source = "frame"
    ) -> CovariateSpec:
        """Learn levels and transforms from the data.

        Parameters
        ----------
        selected : Selected
            What the formula selects.
        sources : Sources
            The columns it is made of, without missing values.
        source : {"frame", "array"}
            Where they came from.

        Raises
        ------
        EmptyDataError
            If there are no covariates.
        ColumnTypeError
            If a column is neither numeric nor has levels.
        """
        blocks = list(_plain_blocks(selected.columns, sources))
        if selected.terms:
            blocks.append(_patsy_block(selected, sources))
        spec = cls(tuple(blocks), source)
        if not spec.names:
            raise EmptyDataError(
                "The formula selects no covariates with more than one level. Name at least one "
                "after '|', or write '.' for all other columns."
            )
        check_unique(spec.names)
        return spec

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the p covariates."""
        return tuple(chain.from_iterable(block.names for block in self.blocks))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns they are made of."""
        return _flat(block.columns for block in self.blocks)

    def covariates_of_columns(self) -> dict[str, tuple[int, ...]]:
        """Per column of the data: the covariates that are made of it, by number."""
        found: dict[str, tuple[int, ...]] = {}
        first = 0
        for block in self.blocks:
            width = len(block.names)
            for j, name in enumerate(block.columns):
                single = isinstance(block, NumericBlock)
                places = (first + j,) if single else tuple(range(first, first + width))
                found[name] = found.get(name, ()) + places
            first += width
        return found

    def covariates_of_levels(self) -> dict[str, tuple[int, ...]]:
        """Per column of the data that has levels: the indicators of these, by number."""
        levels = {block.column.name for block in self.blocks if isinstance(block, LevelBlock)}
        return {n: own for n, own in self.covariates_of_columns().items() if n in levels}

    def covariates_of_terms(self) -> dict[str, tuple[int, ...]]:
        """Per term of the formula: its covariates, by number."""
        return {name: places for name, places, _ in self._terms()}

    def covariates_of_single_columns(self) -> dict[str, tuple[int, ...]]:
        """Per column of the data: the covariates that are made of it alone, by number."""
        found: dict[str, tuple[int, ...]] = {}
        for _, places, columns in self._terms():
            if len(columns) == 1:
                found[columns[0]] = found.get(columns[0], ()) + places
        return found

    def covariates_with_columns(self) -> dict[str, tuple[int, ...]]:
        """Per column of the data: the covariates of all terms that it is part of, by number."""
        found: dict[str, tuple[int, ...]] = {}
        for _, places, columns in self._terms():
            for name in columns:
                found[name] = found.get(name, ()) + places
        return found

    def _terms(self) -> Iterator[tuple[str, tuple[int, ...], tuple[str, ...]]]:
        """Names of the terms, their covariates by number, the columns they are made of."""
        first = 0
        for block in self.blocks:
            for name, (places, columns) in block.terms.items():
                yield name, tuple(first + j for j in places), columns
            first += len(block.names)

    def transform(self, data: Any) -> Matrix:
        """The covariate matrix for new data.

        Parameters
        ----------
        data : DataFrame, or array or sparse matrix (m, p) if the fit had one
            New rows. A frame may hold other columns as well, in any order.

        Returns
        -------
        ndarray or csc_array (m, p) of float32 or float64
            Possibly a view of the data: not to be written to.

        Raises
        ------
        UnknownColumnError, ColumnTypeError, UnseenLevelError
            If the columns are not those of the fit.
        MissingValuesError, InfiniteValuesError
            If a value is missing or infinite.
        LengthMismatchError
            If an array has another number of columns.
        """
        sources = self.sources(data)
        gaps = sources.gaps()
        if gaps.counts:
            raise gaps.error(
                "Leave these rows out of the new data, or fill the gaps in; a model fitted with "
                "missing='mar' to data with such gaps would fill them."
            )
        return self.build(sources)

    def sources(self, data: Any) -> Sources:
        """The columns of new data that the covariates are made of, gaps and all.

        A gap in a column of one level is none: that level is all it can be.
        """
        other = [b.columns for b in self.blocks if not isinstance(b, NumericBlock)]
        if is_sparse(data):
            self._check_array(data)
            found = SparseColumns.of_matrix(data, self.columns)
            return Sources(found, pd.DataFrame(index=found.index))
        sources = Sources.read(self._as_frame(data), self.numeric_columns(), _flat(other))
        columns = [b.column for b in self.blocks if isinstance(b, LevelBlock)]
        single = {column.name: column.levels[0] for column in columns if len(column.levels) == 1}
        return sources.filled(single) if single else sources

    def build(self, sources: Sources) -> Matrix:
        """The covariate matrix (n, p) from columns without missing values."""
        blocks = [block.build(sources) for block in self.blocks]
        if len(blocks) == 1:
            X = blocks[0]
        elif any(map(is_sparse, blocks)):
            X = sparse.joined(blocks)
        else:
            X = _side_by_side(blocks)
        check_finite(X, self.names)
        return X

    def to_json(self) -> dict[str, Any]:
        """The specification as plain values.

        Raises
        ------
        NotAvailableError
            If a term depends on something that lives only in the running session.
        """
        return {"source": self.source, "blocks": [block.to_json() for block in self.blocks]}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> CovariateSpec:
        """The specification that :meth:`to_json` described."""
        return cls(tuple(map(_block_from_json, saved["blocks"])), saved["source"])

    def numeric_columns(self) -> tuple[str, ...]:
        """Names of the columns that are covariates as they are."""
        return _flat(block.columns for block in self.blocks if isinstance(block, NumericBlock))

    def _as_frame(self, data: Any) -> pd.DataFrame:
        if isinstance(data, pd.DataFrame):
            return as_frame(data)
        self._check_array(data)
        return array_to_frame(data, self.columns)

    def _check_array(self, data: Any) -> None:
        """Refuse data without column names where the fit had names."""
        if self.source == "frame":
            raise DataError(
                "The fit had a DataFrame, so new data must be one with the columns "
                f"{listing(self.columns)}; got {type(data).__name__}."
            )


def _side_by_side(blocks: list[NDArray[np.floating]]) -> NDArray[np.floating]:
    """Blocks of columns as one array, on the disk if memory has no room for it."""
    n, dtype = len(blocks[0]), np.result_type(*blocks)
    width = sum(block.shape[1] for block in blocks)
    if fits_in_memory(float(n * width * dtype.itemsize)):
        return np.concatenate(blocks, axis=1)
    X = room_for((n, width), dtype)
    for rows in row_blocks(n):
        np.concatenate([block[rows] for block in blocks], axis=1, out=X[rows])
    return X


def _flat(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All names once, in order."""
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


def _plain_blocks(names: tuple[str, ...], sources: Sources) -> Iterator[Block]:
    """Blocks for columns that are covariates by themselves: runs of numeric ones in one piece."""
    is_numeric = dict.fromkeys(sources.numeric.columns, True)
    for numeric, run in groupby(names, lambda name: is_numeric.get(name, False)):
        if numeric:
            yield NumericBlock(tuple(run))
        else:
            yield from (LevelBlock(describe(sources.other[name])) for name in run)


def _patsy_block(selected: Selected, sources: Sources) -> Block:
    from cstonet.data.patsy_terms import (
        PatsyBlock,  # not at the top: plain formulas never load patsy
    )

    return PatsyBlock.fit(selected.terms, selected.columns, sources)


def _block_from_json(saved: Mapping[str, Any]) -> Block:
    if saved["kind"] == "numeric":
        return NumericBlock.from_json(saved)
    if saved["kind"] == "levels":
        return LevelBlock.from_json(saved)
    from cstonet.data.patsy_terms import PatsyBlock

    return PatsyBlock.from_json(saved)
