"""A small fit of every kind, estimates as JSON: for kernels that are built or run in other ways.

    python tests/sanitize/every_fit.py [--epochs E] [--threads N] [KIND ...]

Without kinds all of them are run. `make sanitize` runs them with the kernel under sanitizers, and
`tests/numerical/test_levels.py` at every instruction-set level.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import cstonet as cs
from cstonet.datasets import (
    clustered,
    counts,
    dose_curve,
    one_mediator,
    punch_holes,
    simulation2,
    three_arms,
)
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import preset

N, P = 160, 8


class Enough(Exception):
    """What a callback raises to end a fit."""


def brief(epochs: int) -> FitOptions:
    """The default recipe with few epochs, small layers and one start."""
    base = preset("calibrated")
    stages = tuple(replace(stage, epochs=epochs) for stage in base.training.stages)
    training = replace(base.training, stages=stages)
    small: dict[str, Any] = {"hidden": (4, 3), "training": training}
    search = replace(base.search, rounds=4, **small)
    return base.replace(search=search, folds=2, starts=1, ensemble=1, repeats=1, **small)


class Fits:
    """The kinds of fit.

    Parameters
    ----------
    epochs
        Of every stage of training.
    threads
        To fit with.
    folder
        For files.
    """

    def __init__(self, epochs: int, threads: int, folder: Path) -> None:
        self.how: dict[str, Any] = {"options": brief(epochs), "seed": 1, "n_jobs": threads}
        self.folder = folder

    def by_formula(self, simulation: Any, formula: str | None = None, **reading: Any) -> Any:
        """Fit a simulation by its formula."""
        return cs.fit(formula or simulation.formula, simulation.data, **self.how, **reading)

    def of_arrays(self, store: Callable[[np.ndarray], Any]) -> Any:
        """Fit by arrays, the covariates as they are stored."""
        data = simulation2(N, P, seed=1).data
        X = store(data.filter(like="x").to_numpy())
        return cs.CausalStoNet(data["y"], data["treat"], X).fit(**self.how)

    def mapped(self, X: np.ndarray) -> np.ndarray:
        """The same numbers in a file that is mapped into memory, column by column."""
        path = self.folder / "covariates"
        X.T.tofile(path)
        return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape, order="F")

    def saved(self) -> Any:
        """Save a fit, load it, and predict new rows with both."""
        simulation = simulation2(N, P, seed=2)
        results, path = self.by_formula(simulation), self.folder / "fit.cst"
        results.save(path)
        loaded, new = cs.load(path), simulation2(50, P, seed=3).data
        np.testing.assert_array_equal(loaded.cate(new), results.cate(new))
        return loaded

    def interrupted(self, interrupt: Callable[[], None], expected: type[BaseException]) -> Any:
        """Interrupt a fit from its callback, then do it again to its end."""
        calls = 0

        def progress(done: int, total: int) -> None:
            nonlocal calls
            calls += 1
            if calls == 3:
                interrupt()

        simulation = simulation2(N, P, seed=4)
        try:
            cs.fit(simulation.formula, simulation.data, progress=progress, **self.how)
        except expected:
            return self.by_formula(simulation)
        raise AssertionError(f"the fit went on: no {expected.__name__}")

    def kinds(self) -> dict[str, Callable[[], Any]]:
        """Every kind of fit by name."""

        def fail() -> None:
            raise Enough

        return {
            "gaussian": lambda: self.by_formula(simulation2(N, P, seed=1)),
            "binomial": lambda: self.by_formula(simulation2(N, P, seed=1, outcome="binomial")),
            "poisson": lambda: self.by_formula(counts(N, P, seed=1), family="poisson"),
            "three arms": lambda: self.by_formula(three_arms(2 * N, P, seed=1)),
            "dose": lambda: self.by_formula(dose_curve(2 * N, P, seed=1)),
            "mediation": lambda: self.by_formula(one_mediator(2 * N, P, seed=1)),
            "mar": lambda: self.by_formula(
                punch_holes(simulation2(2 * N, P, seed=1), mechanism="mar"), missing="mar"
            ),
            "mnar": lambda: self.by_formula(
                punch_holes(simulation2(2 * N, P, seed=1), mechanism="mnar"), missing="mnar"
            ),
            "clusters": lambda: self.by_formula(clustered(40, 5, P, seed=1), cluster="village"),
            "sparse": lambda: self.of_arrays(lambda X: sparse.csc_array(np.where(X > 0.5, X, 0))),
            "mapped": lambda: self.of_arrays(self.mapped),
            "saved": self.saved,
            "exception": lambda: self.interrupted(fail, Enough),
            "Ctrl-C": lambda: self.interrupted(
                lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt
            ),
        }


def estimates(results: Any) -> dict[str, list[float]]:
    """Of every effect: the estimate and its standard error."""
    table = results.tidy()
    columns = (table["term"], table["estimate"], table["std_error"])
    return {str(term): [estimate, error] for term, estimate, error in zip(*columns, strict=True)}


def main() -> None:
    """Fit, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="which kinds of fit; default: all")
    parser.add_argument("--epochs", type=int, default=12, help="of every stage of training")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", cs.errors.CStoNetWarning)
    with tempfile.TemporaryDirectory() as folder:
        kinds = Fits(asked.epochs, asked.threads, Path(folder)).kinds()
        chosen = asked.kinds or list(kinds)
        found = {kind: estimates(kinds[kind]()) for kind in chosen}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
