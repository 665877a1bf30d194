"""Is a revision faster or slower than another? A few small fits, run alternately.

    make compare BASE=main                     # this working tree against main
    python benchmarks/compare.py BASE          # the same
    python benchmarks/compare.py BASE HEAD     # two revisions
    python benchmarks/compare.py HEAD HEAD     # what noise alone looks like

Each revision is exported to build/compare and built there in an environment of its own, once; the
working tree is built where it is. Then both run every task in turn (base, head, head, base, …) on
one thread. What counts is the ratio of processor seconds within a pair: whatever slows the machine
slows both. The interval holds the median ratio with at least 95 % probability, whatever the
distribution. Nothing is asserted: absolute times say more about a machine than about a change.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare_worker import TASKS

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILDS = ROOT / "build" / "compare"
# A change of less than this is not worth a word.
NEGLIGIBLE = 0.03
CONFIDENCE = 0.95
PAIRS = 15


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Order statistics that hold the median with probability 0.95 or more (sign test).

    Parameters
    ----------
    values : sequence of float
        At least six: with fewer no interval can be that sure, and the range is given.

    Returns
    -------
    lower, upper : float
    """
    ordered, n = sorted(values), len(values)
    rank, below = 0, 0.0
    for j in range(n // 2):
        below += math.comb(n, j) / 2**n  # P(at most j values lie below the median)
        if 2 * below > 1 - CONFIDENCE:
            break
        rank = j
    return ordered[rank], ordered[n - 1 - rank]


def verdict(lower: float, upper: float) -> str:
    """What an interval of the ratio head / base says."""
    if lower > 1 + NEGLIGIBLE:
        return "slower"
    if upper < 1 - NEGLIGIBLE:
        return "faster"
    if lower >= 1 - NEGLIGIBLE and upper <= 1 + NEGLIGIBLE:
        return "the same"
    return "undecided"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs of results of a task, base and head, or why there are none."""

    task: str
    base: Sequence[dict[str, Any]]
    head: Sequence[dict[str, Any]]

    @property
    def error(self) -> str:
        """The first failure, with the side that failed; empty if there was none."""
        for side, results in (("base", self.base), ("head", self.head)):
            for result in results:
                if "error" in result:
                    return f"{side}: {result['error']}"
        return ""

    def line(self) -> str:
        """One line of the table."""
        if self.error:
            return f"{self.task:30}not comparable: {self.error}"
        ratios = [h["cpu"] / b["cpu"] for b, h in zip(self.base, self.head, strict=True)]
        lower, upper = median_interval(ratios)
        least = [min(r["cpu"] for r in results) for results in (self.base, self.head)]
        same = {r["answer"] for r in self.base} == {r["answer"] for r in self.head}
        return (
            f"{self.task:30}{least[0]:>8.3f}{least[1]:>8.3f}{statistics.median(ratios):>8.3f}"
            f"  [{lower:.3f}, {upper:.3f}]  {verdict(lower, upper):10}"
            f"{'same answer' if same else 'another answer'}"
        )


def export(revision: str) -> Path:
    """The files of a revision in a folder of their own; made once per commit."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{revision!r} is no revision of this repository")
    commit = found.stdout.strip()
    folder = BUILDS / commit[:12]
    if not folder.exists():
        BUILDS.mkdir(parents=True, exist_ok=True)
        archive = ["git", "-C", str(ROOT), "archive", commit]
        files = subprocess.run(archive, capture_output=True, check=True).stdout
        with tempfile.TemporaryDirectory(dir=BUILDS) as scratch:
            with tarfile.open(fileobj=io.BytesIO(files)) as source:
                source.extractall(Path(scratch) / "files", filter="data")
            (Path(scratch) / "files").rename(folder)  # only when complete
    return folder


def build(folder: Path) -> Path:
    """The interpreter of a folder's own environment, with its package compiled."""
    print(f"building {folder} ...", flush=True)
    command = ["make", "--no-print-directory", "-C", str(folder), ".venv/installed"]
    # The make that runs this script would otherwise pass its own variables down.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(command, check=True, env=clean | {"PYTHON": sys.executable})
    return folder / ".venv" / "bin" / "python"


class Worker:
    """A process that runs tasks with the package of an interpreter."""

    def __init__(self, python: Path, stack: ExitStack) -> None:
        self.process = stack.enter_context(
            subprocess.Popen(
                [str(python), str(HERE / "compare_worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # Away from the sources of this script's own revision.
                cwd=python.parent,
            )
        )

    def run(self, task: str) -> dict[str, Any]:
        """Processor seconds and answer of a task."""
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}


def compare(base: Worker, head: Worker, task: str, pairs: int) -> Comparison:
    """Run a task alternately; the side that begins changes from pair to pair."""
    first = [worker.run(task) for worker in (base, head)]  # warms up, counts only if it fails
    if any("error" in result for result in first):
        return Comparison(task, first[:1], first[1:])
    results: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for pair in range(pairs):
        sides = ((base, results[0]), (head, results[1]))
        for worker, collected in sides if pair % 2 == 0 else reversed(sides):
            collected.append(worker.run(task))
    return Comparison(task, *results)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="revision to compare with, such as main")
    parser.add_argument("head", nargs="?", help="revision to judge; by default the working tree")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of runs of each task")
    parser.add_argument("--tasks", default="", help="only tasks whose name holds this text")
    options = parser.parse_args()
    folders = [export(options.base), export(options.head) if options.head else ROOT]
    pythons = [build(folder) for folder in folders]
    names = ["base", "head"]
    print(f"\n{'CPU seconds (least)':30}" + "".join(f"{name:>8}" for name in names) + "   ratio")
    with ExitStack() as stack:
        base, head = (Worker(python, stack) for python in pythons)
        for task in TASKS:
            if options.tasks in task:
                print(compare(base, head, task, options.pairs).line(), flush=True)


if __name__ == "__main__":
    main()
