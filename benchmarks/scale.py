"""Cost of a fit against n and p: processor seconds, memory and error, beside the peers.

Every cell is one method on one data set in a fresh process: libraries loaded, float32 data read,
then the fit, whose processor seconds (user and system, threads and children included), wall
seconds and peak of anonymous memory above what was there before are recorded. A cell that takes
too long or too much memory is stopped and recorded as such; its method is not tried on data sets
with no fewer rows and columns, and that is recorded too. Results are lines of
``benchmarks/results/scale.jsonl``; what is there is not computed again, unless the package's
sources have changed since. ``benchmarks/report.py`` makes the page of them.

    python benchmarks/scale.py --quick                   # minutes: does everything run?
    python benchmarks/scale.py --methods calibrated,stonet
    python benchmarks/scale.py --methods doubleml-lightgbm-small,doubleml-lasso --limit 1200
    python benchmarks/scale.py --parts threads,memmap,start
    python benchmarks/report.py

Parts: "n" and "p" are the two axes, "both" is large in both, "threads" compares two threads with
one, "memmap" fits a file of 4 GB, "start" times import and first fit. Data files are made in
build/scale and removed after use.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

from common import RESULTS, ROOT, Record, number_range
from own import Preset
from peers import Peer, parse_methods
from runner import THREAD_VARIABLES, available, commit, key_of, open_for_append, read_records
from scale_data import DEFAULT, FILE, LIGHTGBM, METHODS, Size, read_truth
from scale_watch import Limits, Watched, watch

HERE = Path(__file__).parent

SIZES: dict[str, tuple[Size, ...]] = {
    "n": (
        *(Size("2", n, 50) for n in (500, 1000, 2000, 5000, 10_000, 30_000, 100_000)),
        Size("2", 1_000_000, 100),
    ),
    "p": tuple(Size("1", 1000, p) for p in (50, 200, 1000, 5000, 20_000, 100_000)),
    "both": (Size("2", 100_000, 2000),),
    "threads": (Size("2", 10_000, 50), Size("2", 1_000_000, 100)),
    "memmap": (Size("2", 1_000_000, 1000),),
}
QUICK_SIZES: dict[str, tuple[Size, ...]] = {
    "n": (Size("2", 500, 10), Size("2", 1000, 10)),
    "p": (Size("1", 300, 50), Size("1", 300, 300)),
    "threads": (Size("2", 1000, 10),),
    "memmap": (Size("2", 1000, 50),),
}
PARTS = (*SIZES, "start")
# Where only the cost is of interest, and for two threads of the cheapest peer.
METHODS_OF_PART = {"threads": (DEFAULT, LIGHTGBM), "memmap": (DEFAULT,)}

# Data sets of more values than this are drawn once, smaller ones once per seed.
SINGLE_SEED_VALUES = 2 * 10**6
# Where a package's name is not that of its module.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
GIVEN_UP = ("TimeoutError", "MemoryError", "NotRun")


@dataclass(frozen=True, slots=True)
class Cell:
    """One method on one data set.

    Parameters
    ----------
    size : Size
        The data.
    seed : int
        That of the data and of the fit.
    method : Preset or Peer
        What is fitted.
    jobs : int
        Threads.
    memmap : bool
        Whether the covariates are a file's map and not an array in memory.
    """

    size: Size
    seed: int
    method: Preset | Peer
    jobs: int = 1
    memmap: bool = False

    @property
    def group(self) -> str:
        """Data sets that differ only by their seed."""
        kind = "memmap" if self.memmap else "array"
        size = self.size
        return f"simulation {size.simulation}, n={size.n}, p={size.p}, {kind}, jobs={self.jobs}"

    @property
    def recipe(self) -> str:
        """Own methods: a digest of the package's sources. Peers do not depend on them."""
        own = f"-{code_digest()}" if isinstance(self.method, Preset) else ""
        return f"{self.method.recipe}{own}"

    def head(self) -> Record:
        """What the record says whether or not the fit succeeds."""
        return {
            "group": self.group,
            "seed": self.seed,
            "method": self.method.name,
            "recipe": self.recipe,
            "simulation": self.size.simulation,
            "n": self.size.n,
            "p": self.size.p,
            "jobs": self.jobs,
            "memmap": self.memmap,
            "input_mb": 4e-6 * self.size.values,
            "commit": commit(),
            "versions": versions(self.method),
        }


@cache
def code_digest() -> str:
    """Digest of all sources that a fit is made of."""
    digest = hashlib.sha256()
    for folder, pattern in (("cstonet", "*.py"), ("csrc", "*.?pp")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def versions(method: Preset | Peer) -> dict[str, str]:
    """Versions of the libraries of a peer."""
    names = {m.partition(".")[0] for m in method.modules} if isinstance(method, Peer) else set()
    return {name: _version(DISTRIBUTIONS.get(name, name)) for name in sorted(names)}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # its cells will say so
        return "not installed"


def run_cell(cell: Cell, folder: Path, limits: Limits) -> Record:
    """Fit in a fresh process; a failure is a result too."""
    # OpenMP's threads wait asleep: on a machine that does other things, those that spin would be
    # charged for the others' time.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    environment |= dict.fromkeys(THREAD_VARIABLES, str(cell.jobs))
    with tempfile.TemporaryDirectory() as scratch:
        out, log = Path(scratch) / "out.json", Path(scratch) / "log"
        command = [sys.executable, str(HERE / "scale_cell.py"), str(folder)]
        command += [cell.method.name, str(out), f"--jobs={cell.jobs}", f"--seed={cell.seed}"]
        command += ["--memmap"] if cell.memmap else []
        with log.open("w") as messages:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=environment,
            )
            with process:
                while (line := process.stdout.readline()) and line.strip() != "ready":
                    pass  # what a library prints while it is loaded
                seen = Watched()
                if line:
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    seen = watch(process, limits)
        record = cell.head() | {"wall": seen.wall, "cpu": seen.cpu, "peak_mb": seen.peak_mb}
        if seen.stopped:
            return record | {"error": seen.stopped}
        if not out.exists():
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            return record | {"error": f"ProcessError: {' '.join(last) or 'ended without a result'}"}
        return record | json.loads(out.read_text(encoding="utf-8")) | read_truth(folder)


def smaller_failure(cell: Cell, records: Iterable[Record]) -> str:
    """Why there is no point in trying, or an empty string: a smaller cell was given up."""
    for r in records:
        same = (r["method"], r["recipe"], r.get("jobs"), r.get("memmap")) == (
            cell.method.name,
            cell.recipe,
            cell.jobs,
            cell.memmap,
        )
        given_up = r.get("error", "").startswith(GIVEN_UP)
        smaller = same and r["n"] <= cell.size.n and r["p"] <= cell.size.p
        if given_up and smaller and key_of(r)[:3] != (cell.group, cell.seed, cell.method.name):
            reason = r["error"].partition("after its ")[2] or r["error"]
            at = f"n={r['n']}, p={r['p']}"
            return f"NotRun: after its {reason}" + ("" if " at n=" in reason else f" at {at}")
    return ""


def cells_of(
    parts: Sequence[str],
    methods: Sequence[Preset | Peer],
    seeds: Sequence[int],
    *,
    quick: bool,
    jobs: int = 1,
) -> Iterator[Cell]:
    """All cells, the small ones first: seeds, sizes, then methods."""
    sizes = QUICK_SIZES if quick else SIZES
    asked = [(part, size) for part in parts for size in sizes.get(part, ())]
    asked.sort(key=lambda pair: pair[1].values)
    for seed in seeds:
        for part, size in asked:
            if seed != seeds[0] and size.values > SINGLE_SEED_VALUES:
                continue
            for method in methods:
                if method.name in METHODS_OF_PART.get(part, (method.name,)):
                    memmap = part == "memmap"
                    # Both numbers of threads, one right after the other.
                    for threads in (1, 2) if part == "threads" else (jobs,):
                        yield Cell(size, seed, method, jobs=threads, memmap=memmap)


BUSY = """
import time
began = time.perf_counter()
total = 0
for i in range(10_000_000):
    total += i * i
print(time.perf_counter() - began)
"""


def machine_scaling(repetitions: int = 3) -> float:
    """How much more two busy processes get done than one: 2 on an idle machine of two cores.

    The best of several, since whatever else runs can only make it less.
    """

    def seconds(count: int) -> float:
        running = [
            subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        return max(float(process.communicate()[0]) for process in running)

    return max(2 * seconds(1) / seconds(2) for _ in range(repetitions))


FIT = "cs.datasets.simulation2(n=500, p=10, seed=1)"
STARTS = {
    "python": "pass",
    "import": "import cstonet",
    "first fit, frame": f"import cstonet as cs; s = {FIT}; cs.fit(s.formula, s.data, seed=1)",
    "first fit, arrays": (
        f"import cstonet as cs; d = {FIT}.data.to_numpy(); "
        "cs.CausalStoNet(d[:, 0], d[:, 1].astype(int), d[:, 2:]).fit(seed=1)"
    ),
}


def start_head(name: str) -> Record:
    """What the record of a start says before it is timed."""
    head = {"group": "start", "seed": 0, "method": name, "recipe": code_digest()}
    return head | {"commit": commit()}


def time_start(name: str, repetitions: int = 5) -> Record:
    """Fastest of several fresh processes that do this and nothing else."""
    walls, cpus = [], []
    for _ in range(repetitions):
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", STARTS[name]], cwd=tempfile.gettempdir())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{name!r} failed; see above")
        walls.append(time.perf_counter() - began)
        cpus.append(usage.ru_utime + usage.ru_stime)
    return start_head(name) | {"wall": min(walls), "cpu": min(cpus)}


def describe(record: Record) -> str:
    """One line of progress."""
    head = f"{record['group']} #{record['seed']} {record['method']}: "
    head += f"{record.get('cpu', 0):.2f} CPU s, {record.get('wall', 0):.2f} s"
    if "peak_mb" in record:
        head += f", {record['peak_mb']:.0f} MB above {record['input_mb']:.0f} MB"
    if "error" in record:
        return f"{head}; {record['error']}"
    if "estimate" in record:
        head += f", error {record['estimate'] - record['sample_ate']:+.4f}"
    return head


class Runner:
    """Runs cells one after the other and appends what comes out to the results file."""

    def __init__(self, path: Path, data: Path, limits: Limits) -> None:
        self.path, self.data, self.limits = path, data, limits
        self.records = read_records(path)

    def done(self, *, retry: bool, accept_older: bool) -> set[tuple[object, ...]]:
        """Keys of the results that need not be computed again."""
        counted = [r for r in self.records if not (retry and "error" in r)]
        return {key_of(r)[:3] if accept_older else key_of(r) for r in counted}

    def append(self, record: Record) -> None:
        """Write a result at once: an interrupted run loses only what is under way."""
        self.records.append(record)
        with open_for_append(self.path) as file:
            file.write(json.dumps(record) + "\n")
        print(describe(record), flush=True)

    def run(self, cell: Cell) -> None:
        """Fit a cell, unless its method failed on less."""
        hopeless = smaller_failure(cell, self.records)
        if hopeless:
            self.append(cell.head() | {"error": hopeless})
            return
        scaling = {"machine_scaling": machine_scaling()} if cell.jobs == 2 else {}
        folder = self.make_data(cell)
        self.append(run_cell(cell, folder, self.limits) | scaling)

    def time_starts(self) -> None:
        """Time import and first fits, as far as the present sources have not been timed."""
        done = set(map(key_of, self.records))
        for name in STARTS:
            if key_of(start_head(name)) not in done:
                self.append(time_start(name))

    def make_data(self, cell: Cell) -> Path:
        """The cell's data files, made by a process that gives its memory back."""
        size = cell.size
        sizes = [size.simulation, str(size.n), str(size.p), str(cell.seed)]
        command = [sys.executable, str(HERE / "scale_data.py"), *sizes, str(self.data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return size.folder(self.data, cell.seed)

    def run_all(self, cells: Iterable[Cell], *, retry: bool, accept_older: bool) -> None:
        """Fit what is not done; data files are removed when the next cell needs others."""
        done = self.done(retry=retry, accept_older=accept_older)
        todo = []
        for cell in cells:
            key = key_of(cell.head())
            if not {key, key[:3]} & done and cell not in todo:
                todo.append(cell)
        print(f"{len(todo)} cells to do")
        for cell, following in zip_longest(todo, todo[1:]):
            self.run(cell)
            if following is None or (following.size, following.seed) != (cell.size, cell.seed):
                shutil.rmtree(cell.size.folder(self.data, cell.seed), ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--methods", type=parse_methods, default=",".join(METHODS), help="comma-separated")
    add("--parts", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    add("--seeds", type=number_range, default="1:3", help="only the first for large data")
    add("--jobs", type=int, choices=(1, 2), default=1, help="threads of every cell")
    add("--limit", type=float, default=1200, help="CPU seconds after which a cell is stopped")
    add("--memory", type=float, default=8, help="GB above which a cell is stopped")
    add("--largest", type=float, default=float("inf"), help="largest n × p")
    add("--quick", action="store_true", help="small sizes, one seed")
    add("--retry", action="store_true", help="compute failed cells again")
    add("--accept-older", action="store_true", help="keep results of former sources")
    add("--data", type=Path, default=ROOT / "build" / "scale", help="folder for data files")
    add("--results", type=Path, help="results file")
    options = parser.parse_args()
    quick = options.quick
    path = options.results or (options.data if quick else RESULTS) / FILE
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    methods = available(options.methods)
    seeds = options.seeds[:1] if quick else options.seeds
    cells = cells_of(parts, methods, seeds, quick=quick, jobs=options.jobs)
    runner = Runner(path, options.data, Limits(options.limit, 1000 * options.memory))
    runner.run_all(
        (cell for cell in cells if cell.size.values <= options.largest),
        retry=options.retry,
        accept_older=options.accept_older,
    )
    if "start" in parts:
        runner.time_starts()


if __name__ == "__main__":
    main()
