"""Tables and plots of the accuracy benchmarks, from their results files.

Reads ``accuracy.jsonl``, ``timing.jsonl``, ``real.jsonl``, ``effects.jsonl``, ``dose.jsonl``,
``missing.jsonl``, ``support.jsonl`` and ``scale.jsonl`` of the results folder, as far as they are
there, and writes ``REPORT.md`` with its pictures beside them.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import dose
import effects
import missing
import scale_report
import support_report
from common import RESULTS, Record, read_records
from loaders import FAMILIES
from metrics import (
    ORACLE,
    Summary,
    Truth,
    by_method,
    honesty,
    mae_on_sets_of,
    selection_rates,
    summarize,
    truth_of,
)
from own import preset_of, recipe_of
from plots import Panel, plot_coverage, plot_drifts, plot_error_by_n, plot_errors
from scale_data import FILE
from tables import bias_text, coverage_text, markdown_table, number

# Families whose outcomes have different units: errors are in standard deviations of the outcome.
SCALED_FAMILIES = ("acic2019", "acic2019-low")
# The package's default. Peers that ran on fewer data sets are compared with it on theirs.
REFERENCE = "calibrated"
# Data sets from which a spread of estimates can be told.
MIN_SETS_OF_SPREAD = 50
# Families small enough for a table of every error.
MAX_SETS_LISTED = 5

# What has a report of its own: title, results file, and what makes lines of the results.
OTHER_SECTIONS: tuple[tuple[str, str, Callable[[list[Record]], str]], ...] = (
    ("Three arms, mediations", effects.FILE, effects.report),
    ("Continuous treatments", "dose.jsonl", dose.report),
)

INTRODUCTION = """\
# Accuracy

Made by `benchmarks/report.py` from the results files beside it. Every method has one setting for
all data. Errors are measured against the mean effect of the rows at hand (sample ATE), coverage
is that of the population's mean effect under the sampling scheme, where it is known. Coverage
comes with its Monte-Carlo standard error (Agresti–Coull). *Oracle* is AIPW with the true
nuisances: no estimator can be expected to do better, and "/ oracle" is the ratio of the mean
absolute errors on the same data sets. Where a peer ran on fewer data sets, "calibrated there" is
the package's mean absolute error on just those. Widths are those of 95 % intervals, PEHE is the
root mean squared error of the rows' effects, averaged over data sets. Seconds are medians; fits
ran with one thread each and may have shared the machine, except under "Time".

Methods: the package's presets by name, with changes such as "stonet/screen=100". "stonet" is the
paper's method with constants from the data, "paper:…" Algorithm A1 with the settings published for
an experiment. These suit n ≫ p: on simulation 1 with p = 1000 they keep hundreds of covariates,
most of which started above the prior's threshold, and the effects that they give are of no use.
Peers: DoubleML's interactive regression model with 5
folds and LightGBM (300 trees, learning rate 0.05; "-stopped": growth stops when a held-out tenth
of the rows no longer gains) or the lasso and L1 logistic regression with cross-validated
penalties; EconML's CausalForestDML (mean of its effects with its interval; "-dr": its doubly
robust mean effect); stochtree's BART with the treatment as a covariate (10 grow-from-root sweeps,
200 burn-in, 1000 draws), whose interval is that of the effect on the rows at hand. On Twins the
oracle has the true propensity, and risks by logistic regression on both outcomes of all pairs;
its draws 1 and 2, ACIC 2016 sets 1 and 2, the four of ACIC 2019 and IHDP 1 and 2 were looked at
while the present recipe was chosen.
"""


def summary_table(summaries: Sequence[Summary], there: Sequence[float] = ()) -> str:
    """Errors, coverage and cost; columns that nothing fills are left out.

    Parameters
    ----------
    summaries : sequence of Summary
        One per method.
    there : sequence of float
        MAE of the package's default on the data sets of each, see `reference_errors`.
    """
    columns = {
        "method": [s.method for s in summaries],
        "data sets": [str(s.n_sets) for s in summaries],
        "failed": [str(s.n_failed) if s.n_failed else "–" for s in summaries],
        "MAE": [number(s.mae) for s in summaries],
        f"{REFERENCE} there": [number(mae) for mae in there] or ["–"] * len(summaries),
        "RMSE": [number(s.rmse) for s in summaries],
        "bias": [bias_text(s) for s in summaries],
        "/ oracle": ["–" if s.method == ORACLE else number(s.oracle_ratio) for s in summaries],
        "coverage": [coverage_text(s) for s in summaries],
        "width": [number(s.width) for s in summaries],
        "PEHE": [number(s.pehe) for s in summaries],
        "seconds": [number(s.seconds) for s in summaries],
    }
    filled = {name: cells for name, cells in columns.items() if set(cells) != {"–"}}
    return markdown_table(list(filled), zip(*filled.values(), strict=True))


def reference_errors(
    methods: dict[str, list[Record]], *, errors: Truth = "sample", scaled: bool = False
) -> list[float]:
    """MAE of the package's default on the data sets of each peer, if these are not all the same."""
    reference = methods.get(REFERENCE, [])
    sets = {
        frozenset(r["seed"] for r in records) for name, records in methods.items() if name != ORACLE
    }
    if len(sets) < 2:
        return []
    return [
        math.nan
        if name in (ORACLE, REFERENCE)
        else mae_on_sets_of(records, reference, errors=errors, scaled=scaled)
        for name, records in methods.items()
    ]


def selection_table(methods: dict[str, list[Record]]) -> str:
    """FSR and NSR of both models, for the methods that select."""
    rows = []
    for method, records in methods.items():
        outcome, treatment = (selection_rates(records, m) for m in ("outcome", "treatment"))
        if math.isfinite(outcome[0]):
            rows.append([method, *(number(rate) for rate in (*outcome, *treatment))])
    header = ["selection", "FSR outcome", "NSR outcome", "FSR treatment", "NSR treatment"]
    return markdown_table(header, rows) if rows else ""


def groups_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results per group, simulations and sizes in natural order."""
    names = sorted({r["group"] for r in records}, key=natural_order)
    return {name: [r for r in records if r["group"] == name] for name in names}


def natural_order(text: str) -> list[tuple[int, str]]:
    """A sort key under which n=800 comes before n=1000."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def simulation_section(records: Sequence[Record], folder: Path) -> list[str]:
    text = ["## Simulations\n", *recipe_note(records)]
    panels = []
    for group, members in groups_of(records).items():
        methods = by_method(members)
        summaries = [summarize(results) for results in methods.values()]
        panels.append(Panel(group, summaries, n=members[0].get("n", 0)))
        table = summary_table(summaries, reference_errors(methods))
        text += [f"### {group.capitalize()}\n", table, selection_table(methods)]
        if "-null" in group:
            text.append("There is no effect: the share of rejections at 5 % is 100 % - coverage.\n")
    plot_error_by_n(panels, folder / "error_by_n.png")
    plot_coverage(panels, folder / "coverage.png")
    text += [
        "![Mean absolute error against n](error_by_n.png)\n",
        "![Coverage of the 95 % intervals](coverage.png)\n",
    ]
    return text


def standard_error_section(records: Sequence[Record]) -> list[str]:
    """What the package's standard errors claim beside what its estimates do."""
    rows = []
    for group, members in groups_of(records).items():
        done = [r for r in members if r["method"] == REFERENCE and r.get("se_influence")]
        if len(done) < MIN_SETS_OF_SPREAD:
            continue
        rows.append([group, str(len(done))])
        for kind in ("se", "se_influence"):
            ratio, coverage = honesty(done, kind)
            rows[-1] += [number(ratio), f"{100 * coverage:.1f} %"]
    if not rows:
        return []
    header = ["simulation", "data sets", "SE / spread", "coverage", "influence", "coverage"]
    return [
        "## Standard errors\n",
        f"The mean standard error of {REFERENCE} over the standard deviation of its estimates, and "
        "the coverage it gives: with the variance of the paper, which is the default, and with "
        "that of the influence function.\n",
        markdown_table(header, rows),
    ]


def timing_section(records: Sequence[Record]) -> list[str]:
    """Seconds of fits that had the machine for themselves."""
    text = ["## Time\n", "One fit at a time with every core.\n"]
    for group, members in groups_of(records).items():
        rows = []
        for method, results in by_method(members).items():
            times = sorted(r["seconds"] for r in results if "error" not in r)
            if method == ORACLE or not times:
                continue
            median = summarize(results).seconds
            rows.append([method, str(len(times)), *map(number, (median, times[0], times[-1]))])
        header = ["method", "fits", "median seconds", "fastest", "slowest"]
        text += [f"### {group.capitalize()}\n", markdown_table(header, rows)]
    return text


def real_section(records: Sequence[Record], folder: Path) -> list[str]:
    text = ["## Real covariates, known effects\n", *recipe_note(records)]
    panels = []
    groups = groups_of(records)
    for family in (name for name in FAMILIES if name in groups):
        title, members = FAMILIES[family].title, groups[family]
        scaled = family in SCALED_FAMILIES
        methods = by_method(members)
        errors: Truth = "population" if scaled else "sample"
        summaries = [summarize(r, scaled=scaled, errors=errors) for r in methods.values()]
        panels.append(Panel(title, summaries))
        text.append(f"### {title}\n")
        if scaled:
            text.append("Errors, widths and PEHE in standard deviations of the outcome.\n")
            text.append("Against the stated mean effect of the population:\n")
        there = reference_errors(methods, errors=errors, scaled=scaled)
        text.append(summary_table(summaries, there))
        if scaled:
            text.append("Against the mean effect of the rows:\n")
            of_rows = [summarize(r, scaled=True, coverage="sample") for r in methods.values()]
            text.append(summary_table(of_rows))
        text += error_table(methods, scaled)
    text.append("### Coverage over all of them\n")
    pooled = [summarize(results) for results in by_method(records).values()]
    rows = [[s.method, str(s.n_sets), coverage_text(s)] for s in pooled if s.method != ORACLE]
    text.append(markdown_table(["method", "data sets", "coverage"], rows))
    plot_errors(panels, folder / "real_error.png")
    plot_coverage(panels, folder / "real_coverage.png")
    text += [
        "![Mean absolute error per family](real_error.png)\n",
        "![Coverage of the 95 % intervals](real_coverage.png)\n",
    ]
    return text


def error_table(methods: dict[str, list[Record]], scaled: bool) -> list[str]:
    """Signed errors of every data set, for small families."""
    numbers = sorted({r["seed"] for results in methods.values() for r in results})
    if len(numbers) > MAX_SETS_LISTED:
        return []
    rows = []
    for method, results in methods.items():
        done = {r["seed"]: r for r in results if "error" not in r}
        cells = []
        for seed in numbers:
            error = math.nan
            if seed in done:
                truth = truth_of(done[seed], "population" if scaled else "sample")
                error = (done[seed]["estimate"] - truth) / (done[seed]["y_sd"] if scaled else 1)
            cells.append(number(error))
        rows.append([method, *cells])
    return [markdown_table(["error on data set", *map(str, numbers)], rows)]


def missing_section(records: list[Record], folder: Path) -> list[str]:
    text = ["\n## Missing covariates\n", *recipe_note(records)]
    text += ["```", missing.report(records), "```\n"]
    drifts = missing.drifts(records)
    if drifts:
        plot_drifts(drifts, folder / "missing_share.png")
        text.append("![Difference to the complete data by share missing](missing_share.png)\n")
    return text


def recipe_note(records: Sequence[Record]) -> list[str]:
    """Say how many of the package's own results are from a recipe before the present one."""
    own = [r for r in records if r.get("recipe")]
    former = sum(r["recipe"] != recipe_of(preset_of(r["method"])) for r in own)
    if not former:
        return []
    return [f"Of the package's {len(own)} results here, {former} are those of a former recipe.\n"]


def write_report(folder: Path) -> Path:
    """Write REPORT.md and its pictures into the folder of the results.

    Parameters
    ----------
    folder : Path
        Folder with at least one of the results files.

    Returns
    -------
    Path
        The report.
    """
    accuracy, timing, real = (
        read_records(folder / name) for name in ("accuracy.jsonl", "timing.jsonl", "real.jsonl")
    )
    scale, support = (read_records(folder / name) for name in (FILE, support_report.FILE))
    if not (accuracy or timing or real or scale or support):
        raise FileNotFoundError(
            f"{folder} holds no results: run accuracy.py, real.py, support.py or scale.py first"
        )
    text = [INTRODUCTION]
    if accuracy:
        text += simulation_section(accuracy, folder)
        text += standard_error_section(accuracy)
    if timing:
        text += timing_section(timing) + recipe_note(timing)
    if real:
        text += real_section(real, folder)
    for title, name, lines in OTHER_SECTIONS:
        records = read_records(folder / name)
        if records:
            text += [f"\n## {title}\n", *recipe_note(records), "```", lines(records), "```"]
    if support:
        text += [*support_report.support_section(support), *recipe_note(support)]
    records = read_records(folder / "missing.jsonl")
    if records:
        text += missing_section(records, folder)
    if scale:
        text += scale_report.cost_section(scale, folder)
    path = folder / "REPORT.md"
    path.write_text("\n".join(part for part in text if part), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    print(write_report(parser.parse_args().results))


if __name__ == "__main__":
    main()
