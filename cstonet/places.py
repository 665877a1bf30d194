"""Files to write: the place is checked before the work, and a file is replaced at once or not."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO

from cstonet.errors import FilePathError, InUseError
from cstonet.shown import shown

_UNFINISHED = ".unfinished-"
# Files that this process has locked: the system's locks are between processes.
_held: set[tuple[int, Path]] = set()
_holding = threading.Lock()


def as_path(path: str | PathLike[str]) -> Path:
    """The path that a user gives, or FilePathError if it can be that of no file."""
    try:
        text = os.fspath(path)
    except Exception:  # no path, or the code of its own class
        text = None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise FilePathError(f"{shown(path)} is no path: name a file, such as 'results/fit'.")
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
    # Numbers of processes and threads come again: a file that a killed one left is in nobody's way.
    beside = path.with_name(f".{path.name}{_UNFINISHED}{secrets.token_hex(8)}")
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


def sweep(folder: Path, name: str = "") -> None:
    """Remove what processes that were killed while they wrote have left in a folder.

    Parameters
    ----------
    folder, name
        Where they wrote, and what, by default anything: nobody else may be writing it now.
    """
    for path in folder.glob(f".{name}*{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Keep other processes, and other threads of this one, from doing the same meanwhile.

    The lock goes with the process, however that ends. Where the system has no locks (some network
    disks), others are not kept away.

    Parameters
    ----------
    path
        A file to be locked, which is there meanwhile.
    what
        What is used, for the message.

    Raises
    ------
    InUseError
        If somebody else is at it.
    FilePathError
        If the file cannot be made.
    """
    own = (os.getpid(), path.resolve())
    with _holding:
        # Asked first: whoever closes a file that is locked gives up all locks of the process on it.
        if own in _held:
            raise _in_use(what)
        file = _locked(path, what)
        _held.add(own)
    try:
        yield
    finally:
        with _holding, file:
            _held.discard(own)
            with contextlib.suppress(OSError):
                path.unlink()


def _locked(path: Path, what: str) -> IO[bytes]:
    """The open file, locked for this process."""
    import fcntl  # not at the top: only checkpoints need it

    while True:
        try:
            file = path.open("ab")
        except OSError as error:
            raise _refused(path, error) from error
        try:
            # Of all locks the one that forked children do not inherit.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                file.close()
                raise _in_use(what) from None
        # Whoever had it before may have removed the file since it was opened here.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()


def _in_use(what: str) -> InUseError:
    return InUseError(
        f"{what} is in use: another fit is writing to it now. Wait until that has ended, or name "
        "another place."
    )


def write_text(path: Path, text: str) -> None:
    """Write a file of text in UTF-8, see `write_at_once`."""
    write_at_once(path, lambda file: file.write(text.encode("utf-8")))


def _refused(path: Path, error: OSError) -> FilePathError:
    return FilePathError(f"{str(path)!r} cannot be written: {error.strerror or error}.")
