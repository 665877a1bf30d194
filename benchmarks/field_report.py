"""The page of field.py: protocols that others publish, beside what they publish."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common import Record
from field import FILE
from field_plots import IntervalPanel, LengthPanel, plot_intervals, plot_lengths
from field_protocols import PROTOCOLS, Protocol
from field_report_published import PUBLISHED, PUBLISHED_LINES, bands, published_columns
from field_report_real import interval_rows, real_table, source_lines
from metrics import (
    REFERENCE,
    Summary,
    by_method,
    coverage_of,
    summarize,
    truth_of,
)
from pages.shared import difference_texts, failures, of_single_effects, selection_table
from pairs import Figure
from plots import Panel, plot_coverage, plot_errors
from tables import (
    DASH,
    bias_text,
    coverage_text,
    figure_text,
    filled_table,
    number,
    percent_text,
    seconds_text,
    with_error,
)
from tuning import looked_at, tuning_note

LOOKED_AT = textwrap.fill(
    "Looked at while the package's recipe was chosen, by number of the data set or seed: "
    + looked_at(FILE, (group for protocol in PROTOCOLS.values() for group in protocol.groups))
    + ". Where some of them are shown here, it is said. The first page leaves them out if there "
    "are others.",
    width=100,
    break_on_hyphens=False,
)

INTRODUCTION = f"""\
# Protocols of the field

Made by `benchmarks/field.py`, one command for each (`--protocol NAME`). All methods get the same
rows of a data set, each with one setting for all data; slow ones did fewer data sets, and the
column says how many. MAE is the mean absolute error of the effect, the length is that of 95 %
intervals. ± is one Monte-Carlo standard error, for coverage that of Agresti and Coull.
"{REFERENCE} - it" is the mean difference of the package's absolute error and the method's on the
data sets of both: negative where the package is better. *Oracle* is AIPW with the true nuisances,
on Twins with the true propensity and risks fitted to both twins' outcomes. Coverage is that of the
population's effect where it is known, else of the rows': intervals meant for the population then
cover more often than 95 %. Intervals that are meant for the rows are asked about the rows' effect
throughout (§ where others are not). CPU seconds are medians of one thread, or of the clock where
results carry no other. *Published* figures are copied from their sources, not computed here.

Peers, beside those of the first page: "ols-interacted" has slopes of each arm's own, "ols" has not;
"doubleml-forest" has the forests of DoubleML's coverage pages (200 trees of depth 5; of more than
20 covariates a split sees a third), "doubleml-lasso-forest" the lasso with such a forest for the
treatment, "doubleml-linear" least squares and logistic regression, "doubleml-lightgbm-slow" 500
trees at a learning rate of 0.01 (with several arms, leaves of 10 rows); "statsmodels-aipw" AIPW
with regressions without a penalty, which refuses where these have no solution; "bcf" stochtree's
Bayesian causal forest with an estimated propensity.

{LOOKED_AT}
"""


def page(records: Sequence[Record], folder: Path) -> str:
    """Pictures, then a section per protocol.

    Parameters
    ----------
    records : sequence of dict
        Results of field.py.
    folder : Path
        Where the pictures go.
    """
    drawn = Pictures()
    sections = [
        line
        for name, protocol in PROTOCOLS.items()
        for line in section(name, protocol, results_of(protocol, records), drawn)
    ]
    text = [INTRODUCTION, *drawn.draw(folder), *sections]
    return "\n".join(part for part in text if part)


def section(name: str, protocol: Protocol, records: Sequence[Record], drawn: Pictures) -> list[str]:
    """Title, tables and sources of a protocol; what is to be drawn of it is added to `drawn`."""
    text = [f"## {protocol.title} (`{name}`)\n", f"{protocol.about}\n"]
    if not any("error" not in r for r in records):
        text.append(f"No results yet: `python benchmarks/field.py --protocol {name}`.\n")
    else:
        tables = truth_section if protocol.benchmark == "truth" else real_section
        text += [*tuning_note(FILE, records), *tables(name, protocol, records, drawn)]
    text += failures(records)
    return text + bands() if protocol.question == "arms" else text


def real_section(
    name: str, protocol: Protocol, records: Sequence[Record], drawn: Pictures
) -> list[str]:
    """Tables of real data, one per group."""
    text = []
    for group in protocol.groups:
        own = [r for r in records if r["group"] == group]
        if not any("error" not in r for r in own):
            continue
        rows = interval_rows(group, own)
        drawn.intervals.append(IntervalPanel(group, protocol.unit, rows))
        text += [f"### {group}\n"] if len(protocol.groups) > 1 else []
        text.append(real_table(rows, own))
    return text + source_lines(name)


def truth_section(
    name: str, protocol: Protocol, records: Sequence[Record], drawn: Pictures
) -> list[str]:
    """The table of a protocol whose truth is known, and what others published of it."""
    if protocol.question == "arms":
        records = of_single_effects(records, led=True)
    methods = by_method(records)
    summaries = [
        summarize(found, errors=protocol.errors, scaled=protocol.scaled)
        for found in methods.values()
    ]
    if protocol.question == "arms":
        tables = [arms_table(summaries, methods)]
    else:
        tables = [truth_table(name, protocol, summaries, methods), selection_table(methods)]
    drawn.panels.append(Panel(name, summaries))
    if name in PUBLISHED:
        drawn.lengths.append(LengthPanel(name, summaries, PUBLISHED[name]))
    return [*tables, *PUBLISHED_LINES.get(name, list)()]


def results_of(protocol: Protocol, records: Sequence[Record]) -> list[Record]:
    """The results of a protocol on its own data sets; others are not shown."""
    return [r for r in records if r["group"] in protocol.groups and r["seed"] in protocol.numbers]


def truth_table(
    name: str,
    protocol: Protocol,
    summaries: Sequence[Summary],
    methods: dict[str, list[Record]],
) -> str:
    """Errors, coverage, lengths and cost, with published figures beside the peers they are of."""
    differences = difference_texts(methods, errors=protocol.errors, scaled=protocol.scaled)
    return filled_table(
        {
            "method": [s.method for s in summaries],
            "data sets": [str(s.n_sets) for s in summaries],
            "failed": [str(s.n_failed) if s.n_failed else DASH for s in summaries],
            "MAE": [with_error(s.mae, s.mae_error) for s in summaries],
            f"{REFERENCE} - it": differences,
            "bias": [bias_text(s) for s in summaries],
            "RMSE": [with_error(s.rmse, s.rmse_error) for s in summaries],
            "coverage": [coverage_text(s) for s in summaries],
            "length": [number(s.width) for s in summaries],
            "PEHE": [with_error(s.pehe, s.pehe_error) for s in summaries],
            "CPU seconds": [seconds_text(s.seconds, s.by_clock) for s in summaries],
            **published_columns(PUBLISHED.get(name, ()), summaries),
        }
    )


def arms_table(pooled: Sequence[Summary], methods: dict[str, list[Record]]) -> str:
    """All effects together, the bias of each, and the coverage of the published truths."""
    effects = sorted({r["group"] for found in methods.values() for r in found if "data" in r})
    biases = {
        f"bias {effect.partition(': ')[2]}": [
            _bias([r for r in found if r["group"] == effect]) for found in methods.values()
        ]
        for effect in effects
    }
    return filled_table(
        {
            "method": [s.method for s in pooled],
            "data sets": [str(s.n_sets) for s in pooled],
            "failed": [str(s.n_failed) if s.n_failed else DASH for s in pooled],
            "MAE": [with_error(s.mae, s.mae_error) for s in pooled],
            **biases,
            "RMSE": [with_error(s.rmse, s.rmse_error) for s in pooled],
            "coverage": [coverage_text(s) for s in pooled],
            "of the published truth": [
                percent_text(coverage_of(list(map(with_published_truth, found))).figure)
                for found in methods.values()
            ],
            "length": [number(s.width) for s in pooled],
            "CPU seconds": [seconds_text(s.seconds, s.by_clock) for s in pooled],
            **published_columns(PUBLISHED["multi-arm"], pooled),
        }
    )


def _bias(records: Sequence[Record]) -> str:
    done = [r for r in records if "error" not in r]
    return figure_text(
        Figure.mean_of([r["estimate"] - truth_of(r, "population") for r in done]), signed=True
    )


def with_published_truth(record: Record) -> Record:
    """The result of one effect beside what the published protocol takes for its truth."""
    if "error" in record:
        return record
    effect = record["effects"][record["group"].partition(": ")[2]]
    return record | {"ate": effect["published_truth"]}


@dataclass(slots=True)
class Pictures:
    """What is to be drawn of the protocols that have results."""

    panels: list[Panel] = field(default_factory=list)
    lengths: list[LengthPanel] = field(default_factory=list)
    intervals: list[IntervalPanel] = field(default_factory=list)

    def draw(self, folder: Path) -> list[str]:
        """Draw what there is; the lines that show it."""
        text = []
        if self.lengths:
            plot_lengths(self.lengths, folder / "field_lengths.png")
            text.append(
                "![Length and coverage of intervals, beside published ones](field_lengths.png)\n"
            )
        if self.panels:
            plot_errors(self.panels, folder / "field_errors.png")
            plot_coverage(self.panels, folder / "field_coverage.png")
            text.append("![Mean absolute error per protocol](field_errors.png)\n")
            text.append("![Coverage of the 95 % intervals](field_coverage.png)\n")
        if self.intervals:
            plot_intervals(self.intervals, folder / "field_estimates.png")
            text.append("![Estimates on real data](field_estimates.png)\n")
        return text
