"""Training where the system has no threads or no memory left: the same bits, or MemoryError."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IS_LINUX = sys.platform == "linux"

pytestmark = [
    pytest.mark.skipif(not IS_LINUX, reason="limits of Linux"),
    pytest.mark.skipif("CSTONET_SEAMS" in os.environ, reason="sanitizers take all the memory"),
]

# Trains eight networks of some 10 MB each in a child of its own, under a limit that it sets, and
# prints what came of it.
TRAIN = f"""
import os, resource, sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / "seams")!r}]
import numpy as np
from test_arguments import OPTIONS, latent, observed
from cstonet import _core
from cstonet.network.spec import NetworkSpec

N, P = 40, 2000
SPEC = NetworkSpec(
    P, "tanh", ((latent(256),), (latent(2), observed("bernoulli", 1, feeds=True)),
                (observed("gaussian", 1),)),
)
rng = np.random.default_rng(0)
data = _core.Dataset(rng.normal(size=(N, P)), np.zeros(P), np.ones(P), 5.0, 0)
visible = np.column_stack([np.arange(N) % 2, rng.normal(size=N)]).astype(np.float32)
TASKS = [(0, start, np.arange(N), np.arange(0)) for start in range(8)]

def train(threads):
    weight = np.ones(N, dtype=np.float32)
    results = _core.train(
        SPEC, OPTIONS, data, np.arange(P), visible, weight, TASKS, 1, threads, trace=False
    )
    return b"".join(result.weights[-1].tobytes() for result in results)

expected = train(1)

def attempt(threads, limit):
    child = os.fork()
    if child == 0:
        limit()
        try:
            outcome = 10 if train(threads) == expected else 12
        except MemoryError:
            outcome = 11
        os._exit(outcome)
    return {{10: "same", 11: "MemoryError", 12: "other"}}.get(
        os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "died"
    )
"""


def outcomes(settings: str, *, preload: Path | None = None) -> list[str]:
    """Outcomes of `settings`, a piece of code that prints what `attempt` returns."""
    environment = os.environ | ({"LD_PRELOAD": str(preload)} if preload else {})
    done = subprocess.run(
        [sys.executable, "-c", TRAIN + settings],
        env=environment | {"OPENBLAS_NUM_THREADS": "1"}, cwd=HERE.parents[1],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_a_single_thread_the_caller_does_the_work() -> None:
    # Root is not held to the limit: it becomes somebody else.
    found = outcomes("""
def no_threads():
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(65500, 65500, 65500)
        os.setresuid(65500, 65500, 65500)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    import threading
    try:
        threading.Thread(target=print).start()
    except RuntimeError:
        return
    os._exit(99)

for threads in (1, 2, 8, 64):
    print(attempt(threads, no_threads))
""")
    assert found == ["same"] * 4


def test_memory_limits_end_in_the_answer_or_in_memory_error() -> None:
    found = outcomes("""
def room(megabytes):
    def limit():
        with open("/proc/self/statm") as status:
            now = int(status.read().split()[0]) * resource.getpagesize()
        most = now + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return limit

for megabytes in (0, 1, 3, 10, 20, 40, 80, 160, 4000):
    for threads in (1, 3, 64):
        print(attempt(threads, room(megabytes)))
""")
    assert set(found) == {"same", "MemoryError"}
    assert found[-3:] == ["same"] * 3


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.skipif(not IS_LINUX or not ctypes.CDLL(None).gnu_get_libc_version, reason="glibc")
def test_memory_refused_to_threads_alone_is_memory_error(tmp_path: Path) -> None:
    """The first exception of a thread must not need memory: the C library ends the process."""
    library = tmp_path / "refused_memory.so"
    source = str(HERE / "refused_memory.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", str(library)], check=True)
    found = outcomes(
        f"""
import ctypes
refuse_after = ctypes.CDLL({str(library)!r}).refuse_after
refuse_after.argtypes = [ctypes.c_long]
# Of a few hundred. The first two of a thread are for its exceptions.
for granted in (0, 2, 3, 5, 8, 20, 50, 90):
    print(attempt(4, lambda: refuse_after(granted)))
""",
        preload=library,
    )
    assert found[0] == "same"  # threads that cannot even throw leave all work to the caller
    assert found[1:] == ["MemoryError"] * 7
