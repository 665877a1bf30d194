"""Frames of other libraries: polars and others as Arrow tables, answers in the kind that was given.

What narwhals knows as a frame in memory is read as an Arrow table, see :mod:`cstonet.data.arrow`;
a dictionary of columns becomes a frame of pandas. Predictions for such data come back as such data.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
import pandas as pd

from cstonet.errors import DataError, LengthMismatchError, MissingPackageError

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

# Libraries whose frames are worth asking narwhals about; what is not loaded, nobody can have.
_LIBRARIES = ("polars", "modin", "cudf")


def is_dictionary(data: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether data are a dictionary of columns; some sparse matrices look like one."""
    return isinstance(data, Mapping) and not hasattr(data, "tocsc")


def is_frame(data: object) -> bool:
    """Whether data have columns with names and types of their own: not an array."""
    library = type(data).__module__.partition(".")[0]
    named = isinstance(data, pd.DataFrame) or is_dictionary(data)
    return named or library in (*_LIBRARIES, "pyarrow")


def to_arrow(data: object) -> Any:
    """A frame of another library as a pyarrow Table; None for anything else.

    Raises
    ------
    MissingPackageError
        If pyarrow is not installed.
    """
    library = type(data).__module__.partition(".")[0]
    if library not in _LIBRARIES or library not in sys.modules:
        return None
    import narwhals as nw

    frame = nw.from_native(cast(Any, data), pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        return None
    try:
        return frame.to_arrow()
    except ImportError as error:
        raise MissingPackageError(
            f"data: a frame of {library} is read by way of pyarrow, which is not installed. "
            "Install it with pip install 'cstonet[arrow]', or pass data.to_pandas()."
        ) from error


def frame_of_columns(columns: Mapping[Any, Any]) -> pd.DataFrame:
    """A dictionary of columns as a frame.

    Raises
    ------
    DataError, LengthMismatchError
        If a column has no rows, or another number of them than the others.
    """
    lengths: dict[Any, int] = {}
    for name, values in columns.items():
        if np.ndim(values) != 1:
            raise DataError(
                f"data: column {str(name)!r} of the dictionary must hold one value per row; its "
                f"shape is {np.shape(values)}."
            )
        lengths[name] = len(values)
    first = next(iter(lengths), None)
    for name, length in lengths.items():
        if length != lengths[first]:
            raise LengthMismatchError(
                f"data: column {str(name)!r} of the dictionary has {length} rows but "
                f"{str(first)!r} has {lengths[first]}. Pass one value per row."
            )
    # Labels of a Series would reorder its rows: they are matched by position.
    return pd.DataFrame({name: _unlabelled(values) for name, values in columns.items()})


def _unlabelled(values: Any) -> Any:
    return values.reset_index(drop=True) if isinstance(values, pd.Series) else values


def in_kind(answer: pd.Series | pd.DataFrame, data: object) -> Any:
    """Predictions as the data were given: in polars for polars, as a dictionary for a dictionary.

    Parameters
    ----------
    answer : Series or DataFrame
        One row for each of the data.
    data : object
        What was asked about. For frames of pandas, arrays, files and None the answer stays as it
        is.
    """
    if is_dictionary(data):
        if isinstance(answer, pd.Series):
            return answer.to_numpy()
        return {str(name): answer[name].to_numpy() for name in answer.columns}
    library = type(data).__module__.partition(".")[0]
    if library not in (*_LIBRARIES, "pyarrow") or isinstance(data, pd.DataFrame):
        return answer
    import narwhals as nw

    given = nw.from_native(cast(Any, data), pass_through=True)
    if not isinstance(given, nw.DataFrame | nw.LazyFrame):
        return answer  # a dataset or a reader: nothing that could hold an answer
    backend = given.implementation
    if isinstance(answer, pd.Series):
        name = "" if answer.name is None else str(answer.name)
        return nw.new_series(name, answer.to_numpy(), backend=backend).to_native()
    columns = {str(name): answer[name].to_numpy() for name in answer.columns}
    return nw.from_dict(columns, backend=backend).to_native()


def answers_in_kind(method: MethodT) -> MethodT:
    """Let a method of results, whose first argument is ``data``, answer as its data were given."""

    @functools.wraps(method)
    def answering(self: Any, data: Any = None, *arguments: Any, **options: Any) -> Any:
        answer = method(self, data, *arguments, **options)
        return answer if data is None else in_kind(answer, data)

    return cast(MethodT, answering)
