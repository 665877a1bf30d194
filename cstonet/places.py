"""Files to write: the place is checked before the work, and a file is replaced at once or not."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cstonet.errors import FilePathError


def check_place(path: Path) -> None:
    """Raise FilePathError unless a file can be there: its folder exists, and it is none itself."""
    if path.is_dir():
        raise FilePathError(f"{str(path)!r} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FilePathError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to.")


def write_at_once(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, and put it there when it is whole.

    Parameters
    ----------
    path
        The place; a file that exists is replaced, a link stays one.
    write
        Writes into an open file.

    Raises
    ------
    FilePathError
        If there is no such folder, the path is a folder, or the disk refuses.
    """
    check_place(path)
    path = path.resolve()
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


def write_text(path: Path, text: str) -> None:
    """Write a file of text in UTF-8, see `write_at_once`."""
    write_at_once(path, lambda file: file.write(text.encode("utf-8")))
