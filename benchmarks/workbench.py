"""Questions after a fit: whether groups, projections, bands, ratios and clusters cover truths.

What the report shows, two fits at a time::

    run="python benchmarks/workbench.py --seeds"
    $run 4001:4100 --designs simulation2,by-region,risks,clustered
    $run 4001:4200 --designs constant,constant-linear
    $run 4001:4004 --designs certify

Seeds up to 4000 served to choose options and constants of the package.

Results are appended to ``workbench.jsonl`` in the output folder; what is there already is not
computed again. ``--report`` prints the tables of what the file holds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, Record, number_range
from own import recipe_of
from pages.workbench import FILE, workbench_tables
from runner import append_missing, commit, read_records
from workbench_data import DESIGNS, FORMULA, Draw, truths_of

# Units of simulation 1, its covariates, and twins of each fit to it.
_TWINS_OF, _TWINS = (1000, 100), 100
# Quantile up to which a null hypothesis may be rejected.
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class WorkbenchCase:
    """One data set: its design and seed."""

    group: str
    seed: int

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What makes a result this one's, as in `runner.key_of`."""
        return self.group, self.seed, "cstonet", recipe_of("calibrated")


def run_one(case: WorkbenchCase) -> Record:
    """Fit one data set and ask; a failure is a result too."""
    warnings.simplefilter("ignore")
    record: Record = dict(zip(("group", "seed", "method", "recipe"), case.key, strict=True))
    record["commit"] = commit()
    began = time.perf_counter()
    try:
        record["questions"] = SPECIAL.get(case.group, ask_design)(case)
    except Exception as failure:
        record["error"] = f"{type(failure).__name__}: {failure}"
    record["seconds"] = time.perf_counter() - began
    return record


def ask_design(case: WorkbenchCase) -> Record:
    """Fit a design of `workbench_data`, ask all that it has truths for."""
    import cstonet as cs

    design = DESIGNS[case.group]
    draw = design.draw(design.n, case.seed)
    results = cs.fit(FORMULA, draw.data, seed=case.seed, n_jobs=1)
    truths, found = truths_of(case.group), {}
    if design.by is not None:
        cuts = None if design.cuts is None else list(design.cuts)
        table = results.gate(design.by, cuts=cuts).table
        truth = np.array(list(truths.groups.values()))
        found["GATE"] = covered(table["lower"], table["upper"], truth)
        together = covered(table["lower_simultaneous"], table["upper_simultaneous"], truth)
        found["GATE, simultaneous"] = together | {"covered": float(together["covered"] == 1)}
    if design.projection is not None:
        terms = design.projection.replace("region", "C(region)")
        limits = np.asarray(results.projection(terms).conf_int(), dtype=np.float64)
        # Constant, then numbers and dummies in the order of the formula's own coding.
        order = projection_order(results.projection(terms).params.index)
        found["projection"] = covered(*limits[order].T, truths.projection)
    found |= bands(results, draw)
    risks = truths.risks
    if results.design.family == "binomial":
        odds = risks / (1 - risks)
        for name, truth in (("RR", risks[1] / risks[0]), ("OR", odds[1] / odds[0])):
            effect = results.effect(name)
            found[name] = covered(effect.lower, effect.upper, truth)
    heterogeneity = results.heterogeneity()
    found["heterogeneity"] = {"rejected": float(heterogeneity.pvalue < _LEVEL)}
    found["ATE"] = covered(*results.conf_int().loc["ATE"], float(risks[1] - risks[0]))
    return found


def projection_order(names: Sequence[str]) -> list[int]:
    """Places of constant, numbers and dummies: pandas codes dummies last, patsy first."""
    return sorted(range(len(names)), key=lambda k: (names[k] != "Intercept", "[" in names[k], k))


def bands(results: Any, draw: Draw) -> Record:
    """Whether intervals of rows' effects cover these: on average over rows, and all of them."""
    pointwise = results.cate(intervals=0.95)
    together = results.cate(intervals=0.95, simultaneous=True)
    every = covered(together["lower"], together["upper"], draw.tau)
    error = pointwise["estimate"].to_numpy() - draw.tau
    return {
        "CATE": covered(pointwise["lower"], pointwise["upper"], draw.tau)
        | {"rmse": float(np.sqrt(np.mean(error**2)))},
        "CATE, all rows": every | {"covered": float(every["covered"] == 1)},
    }


def covered(lower: Any, upper: Any, truth: Any) -> Record:
    """Share of the truths that lie within their limits, and the mean length of the intervals."""
    low, high, true = (np.asarray(values, dtype=np.float64) for values in (lower, upper, truth))
    inside = (low <= true) & (true <= high)
    return {"covered": float(inside.mean()), "length": float(np.mean(high - low))}


def ask_clustered(case: WorkbenchCase) -> Record:
    """Clusters of ten, with and without being told of them."""
    import cstonet as cs

    simulation = cs.datasets.clustered(seed=case.seed)
    told = cs.fit(
        simulation.formula,
        simulation.data,
        cluster=simulation.cluster_name,
        seed=case.seed,
        n_jobs=1,
    )
    alone = simulation.data.drop(columns=[simulation.cluster_name])
    untold = cs.fit(simulation.formula, alone, seed=case.seed, n_jobs=1)
    return {
        name: covered(*results.conf_int().loc["ATE"], simulation.ate)
        for name, results in (("ATE, clusters", told), ("ATE, plain errors", untold))
    }


def ask_certify(case: WorkbenchCase) -> Record:
    """What twins of a data set say of coverage."""
    import cstonet as cs

    n, p = _TWINS_OF
    simulation = cs.datasets.simulation1(n=n, p=p, seed=case.seed)
    results = cs.fit(simulation.formula, simulation.data, seed=case.seed, n_jobs=1)
    certificate = results.certify(draws=_TWINS, seed=case.seed, n_jobs=1)
    return {
        "ATE, twins": {"covered": float(certificate.coverage), "draws": _TWINS},
        "ATE, these data": covered(*results.conf_int().loc["ATE"], simulation.ate),
    }


def ask_fresh(case: WorkbenchCase) -> Record:
    """What fresh data sets of the same kind as in `ask_certify` say of coverage."""
    import cstonet as cs

    n, p = _TWINS_OF
    simulation = cs.datasets.simulation1(n=n, p=p, seed=case.seed)
    results = cs.fit(simulation.formula, simulation.data, seed=case.seed, n_jobs=1)
    return {"ATE, fresh data": covered(*results.conf_int().loc["ATE"], simulation.ate)}


SPECIAL: dict[str, Callable[[WorkbenchCase], Record]] = {
    "clustered": ask_clustered,
    "certify": ask_certify,
    "fresh": ask_fresh,
}


def describe(record: Record) -> str:
    """One line of progress."""
    head = f"{record['group']} #{record['seed']} ({record['seconds']:.0f} s): "
    if "error" in record:
        return head + record["error"]
    parts = [
        f"{name} {one.get('covered', one.get('rejected')):.2f}"
        for name, one in record["questions"].items()
    ]
    return head + ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [*DESIGNS, *SPECIAL]
    parser.add_argument("--designs", default=",".join(known), help="names, split by commas")
    parser.add_argument("--seeds", type=number_range, default="4001:4100", help="1:20 or 1,2,5")
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="only print what the file says")
    arguments = parser.parse_args()
    path = arguments.out / FILE
    if not arguments.report:
        names = arguments.designs.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"no design {unknown[0]!r}; there are {', '.join(known)}")
        cases = [WorkbenchCase(name, seed) for name in names for seed in arguments.seeds]
        append_missing(cases, run_one, path, arguments.jobs, describe)
    print("\n".join(workbench_tables(read_records(path))))


if __name__ == "__main__":
    main()
