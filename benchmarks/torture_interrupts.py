"""Ctrl-C at random moments of all kinds of fits: how soon it is heard, and what it leaves.

The signal comes from another process, as that of a terminal does. Latency is from the call of
`kill` to the moment at which KeyboardInterrupt has left the fit, on one clock.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from common import Record
from torture_child import Child, last_thread, tasks
from torture_fits import FIT_KINDS, work_of

# Kinds, and threads of each.
METHODS = tuple(
    f"{kind}/{threads}" for kind in (*FIT_KINDS, "certify", "large") for threads in (1, 2, 4)
)
# Interrupts of one process.
ROUNDS = 5


def rounds(method: str, seed: int, count: int) -> Iterator[Record]:
    """Interrupt one process so often; a round whose fit had ended before the signal is repeated."""
    chance = random.Random(f"{method} {seed}")
    with Child(lambda pipe: _suffer(method, pipe)) as child:
        usual = child.receive()
        done = attempts = 0
        while done < count and attempts < 5 * count:
            attempts += 1
            child.pipe.send("again")
            child.receive()
            time.sleep(chance.uniform(0, usual))
            sent = time.monotonic()
            os.kill(child.pid, signal.SIGINT)
            try:
                found = child.receive()
            except EOFError:
                yield {"error": f"ended with {child.wait()}: {child.said()[-300:]}"}
                return
            if found.pop("late"):
                continue
            done += 1
            caught = found.pop("caught")
            yield found | {"latency": caught - sent, "load": os.getloadavg()[0]}
        child.pipe.send(None)


def _suffer(method: str, pipe: Any) -> None:
    """What the process does: a fit that is interrupted, and one that is not, again and again."""
    kind, threads = method.split("/")
    work = work_of(kind)
    again = work_of("arms") if kind == "large" else work
    expected = again(n_jobs=int(threads))
    began = time.monotonic()
    work(n_jobs=int(threads))
    before = tasks()
    handled: list[float] = []

    def handle(*_: object) -> None:
        handled.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    pipe.send(time.monotonic() - began)
    while pipe.recv() is not None:
        handled.clear()
        late = swallowed = False
        try:
            pipe.send("begins")
            work(n_jobs=int(threads))
            swallowed = bool(handled)
            late = not swallowed
            while not handled:
                signal.pause()
        except KeyboardInterrupt:
            pass
        caught = time.monotonic()
        left = last_thread(before)
        pipe.send(
            {
                "late": late,
                "caught": caught,
                "swallowed": swallowed,
                "threads_left": max(0, tasks() - before) + threading.active_count() - 1,
                "seconds_to_last_thread": left,
                "same": True if late else again(n_jobs=int(threads)) == expected,
            }
        )
