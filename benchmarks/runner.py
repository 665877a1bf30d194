"""Run methods on data sets in worker processes, and keep what they say in a file.

Each fit of one method to one data set becomes one line of a JSON-lines file. Lines that are
there already are not computed again, so that an interrupted run is resumed by the same command.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from common import RESULTS, ROOT, Case, Method, Record, measure

# What the libraries read when they are loaded, so it must be set before a worker starts.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body once it has taken this long."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"stopped after {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@cache
def commit() -> str:
    """The commit at hand, or an empty string outside a repository.

    A "+" behind it says that tracked files have changed since. The results do not count, which
    every run changes.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "--short", "HEAD")
    results = RESULTS.relative_to(ROOT).as_posix()
    changed = git("diff", "--name-only", "HEAD", "--", ".", f":(exclude){results}")
    return f"{head}+" if head and changed else head


@cache
def machine() -> dict[str, object]:
    """What a result was computed on."""
    from cstonet import _core  # not at the top: other packages are measured without this one

    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next(
                line.split(":")[1].strip() for line in info if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return {
        "cpu": model,
        "level": _core.level(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
    }


def run_one(case: Case, method: Method, threads: int, limit: float) -> Record:
    """Fit one method to one data set; a failure is a result too."""
    # A worker's standard error is the benchmark's progress: peers' advice does not belong there.
    warnings.simplefilter("ignore")
    record: Record = {"group": case.group, "seed": case.seed, "method": method.name}
    record["recipe"] = method.recipe
    record["threads"] = threads
    record["commit"] = commit()
    problem = case.load()
    method.prepare()
    began, used = time.perf_counter(), time.process_time()
    try:
        with time_limit(limit):
            estimate = method.estimate(problem, threads=threads, seed=case.seed)
    except Exception as failure:
        estimate = None
        record["error"] = f"{type(failure).__name__}: {failure}"
    record["seconds"] = time.perf_counter() - began
    record["cpu"] = time.process_time() - used
    return record if estimate is None else record | measure(problem, estimate)


class Keyed(Protocol):
    """What a result can be told apart by."""

    @property
    def key(self) -> tuple[str, int, str, str]:
        """As `key_of` has it of a result."""


def key_of(record: Record) -> tuple[str, int, str, str]:
    """What makes a result the one of this data set, method and recipe."""
    return record["group"], record["seed"], record["method"], record.get("recipe", "")


def read_records(path: Path) -> list[Record]:
    """Results in a file, the last one of each data set and method; none if there is no file.

    Results of an older recipe count until there is a newer one.
    """
    if not path.exists():
        return []
    records = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            if number < len(lines):
                raise ValueError(f"{path}, line {number}: not a result; remove the line") from None
            continue  # the run was interrupted while it wrote
        records[key_of(record)[:3]] = record
    return list(records.values())


def open_for_append(path: Path) -> Any:
    """The file, opened at the end of its last complete line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    if content and not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    return path.open("a", encoding="utf-8")


def available(methods: Iterable[Method]) -> list[Method]:
    """The methods that are installed; says which are not."""
    usable = []
    for method in methods:
        try:
            method.prepare()
        except ImportError as missing:
            print(f"{method.name}: skipped, not installed ({missing})", file=sys.stderr)
        else:
            usable.append(method)
    return usable


def run(
    cases: Sequence[Case],
    methods: Sequence[Method],
    path: Path,
    *,
    jobs: int,
    threads: int,
    limit: float,
    retry: bool = False,
) -> None:
    """Fit every method to every data set and append the results to a file.

    Parameters
    ----------
    cases, methods
        Data sets and methods.
    path
        Results file; what it holds already is not computed again.
    jobs
        Worker processes, each of which fits one method to one data set at a time.
    threads
        Threads of each fit.
    limit
        Seconds after which a fit is given up and recorded as failed.
    retry
        Whether to compute failed results again.
    """
    done = {key_of(r) for r in read_records(path) if not (retry and "error" in r)}
    methods = available(methods)
    tasks = [
        (case, method)
        for case in cases
        for method in methods
        if (case.group, case.seed, method.name, method.recipe) not in done
    ]
    print(f"{len(tasks)} fits to do, {len(cases) * len(methods) - len(tasks)} done before")
    append_results(
        [partial(run_one, *task, threads, limit) for task in tasks], path, jobs, threads, describe
    )


def append_missing(
    cases: Sequence[Keyed],
    run_case: Callable[[Any], Record],
    path: Path,
    jobs: int,
    describe: Callable[[Record], str],
) -> None:
    """Run the cases that a file does not hold yet, one thread each, and append their results.

    Parameters
    ----------
    cases
        What there is to run.
    run_case
        Runs one of them; must be picklable.
    path
        Results file.
    jobs
        Worker processes.
    describe
        One line of progress for a result.
    """
    done = {key_of(record) for record in read_records(path)}
    todo = [case for case in cases if case.key not in done]
    print(f"{len(todo)} fits to do, {len(cases) - len(todo)} done before", flush=True)
    append_results([partial(run_case, case) for case in todo], path, jobs, 1, describe)


def append_results(
    tasks: Sequence[Callable[[], Record]],
    path: Path,
    jobs: int,
    threads: int,
    describe: Callable[[Record], str],
) -> None:
    """Run tasks in worker processes and append what each returns to a file, as it comes.

    Parameters
    ----------
    tasks
        What to run; each must be picklable.
    path
        Results file.
    jobs, threads
        Worker processes, and threads of each.
    describe
        One line of progress for a result.
    """
    if not tasks:
        return
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)
    with (
        open_for_append(path) as results,
        ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        futures = [pool.submit(task) for task in tasks]
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                record = future.result()
                results.write(json.dumps(record) + "\n")
                results.flush()
                print(f"[{count}/{len(tasks)}] {describe(record)}", flush=True)
        except BaseException:
            # What is under way ends; the rest waits for the next run.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def describe(record: Record) -> str:
    """One line of progress."""
    head = f"{record['group']} #{record['seed']} {record['method']} ({record['seconds']:.1f} s): "
    if "error" in record:
        return f"{head}{record['error']}"
    error = record["estimate"] - record["sample_ate"]
    return head + f"error {error:+.4f}, SE {record['se']:.4f}"
