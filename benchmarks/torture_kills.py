"""Fits with a checkpoint, killed at random moments (kill -9) and called again: the same bits.

A trial is a fit that is killed once or several times, each time at a moment that is uniform over
the duration of an undisturbed fit, and then run to its end.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from common import Record
from torture_child import Child
from torture_fits import work_of

# Kinds of fits, and where their folds are trained.
METHODS = (
    "arms/threads",
    "mar/threads",
    "mediation/threads",
    "certify/threads",
    "arms/dask",
    "mar/dask",
    "mediation/dask",
)
# Trials of each of two backends: a cluster takes seconds to start, and each trial several of them.
_SHARE_OF_DASK = 4
# Seconds in which the workers of a scheduler that was killed must have ended.
_ORPHANS = 20.0


def methods_of(count: int) -> list[str]:
    """The methods of so many trials, in turn; one of four on a cluster."""
    here = [name for name in METHODS if name.endswith("threads")]
    there = [name for name in METHODS if name.endswith("dask")]
    return [
        there[(k // _SHARE_OF_DASK) % len(there)]
        if k % _SHARE_OF_DASK == _SHARE_OF_DASK - 1
        else here[(k - k // _SHARE_OF_DASK) % len(here)]
        for k in range(count)
    ]


def _call(method: str, folder: Path | None) -> Callable[[Any], Any]:
    """What a child runs: it says when it begins."""
    kind, backend = method.split("/")
    kept: dict[str, Any] = {} if folder is None else {"checkpoint": folder / "checkpoint"}
    if kind == "certify" and folder is not None:
        kept = {"path": folder / "draws.jsonl"}
    work = work_of(kind)

    def run(pipe: Any) -> Any:
        pipe.send("begins")
        if backend == "threads":
            return work(n_jobs=2, **kept)
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster),
        ):
            return work(backend="dask", **kept)

    return run


@cache
def undisturbed(method: str) -> tuple[str, float]:
    """The number of a fit that nobody disturbs, without a checkpoint, and seconds with one."""
    with Child(_call(f"{method.split('/')[0]}/threads", None)) as child:
        child.receive()
        expected = child.receive()
    with tempfile.TemporaryDirectory() as folder, Child(_call(method, Path(folder))) as child:
        child.receive()
        began = time.monotonic()
        found = child.receive()
        seconds = time.monotonic() - began
    if found != expected:
        raise RuntimeError(f"{method}: a checkpoint alone changes the bits")
    return expected, seconds


def trial(method: str, seed: int) -> Record:
    """One fit, killed and run again until it ends."""
    chance = random.Random(f"{method} {seed}")
    expected, usual = undisturbed(method)
    kills, moments, kept, orphans = chance.choice((1, 1, 2, 3)), [], [], 0
    record: Record = {"kills": 0, "same": False}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        while len(moments) < kills:
            with Child(_call(method, folder)) as child:
                child.receive()
                moment = chance.uniform(0, usual)
                if child.heard(moment):
                    break  # it was done before
                child.kill()
                moments.append(moment / usual)
                kept.append(sum(path.is_file() for path in folder.rglob("*")))
                orphans += len(child.survivors(_ORPHANS))
        began = time.monotonic()
        with Child(_call(method, folder)) as child:
            child.receive()
            try:
                record["same"] = child.receive() == expected
            except EOFError:
                record["error"] = f"ended with {child.wait()}: {child.said()[-300:]}"
    return record | {
        "kills": len(moments),
        "moments": [round(moment, 3) for moment in moments],
        "kept": kept,
        "orphans": orphans,
        "usual": usual,
        "resumed": time.monotonic() - began,
    }
