"""The part of the field page about real data: estimates beside an experiment or published ones."""

from __future__ import annotations

from collections.abc import Sequence

import field_published as published
import numpy as np
from common import Record
from field_plots import Interval
from metrics import ORACLE, by_method, seconds_of
from tables import DASH, filled_table, number, seconds_text

EXPERIMENT = "experiment"


def interval_rows(group: str, records: Sequence[Record]) -> list[Interval]:
    """Estimates on a real data set, the experiment's or the published ones first.

    Fits with several seeds are averaged: limits too, as each seed's interval is valid by itself.
    """
    rows = [
        Interval(f"published: {each.method}", each.estimate, each.lower, each.upper, True)
        for each in published.EFFECTS.get(group, ())
    ]
    methods = by_method(records)
    for method, found in methods.items():
        done = [r for r in found if "error" not in r]
        if done:
            estimate, lower, upper = (
                float(np.mean([r[key] for r in done])) for key in ("estimate", "lower", "upper")
            )
            label = EXPERIMENT if method == ORACLE else method
            rows.append(Interval(label, estimate, lower, upper, method == ORACLE))
    return rows


def real_table(rows: Sequence[Interval], records: Sequence[Record]) -> str:
    """Estimates, intervals, spread over the seeds of the fit, and how far from the first row."""
    methods = {m: [r for r in f if "error" not in r] for m, f in by_method(records).items()}
    methods[EXPERIMENT] = []  # seeds of the fit are no draws of the experiment
    estimates = {m: [r["estimate"] for r in found] for m, found in methods.items()}
    costs = {m: seconds_text(*seconds_of(found)) for m, found in methods.items() if found}
    first = rows[0].estimate
    return filled_table(
        {
            "method": [row.label for row in rows],
            "estimate": [number(row.estimate, 4) for row in rows],
            "95 % interval": [f"{number(row.lower)} to {number(row.upper)}" for row in rows],
            "less the first row": [
                DASH if row is rows[0] else f"{row.estimate - first:+.4g}" for row in rows
            ],
            "seeds": [str(len(methods.get(row.label, ())) or DASH) for row in rows],
            "spread over seeds": [
                number(float(np.std(estimates[row.label], ddof=1)), 2)
                if len(estimates.get(row.label, ())) > 1
                else DASH
                for row in rows
            ],
            "CPU seconds": [costs.get(row.label, DASH) for row in rows],
        }
    )


def source_lines(name: str) -> list[str]:
    """Where the published estimates are from; the experiment's is computed from the data."""
    if name == "lalonde":
        return [
            "The experiment's effect is the difference in mean earnings of its own treated and "
            "controls, with the standard error of unequal variances.\n"
        ]
    sources = dict.fromkeys(each.source for each in published.EFFECTS[name])
    return ["Published: " + "; ".join(sources) + ". No truth is known.\n"]
