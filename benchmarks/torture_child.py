"""Processes that are made to suffer: forks of one that has everything imported already.

A fork costs nothing, so that what is killed, interrupted or starved is the fit and not the import
of the package. The process that forks must never have had a thread of its own.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from scale_watch import status_fields

_FORK = multiprocessing.get_context("fork")
# Field of /proc/PID/stat after the name, from the third on.
_SESSION = 3
# Seconds in which the last thread of a fit must have ended.
_THREADS_END = 1.0


class Child:
    """A forked process, leader of a session of its own, to talk with through a pipe.

    Parameters
    ----------
    work
        What it runs; it is given its end of the pipe, and what it returns is sent last.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        last_thread(1)  # the last fit's may be about to end
        if tasks() > 1:
            raise RuntimeError("this process has threads already: it must not be forked")
        self.pipe, end = _FORK.Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the child
        self._process = _FORK.Process(target=self._run, args=(work, end))
        self._process.start()
        end.close()

    def _run(self, work: Callable[[Any], Any], end: Any) -> None:
        os.setsid()
        os.dup2(self._said.fileno(), 2)
        faulthandler.enable(self._said)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end.send(work(end))

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def heard(self, seconds: float) -> bool:
        """Whether it says something, or ends, within these seconds."""
        return self.pipe.poll(max(0.0, seconds))

    def receive(self) -> Any:
        """What it said next; EOFError if it ended without a word."""
        return self.pipe.recv()

    def kill(self) -> None:
        """End it at once, as the machine does when memory is short."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """Its exit code; minus the number of the signal that ended it."""
        # It is not buried before all of its session have gone: its number must stay its own.
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def where(self) -> str:
        """Where it hangs: it is aborted to say so."""
        os.kill(self.pid, signal.SIGABRT)
        self.wait()
        return self.said()

    def said(self) -> str:
        """The end of what it wrote to its standard error."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()[-2000:]

    def survivors(self, patience: float) -> list[int]:
        """Processes of its session that have not ended within these seconds."""
        until = time.monotonic() + patience
        while (left := session_members(self.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        return left

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for pid in (self.pid, *session_members(self.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.join()
        self.pipe.close()
        self._said.close()


def session_members(leader: int) -> list[int]:
    """Ids of the living processes of a session; those that nobody has buried yet are dead."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    found = {pid: status_fields(pid) for pid in pids}
    return [
        pid
        for pid, fields in found.items()
        if fields[_SESSION : _SESSION + 1] == [str(leader)] and fields[0] not in "ZX"
    ]


def tasks() -> int:
    """Threads of this process, of any language; but for one of pyarrow's, which survives forks."""
    names = []
    for path in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            names.append((path / "comm").read_text().strip())
    return sum(name != "jemalloc_bg_thd" for name in names)


def last_thread(before: int) -> float:
    """Seconds until there are as many threads as before, at most `_THREADS_END`."""
    began = time.monotonic()
    while tasks() > before and time.monotonic() - began < _THREADS_END:
        time.sleep(0.001)
    return time.monotonic() - began


def open_files() -> int:
    """Files, pipes and sockets that this process holds open."""
    return len(os.listdir("/proc/self/fd"))


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def address_bytes() -> int:
    """Address space of this process, which RLIMIT_AS limits."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
