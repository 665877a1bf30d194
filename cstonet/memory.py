"""Memory of this process: how much there is, and what is said when it does not suffice."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cstonet.errors import NotEnoughMemoryError

# What a thread may take beside its work: a stack, an arena of the allocator, buffers of libraries
# of linear algebra. Address space, most of it, which a limit (ulimit -v) counts all the same.
_PER_THREAD = 2**27
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def readable(size: float) -> str:
    """A number of bytes for people: ``4.0 GB``."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.0f} bytes" if power == 0 else f"{size:.1f} {_UNITS[power]}"


def available_bytes() -> int | None:
    """Memory that the process may still take without swapping, None where nobody says.

    The least of what the machine has left and what its control group and its limits leave.
    """
    limits = [found for found in (_of_machine(), _of_group(), _of_process()) if found is not None]
    return max(0, min(limits)) if limits else None


@contextmanager
def explained(task: str, needs: str) -> Iterator[None]:
    """Turn a lack of memory into an error that says what it was for and what to do.

    Parameters
    ----------
    task
        What is being done, for the message.
    needs
        The size of the data in words.

    Raises
    ------
    NotEnoughMemoryError
        In place of NumPy's or the kernel's own error.
    """
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except MemoryError as error:
        wanted = f" ({error})" if str(error) else ""
        raise NotEnoughMemoryError(
            f"There is not enough memory for {task}{wanted}: {needs}; {_left()}. Pass the "
            "covariates as float32, as an np.memmap or as a Parquet file, of which little has to "
            "be in memory; set pack_bytes=0; use fewer threads (n_jobs=1); or keep fewer rows or "
            "columns."
        ) from error


def sizes(data: object) -> str:
    """The size of a matrix or frame (n, p) in words, for :func:`explained`."""
    shape = getattr(data, "shape", None)
    # A Dask DataFrame does not know its number of rows before it is computed.
    if not isinstance(shape, tuple) or len(shape) != 2 or not isinstance(shape[0], int):
        return "the size of the data is not known"
    n, p = shape
    return f"{n} rows x {p} columns are {readable(4.0 * n * p)} in float32"


def affordable_threads(wanted: int) -> int:
    """How many of so many threads there is memory for, possibly none.

    A thread that finds none when it has begun takes the process with it: what it needs first is had
    by libraries of linear algebra and of the system, which know no other answer.
    """
    if wanted < 1:
        return wanted
    left = available_bytes()
    return wanted if left is None else max(0, min(wanted, left // _PER_THREAD))


def release_freed() -> None:
    """Give memory that was freed back to the system, where the allocator keeps it.

    The threads of a training leave arenas of their own behind, which nobody else would use.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """The C library's malloc_trim; None if it has none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


def _left() -> str:
    available = available_bytes()
    if available is None:
        return "how much memory is left is not known here"
    return f"about {readable(available)} are left"


def _of_machine() -> int | None:
    found = _fields("/proc/meminfo").get("MemAvailable")
    if found is not None:
        return found
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


# Where control groups of the second and of the first version tell their limit and their use, and
# what they call pages of files that are given up when somebody needs the room.
_GROUP_FILES = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def _of_group() -> int | None:
    """What the control group of a container leaves, the one that it sees as its top."""
    for folder, most, used, freed in _GROUP_FILES:
        try:
            limit, current = (
                int((Path(folder) / name).read_text(encoding="ascii")) for name in (most, used)
            )
            pages = (Path(folder) / "memory.stat").read_text(encoding="ascii").split()
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
        return limit - current + int(dict(zip(pages[::2], pages[1::2], strict=False)).get(freed, 0))
    return None


def _of_process() -> int | None:
    """What the limit of the address space (ulimit -v) leaves."""
    try:
        import resource  # not everywhere

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError, ValueError):
        return None
    used = _fields("/proc/self/status").get("VmSize")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _fields(path: str) -> dict[str, int]:
    """Sizes in bytes from a table of the system such as /proc/meminfo; empty if there is none."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines]
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if row[2:] == ["kB"]}
