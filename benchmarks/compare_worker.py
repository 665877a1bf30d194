"""Runs the tasks of `compare.py` for one revision: a name per line in, a JSON line out.

Uses the package of the interpreter that runs it, which may be older than this file: a task that
the revision cannot run answers with its error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import cstonet as cs

Task = Callable[[], float]


def small_fit(n: int, p: int, preset: str = "calibrated") -> Callable[[], Task]:
    """A fit from data in memory; its answer is the mean effect."""

    def prepare() -> Task:
        sim = cs.datasets.simulation1(n=n, p=p, seed=1)

        def fit() -> float:
            results: Any = cs.fit(sim.formula, sim.data, preset=preset, seed=1, n_jobs=1)
            return float(results.effect("ATE").estimate)

        return fit

    return prepare


def kernel_epochs() -> Task:
    """Epochs of one network of fixed shape, long enough that what surrounds them hardly counts."""
    from epochs import regression_data, with_epochs

    model = cs.CausalStoNet.from_formula("y ~ a | .", regression_data(2000, 200))
    options = with_epochs("calibrated", 40)

    def train() -> float:
        results: Any = model.fit(options=options, seed=1, n_jobs=1)
        return float(results.effect("ATE").estimate)

    return train


TASKS: dict[str, Callable[[], Task]] = {
    "default fit, n=300, p=10": small_fit(300, 10),
    "default fit, n=1000, p=50": small_fit(1000, 50),
    "default fit, n=300, p=2000": small_fit(300, 2000),
    "stonet, n=300, p=10": small_fit(300, 10, "stonet"),
    "40 epochs, n=2000, p=200": kernel_epochs,
}


def run(name: str, prepared: dict[str, Task]) -> dict[str, Any]:
    """Processor seconds and answer of a task; its preparation is done once and not timed."""
    try:
        if name not in prepared:
            prepared[name] = TASKS[name]()
        began = time.process_time()
        answer = prepared[name]()
        return {"cpu": time.process_time() - began, "answer": answer}
    except Exception as failure:
        return {"error": f"{type(failure).__name__}: {failure}"}


def main() -> None:
    prepared: dict[str, Task] = {}
    for line in sys.stdin:
        print(json.dumps(run(line.strip(), prepared)), flush=True)


if __name__ == "__main__":
    main()
