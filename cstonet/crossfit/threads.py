"""Threads that live for one run of tasks, and hold nobody up.

`concurrent.futures` has a pool, but its threads keep an interpreter from ending until their tasks
are done, and an error is all that is had of it where the system refuses a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call that waits for a thread."""

    future: Future[Any]
    work: Callable[[], Any]

    def run(self) -> None:
        """Make it, unless it was cancelled meanwhile."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except BaseException as error:
            self.future.set_exception(error)


class Crew:
    """Threads that make calls in the order in which they are handed in.

    Parameters
    ----------
    wanted
        How many there should be.

    Attributes
    ----------
    size : int
        How many there are: fewer, or none, where the system refuses more.
    """

    def __init__(self, wanted: int) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        for _ in range(wanted):
            # A daemon: whoever waits for the tasks decides whether they are waited for at the end.
            thread = threading.Thread(target=_serve, args=(self._calls,), daemon=True)
            self._threads.append(thread)  # before it is started: Ctrl-C may come in between
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                self._threads.pop()
                break
        self.size = len(self._threads)

    def __del__(self) -> None:
        # Ctrl-C may also come before a `with` has begun, or while it ends.
        self._dismiss()

    def _dismiss(self) -> None:
        """Let the threads end: each that hears it tells the next."""
        self._calls.put(None)

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """What a function will return."""
        future: Future[T] = Future()
        self._calls.put(_Call(future, lambda: function(*args, **kwargs)))
        return future

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._dismiss()
        for thread in self._threads:
            thread.join()


def _serve(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # what it returned is not held until the next one comes
    calls.put(None)
