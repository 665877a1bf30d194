"""Files that are whole at any time: written beside themselves and put in place at once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cstonet.errors import FilePathError


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file; one that exists is replaced, at once.

    Parameters
    ----------
    path
        Where it is to be.
    write
        Writes it.

    Raises
    ------
    FilePathError
        If there is no such folder, the path is a folder, or the disk refuses.
    """
    if path.is_dir():
        raise FilePathError(f"{str(path)!r} is a folder: name a file in it, such as 'fit.cst'.")
    if not path.parent.is_dir():
        raise FilePathError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to.")
    path = path.resolve()  # a link stays one
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        try:
            with beside.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise FilePathError(f"{str(path)!r} cannot be written: {reason}.") from error
