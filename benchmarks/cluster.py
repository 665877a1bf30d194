"""A fit to a Dask DataFrame on local workers: what docs/scale.md predicts, and what is measured.

Every partition is simulated on its worker. The phases of the fit are timed from outside: column
statistics, passes of score tests, columns brought to the client, and all the rest.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import cstonet as cs
from cstonet.network import partitioned
from cstonet.network.partitioned import PartitionedCovariates
from cstonet.settings.presets import preset


def simulated(part: int, rows: int, width: int) -> pd.DataFrame:
    """One partition: the first five covariates matter, and the effect is 1."""
    rng = np.random.default_rng((7, part))
    X = rng.standard_normal((rows, width), dtype=np.float32)
    signal = np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] / 2
    treat = rng.random(rows) < 1 / (1 + np.exp(-X[:, 0] - X[:, 3] / 2))
    y = treat + signal + X[:, 4] + rng.standard_normal(rows)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(1, width + 1)], copy=False)
    return frame.assign(treat=treat.astype(np.int8), y=y.astype(np.float32))


def timed(
    phases: dict[str, list[tuple[float, float]]], name: str, function: Callable[..., Any]
) -> Callable[..., Any]:
    """The function, which notes its seconds and the size of what it gave."""

    @functools.wraps(function)
    def noted(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        value = function(*arguments, **named)
        size = value.size if isinstance(value, np.ndarray) else 0
        phases[name].append((time.perf_counter() - began, size))
        print(f"{name}: {phases[name][-1][0]:.2f} s, {size} numbers", flush=True)
        return value

    return noted


def main() -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=1)
    chosen = parser.parse_args()
    phases: dict[str, list[tuple[float, float]]] = defaultdict(list)
    partitioned.partitioned_scaling = timed(phases, "scaling", partitioned.partitioned_scaling)
    for name in ("square_sums", "score_sums", "_bring"):
        kind = PartitionedCovariates
        setattr(kind, name, timed(phases, name, getattr(kind, name)))
    base = preset("calibrated")
    training = dataclasses.replace(
        base.training,
        stages=tuple(dataclasses.replace(s, epochs=chosen.epochs) for s in base.training.stages),
    )
    search = dataclasses.replace(base.search, training=training, hidden=(4, 3), rounds=3)
    options = base.replace(
        training=training, search=search, hidden=(4, 3), folds=2, repeats=1, starts=1, ensemble=1
    )
    rows = chosen.rows // chosen.partitions
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        Client(cluster),
    ):
        meta = simulated(0, 2, chosen.columns).iloc[:0]
        make = functools.partial(simulated, rows=rows, width=chosen.columns)
        frame = dd.from_map(make, range(chosen.partitions), meta=meta)
        began = time.perf_counter()
        model = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
        print(f"read and checked: {time.perf_counter() - began:.1f} s", flush=True)
        results = model.fit(options=options, seed=1, n_jobs=1)
        print(f"fit: {results.runtime:.1f} s")
        for name, calls in phases.items():
            seconds, size = np.sum(calls, axis=0)
            print(f"{name}: {len(calls)} calls, {seconds:.1f} s, {size:.0f} numbers")
        print(results.params, results.bse)
        print(
            list(results.selection.index[results.selection[["treatment", "outcome"]].any(axis=1)])
        )


if __name__ == "__main__":
    main()
