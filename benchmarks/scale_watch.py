"""Watching a process from outside: its memory, its processor time, and when to end it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.01
# Wall seconds per processor second that a cell is given.
PATIENCE = 3
# Processes are counted once in so many looks at the memory of the first.
LOOKS_PER_COUNT = 20


@dataclass(slots=True)
class Watched:
    """What a process took, as seen from outside; `stopped` says why it had to be ended."""

    peak_mb: float = 0.0
    wall: float = 0.0
    cpu: float = 0.0
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor seconds and megabytes of anonymous memory that a cell may take.

    Processor seconds, so that it does not matter what else the machine does; a cell that waits
    more than it works is stopped at `PATIENCE` times as many wall seconds.
    """

    seconds: float
    megabytes: float

    def exceeded(self, seen: Watched) -> str:
        """Which of them is exceeded, as an error's text; empty if none is."""
        if seen.cpu > self.seconds:
            return f"TimeoutError: stopped after {self.seconds:g} CPU s"
        if seen.wall > PATIENCE * self.seconds:
            return f"TimeoutError: stopped after {PATIENCE * self.seconds:g} s"
        if seen.peak_mb > self.megabytes:
            return f"MemoryError: stopped above {self.megabytes / 1000:g} GB"
        return ""


def status_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name, from the third on; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def seconds_of_process(pid: int) -> float:
    """User and system seconds of a living process and of its ended children."""
    return sum(map(int, status_fields(pid)[11:15])) / TICKS


def members_of_group(group: int) -> set[int]:
    """Ids of the living processes of a process group."""
    pids = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    return {pid for pid in pids if status_fields(pid)[2:3] == [str(group)]}


def anonymous_megabytes(pids: Iterable[int]) -> float:
    """Anonymous resident memory of these processes; those that have ended count nothing."""
    kilobytes = 0
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        _, found, rest = status.partition("RssAnon:")
        kilobytes += int(rest.split()[0]) if found else 0
    return 1.024e-3 * kilobytes


def watch(process: subprocess.Popen[str], limits: Limits) -> Watched:
    """Follow a process from now until it ends or exceeds a limit.

    Parameters
    ----------
    process
        Leader of a process group of its own.
    limits
        When to end all processes of the group.

    Returns
    -------
    Watched
        Memory above what there is now, seconds from now on.
    """
    pids = {process.pid}
    before, cpu_before = anonymous_megabytes(pids), seconds_of_process(process.pid)
    began, looks, seen = time.monotonic(), 0, Watched()
    while True:
        ended, _, usage = os.wait4(process.pid, os.WNOHANG)
        seen.wall = time.monotonic() - began
        if ended:
            process.returncode = 0
            seen.cpu = usage.ru_utime + usage.ru_stime - cpu_before
            return seen
        if looks % LOOKS_PER_COUNT == 0:
            pids = {process.pid} | members_of_group(process.pid)
        looks += 1
        seen.peak_mb = max(seen.peak_mb, anonymous_megabytes(pids) - before)
        seen.cpu = sum(map(seconds_of_process, pids)) - cpu_before
        if not seen.stopped and (stopped := limits.exceeded(seen)):
            seen.stopped = stopped
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
