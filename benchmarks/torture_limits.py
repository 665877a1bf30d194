"""Limits of memory and of processes: the answer, or an error with a name; no abort, no hang.

The limits are those of the kernel: RLIMIT_AS, from barely above what the process has, and
RLIMIT_NPROC, under the id of a user that has no other processes (it does not count for root).
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from common import Record
from torture_child import Child, address_bytes
from torture_fits import work_of

from cstonet.errors import CStoNetError

METHODS = {"memory": ("wide", "arms", "wide", "mediation"), "processes": ("arms", "mar", "dose")}
THREADS = (1, 2, 3, 4, 8, 16, 32, 64, -1)
# Seconds after which a fit of less than one hangs.
PATIENCE = 120.0
# Megabytes of address space above those that the process has.
_LEAST, _MOST = 0.25, 1500.0
# Users that nobody is: each process has one of its own.
_FIRST_USER = 1_800_000_000


def settings_of(count: int, seed: int = 1) -> list[tuple[str, int]]:
    """Methods, ``kind/limit/threads``, and the seed of each."""
    chance, found = random.Random(seed), []
    for k in range(count):
        limit = ("memory", "processes")[k % 2]
        kind = METHODS[limit][k // 2 % len(METHODS[limit])]
        found.append((f"{kind}/{limit}/{chance.choice(THREADS)}", k))
    return found


@cache
def _without_limits(kind: str) -> str:
    with Child(lambda _: work_of(kind)(n_jobs=1)) as child:
        number: str = child.receive()
    return number


def trial(method: str, seed: int) -> Record:
    """One fit under a limit."""
    kind, what, threads = method.split("/")
    chance = random.Random(f"{method} {seed}")
    if what == "memory":
        # Small ones are where things go wrong: uniform on the scale of logarithms.
        allowed = _LEAST * (_MOST / _LEAST) ** chance.random()
        limit = _memory(int(2**20 * allowed))
    else:
        allowed = chance.randint(1, max(4, min(70, 2 * abs(int(threads)))))
        limit = _processes(allowed, _FIRST_USER + seed)
    work, expected = work_of(kind), _without_limits(kind)

    def suffer(_: Any) -> Record:
        lift = limit()
        try:
            found: Record = {"outcome": "answer", "same": work(n_jobs=int(threads)) == expected}
        except BaseException as error:
            lift()
            named = isinstance(error, CStoNetError | MemoryError)
            found = {"outcome": type(error).__name__, "named": named, "message": str(error)[:200]}
        lift()
        return found

    began = time.monotonic()
    record: Record = {"allowed": allowed}
    with Child(suffer) as child:
        if not child.heard(PATIENCE):
            return record | {"outcome": "hang", "message": child.where()}
        try:
            record |= child.receive()
        except EOFError:
            record |= {"outcome": f"ended with {child.wait()}", "message": child.said()}
    return record | {"seconds": time.monotonic() - began}


def _memory(extra: int) -> Callable[[], Callable[[], None]]:
    def limit() -> Callable[[], None]:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (address_bytes() + extra, hard))
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    return limit


def _processes(allowed: int, user: int) -> Callable[[], Callable[[], None]]:
    def limit() -> Callable[[], None]:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        else:  # the user's other processes count with this one
            raise PermissionError("limits of processes are for root to try: they need a new user")
        resource.setrlimit(resource.RLIMIT_NPROC, (allowed, hard))
        return lambda: resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))

    return limit
