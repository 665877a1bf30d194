"""Watching what code does beside computing: Python's own audit events, and the largest memory.

Hostile input is to be read and nothing else, so the events that are allowed are listed; any other
one (a process, a socket, an import, an open file to write to, code that is run) is refused before
it happens, and remembered, whatever becomes of the exception.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from memory_probe import PeakMemory


class Finding(AssertionError):
    """What must never happen, whatever the input is."""


# Syntax trees are made by `compile`; nothing is run by that.
_HARMLESS = frozenset(
    {"compile", "builtins.id", "sys._getframe", "object.__setattr__", "object.__getattr__"}
)
# What a computation in threads does, and what it may do to files within a folder.
_OF_THREADS = frozenset({"_thread.start_new_thread", "_thread.start_joinable_thread", "time.sleep"})
_OF_FILES = frozenset(
    {
        "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate",
        "os.chmod", "os.utime", "fcntl.flock", "fcntl.lockf", "fcntl.fcntl", "fcntl.ioctl",
        "pathlib.Path.glob",
    }
)  # fmt: skip
_LISTS = ("os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Where the system says how much memory there is.
_OF_THE_SYSTEM = ("/proc/", "/sys/")


class _Guard:
    """What is allowed at the moment; one for the process, as its audit hook is."""

    def __init__(self) -> None:
        self.files: tuple[str, ...] | None = None  # None: nothing is watched
        self.within: str | None = None
        self.terms = False
        self.refused: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.files is None or event in _HARMLESS or self._is_looking(event, arguments):
            return
        if event == "exec" and self.terms and arguments[0].co_filename == "<string>":
            return
        if self.within is not None and self._is_within(event, arguments):
            return
        what = f"{event} {arguments!r:.300}"
        self.refused.append(what)
        raise Finding(what)

    def _is_looking(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether something is read that may be read."""
        if event == "open" and isinstance(arguments[0], int):  # opened before
            return True
        if event not in _LISTS and not (event == "open" and _reads(*arguments[1:])):
            return False
        path = os.fsdecode(arguments[0] or ".")
        if path in (self.files or ()) or path.startswith(_OF_THE_SYSTEM):
            return True
        # Whoever asks for the version of a package looks it up where packages are.
        return _is_in(path, (*sys.path, self.within))

    def _is_within(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether an event is one of threads, or of files in the folder."""
        if event in _OF_THREADS:
            return True
        if event != "open" and event not in _OF_FILES:
            return False
        named = [os.fsdecode(a) for a in arguments if isinstance(a, str | bytes | os.PathLike)]
        # A second text is a mode, or a pattern.
        paths = named[:1] if event in ("open", "pathlib.Path.glob") else named
        return all(_is_in(path, (self.within,)) for path in paths)


def _reads(mode: str | None, flags: int) -> bool:
    return not flags & _WRITING and not set(mode or "r") & set("wxa+")


def _is_in(path: str, folders: Iterable[str | None]) -> bool:
    real = os.path.realpath(path)
    return any(f"{real}/".startswith(f"{os.path.realpath(f)}/") for f in folders if f is not None)


_guard: _Guard | None = None


@contextmanager
def only_reading(
    *files: str | os.PathLike[str], terms: bool = False, within: Path | None = None
) -> Iterator[None]:
    """Refuse the body everything but computing and reading these files.

    Parameters
    ----------
    *files
        What may be opened, to be read.
    terms
        Whether the terms of a formula may be evaluated.
    within
        A folder in which files may be read, written and removed, by threads, too.

    Raises
    ------
    Finding
        If it tried anything else, also where it caught the refusal.
    """
    global _guard
    if _guard is None:
        _guard = _Guard()
    guard = _guard
    guard.refused.clear()
    guard.terms, guard.within = terms, None if within is None else os.path.realpath(within)
    guard.files = tuple(map(os.fspath, files))
    try:
        yield
    finally:
        guard.files = None
        if guard.refused:
            raise Finding("; ".join(guard.refused))


@contextmanager
def within_memory(allowed: int) -> Iterator[PeakMemory | None]:
    """Let the body take so many bytes at most, beside what it was given; Linux only.

    Raises
    ------
    Finding
        If it took more.
    """
    if not Path("/proc/self/clear_refs").exists():
        yield None
        return
    with PeakMemory() as peak:
        yield peak
    if peak.above > allowed:
        raise Finding(f"{peak.above} bytes of memory, {allowed} are allowed")
