"""Effects where support is thin, arms are rare, confounders many and weak: every truth is known.

What the report shows, two fits at a time::

    run="python benchmarks/support.py --data path/to/data --designs"
    $run rare-9,rare-1pct,rare-2pct,rare-50pct,category,threshold,jointly --seeds 4001:4050
    $run thirty,approx-sparse,seven-weak,linear-22,linear-100,arm-slope --seeds 4001:4050
    $run rich-binary,rich-gaussian --seeds 4001:4030
    $run psid-twin,cps-twin --seeds 4001:4020

The folder of ``--data`` holds LaLonde's files in ``lalonde``; only the twins need it. Data sets
with seeds below 4000 served to choose options and constants of the package, those from 4001 on did
not: report these only.

Results are appended to ``support.jsonl`` in the output folder, and what is there already is not
computed again. ``--report`` prints the tables of what the file holds; ``benchmarks/report.py``
puts them into its report. A data set that the package refuses (`SeparationError`) is a result:
the error is recorded with its class.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accuracy import add_run_arguments, run_cases
from common import Estimate, Problem, Record, number_range
from own import Preset
from pages.support import FILE, SUBPOPULATION, support_tables
from runner import read_records
from support_data import DESIGNS, SupportProblem, load_design
from support_twins import TWINS, load_twin

METHODS = "calibrated,ols,doubleml-lasso,doubleml-lightgbm,bart"
FOLDER = "lalonde"


@dataclass(frozen=True, slots=True)
class SupportCase:
    """One data set: its name in `DESIGNS` or `TWINS`, seed, and folder of the real data."""

    design: str
    seed: int
    folder: Path | None = None

    @property
    def group(self) -> str:
        """The design."""
        return self.design

    def load(self) -> SupportProblem:
        """Draw the data."""
        if self.design in DESIGNS:
            return load_design(self.design, self.seed)
        if self.folder is None:
            raise ValueError(f"{self.design} needs the folder of the real data")
        return load_twin(self.design, self.seed, self.folder / FOLDER)


@dataclass(frozen=True, slots=True)
class SupportPreset(Preset):
    """A preset of the package, with all that its results say about support."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """AIPW with the fitted networks."""
        results = self.fit(problem, threads=threads, seed=seed)
        assert isinstance(problem, SupportProblem)
        return replace(self.read(results), extra=findings(results, problem))


def findings(results: Any, problem: SupportProblem) -> Record:
    """Whether the ATE is estimable, and the other effects beside their truths.

    Returns
    -------
    dict
        ``estimable`` (None where the results do not say), ``effects`` by name: those of
        `SupportProblem.truths`, and that of the subpopulation which the results propose, whose
        truth is the mean effect of its rows; with its ``condition`` and ``share``.
    """
    estimable = getattr(results, "estimable", None)
    found: Record = {"estimable": None if estimable is None else bool(estimable), "effects": {}}
    for name, truth in problem.truths.items():
        found["effects"][name] = figures(results.effect(name)) | {
            "truth": truth,
            "sample_truth": problem.sample_truths[name],
            "oracle": problem.oracles.get(name),
        }
    support = results.support() if hasattr(results, "support") else None
    if support is not None:
        mu0, mu1 = problem.mu[support.mask].mean(axis=0)
        truth = float(mu1 - mu0)
        found["effects"][SUBPOPULATION] = figures(support.effect) | {
            "truth": truth,
            "sample_truth": truth,
            "oracle": None,
        }
        found |= {"condition": str(support.condition), "share": float(support.share)}
    return found


def figures(effect: Any) -> Record:
    """Estimate, standard error and limits of an `Effect`, as what is written to the file."""
    return {name: float(getattr(effect, name)) for name in ("estimate", "se", "lower", "upper")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [*DESIGNS, *TWINS]
    parser.add_argument("--designs", default=",".join(known), help="names, split by commas")
    parser.add_argument("--seeds", type=number_range, default="4001:4050", help="1:20 or 1,2,5")
    parser.add_argument("--data", type=Path, help=f"folder that holds {FOLDER!r}, for the twins")
    parser.add_argument("--report", action="store_true", help="only print what the file says")
    add_run_arguments(parser)
    parser.set_defaults(methods=METHODS)
    arguments = parser.parse_args()
    if arguments.report:
        print("\n".join(support_tables(read_records(arguments.out / FILE))))
        return
    names = arguments.designs.split(",")
    for name in names:
        if name not in known:
            parser.error(f"no design {name!r}; there are {', '.join(known)}")
        if name in TWINS and (arguments.data is None or not (arguments.data / FOLDER).is_dir()):
            parser.error(f"{name} needs a folder {FOLDER!r} of real data: give the right --data")
    folder = arguments.data.resolve() if arguments.data else None
    cases = [SupportCase(name, seed, folder) for name in names for seed in arguments.seeds]
    arguments.methods = [
        SupportPreset(method.name) if isinstance(method, Preset) else method
        for method in arguments.methods
    ]
    run_cases(cases, arguments, FILE)


if __name__ == "__main__":
    main()
