"""Missing covariates: imputation at random and not at random beside complete data and short cuts.

What the report shows, on the paper's second simulation, two fits at a time::

    run="python benchmarks/missing.py --holes"
    $run paper --n 12000 --seeds 4001:4010
    $run mcar --n 12000 --seeds 4001:4010 --methods mar
    $run mcar --n 3000 --seeds 4001:4010 --methods complete
    $run mcar --n 3000 --seeds 4001:4100 --methods mar
    $run share --n 3000 --seeds 4001:4010 --methods mar,mean

``mcar`` removes a tenth of x1 and of x4 at random and ``paper`` as in the paper's experiment with
values missing not at random; ``share`` removes 5, 10, 20 and 40 % of x1 depending on treatment and
outcome; ``many`` has twenty incomplete columns, three of them with levels. Methods: ``complete``
fits the data before values were removed, ``drop`` complete cases, ``mean`` means in the gaps,
``mar`` and ``mnar`` impute, all with the default preset; ``mar@stonet`` or ``mar@paper/starts=1``
with another one. The report shows these, too, on data sets that served to choose options::

    $run mcar --seeds 801:810 --methods complete@stonet,mar@stonet
    $run paper --seeds 801:810 --methods mnar@stonet
    $run mcar --seeds 801:803 --methods complete@paper/starts=1,mar@paper/starts=1
    $run paper --seeds 801:803 --methods mnar@paper/starts=1

Results are appended to ``missing.jsonl``; a run is resumed by the same command, and ``--report``
prints what the file holds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from common import RESULTS, Estimate, Problem, Record, number_range
from loaders import truths_of
from own import Preset
from runner import read_records, run

from cstonet.datasets import Simulation, many_holes, paper_holes, punch_holes, simulation2

METHODS = ("complete", "drop", "mean", "mar", "mnar")
SHARES = (5, 10, 20, 40)


@dataclass(frozen=True, slots=True, eq=False)
class HoleProblem(Problem):
    """A data set with holes that remembers what was there."""

    complete: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class HoleCase:
    """Simulation 2 with holes of a kind, see the head of this file."""

    holes: str
    n: int
    p: int
    seed: int
    percent: int = 10

    @property
    def group(self) -> str:
        """Kind of holes and sizes."""
        return f"{self.holes} {self.percent} %, n={self.n}, p={self.p}"

    def load(self) -> HoleProblem:
        """Draw the data and remove values."""
        complete: Simulation = simulation2(n=self.n, p=self.p, seed=self.seed)
        if self.holes == "paper":
            holes = paper_holes(complete)
        elif self.holes == "many":
            complete, holes = many_holes(n=self.n, p=self.p, seed=self.seed)
        elif self.holes == "share":
            share = self.percent / 100
            holes = punch_holes(complete, ("x1",), share=share, mechanism="mar")
        else:
            holes = punch_holes(complete, share=self.percent / 100)
        return HoleProblem(data=holes.data, complete=complete.data, **truths_of(holes))


@dataclass(frozen=True, slots=True)
class HoleMethod:
    """A way to deal with the holes, then a fit of the package.

    Parameters
    ----------
    name : str
        One of METHODS, maybe with "@" and a preset as accuracy.py names them.
    """

    name: str

    @property
    def kind(self) -> str:
        """What is done about the holes."""
        return self.name.partition("@")[0]

    @property
    def fit(self) -> Preset:
        """The preset, with its changes."""
        return Preset(self.name.partition("@")[2] or "calibrated")

    @property
    def recipe(self) -> str:
        """What the results depend on."""
        return self.fit.recipe

    def prepare(self) -> None:
        """Refuse what is unknown."""
        if self.kind not in METHODS:
            raise ValueError(f"{self.kind!r} is none of {', '.join(METHODS)}")
        self.fit.prepare()

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """AIPW with the fitted networks."""
        data, missing = problem.data, self.kind
        if self.kind == "complete" and isinstance(problem, HoleProblem):
            data, missing = problem.complete, "raise"
        elif self.kind == "mean":
            numbers = data.select_dtypes("float")
            data, missing = data.fillna(numbers.mean()), "raise"
            data = data.fillna(data.mode().iloc[0])
        results = self.fit.fit(
            replace(problem, data=data, missing=missing), threads=threads, seed=seed
        )
        estimate = self.fit.read(results)
        # Rows that were dropped have no estimate of their own effect.
        return replace(estimate, cate=None) if self.kind == "drop" else estimate


Groups: TypeAlias = dict[str, dict[str, dict[int, Record]]]


def group_results(records: list[Record]) -> Groups:
    """Results by group, method and seed.

    The complete data do not depend on the holes: a group without fits of its own to them has those
    of another group of the same sizes. Only ``many`` starts from data of its own.
    """
    groups: Groups = defaultdict(lambda: defaultdict(dict))
    complete: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in records:
        if "error" in record:
            continue
        group, method, seed = record["group"], record["method"], record["seed"]
        groups[group][method][seed] = record
        if method == "complete" and not group.startswith("many"):
            complete[sizes_of(group)][seed] = record
    for group, methods in groups.items():
        if "complete" not in methods and complete[sizes_of(group)]:
            methods["complete"] = complete[sizes_of(group)]
    return groups


def sizes_of(group: str) -> str:
    """What a group's name says after the kind and the share of the holes."""
    return group.partition(", ")[2]


@dataclass(frozen=True, slots=True)
class Drift:
    """How far holes move the estimate away from that of the complete data, on average."""

    method: str
    percent: int
    mean: float
    standard_error: float


def drifts(records: list[Record]) -> list[Drift]:
    """Differences to the fit of the complete data, by method and share of missing values."""
    found = []
    for group, methods in group_results(records).items():
        if not group.startswith("share "):
            continue
        percent, complete = int(group.split()[1]), methods.get("complete", {})
        for method, mine in methods.items():
            seeds = sorted(set(mine) & set(complete))
            if method == "complete" or len(seeds) < 2:
                continue
            moved = np.array([mine[s]["estimate"] - complete[s]["estimate"] for s in seeds])
            error = float(moved.std(ddof=1) / np.sqrt(len(moved)))
            found.append(Drift(method, percent, float(moved.mean()), error))
    return sorted(found, key=lambda drift: (drift.method, drift.percent))


def by_preset_and_kind(name: str) -> tuple[str, int]:
    """Sorts the default before other presets, and what is done about holes in its usual order."""
    kind, _, preset = name.partition("@")
    return preset, METHODS.index(kind)


def report(records: list[Record]) -> str:
    """A table per group: errors against the rows' own mean effect, coverage of the population's."""
    groups, lines = group_results(records), []
    for group, methods in groups.items():
        lines += ["", group, f"{'':24}{'sets':>5}{'MAE':>9}{'ratio':>7}{'bias':>9}{'(se)':>9}"]
        lines[-1] += f"{'SE':>8}{'cover':>7}{'FSR':>6}{'NSR':>6}{'time':>6}"
        # Fits of complete data lent by another group count for the seeds of this one only.
        seeds = {s for name, fits in methods.items() if name != "complete" for s in fits}
        seeds = seeds or set(methods["complete"])
        for method in sorted(methods, key=by_preset_and_kind):
            mine = {s: r for s, r in methods[method].items() if s in seeds}
            base = methods.get("complete", mine)
            rows, both = list(mine.values()), sorted(set(mine) & set(base))
            error = np.array([r["estimate"] - r["sample_ate"] for r in rows])
            covered = np.mean([r["lower"] <= r["ate"] <= r["upper"] for r in rows])
            # Ratios are over the data sets that were also fitted complete.
            own, other, seconds = np.nan, np.nan, np.nan
            if both:
                own, other = (
                    np.mean([abs(fits[s]["estimate"] - fits[s]["sample_ate"]) for s in both])
                    for fits in (mine, base)
                )
                seconds = np.median([mine[s]["seconds"] / base[s]["seconds"] for s in both])
            counts = [r["selection"][m] for r in rows for m in ("outcome", "treatment")]
            false = sum(c["false"] for c in counts) / max(sum(c["selected"] for c in counts), 1)
            missed = sum(c["missed"] for c in counts) / max(sum(c["true"] for c in counts), 1)
            spread = error.std(ddof=1) / np.sqrt(len(error)) if len(error) > 1 else np.nan
            lines.append(
                f"{method:24}{len(rows):5}{np.abs(error).mean():9.4f}"
                f"{own / other:7.2f}{error.mean():9.4f}"
                f"{spread:9.4f}{np.mean([r['se'] for r in rows]):8.4f}{covered:7.2f}"
                f"{false:6.2f}{missed:6.2f}{seconds:6.2f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--holes", default="mcar", help="mcar, paper, share, many; several: a,b")
    parser.add_argument("--n", type=number_range, default="12000", help="sizes")
    parser.add_argument("--p", type=int, default=100, help="number of covariates")
    parser.add_argument("--seeds", type=number_range, default="801:810", help="101:120 or 1,2,5")
    parser.add_argument("--methods", default=",".join(METHODS), help="of " + ", ".join(METHODS))
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time, one thread each")
    parser.add_argument("--limit", type=float, default=3600, help="seconds until a fit is given up")
    parser.add_argument("--retry", action="store_true", help="compute failed results again")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="print tables of the results")
    arguments = parser.parse_args()
    path = arguments.out / "missing.jsonl"
    if arguments.report:
        print(report(read_records(path)))
        return
    cases = [
        HoleCase(holes, n, arguments.p, seed, percent)
        for holes in arguments.holes.split(",")
        for percent in (SHARES if holes == "share" else (10,))
        for n in arguments.n
        for seed in arguments.seeds
    ]
    methods = [HoleMethod(name) for name in arguments.methods.split(",")]
    run(
        cases,
        methods,
        path,
        jobs=arguments.jobs,
        threads=1,
        limit=arguments.limit,
        retry=arguments.retry,
    )


if __name__ == "__main__":
    main()
