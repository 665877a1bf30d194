"""How firmly slopes are held: the same nuisances, with no slopes, free ones, and several ridges.

The table of decision 0060, on data sets that served for tuning::

    python benchmarks/slopes.py --data path/to/data

Each data set is fitted once with the default options, and its effect is estimated anew from the
same nuisances with each ridge. Results are appended to ``slopes.jsonl`` in the output folder;
``--report`` prints what it holds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from accuracy import add_run_arguments, run_cases
from common import Case, Estimate, Problem, Record
from field_data import load_irm
from loaders import FAMILIES, SimulationCase
from own import Preset
from runner import read_records
from support_data import load_design
from tables import markdown_table

import cstonet as cs
from cstonet.estimators import Nuisances, estimate_target

FILE = "slopes.jsonl"
# Ridges by the name of their column; None: not even intercepts of the arms.
RIDGES: dict[str, float | None] = {
    "no slopes": None,
    "free": 0.0,
    "held, 0.1": 0.1,
    "0.25": 0.25,
    "1": 1.0,
}
DESIGNS = (
    *("thirty", "approx-sparse", "seven-weak", "arm-slope", "linear-22", "rare-2pct"),
    *("rich-binary", "rich-gaussian"),
)
SIMULATIONS = (SimulationCase("1", 1000, 100, 0), SimulationCase("2", 2000, 100, 0))
REAL = {
    "twins": range(1, 21),
    "acic2019": range(1, 5),
    "acic2016": range(1, 3),
    "ihdp": range(1, 3),
}


@dataclass(frozen=True, slots=True)
class SlopeCase:
    """A data set by the name of its design, simulation or family."""

    group: str
    seed: int
    folder: Path | None = None

    def load(self) -> Problem:
        """Draw or read it."""
        if self.group in DESIGNS:
            return load_design(self.group, self.seed)
        if self.group == "irm":
            return load_irm(self.seed)
        assert self.folder is not None
        family = FAMILIES[self.group]
        return family.load(self.folder / family.folder, self.seed)


@dataclass(frozen=True, slots=True)
class SlopePreset(Preset):
    """The default, whose nuisances are used with several ridges."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """The default's estimate; ``extra`` has error and standard error with each ridge."""
        results = self.fit(problem, threads=threads, seed=seed)
        truth = problem.sample_ate if problem.ate is None else problem.ate
        found = {name: with_ridge(results, ridge) for name, ridge in RIDGES.items()}
        errors = {name: [ate - truth, se] for name, (ate, se) in found.items()}
        return replace(self.read(results), extra={"slopes": errors})


def with_ridge(results: cs.ArmsResults, ridge: float | None) -> tuple[float, float]:
    """Estimate and standard error of the ATE from a fit's nuisances, averaged over repetitions."""
    given: Nuisances = results.nuisances
    nuisances = replace(given, linear=None) if ridge is None else replace(given, ridge=ridge)
    effects = estimate_target(nuisances, "ATE", (1, 0), clip=results.effects.clip, name="ATE")
    return float(effects.estimates[0]), float(effects.standard_errors[0])


def report(records: list[Record]) -> str:
    """Mean absolute error ± its Monte-Carlo error, and bias, of every group with every ridge."""
    groups: dict[str, list[dict[str, list[float]]]] = defaultdict(list)
    for record in records:
        if "error" not in record:
            groups[record["group"]].append(record["slopes"])
    rows = []
    for group, found in groups.items():
        errors = {name: np.array([slopes[name][0] for slopes in found]) for name in RIDGES}
        rows.append([group, str(len(found))])
        for mine in errors.values():
            spread = np.abs(mine).std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else np.nan
            rows[-1].append(f"{np.abs(mine).mean():.4f} ± {spread:.4f} ({mine.mean():+.4f})")
    return markdown_table(["mean absolute error (bias)", "data sets", *RIDGES], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the real data; without it, none")
    parser.add_argument("--report", action="store_true", help="only print what the file says")
    add_run_arguments(parser)
    parser.set_defaults(methods="calibrated")
    arguments = parser.parse_args()
    if not arguments.report:
        cases: list[Case] = [SlopeCase(name, s) for name in DESIGNS for s in range(1, 13)]
        cases += [SlopeCase("irm", s) for s in range(1, 31)]
        cases += [replace(case, seed=s) for case in SIMULATIONS for s in range(1, 13)]
        if arguments.data is not None:
            folder = arguments.data.resolve()
            cases += [SlopeCase(name, s, folder) for name, sets in REAL.items() for s in sets]
        arguments.methods = [SlopePreset("calibrated")]
        run_cases(cases, arguments, FILE)
    print(report(read_records(arguments.out / FILE)))


if __name__ == "__main__":
    main()
