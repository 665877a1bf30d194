"""Standard input, output and error of the process, any of which may be closed, full or gone."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import NoReturn

from cstonet.errors import FilePathError


class _Closed(io.TextIOBase):
    """Standard output of a process that was started without one."""

    def write(self, _text: str) -> NoReturn:
        raise FilePathError(
            "Standard output is closed, so nothing can be printed. Name a file to write, or send "
            "the output to /dev/null."
        )


def open_streams() -> None:
    """Put something in the place of each stream that is closed.

    Files that are opened later would get its number, and what is printed.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    # What a terminal of few characters cannot show is written as an escape.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a line on standard error, if anybody listens."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def flush_output() -> None:
    """Bring to the reader what was printed."""
    sys.stdout.flush()


def drop_output() -> None:
    """Nobody takes what is printed: at its end, Python would try again and complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
