"""Speed of the kernel and of what surrounds it, as ratios measured within one run.

(a) An epoch over what numpy spends on that epoch's two first-layer matrix products.
(b) Two starts on two threads over one start on one thread.
(c) Seconds outside the kernel when 20 000 numeric columns are fitted by formula.
(d) Seconds from Ctrl-C to KeyboardInterrupt.
(e) An epoch that samples at temperature one, coupled, over one at temperature zero.
(f) The same for the processor time of a whole default fit.

Prints a table and writes benchmarks/results/kernel.json. Asserts nothing: a busy machine is no
defect.
"""

from __future__ import annotations

import json
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from epochs import BATCH, HIDDEN, regression_data, with_epochs
from own import at_temperature
from runner import machine
from threadpoolctl import threadpool_limits

import cstonet as cs
from cstonet import _core
from cstonet.network.scaling import Scaling
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import preset

RESULTS = Path(__file__).parent / "results" / "kernel.json"

N, P = 4000, 1000
REPETITIONS = 9


@dataclass(frozen=True)
class Figure:
    """One measured figure and what it should not exceed."""

    what: str
    value: float
    unit: str
    target: float

    @property
    def met(self) -> bool:
        """Whether it is within the target."""
        return self.value <= self.target


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class KernelTimer:
    """Within the context, measures the seconds spent in the kernel's entry points."""

    ENTRIES: tuple[tuple[object, str], ...] = (
        (Scaling, "dataset"),
        (_core.Dataset, "square_sums"),
        (_core.Dataset, "score_statistics"),
        (_core, "product_moments"),
        (_core, "product_values"),
        (_core, "train"),
        (_core, "predict"),
        (_core, "predict_received"),
    )

    def __enter__(self) -> KernelTimer:
        self.seconds: Counter[str] = Counter()
        self.originals = [(owner, name, getattr(owner, name)) for owner, name in self.ENTRIES]
        for owner, name, function in self.originals:
            setattr(owner, name, self._timed(name, function))
        return self

    def _timed(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*args: object, **kwargs: object) -> object:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - began

        return timed

    def __exit__(self, *_: object) -> None:
        for owner, name, function in self.originals:
            setattr(owner, name, function)


def train_seconds(model: cs.CausalStoNet, options: FitOptions, n_jobs: int) -> float:
    with KernelTimer() as timer:
        model.fit(options=options, n_jobs=n_jobs)
    return timer.seconds["train"]


def numpy_products(rows: int) -> Callable[[], None]:
    """The two first-layer products of an epoch in float32: X W and X' R, batch by batch."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, P)).astype(np.float32)
    W = rng.normal(size=(P, HIDDEN[0])).astype(np.float32)
    R = rng.normal(size=(BATCH, HIDDEN[0])).astype(np.float32)
    forward = np.empty((BATCH, HIDDEN[0]), np.float32)
    gradient = np.empty((P, HIDDEN[0]), np.float32)

    def epoch() -> None:
        for first in range(0, rows, BATCH):
            batch = X[first : first + BATCH]
            np.matmul(batch, W, out=forward)
            np.matmul(batch.T, R, out=gradient)

    return epoch


def epoch_ratio(name: str, model: cs.CausalStoNet) -> tuple[float, float, float]:
    """Milliseconds of a kernel epoch and of numpy's products, and the median of their ratios.

    The epoch is the difference between a long and a short run, so that setting up and finishing
    do not count. The three measurements alternate: whatever slows the machine slows them all.
    """
    few, many = 2, 22
    products = numpy_products(N)
    epochs, numpys, ratios = [], [], []
    with threadpool_limits(limits=1):
        products()
        for _ in range(REPETITIONS):
            short = train_seconds(model, with_epochs(name, few), 1)
            numpy_seconds = seconds(lambda: [products() for _ in range(10)]) / 10
            long = train_seconds(model, with_epochs(name, many), 1)
            epochs.append((long - short) / (many - few))
            numpys.append(numpy_seconds)
            ratios.append(epochs[-1] / numpy_seconds)
    return (
        1e3 * statistics.median(epochs),
        1e3 * statistics.median(numpys),
        statistics.median(ratios),
    )


def temperature_ratio(model: cs.CausalStoNet) -> float:
    """Median ratio of an epoch at temperature one, with coupled chains, to one at zero.

    Epochs are differences of runs, as above; shorter and longer runs of both alternate.
    """
    few, many = 2, 22
    ratios = []
    for _ in range(REPETITIONS):
        taken = []
        for temperature in (1.0, 0.0):
            short, long = (
                train_seconds(model, options.replace(**at_temperature(options, temperature)), 1)
                for options in (with_epochs("calibrated", few), with_epochs("calibrated", many))
            )
            taken.append(long - short)
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios)


def whole_fit_ratio() -> float:
    """Processor time of a default fit of 1000 units over the same at temperature zero."""
    simulation = cs.datasets.simulation1(n=1000, p=50, seed=1)
    cold = at_temperature(preset("calibrated"), 0.0)
    ratios = []
    for _ in range(3):
        taken = []
        for changes in ({}, cold):
            began = time.process_time()
            cs.fit(simulation.formula, simulation.data, seed=1, n_jobs=1, **changes)
            taken.append(time.process_time() - began)
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios)


def two_threads_ratios(model: cs.CausalStoNet) -> tuple[float, float]:
    """Two starts on two threads over one start on one: time, and processor time per start.

    On a machine of two cores anything else that runs takes a thread's core away, so that the
    fastest repetition is the one that says something about the kernel. Processor time does not
    suffer from that: it shows whether the threads are in each other's way.
    """
    one = with_epochs("calibrated", 60)
    two = one.replace(starts=2)
    alone, together, per_start = [], [], []
    for _ in range(12):
        at_first = time.process_time()
        alone.append(train_seconds(model, one, 1))
        between = time.process_time()
        together.append(train_seconds(model, two, 2))
        per_start.append((time.process_time() - between) / 2 / (between - at_first))
    return min(together) / min(alone), statistics.median(per_start)


def seconds_outside_kernel(columns: int, rows: int) -> float:
    """All that a default fit of a wide frame does in Python: formula, checks, search, results.

    On one thread, so that the kernel's seconds can be taken off the clock's.
    """
    frame = regression_data(rows, columns)
    outside = []
    for _ in range(3):
        with KernelTimer() as timer:
            total = seconds(lambda: cs.fit("y ~ a | .", frame, n_jobs=1))
        outside.append(total - timer.seconds.total())
        print(f"p = {columns}: {total:.2f} s in all, in the kernel: {dict(timer.seconds)}")
    return statistics.median(outside)


def seconds_to_interrupt(model: cs.CausalStoNet) -> float:
    """From SIGINT until KeyboardInterrupt reaches the caller of fit; the slowest of several."""
    worst = 0.0
    for delay in (0.3, 0.41, 0.53, 0.67, 0.79):
        sent: list[float] = []

        def send(sent: list[float] = sent) -> None:
            sent.append(time.perf_counter())
            signal.raise_signal(signal.SIGINT)

        timer = threading.Timer(delay, send)
        timer.start()
        try:
            model.fit(options=with_epochs("calibrated", 100_000), n_jobs=2, starts=2)
        except KeyboardInterrupt:
            worst = max(worst, time.perf_counter() - sent[0])
        timer.join()
    return worst


def main() -> None:
    wide = regression_data(N, P)
    model = cs.CausalStoNet.from_formula("y ~ a | .", wide)
    figures = []
    for name in ("calibrated", "paper"):
        epoch, products, ratio = epoch_ratio(name, model)
        print(f"{name}: epoch {epoch:.2f} ms, numpy's two products {products:.2f} ms")
        figures.append(Figure(f"(a) epoch / numpy products, {name}", ratio, "x", 0.8))
    elapsed, processor = two_threads_ratios(model)
    figures += [
        Figure("(b) two starts, two threads / one", elapsed, "x", 1.15),
        Figure("(b) the same, processor time", processor, "x", 1.15),
        Figure(
            "(c) outside the kernel, p = 20 000", seconds_outside_kernel(20_000, 1000), "s", 1.0
        ),
        Figure("(d) Ctrl-C to KeyboardInterrupt", seconds_to_interrupt(model), "s", 0.1),
        Figure("(e) epoch, temperature one / zero", temperature_ratio(model), "x", 1.15),
        Figure("(f) default fit, one / zero", whole_fit_ratio(), "x", 1.2),
    ]
    about = machine()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print(f"{'':38}{'measured':>12}{'target':>12}")
    for figure in figures:
        verdict = "" if figure.met else "  missed"
        print(
            f"{figure.what:38}{figure.value:>10.3f} {figure.unit}{figure.target:>10.2f} "
            f"{figure.unit}{verdict}"
        )
    RESULTS.parent.mkdir(exist_ok=True)
    report = {"machine": about, "figures": [asdict(f) | {"met": f.met} for f in figures]}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
