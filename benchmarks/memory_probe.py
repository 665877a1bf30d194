"""Peak memory of a piece of Python: what it has at most, beside what it was given.

``with PeakMemory() as peak: ...`` asks the kernel, which keeps the largest resident memory
(VmHWM) and misses no peak, however short; pages of files that came in meanwhile count with it.
``PeakMemory(mapped=True)`` is for work on memory maps, whose pages must not count: it samples the
anonymous memory (RssAnon) from a process of its own, and may miss peaks of some milliseconds, or
longer ones on a busy machine. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

# Seconds between two looks.
_INTERVAL = 0.003


def status_bytes(field: str, pid: int | str = "self") -> int:
    """A size that the kernel tells about a process, such as RssAnon, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"this kernel does not tell {field}")


def anonymous_bytes(pid: int | str = "self") -> int:
    """Anonymous memory of a process that is in RAM, in bytes."""
    return status_bytes("RssAnon", pid)


class PeakMemory:
    """The largest memory of this process while a ``with`` block runs, pages of files left out.

    Parameters
    ----------
    mapped : bool
        Whether the block reads memory maps: then the peak is sampled.

    Attributes
    ----------
    before, peak : int
        Bytes at the beginning, and at most.
    """

    def __init__(self, *, mapped: bool = False) -> None:
        self.before = self.peak = 0
        self._mapped = mapped

    @property
    def above(self) -> int:
        """Bytes at most above those at the beginning."""
        return self.peak - self.before

    def __enter__(self) -> PeakMemory:
        if self._mapped:
            self._watcher = subprocess.Popen(
                [sys.executable, "-S", __file__, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert self._watcher.stdout is not None
            self._watcher.stdout.readline()  # it watches
        self.before = anonymous_bytes()
        self._of_files = status_bytes("RssFile") + status_bytes("RssShmem")
        # Makes the kernel forget the largest resident memory so far.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return self

    def __exit__(self, *_: object) -> None:
        if self._mapped:
            seen = int(self._watcher.communicate("")[0])
        else:
            seen = status_bytes("VmHWM") - self._of_files
        self.peak = max(self.before, seen)


def _watch(pid: int) -> None:
    """Print the largest anonymous memory of a process once standard input ends."""
    import select

    print("watching", flush=True)
    largest = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            largest = max(largest, anonymous_bytes(pid))
        except OSError:
            break
        time.sleep(_INTERVAL)
    print(largest, flush=True)


if __name__ == "__main__":
    _watch(int(sys.argv[1]))
