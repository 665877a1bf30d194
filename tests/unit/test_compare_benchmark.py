"""The timing check of base against head: its interval, verdicts and the order of its runs."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compare
import compare_worker


@pytest.mark.parametrize("n", [6, 7, 15, 16, 40])
def test_interval_holds_the_median_often_enough_and_no_narrower_one_does(n):
    lower, upper = compare.median_interval([float(i) for i in reversed(range(n))])
    assert lower == n - 1 - upper

    def holds(rank: int) -> float:
        """Probability that the median lies between these order statistics."""
        return 1 - 2 * sum(math.comb(n, j) for j in range(rank + 1)) / 2**n

    assert holds(int(lower)) >= 0.95
    assert holds(int(lower) + 1) < 0.95


def test_few_values_give_their_range():
    assert compare.median_interval([2.0]) == (2.0, 2.0)
    assert compare.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (1.05, 1.2, "slower"),
        (0.8, 0.95, "faster"),
        (0.99, 1.01, "the same"),
        (0.9, 1.01, "undecided"),
        (0.99, 1.2, "undecided"),
    ],
)
def test_verdicts(lower, upper, expected):
    assert compare.verdict(lower, upper) == expected


class FakeWorker:
    """A revision of known speed that notes when it was run."""

    def __init__(self, name: str, cpu: float, calls: list[str], answer: float = 1.0) -> None:
        self.name, self.cpu, self.calls, self.answer = name, cpu, calls, answer

    def run(self, task: str) -> dict[str, object]:
        self.calls.append(self.name)
        if self.cpu < 0:
            return {"error": "AttributeError: no such option"}
        return {"cpu": self.cpu, "answer": self.answer}


def test_runs_alternate_and_either_side_begins():
    calls: list[str] = []
    base, head = FakeWorker("b", 1.0, calls), FakeWorker("h", 0.5, calls, answer=2.0)
    found = compare.compare(base, head, "task", pairs=3)
    assert "".join(calls) == "bh" + "bh" + "hb" + "bh"
    line = found.line()
    assert "0.500  [0.500, 0.500]  faster" in line
    assert line.endswith("another answer")


def test_a_task_that_a_revision_cannot_run_is_named():
    base, head = FakeWorker("b", -1.0, []), FakeWorker("h", 0.5, [])
    line = compare.compare(base, head, "task", pairs=3).line()
    assert line.endswith("not comparable: base: AttributeError: no such option")


def test_worker_times_a_task_and_reports_failures(monkeypatch):
    prepared: dict[str, compare_worker.Task] = {}
    preparations = []

    def prepare() -> compare_worker.Task:
        preparations.append(1)
        return lambda: 3.0

    monkeypatch.setitem(compare_worker.TASKS, "three", prepare)
    for _ in range(2):
        result = compare_worker.run("three", prepared)
        assert result["answer"] == 3.0
        assert result["cpu"] >= 0
    assert len(preparations) == 1
    assert compare_worker.run("no such task", prepared)["error"].startswith("KeyError")


def test_tasks_run_with_this_revision():
    name = "default fit, n=300, p=10"
    result = compare_worker.run(name, {})
    assert math.isfinite(result["answer"])
    assert math.isfinite(compare_worker.run("40 epochs, n=2000, p=200", {})["answer"])


def test_unknown_revisions_are_refused():
    with pytest.raises(SystemExit, match="no revision"):
        compare.export("no-such-branch")
