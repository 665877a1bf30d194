"""One cell of `scale.py`, in a process of its own: one method, one data set, nothing else.

Imports the method's libraries, loads the data, says "ready", waits for a line, fits, and writes
what came out as JSON. The process that started it watches its memory and its time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

from common import Estimate
from own import Preset
from peers import Peer, parse_methods
from scale_data import Arrays, load_arrays
from scale_watch import members_of_group, seconds_of_process


def processor_seconds() -> float:
    """User and system seconds of this process, its threads and its children, ended or alive."""
    ended = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return ended + sum(map(seconds_of_process, members_of_group(os.getpgrp()) - {os.getpid()}))


def estimate(method: Preset | Peer, data: Arrays, *, jobs: int, seed: int) -> Estimate:
    """The mean effect by a method, from arrays."""
    if isinstance(method, Peer):
        return method.function(data, jobs, seed)
    import cstonet as cs

    model = cs.CausalStoNet(data.y, data.treat, data.X)
    effect = model.fit(method.preset, seed=seed, n_jobs=jobs, **method.changes).effect("ATE")
    return Estimate(effect.estimate, effect.se, effect.lower, effect.upper)


def wait_for_start() -> None:
    """Tell the watching process that all is loaded; from then on nothing else may be printed."""
    print("ready", flush=True)
    sys.stdin.readline()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("method", type=parse_methods)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memmap", action="store_true")
    options = parser.parse_args()
    # A group of its own can be watched and ended as a whole. It is no session of its own: Linux
    # shares processors out by session, and every cell would count as one more user.
    os.setpgrp()
    warnings.simplefilter("ignore")
    (method,) = options.method
    method.prepare()
    data = load_arrays(options.folder, memmap=options.memmap)
    wait_for_start()
    cpu, wall = processor_seconds(), time.perf_counter()
    try:
        result = estimate(method, data, jobs=options.jobs, seed=options.seed)
    except Exception as failure:
        record = {"error": f"{type(failure).__name__}: {failure}"}
    else:
        names = ("se", "lower", "upper")
        record = {"estimate": result.ate} | {name: getattr(result, name) for name in names}
    record["wall"] = time.perf_counter() - wall
    record["cpu"] = processor_seconds() - cpu
    options.out.write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main()
