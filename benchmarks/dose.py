"""Accuracy for a continuous treatment: the average marginal effect and the dose-response curve.

What the report shows, a hundred data sets, two fits at a time::

    python benchmarks/dose.py --n 2000 --p 100 --seeds 4001:4100

Seeds up to 4000 served to choose options of the package.

Results are appended to ``dose.jsonl`` in the output folder; what is there already is not computed
again. ``--report`` prints the figures only.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from accuracy import add_run_arguments, run_cases
from common import Z95, Estimate, FloatArray, Problem, Record, number_range
from metrics import coverage_error
from own import recipe_of
from runner import read_records

import cstonet as cs

# Doses, as shares of the way through the support, at which curves are compared with the truth.
POINTS = 25
# Bootstrap draws behind the standard error of a ratio.
DRAWS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class DoseProblem(Problem):
    """A data set with a dose; `ate` and `sample_ate` hold the marginal effects."""

    simulation: cs.datasets.DoseSimulation | None = None


@dataclass(frozen=True, slots=True)
class DoseCase:
    """One data set of the dose simulation."""

    n: int
    p: int
    heteroscedastic: bool
    seed: int

    @property
    def group(self) -> str:
        """Kind of dose and sizes."""
        kind = "dose, heteroscedastic" if self.heteroscedastic else "dose"
        return f"{kind}, n={self.n}, p={self.p}"

    def load(self) -> DoseProblem:
        """Draw the data."""
        sim = cs.datasets.dose_curve(
            self.n, self.p, seed=self.seed, heteroscedastic=self.heteroscedastic
        )
        oracle = sim.oracle()
        return DoseProblem(
            data=sim.data,
            sample_ate=sim.sample_ame,
            ate=sim.ame,
            tau=sim.slope,
            oracle=(float(oracle.estimates[0]), float(oracle.standard_errors[0])),
            supports={
                "outcome": frozenset(sim.outcome_support),
                "treatment": frozenset(sim.treatment_support),
            },
            simulation=sim,
        )


@dataclass(frozen=True, slots=True)
class DoseFit:
    """The default fit: formula, frame, nothing else."""

    name: str = "calibrated"

    @property
    def recipe(self) -> str:
        """What the results depend on."""
        return recipe_of(self.name)

    def prepare(self) -> None:
        """Nothing to do: the package is there."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """Marginal effect and curve of the fitted networks."""
        assert isinstance(problem, DoseProblem)
        assert problem.simulation is not None
        sim = problem.simulation
        results = cs.fit(sim.formula, sim.data, preset=self.name, seed=seed, n_jobs=threads)
        effect, table = results.effect("AME"), results.selection
        low, high = results.dose_response().support
        doses = np.linspace(low, high, POINTS)
        oracle = sim.oracle_curve(doses)
        return Estimate(
            ate=effect.estimate,
            se=effect.se,
            lower=effect.lower,
            upper=effect.upper,
            cate=results.cate().to_numpy(),
            selected={m: frozenset(table.index[table[m]]) for m in ("outcome", "treatment")},
            extra={
                "curve": curve_figures(results.dose_response(doses).table, sim.curve(doses)),
                "oracle_curve_rmse": _rms(oracle.estimates - sim.curve(doses)),
                "heteroscedastic": results.dispersion.heteroscedastic,
                "gaussian": results.dose_nuisances.residual_density.gaussian,
            },
        )


def curve_figures(table: pd.DataFrame, truth: FloatArray) -> Record:
    """Error and coverage of a curve, over the doses of its table."""
    pointwise = (table["lower"] <= truth) & (truth <= table["upper"])
    uniform = (table["uniform_lower"] <= truth) & (truth <= table["uniform_upper"])
    return {
        "rmse": _rms(table["estimate"].to_numpy() - truth),
        "pointwise": float(pointwise.mean()),
        "uniform": bool(uniform.all()),
    }


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def report(records: Sequence[Record]) -> str:
    """Figures of each group, as text."""
    lines = []
    for group in dict.fromkeys(record["group"] for record in records):
        own = [r for r in records if r["group"] == group]
        done = [r for r in own if "error" not in r]
        lines.append(f"{group}: {len(done)} data sets, {len(own) - len(done)} failed")
        if not done:
            continue
        covered = sum(r["lower"] <= r["ate"] <= r["upper"] for r in done)
        oracle_covered = sum(abs(r["oracle"][0] - r["ate"]) <= Z95 * r["oracle"][1] for r in done)
        errors, oracle = (
            np.array([value(r) - r["ate"] for r in done])
            for value in (lambda r: r["estimate"], lambda r: r["oracle"][0])
        )
        ratio, spread = ratio_of_rms(errors, oracle)
        uniform = sum(r["curve"]["uniform"] for r in done)
        n = len(done)
        lines += [
            f"  AME, 95 % intervals cover  {covered / n:.3f} ± {coverage_error(covered, n):.3f}"
            f" (oracle {oracle_covered / n:.3f})",
            f"  AME, bias {errors.mean():+.4f} ± {errors.std(ddof=1) / n**0.5:.4f}, RMSE "
            f"{_rms(errors):.4f}, mean SE {np.mean([r['se'] for r in done]):.4f}",
            f"  AME, RMSE / oracle RMSE    {ratio:.3f} ± {spread:.3f}",
            f"  curve, pointwise coverage  {np.mean([r['curve']['pointwise'] for r in done]):.3f}",
            f"  curve, uniform coverage    {uniform / n:.3f} ± {coverage_error(uniform, n):.3f}",
            f"  curve, RMSE / oracle RMSE  "
            f"{np.mean([r['curve']['rmse'] for r in done]):.3f} / "
            f"{np.mean([r['oracle_curve_rmse'] for r in done]):.3f}",
            f"  share with a variance found to depend on covariates "
            f"{np.mean([r['heteroscedastic'] for r in done]):.2f}, with residuals found not "
            f"gaussian {np.mean([not r['gaussian'] for r in done]):.2f}",
            f"  median seconds             {np.median([r['seconds'] for r in done]):.1f}",
        ]
    return "\n".join(lines)


def ratio_of_rms(errors: FloatArray, oracle: FloatArray) -> tuple[float, float]:
    """Ratio of root mean squares, and its standard error by a bootstrap of the data sets."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(errors), size=(DRAWS, len(errors)))
    ratios = np.sqrt((errors[rows] ** 2).mean(axis=1) / (oracle[rows] ** 2).mean(axis=1))
    return _rms(errors) / _rms(oracle), float(ratios.std())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=number_range, default="2000", help="sizes, such as 1000,2000")
    parser.add_argument("--p", type=int, default=100, help="number of covariates")
    parser.add_argument("--seeds", type=number_range, default="1001:1100", help="1001:1100 or 1,2")
    parser.add_argument("--heteroscedastic", action="store_true", help="spread depends on x1")
    parser.add_argument("--report", action="store_true", help="print the figures, compute nothing")
    add_run_arguments(parser)
    parser.set_defaults(methods=[DoseFit()])
    arguments = parser.parse_args()
    if not arguments.report:
        warnings.simplefilter("ignore")
        cases = [
            DoseCase(n, arguments.p, arguments.heteroscedastic, seed)
            for n in arguments.n
            for seed in arguments.seeds
        ]
        run_cases(cases, arguments, "dose.jsonl")
    print(report(read_records(arguments.out / "dose.jsonl")))


if __name__ == "__main__":
    main()
