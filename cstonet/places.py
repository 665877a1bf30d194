"""Files to write: the place is checked before the work, and a file is replaced at once or not."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import IO

from cstonet.errors import FilePathError


def as_path(path: str | PathLike[str]) -> Path:
    """The path that a user gives, or FilePathError if it can be that of no file."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise FilePathError(f"{path!r} is no path: name a file, such as 'results/fit'.")
    return Path(text)


def check_place(path: Path) -> None:
    """Raise FilePathError unless a file can be there: its folder exists, and it is none itself.

    What exists must be a file, too: a device or a pipe would be replaced by one.
    """
    try:
        there, folder, file = path.exists(), path.is_dir(), path.is_file()
        beside = path.parent.is_dir()
    except OSError as error:  # such as a name that is too long
        raise _refused(path, error) from error
    if folder:
        raise FilePathError(f"{str(path)!r} is a folder: name a file in it.")
    if there and not file:
        raise FilePathError(f"{str(path)!r} is a device or a pipe: name a file.")
    if not beside:
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
        If there is no such folder, the path is no file's, or the disk refuses.
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
        raise _refused(path, error) from error


def write_text(path: Path, text: str) -> None:
    """Write a file of text in UTF-8, see `write_at_once`."""
    write_at_once(path, lambda file: file.write(text.encode("utf-8")))


def _refused(path: Path, error: OSError) -> FilePathError:
    return FilePathError(f"{str(path)!r} cannot be written: {error.strerror or error}.")
