"""Fits with several effects, three arms or mediations, beside the truth and the oracle.

What the report shows, two fits at a time::

    run="python benchmarks/effects.py --simulation"
    $run three_arms --n 3000 --p 100 --seeds 4001:4100
    $run one_mediator,three_mediators --seeds 4001:4100

Seeds up to 4000 served to choose options of the package.

Results are appended to ``effects.jsonl`` in the output folder; what is there already is not
computed again. ``--report`` prints coverage and errors of what the file holds.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import RESULTS, Record, number_range, selection_counts
from metrics import coverage_error
from own import recipe_of
from runner import append_missing, read_records

SIMULATIONS = ("three_arms", "one_mediator", "three_mediators", "linear_mediation")
FILE = "effects.jsonl"


@dataclass(frozen=True, slots=True)
class EffectsCase:
    """One data set and the fit to it."""

    simulation: str
    n: int
    p: int
    seed: int

    @property
    def group(self) -> str:
        """Data sets that are averaged over have the same group."""
        return f"{self.simulation}, n={self.n}, p={self.p}"

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What makes a result this one's, as in `runner.key_of`."""
        return self.group, self.seed, "cstonet", recipe_of("calibrated")


def run_one(case: EffectsCase) -> Record:
    """Fit one data set; a failure is a result too."""
    import cstonet as cs

    warnings.simplefilter("ignore")
    record: Record = dict(zip(("group", "seed", "method", "recipe"), case.key, strict=True))
    sim = getattr(cs.datasets, case.simulation)(n=case.n, p=case.p, seed=case.seed)
    began = time.perf_counter()
    try:
        res = cs.fit(sim.formula, sim.data, seed=case.seed, n_jobs=1)
    except Exception as failure:
        record["error"] = f"{type(failure).__name__}: {failure}"
        record["seconds"] = time.perf_counter() - began
        return record
    record["seconds"] = time.perf_counter() - began
    limits, oracle = res.conf_int(), sim.oracle()
    record["effects"] = {
        name: {
            "estimate": float(res.params[name]),
            "se": float(res.bse[name]),
            "lower": float(limits.loc[name, 0]),
            "upper": float(limits.loc[name, 1]),
            "truth": truth,
            "oracle": float(oracle.estimates[oracle.names.index(name)]),
            "oracle_se": float(oracle.standard_errors[oracle.names.index(name)]),
        }
        for name, truth in (sim.contrasts if hasattr(sim, "contrasts") else sim.effects).items()
    }
    record["selection"] = {
        model: selection_counts(
            frozenset(getattr(sim, f"{model}_support")),
            frozenset(res.selection.index[res.selection[model]]),
        )
        for model in ("treatment", "mediator", "outcome")
        if hasattr(sim, f"{model}_support")
    }
    return record


def describe(record: Record) -> str:
    """One line of progress."""
    head = f"{record['group']} #{record['seed']} ({record['seconds']:.0f} s): "
    if "error" in record:
        return head + record["error"]
    parts = [
        f"{name} {one['estimate'] - one['truth']:+.4f} (SE {one['se']:.4f}; oracle "
        f"{one['oracle'] - one['truth']:+.4f}, {one['oracle_se']:.4f})"
        for name, one in record["effects"].items()
    ]
    return head + ", ".join(parts)


def report(records: Sequence[Record]) -> str:
    """Coverage, errors and selection per group, with Monte-Carlo standard errors."""
    lines = []
    for group in sorted({record["group"] for record in records}):
        members = [record for record in records if record["group"] == group]
        done = [record for record in members if "error" not in record]
        seconds = np.median([record["seconds"] for record in members])
        lines.append(f"{group}: {len(done)} of {len(members)} fits, median {seconds:.0f} s")
        for name in done[0]["effects"] if done else ():
            lines.append("  " + _effect_line(name, [record["effects"][name] for record in done]))
        for model in done[0]["selection"] if done else ():
            counts = [record["selection"][model] for record in done]
            total = {key: sum(c[key] for c in counts) for key in counts[0]}
            lines.append(
                f"  {model} support: {total['missed']} of {total['true']} missed, "
                f"{total['false']} false among {total['selected']} selected"
            )
    return "\n".join(lines)


def _effect_line(name: str, found: Sequence[Record]) -> str:
    truth, estimate, oracle = (
        np.array([one[key] for one in found]) for key in ("truth", "estimate", "oracle")
    )
    covered = sum(one["lower"] <= one["truth"] <= one["upper"] for one in found)
    errors, oracle_errors = estimate - truth, oracle - truth
    ratio = math.sqrt(np.mean(errors**2) / np.mean(oracle_errors**2))
    # Delta method for the root of a ratio of paired means.
    pairs = np.column_stack([errors**2, oracle_errors**2])
    relative = pairs[:, 0] / pairs[:, 0].mean() - pairs[:, 1] / pairs[:, 1].mean()
    ratio_error = 0.5 * ratio * relative.std() / math.sqrt(len(found))
    ses = np.mean([one["se"] for one in found])
    return (
        f"{name:4} coverage {covered / len(found):.3f} ± {coverage_error(covered, len(found)):.3f}"
        f", bias {errors.mean():+.4f} ± {errors.std() / math.sqrt(len(found)):.4f}"
        f", RMSE {math.sqrt(np.mean(errors**2)):.4f}, over the oracle's {ratio:.2f} ± "
        f"{ratio_error:.2f}, mean SE {ses:.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--simulation", default="one_mediator,three_mediators", help="names, split by commas"
    )
    parser.add_argument("--n", type=int, default=2000, help="units")
    parser.add_argument("--p", type=int, default=50, help="covariates")
    parser.add_argument("--seeds", type=number_range, default="1001:1100", help="as 101:120 or 1,2")
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="only print what the file says")
    arguments = parser.parse_args()
    path = arguments.out / FILE
    if not arguments.report:
        names = arguments.simulation.split(",")
        unknown = [name for name in names if name not in SIMULATIONS]
        if unknown:
            parser.error(f"no simulation {unknown[0]!r}; choose from {', '.join(SIMULATIONS)}")
        cases = [
            EffectsCase(name, arguments.n, arguments.p, seed)
            for seed in arguments.seeds
            for name in names
        ]
        append_missing(cases, run_one, path, arguments.jobs, describe)
    print(report(read_records(path)))


if __name__ == "__main__":
    main()
