"""The page of effects.py and dose.py: three arms, mediations, continuous treatments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Record
from metrics import ORACLE, by_method, coverage_error, spread_ratio, summarize
from pairs import Figure, Pairs, ratio_of_means
from plots import Panel, plot_coverage
from tables import (
    bias_text,
    coverage_text,
    figure_text,
    filled_table,
    markdown_table,
    number,
    percent_text,
    seconds_text,
    with_error,
)
from tuning import tuning_note, without_tuning

from pages.shared import failures, groups_of, of_single_effects, selection_table

INTRODUCTION = """\
# Several effects, and doses

The package's default, given a formula and data. The truth is that of the population. *Oracle* has
the true nuisances; "/ oracle" is the ratio of the mean absolute errors on the same data sets,
"SE / spread" the mean standard error over the standard deviation of the estimates. ± is one
Monte-Carlo standard error. Seconds are medians of processor time, of the clock where results carry
no other. Data sets that served to choose options are left out where there are others. No peer has
run here.
"""

TITLES = {
    "three_arms": "Three arms",
    "one_mediator": "One mediator",
    "three_mediators": "Three mediators",
    "linear_mediation": "Linear mediation",
}
MODELS = ("outcome", "mediator", "treatment")


def page(effects: Sequence[Record], doses: Sequence[Record], folder: Path) -> str:
    """Tables of every simulation, and a picture of all coverages.

    Parameters
    ----------
    effects, doses : sequence of dict
        Results of effects.py and of dose.py.
    folder : Path
        Where the picture goes.
    """
    text: list[str] = [INTRODUCTION]
    panels: list[Panel] = []
    for file, records in (("effects.jsonl", effects), ("dose.jsonl", doses)):
        for group, everything in groups_of(records).items():
            kind, _, sizes = group.partition(", ")
            title = f"{TITLES.get(kind, kind.capitalize())}, {sizes}"
            members, _ = without_tuning(file, everything)
            text += [f"## {title}\n", *tuning_note(file, members), *failures(members)]
            done = [r for r in members if "error" not in r]
            if not done:
                continue
            found = effects_of(done)
            text += [effect_table(found), *curve_tables(done)]
            text.append(selection_table({"the package": done}, models_of(done)))
            panels += [panel_of(f"{title}: {name}", results) for name, results in found.items()]
    if panels:
        plot_coverage(panels, folder / "effects_coverage.png")
        text.append("![Coverage of the 95 % intervals](effects_coverage.png)\n")
    return "\n".join(part for part in text if part)


def effects_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Results by name of the effect; a dose has its average marginal effect only."""
    found: dict[str, list[Record]] = {}
    for record in of_single_effects(records):
        name = record["group"].partition(": ")[2] or "AME"
        found.setdefault(name, []).append(record)
    return found


def effect_table(effects: dict[str, list[Record]]) -> str:
    """A line per effect."""
    ours, oracles = [], []
    for results in effects.values():
        methods = by_method(results)
        oracles.append(summarize(methods[ORACLE], errors="population"))
        ours.append(summarize(results, errors="population"))
    return filled_table(
        {
            "effect": list(effects),
            "data sets": [str(s.n_sets) for s in ours],
            "bias": [bias_text(s) for s in ours],
            "MAE": [with_error(s.mae, s.mae_error) for s in ours],
            "/ oracle": [with_error(s.oracle_ratio, s.oracle_ratio_error) for s in ours],
            "RMSE": [with_error(s.rmse, s.rmse_error) for s in ours],
            "coverage": [coverage_text(s) for s in ours],
            "oracle's": [coverage_text(s) for s in oracles],
            "width": [number(s.width) for s in ours],
            "oracle's width": [number(s.width) for s in oracles],
            "SE / spread": [figure_text(spread_ratio(results)) for results in effects.values()],
            "PEHE": [with_error(s.pehe, s.pehe_error) for s in ours],
            "seconds": [seconds_text(s.seconds, s.by_clock) for s in ours],
        }
    )


def curve_tables(records: Sequence[Record]) -> list[str]:
    """Error and coverage of dose-response curves, of the results that have one."""
    done = [r for r in records if "curve" in r]
    if not done:
        return []
    seeds = np.array([r["seed"] for r in done])
    own, oracle = (
        np.array(values)
        for values in (
            [r["curve"]["rmse"] for r in done],
            [r["oracle_curve_rmse"] for r in done],
        )
    )
    uniform = sum(r["curve"]["uniform"] for r in done)
    held = Figure(uniform / len(done), coverage_error(uniform, len(done)))
    pointwise = Figure.mean_of([r["curve"]["pointwise"] for r in done])
    cells = [
        figure_text(Figure.mean_of(own)),
        figure_text(ratio_of_means([Pairs(seeds, own, oracle)])),
        percent_text(pointwise),
        percent_text(held),
        percent_text(Figure(float(np.mean([r["heteroscedastic"] for r in done]))), 0),
        percent_text(Figure(float(np.mean([not r["gaussian"] for r in done]))), 0),
    ]
    header = ["curve", "RMSE", "/ oracle", "covers pointwise", "covers everywhere"]
    header += ["spread found to vary", "residuals found not gaussian"]
    return [markdown_table(header, [["over 25 doses", *cells]])]


def models_of(records: Sequence[Record]) -> list[str]:
    """The models that select, in their usual order."""
    return [model for model in MODELS if model in (records[0].get("selection") or {})]


def panel_of(title: str, results: Sequence[Record]) -> Panel:
    """The package beside the oracle, for the picture."""
    named = [r | {"method": "the package"} for r in results]
    return Panel(title, [summarize(found) for found in by_method(named).values()])
