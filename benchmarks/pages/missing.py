"""The page of missing.py: imputation beside complete data and short cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import missing
from common import Record
from metrics import absolute_error, cpu_of, selection_figures, summarize
from pairs import Figure, paired, ratio_of_means
from plots import plot_drifts
from tables import (
    DASH,
    bias_text,
    coverage_text,
    figure_text,
    filled_table,
    number,
    seconds_text,
    with_error,
)
from tuning import is_tuning

from pages.shared import failures, natural_order

FILE = "missing.jsonl"

INTRODUCTION = """\
# Missing covariates

Simulation 2 with holes. *complete* is the fit to the data before values were removed, *drop* to
complete cases, *mean* to means in the gaps, *mar* and *mnar* impute, at random or not. "/ complete"
is the ratio of mean absolute errors, and "CPU / complete" that of mean processor seconds, on the
data sets of both with the same preset. Errors are those of the rows' mean effect, coverage is that
of the population's. ± is one Monte-Carlo standard error. Seconds are medians of processor time, of
the clock where results carry no other. Methods with † ran on data sets that served to choose
options.
"""

KINDS = {
    "mcar": "A tenth of x1 and of x4 missing at random",
    "paper": "The paper's holes, not at random",
    "share": "x1 missing by treatment and outcome",
    "many": "Twenty incomplete columns",
}


def page(records: Sequence[Record], folder: Path) -> str:
    """A table per kind of holes and sizes, and a picture by share of missing values.

    Parameters
    ----------
    records : sequence of dict
        Results of missing.py.
    folder : Path
        Where the picture goes.
    """
    text = [INTRODUCTION]
    groups = missing.group_results(list(records))
    for group in sorted(groups, key=natural_order):
        kind, _, sizes = group.partition(" ")
        text += [f"## {KINDS.get(kind, kind)}, {sizes}\n", method_table(groups[group], group)]
    text += failures(records)
    drifts = missing.drifts(list(records))
    if drifts:
        plot_drifts(drifts, folder / "missing_share.png")
        text.append("![Difference to the complete data by share missing](missing_share.png)\n")
    return "\n".join(text)


def method_table(methods: Mapping[str, Mapping[int, Record]], group: str) -> str:
    """A line per method, the default preset first.

    Parameters
    ----------
    methods : dict of dict
        Results by method and number of the data set; those of complete data may be another
        group's.
    group : str
        Name of the group.
    """
    # Fits of complete data lent by another group count for the data sets of this one only.
    seeds = {s for name, fits in methods.items() if name != "complete" for s in fits}
    seeds = seeds or set(methods["complete"])
    rows: dict[str, list[Record]] = {}
    for name in sorted(methods, key=missing.by_preset_and_kind):
        found = [r | {"group": group} for s, r in sorted(methods[name].items()) if s in seeds]
        if found:
            rows[name] = found
    summaries = [summarize(found) for found in rows.values()]
    rates = [_rates(found) for found in rows.values()]
    return filled_table(
        {
            "method": [_marked(name, found) for name, found in rows.items()],
            "data sets": [str(s.n_sets) for s in summaries],
            "MAE": [with_error(s.mae, s.mae_error) for s in summaries],
            "/ complete": _ratios(rows, absolute_error),
            "/ oracle": [with_error(s.oracle_ratio, s.oracle_ratio_error) for s in summaries],
            "bias": [bias_text(s) for s in summaries],
            "coverage": [coverage_text(s) for s in summaries],
            "width": [number(s.width) for s in summaries],
            "FSR": [figure_text(false) for false, _ in rates],
            "NSR": [figure_text(missed) for _, missed in rates],
            "PEHE": [with_error(s.pehe, s.pehe_error) for s in summaries],
            "seconds": [seconds_text(s.seconds, s.by_clock) for s in summaries],
            "CPU / complete": _ratios(rows, cpu_of),
        }
    )


def _ratios(
    rows: Mapping[str, Sequence[Record]], figure: Callable[[Record], float | None]
) -> list[str]:
    """Each method's mean of a figure over that of complete data with the same preset."""
    texts = []
    for name, found in rows.items():
        kind, at, preset = name.partition("@")
        pairs = paired(found, rows.get(f"complete{at}{preset}", []), figure)
        texts.append(DASH if kind == "complete" else figure_text(ratio_of_means(pairs)))
    return texts


def _rates(records: Sequence[Record]) -> tuple[Figure, Figure]:
    """FSR and NSR of both models together."""
    both = []
    for record in records:
        outcome, treatment = (record["selection"][model] for model in ("outcome", "treatment"))
        both.append({"selection": {"both": {k: outcome[k] + treatment[k] for k in outcome}}})
    return selection_figures(both, "both")


def _marked(name: str, records: Sequence[Record]) -> str:
    return f"{name} †" if any(is_tuning(FILE, r) for r in records) else name
