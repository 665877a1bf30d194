"""Who may stop a fit, beside its own errors and Ctrl-C in its own thread.

An event of the user's; Ctrl-C that ended the main thread, of which other threads do not hear; and
the end of the interpreter, at which a thread that is still in the kernel would abort the process.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from cstonet.errors import OptionError, StoppedError
from cstonet.shown import shown

# How long the interpreter waits for fits in daemon threads to stop, in seconds.
_PATIENCE = 10.0
_LOOK = 0.01

Heed = Callable[[], None]
"""Returns if the work is to go on, and raises what ends it if not."""


@runtime_checkable
class StopSign(Protocol):
    """Something that can be set, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether work is to stop."""


class _UnderWay:
    """The fits of this process, which are told when the interpreter ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self.ending = False

    def add(self, number: int) -> None:
        """Count one more, or one fewer."""
        with self._lock:
            self._count += number

    def end(self) -> None:
        """Tell all of them to stop, and wait until they have."""
        self.ending = True
        until = time.monotonic() + _PATIENCE
        while self._count and time.monotonic() < until:
            time.sleep(_LOOK)


_under_way = _UnderWay()
# Called when no thread is left but daemons: whoever fits in one does not wait for the fit.
atexit.register(_under_way.end)


@contextmanager
def under_way() -> Iterator[None]:
    """A fit, which the interpreter does not pull the ground from under."""
    _under_way.add(1)
    try:
        yield
    finally:
        _under_way.add(-1)


def heed_others() -> None:
    """Raise if the interpreter ends, or if Ctrl-C has ended a main thread that is not this one."""
    if _under_way.ending:
        raise StoppedError("The fit was stopped because the interpreter ends.")
    if _main_thread_was_interrupted():
        raise KeyboardInterrupt


def heed(stop: object) -> Heed:
    """What work asks now and then.

    Parameters
    ----------
    stop : threading.Event or None
        Set when the work is to stop; None: nobody but `heed_others` stops it.

    Raises
    ------
    OptionError
        If it is no event.
    """
    if stop is None:
        return heed_others
    if not isinstance(stop, StopSign):
        raise OptionError(
            f"stop must be a threading.Event, or have a method is_set(); got {shown(stop)}."
        )

    def look() -> None:
        heed_others()
        if stop.is_set():
            raise StoppedError("The fit was stopped, because its stop event was set.")

    return look


def _main_thread_was_interrupted() -> bool:
    """Whether the main thread has died of Ctrl-C, and now waits for the others to end.

    A main thread that simply came to its end waits likewise, and wants them to finish.
    """
    if threading.main_thread().is_alive():
        return False
    return getattr(sys, "last_type", None) is KeyboardInterrupt
