"""Ctrl-C on the command line: one line and the exit code 130, at any time. Loads nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

INTERRUPTED = 130
_MESSAGE = "cstonet: interrupted"

Handler = Callable[[int, FrameType | None], Any]


class Interrupts:
    """What Ctrl-C does while a command runs.

    Attributes
    ----------
    seen : bool
        Whether there was one. Libraries that are loading may make another exception of it.
    """

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def end_at_once(self) -> None:
        """From now on it ends the process: libraries that are loading would swallow exceptions."""
        self._listen(lambda *_: self._exit(INTERRUPTED, f"{_MESSAGE}\n"))

    def interrupt(self) -> None:
        """From now on it raises KeyboardInterrupt, once; a second one ends the process."""

        def once(*_: object) -> None:
            self.seen = True
            self.end_at_once()
            raise KeyboardInterrupt

        self._listen(once)

    def end_with(self, code: int) -> None:
        """From now on it ends a process that has nothing left to say, with its exit code."""
        self._listen(lambda *_: self._exit(code, ""))

    def restore(self) -> None:
        """From now on it does what it did before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _listen(self, handler: Handler) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._before is None:
            # Who set another way, such as to ignore it under nohup, keeps it.
            if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                return
            self._before = signal.default_int_handler
        signal.signal(signal.SIGINT, handler)

    @staticmethod
    def _exit(code: int, message: str) -> None:
        if message and sys.stderr is not None:
            os.write(2, message.encode())
        os._exit(code)


def say_interrupted(error: BaseException | None = None) -> int:
    """Print the line, with what the interrupted work has to say; give the exit code."""
    detail = "" if error is None else " ".join(str(error).split())
    if sys.stderr is not None:
        print(f"{_MESSAGE}{': ' if detail else ''}{detail}", file=sys.stderr)
    return INTERRUPTED
