"""What every accuracy benchmark shares: a data set with its truth, a result, and the runner.

Each fit of one method to one data set becomes one line of a JSON-lines file. Lines that are
there already are not computed again, so that an interrupted run is resumed by the same command.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Record: TypeAlias = dict[str, Any]

FORMULA = "y ~ treat | ."
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

# Two-sided 95 % quantile of the normal distribution.
Z95 = 1.959963984540054

# What the libraries read when they are loaded, so it must be set before a worker starts.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Variables(Protocol):
    """What a peer needs of a data set."""

    @property
    def y(self) -> FloatArray:
        """Outcomes, (n,)."""

    @property
    def treat(self) -> NDArray[np.int64]:
        """Treatments, (n,), 0 or 1."""

    @property
    def X(self) -> NDArray[np.floating[Any]]:
        """Covariates, (n, p)."""

    @property
    def binary(self) -> bool:
        """Whether the outcome is 0 or 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A data set and what is known about it.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``treat`` (0 or 1), covariates: all other columns.
    sample_ate : float
        Mean effect over the rows.
    ate : float or None
        Mean effect in the population the rows are drawn from, where it is known.
    tau : (n,) float64 or None
        Effect expected for each row, τ(x_i), where it is known.
    oracle : (float, float) or None
        Estimate with the true nuisances and its standard error, where they are known.
    supports : dict of frozenset of str or None
        Covariates that the "outcome" and the "treatment" depend on, where they are known.
    missing : str
        What the package is told about gaps in the covariates, see `cstonet.fit`.
    """

    data: pd.DataFrame
    sample_ate: float
    ate: float | None = None
    tau: FloatArray | None = None
    oracle: tuple[float, float] | None = None
    supports: dict[str, frozenset[str]] | None = None
    missing: str = "raise"

    @property
    def y(self) -> FloatArray:
        """Outcomes, (n,)."""
        return self.data["y"].to_numpy(np.float64)

    @property
    def treat(self) -> NDArray[np.int64]:
        """Treatments, (n,), 0 or 1."""
        return self.data["treat"].to_numpy(np.int64)

    @property
    def X(self) -> FloatArray:
        """Covariates as a matrix, factors as dummies: for methods that know no factors."""
        covariates = self.data.drop(columns=["y", "treat"])
        return pd.get_dummies(covariates, drop_first=True).to_numpy(np.float64)

    @property
    def binary(self) -> bool:
        """Whether the outcome is 0 or 1."""
        return bool(np.isin(self.y, (0, 1)).all())

    def rows(self, chosen: NDArray[np.bool_]) -> Problem:
        """Some of the rows, chosen by a mask (n,); the oracle knows the whole only.

        Where the rows' own effects are not known, their mean is taken for that of all.
        """
        tau = None if self.tau is None else self.tau[chosen]
        return Problem(
            data=self.data[chosen].reset_index(drop=True),
            sample_ate=self.sample_ate if tau is None else float(tau.mean()),
            ate=self.ate,
            tau=tau,
            supports=self.supports,
            missing=self.missing,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What a method says about a data set.

    Parameters
    ----------
    ate, se, lower, upper : float
        Mean effect, standard error and 95 % limits.
    cate : (n,) float64 or None
        Effect of each row.
    selected : dict of frozenset of str or None
        Covariates selected for the "outcome" and the "treatment", if the method selects.
    se_influence : float or None
        Standard error from the influence function's variance, where `se` is another one.
    extra : dict or None
        Figures of one benchmark only, by name, for its results file.
    """

    ate: float
    se: float
    lower: float
    upper: float
    cate: FloatArray | None = None
    selected: dict[str, frozenset[str]] | None = None
    se_influence: float | None = None
    extra: Record | None = None


class Case(Protocol):
    """A data set that a worker can make or load by itself."""

    @property
    def group(self) -> str:
        """Data sets that are averaged over have the same group."""

    @property
    def seed(self) -> int:
        """Number of the data set within its group; also the seed of the fit."""

    def load(self) -> Problem:
        """The data set."""


class Method(Protocol):
    """A way to estimate the effect."""

    @property
    def name(self) -> str:
        """Name on the command line and in the report."""

    @property
    def recipe(self) -> str:
        """What a result was computed with: another recipe is another result."""

    def prepare(self) -> None:
        """Import what is needed; raise ImportError where it is not installed."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """Estimate the effect with this many threads."""


def selection_counts(truth: frozenset[str], selected: frozenset[str]) -> dict[str, int]:
    """Sizes of Ŝ, Ŝ without S, S without Ŝ, and S: what the rates over data sets are made of."""
    return {
        "selected": len(selected),
        "false": len(selected - truth),
        "missed": len(truth - selected),
        "true": len(truth),
    }


def measure(problem: Problem, estimate: Estimate) -> Record:
    """An estimate beside the truth, as what is written to the results file."""
    pehe = None
    if problem.tau is not None and estimate.cate is not None:
        pehe = float(np.sqrt(np.mean((estimate.cate - problem.tau) ** 2)))
    selection = None
    if problem.supports is not None and estimate.selected is not None:
        selection = {
            model: selection_counts(support, estimate.selected[model])
            for model, support in problem.supports.items()
        }
    n, columns = problem.data.shape
    return {
        "n": n,
        "p": columns - 2,
        "estimate": estimate.ate,
        "se": estimate.se,
        "se_influence": estimate.se_influence,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "sample_ate": problem.sample_ate,
        "ate": problem.ate,
        "oracle": None if problem.oracle is None else list(problem.oracle),
        "y_sd": float(problem.y.std()),
        "selection": selection,
        "pehe": pehe,
        **(estimate.extra or {}),
    }


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


def number_range(text: str) -> list[int]:
    """Numbers of ``"101:120"`` (both ends included), ``"1,2,5"`` or a mixture."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        numbers += range(int(first), int(last or first) + 1)
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text!r} holds no number; write 101:120 or 1,2,5")
    return numbers
