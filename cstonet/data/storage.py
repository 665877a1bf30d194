"""Room for a matrix: in memory if it fits, else in a temporary file that is mapped into memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cstonet.errors import NotEnoughSpaceError
from cstonet.memory import available_bytes, readable

# A matrix may take this share of the memory that is left: the fit needs some, too.
_SHARE = 0.5


def fits_in_memory(size: float) -> bool:
    """Whether so many bytes leave enough memory for the rest of a fit."""
    available = available_bytes()
    return available is None or size <= _SHARE * available


def room_for(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[np.floating]:
    """An array (n, p) to be filled, a memory map if it is too large for memory.

    Raises
    ------
    NotEnoughSpaceError
        If it fits neither in memory nor in the user's folder for temporary files.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return np.empty(shape, dtype) if fits_in_memory(size) else _mapped(shape, dtype, size)


def _mapped(shape: tuple[int, int], dtype: DTypeLike, size: int) -> NDArray[np.floating]:
    """An array in a temporary file without a name.

    Its space is given back with the last array that looks at it, or with the process, however that
    ends.
    """
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            # Reserved, not only announced: a page that cannot be written would kill the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            # No np.memmap: other processes would look for the file by its name.
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    except OSError as error:
        free = shutil.disk_usage(folder).free
        raise NotEnoughSpaceError(
            f"{shape[0]} rows x {shape[1]} columns are {readable(size)}, too much for memory, and "
            f"{folder} has no room for them as a temporary file ({error.strerror or error}; "
            f"{readable(free)} are free, {readable(max(0, size - free))} are missing). Name "
            "another folder in the environment variable TMPDIR, make room there, or keep fewer "
            "rows or columns."
        ) from error
