"""Arrow tables and Parquet or Arrow files, read batch by batch: they may be larger than memory.

Of a file only the columns that a formula names are read. Those that are covariates as they are
become one matrix, in memory or in a temporary file; the others, a few, become columns of pandas.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cstonet.data.columns import check_unique
from cstonet.data.frames import to_arrow
from cstonet.data.storage import room_for
from cstonet.errors import CStoNetError, DataError, MissingPackageError
from cstonet.places import as_path
from cstonet.shown import shown

# Values of a batch: 8 MB of them in single precision.
_VALUES_AT_ONCE = 2**21
# Bytes of a Parquet column read at a time, where its row groups are large.
_BUFFER = 2**20
_PANDAS_COPIES_LATE = int(pd.__version__.split(".")[0]) >= 3


@dataclass(frozen=True, slots=True, eq=False)
class ArrowTable:
    """A table whose columns are read when they are asked for.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of all columns.
    n : int
        Number of rows.
    batches : callable
        Record batches of (names of columns, most rows of a batch), one after the other.
    """

    schema: Any
    n: int
    batches: Callable[[list[str], int], Iterator[Any]]

    @property
    def columns(self) -> pd.Index:
        """Names of the columns; those that hold the index of a pandas frame are none."""
        stored = (self.schema.pandas_metadata or {}).get("index_columns", [])
        index = {name for name in stored if isinstance(name, str)}
        names = [name for name in self.schema.names if name not in index]
        check_unique(names)
        columns: pd.Index = pd.Index(names, dtype=object)
        return columns

    def frame(self, plain: Sequence[str], other: Sequence[str]) -> pd.DataFrame:
        """Some columns as a frame.

        Parameters
        ----------
        plain
            Columns that are covariates as they are: those of numbers become one matrix.
        other
            Further columns.

        Raises
        ------
        NotEnoughSpaceError
            If the matrix fits neither in memory nor on the disk.
        """
        import pyarrow as pa

        numeric = [name for name in plain if _is_number(self.schema.field(name).type)]
        rest = list(dict.fromkeys([*(name for name in plain if name not in numeric), *other]))
        rest = [name for name in rest if name not in numeric]
        matrix = room_for((self.n, len(numeric)), _exact(self.schema, numeric))
        names, first, kept = [*numeric, *rest], 0, []
        for batch in self.batches(names, max(1, _VALUES_AT_ONCE // max(1, len(names)))):
            rows = slice(first, first + batch.num_rows)
            for j, name in enumerate(numeric):
                matrix[rows, j] = batch.column(name).to_numpy(zero_copy_only=False)
            kept.append(batch.select(rest))
            first = rows.stop
        frame = pd.DataFrame(matrix, columns=pd.Index(numeric, dtype=object), copy=False)
        schema = pa.schema([self.schema.field(name) for name in rest])
        others = _in_pandas(pa.Table.from_batches(kept, schema=schema).unify_dictionaries())
        del kept
        pa.default_memory_pool().release_unused()
        if not rest:
            return frame
        # From pandas 3 on nothing is copied unless it changes, and nobody may ask for it.
        lazily: dict[str, Any] = {} if _PANDAS_COPIES_LATE else {"copy": False}
        joined: pd.DataFrame = pd.concat([frame, others], axis=1, **lazily)
        return joined


def open_table(data: object) -> ArrowTable | None:
    """The table behind a path, an object of pyarrow or a frame of polars; None for anything else.

    Raises
    ------
    MissingPackageError
        If pyarrow is needed and not installed.
    DataError
        If there is no such file, or it is neither Parquet nor Arrow.
    """
    if isinstance(data, str | os.PathLike):
        return _open_path(data)
    if not type(data).__module__.startswith("pyarrow"):
        data = to_arrow(data)
        if data is None:
            return None
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.Table):
        table = data
        return ArrowTable(
            table.schema,
            table.num_rows,
            lambda names, rows: iter(table.select(names).to_batches(max_chunksize=rows)),
        )
    if isinstance(data, ds.Dataset):
        return _of_dataset(data)
    return None


def _open_path(data: str | os.PathLike[str]) -> ArrowTable:
    path = as_path(data)
    try:
        there, regular = path.exists(), path.is_file() or path.is_dir()
    except OSError as error:  # such as a name that is too long
        raise _unreadable(path, error) from error
    if not there:
        raise DataError(f"data: there is no file {shown(str(path))}.")
    if not regular:
        raise DataError(f"data: {str(path)!r} is a device or a pipe. Name a file.")
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackageError(
            f"data: {str(path)!r} is read with pyarrow, which is not installed. Install it with "
            "pip install 'cstonet[arrow]', or pass a pandas DataFrame."
        ) from error
    with _readable(path):
        if path.is_dir():
            return _of_dataset(ds.dataset(path), path)
        with path.open("rb") as file:
            start = file.read(6)
        if start[:4] == b"PAR1":
            # A buffer, because a row group may be the whole file.
            parquet = pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
            return ArrowTable(
                parquet.schema_arrow,
                parquet.metadata.num_rows,
                lambda names, rows: _batches_of(
                    path,
                    parquet.iter_batches(batch_size=rows, columns=names, use_threads=False),
                ),
            )
        if start == b"ARROW1":
            return _of_dataset(ds.dataset(path, format="ipc"), path)
    raise DataError(
        f"data: {str(path)!r} is neither a Parquet nor an Arrow (Feather) file. Read it yourself, "
        f"for example with pandas.read_csv, and pass the frame; pyarrow {pa.__version__} reads "
        "CSV files that are too large for that as a Dataset, which may be passed, too."
    )


@contextmanager
def _readable(path: Path | None) -> Iterator[None]:
    """Say of a file that it is damaged, or may not be read, whatever pyarrow says."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError | CStoNetError):
            raise
        raise _unreadable(path, error) from error


def _unreadable(path: Path | None, error: Exception) -> DataError:
    file = "the dataset" if path is None else shown(str(path))
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0].rstrip(".")
    return DataError(f"data: {file} cannot be read: {reason}.")


def _batches_of(path: Path | None, batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; a file may be damaged at any of them."""
    with _readable(path):
        yield from batches


def _of_dataset(dataset: Any, path: Path | None = None) -> ArrowTable:
    """A dataset of pyarrow, hardly anything of it read ahead."""

    def batches(names: list[str], rows: int) -> Iterator[Any]:
        scanner = dataset.scanner(
            columns=names,
            batch_size=rows,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )
        return _batches_of(path, iter(scanner.to_batches()))

    with _readable(path):
        return ArrowTable(dataset.schema, dataset.count_rows(), batches)


def _in_pandas(table: Any) -> pd.DataFrame:
    """A table as a frame, in which whole numbers beside gaps stay exact where it matters."""
    import pyarrow as pa

    exact = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    frame: pd.DataFrame = table.to_pandas()
    for name, column in frame.items():
        kind = table.schema.field(name).type
        if kind in exact and column.dtype == np.float64 and (column.abs() >= 2.0**53).any():
            frame[name] = table.column(name).to_pandas(types_mapper=exact.get)
    return frame


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _exact(schema: Any, names: Sequence[str]) -> type[np.floating]:
    """float32 if it holds these columns without loss, else float64: as for a frame of pandas."""
    kinds = {schema.field(name).type for name in names}
    exact = np.result_type(np.float32, *(kind.to_pandas_dtype() for kind in kinds))
    return np.float32 if exact == np.float32 else np.float64
