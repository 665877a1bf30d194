"""Many fits in one process, and many that are aborted: memory, files and threads must stay flat.

Memory is counted three times: what is in RAM, which wanders because freed memory is kept; what
the C library has given out; and Python's own objects, by the blocks that they take.
"""

from __future__ import annotations

import ctypes
import gc
import math
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import FloatArray, Record
from torture_child import Child, last_thread, open_files, resident_bytes, tasks
from torture_fits import FIT_KINDS, work_of

# Parts of a run whose means are compared, after the first, in which caches fill.
BLOCKS = 20
MEASURES = ("resident", "allocated", "objects", "files", "threads")


class _Mallinfo(ctypes.Structure):
    """What glibc says of its heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated_bytes() -> float:
    """Bytes that the C library has given out and not got back; NaN where nobody says."""
    try:
        said = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return math.nan
    said.restype = _Mallinfo
    found = said()
    return float(found.uordblks + found.hblkhd)


def measures() -> list[float]:
    """All `MEASURES` now."""
    gc.collect()
    last_thread(1)
    return [resident_bytes(), allocated_bytes(), sys.getallocatedblocks(), open_files(), tasks()]


def many(fits: int, *, aborted: bool, kinds: Sequence[str] = FIT_KINDS) -> Record:
    """What so many fits leave behind, in a process of their own.

    Returns
    -------
    dict
        For each of `MEASURES` its drift per fit with the error of that, and its growth from the
        first block to the last; how many were aborted before they ended; the bits afterwards.
    """
    with Child(lambda _: _repeat(fits, aborted, kinds)) as child:
        try:
            table, hit, same = child.receive()
        except EOFError:
            return {"error": f"ended with {child.wait()}: {child.said()[-300:]}"}
    found: Record = {"fits": fits, "aborted": hit, "same": same}
    for name, column in zip(MEASURES, table.T, strict=True):
        found[name] = dict(zip(("drift", "error", "growth"), drift(column), strict=True))
    return found


def drift(values: Sequence[float]) -> tuple[float, float, float]:
    """Drift per step, its standard error, and the growth in all.

    The mean of the differences between the means of neighbouring blocks; what wanders without a
    direction has differences of either sign, however slowly it does.
    """
    blocks = [np.mean(block) for block in np.array_split(np.asarray(values, dtype=float), BLOCKS)]
    steps = np.diff(blocks[1:]) * BLOCKS / len(values)
    error = float(np.std(steps, ddof=1) / math.sqrt(len(steps)))
    return float(steps.mean()), error, float(blocks[-1] - blocks[1])


def is_flat(found: Record) -> bool:
    """Whether a drift is within two of its standard errors, or downwards."""
    return bool(found["drift"] <= 2 * found["error"])


def _repeat(fits: int, aborted: bool, kinds: Sequence[str]) -> tuple[FloatArray, int, bool]:
    """Fits of all kinds in turn; aborted ones at a moment that is uniform over their duration."""
    chance = random.Random(1)
    works = {kind: work_of(kind) for kind in kinds}
    expected, usual = {}, {}
    for kind, work in works.items():
        began = time.monotonic()
        expected[kind] = work(n_jobs=2)
        usual[kind] = time.monotonic() - began
    # Made before: what is noted must not take memory of its own.
    table, rows, hit = np.zeros((fits // len(kinds), len(MEASURES))), 0, 0
    for k in range(fits):
        kind = kinds[k % len(kinds)]
        if aborted:
            hit += _abort(works[kind], chance.uniform(0.001, usual[kind]))
        else:
            works[kind](n_jobs=2)
        if k % len(kinds) == len(kinds) - 1:  # after all kinds, so that they do not alternate
            table[rows] = measures()
            rows += 1
    return table, hit, all(work(n_jobs=2) == expected[kind] for kind, work in works.items())


def _abort(work: Callable[..., Any], moment: float) -> bool:
    """Begin a fit with a checkpoint and interrupt it after some seconds; whether it was in time."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with tempfile.TemporaryDirectory() as folder:
            signal.setitimer(signal.ITIMER_REAL, moment)
            work(n_jobs=2, checkpoint=Path(folder) / "checkpoint")
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False
