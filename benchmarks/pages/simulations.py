"""The page of accuracy.py: the paper's simulations, standard errors, time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from common import Record
from metrics import ORACLE, REFERENCE, by_method, coverage_of, spread_ratio, summarize
from plots import Panel, plot_coverage, plot_error_by_n
from tables import figure_text, markdown_table, number, percent_text
from tuning import tuning_note

from pages.shared import difference_texts, groups_of, selection_table, summary_table

INTRODUCTION = f"""\
# The paper's simulations

Errors are measured against the mean effect of the rows at hand, coverage is that of the
population's mean effect; § marks intervals that are meant for the rows' and are asked about that.
*Oracle* is AIPW with the true nuisances: a yardstick, not a bound, since an estimator that shrinks
weights or smooths may err less. "/ oracle" is the ratio of the mean absolute errors on the same
data sets. "{REFERENCE} - it" is the mean difference of the package's absolute error and the
method's on the data sets of both: negative where the package is better. Widths are those of 95 %
intervals, PEHE is the root mean squared error of the rows' effects, averaged over data sets. ± is
one Monte-Carlo standard error, for coverage that of Agresti and Coull. Seconds are medians of
processor time, of the clock where results carry no other; fits ran with one thread each and may
have shared the machine, except under "Time". "paper:simulation1" suits n ≫ p: with p = 1000 it
keeps hundreds of covariates, most of which started above the prior's threshold, and the effects
that it gives are of no use.
"""


def page(accuracy: Sequence[Record], timing: Sequence[Record], folder: Path) -> str:
    """Errors, coverage and selection per simulation and size, then standard errors and time.

    Parameters
    ----------
    accuracy, timing : sequence of dict
        Results of accuracy.py, without and with ``--time``.
    folder : Path
        Where the pictures go.
    """
    text = [INTRODUCTION]
    if accuracy:
        text += [*accuracy_section(accuracy, folder), *standard_error_section(accuracy)]
    if timing:
        text += timing_section(timing)
    return "\n".join(part for part in text if part)


def accuracy_section(records: Sequence[Record], folder: Path) -> list[str]:
    """A table per simulation and size, and two pictures."""
    text = []
    panels = []
    for group, members in groups_of(records).items():
        methods = by_method(members)
        summaries = [summarize(results) for results in methods.values()]
        panels.append(Panel(group, summaries, n=members[0].get("n", 0)))
        table = summary_table(summaries, difference_texts(methods))
        text += [f"## {group.capitalize()}\n", *tuning_note("accuracy.jsonl", members)]
        text += [table, selection_table(methods)]
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
        done = [r for r in members if r["method"] == REFERENCE and "error" not in r]
        ratio = spread_ratio(done)
        if math.isfinite(ratio.value):
            covered = percent_text(coverage_of(done).figure)
            rows.append([group, str(len(done)), figure_text(ratio), covered])
    if not rows:
        return []
    return [
        "## Standard errors\n",
        f"The mean standard error of {REFERENCE} over the standard deviation of its estimates, and "
        "the coverage of its intervals.\n",
        markdown_table(["simulation", "data sets", "SE / spread", "coverage"], rows),
    ]


def timing_section(records: Sequence[Record]) -> list[str]:
    """Seconds of fits that had the machine for themselves."""
    text = ["## Time\n", "One fit at a time with every core, seconds on the clock.\n"]
    for group, members in groups_of(records).items():
        rows = []
        for method, results in by_method(members).items():
            times = sorted(r["seconds"] for r in results if "error" not in r)
            if method == ORACLE or not times:
                continue
            figures = (statistics.median(times), times[0], times[-1])
            rows.append([method, str(len(times)), *map(number, figures)])
        header = ["method", "fits", "median seconds", "fastest", "slowest"]
        text += [f"### {group.capitalize()}\n", markdown_table(header, rows)]
    return text
