"""The page of workbench.py: what questions after a fit cover, and how often null tests reject."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Record
from metrics import coverage_error
from pairs import Figure
from tables import DASH, filled_table, number, percent_text
from tuning import tuning_note, without_tuning
from workbench_data import DESIGNS

from pages.shared import failures, groups_of

FILE = "workbench.jsonl"
TITLES = {name: design.title for name, design in DESIGNS.items()} | {
    "clustered": "Clusters of ten, treated together",
    "certify": "Twins of fits to simulation 1, n=1000, p=100",
    "fresh": "Fresh data of simulation 1, n=1000, p=100",
}

INTRODUCTION = """\
# Questions after a fit

The package's default, given a formula and data; nominal level 95 %. "Covered" is the mean over data
sets of the share of truths inside their intervals: of groups, of coefficients, of rows; where a
band is to hold all of them, the share of data sets in which it does. Truths are those of the
population; of rows, their own expected effects. "Rejected" is the share of data sets in which the
hypothesis that all effects are equal is rejected at 5 %. ± is one Monte-Carlo standard error: of a
share that is always one or zero, that with two successes and two failures added.

Of twins each data set is a fit whose twins were drawn a hundred times, so that one of them has a
Monte-Carlo error of two points; "fresh data" is what their coverage should predict.
"""


def page(records: Sequence[Record], folder: Path) -> str:
    """All tables.

    Parameters
    ----------
    records : sequence of dict
        Results of workbench.py.
    folder : Path
        Where pictures would go; there are none.
    """
    del folder
    return "\n".join([INTRODUCTION, *workbench_tables(records)])


def workbench_tables(records: Sequence[Record]) -> list[str]:
    """A heading and a table for every design."""
    text: list[str] = []
    for group, everything in groups_of(records).items():
        members, _ = without_tuning(FILE, everything)
        title = TITLES.get(group, group)
        text += [f"## {title}\n", *tuning_note(FILE, members), *failures(members)]
        done = [r["questions"] for r in members if "error" not in r]
        if done:
            text.append(_table(done))
    return [part for part in text if part]


def _table(found: Sequence[Record]) -> str:
    names = list(dict.fromkeys(name for one in found for name in one))
    columns: dict[str, list[str]] = {
        head: [] for head in ("question", "data sets", "covered", "rejected", "mean length")
    }
    for name in names:
        answers = [one[name] for one in found if name in one]
        columns["question"].append(name)
        columns["data sets"].append(str(len(answers)))
        columns["covered"].append(_share([a["covered"] for a in answers if "covered" in a]))
        columns["rejected"].append(_share([a["rejected"] for a in answers if "rejected" in a]))
        lengths = [a["length"] for a in answers if "length" in a]
        columns["mean length"].append(number(float(np.mean(lengths))) if lengths else DASH)
    return filled_table(columns)


def _share(values: Sequence[float]) -> str:
    """A mean share with its Monte-Carlo error, in per cent; a dash if there is none."""
    if not values:
        return DASH
    spread = float(np.std(values)) / math.sqrt(len(values))
    # Shares that all are zero, or one, have no spread.
    error = spread or coverage_error(float(np.sum(values)), len(values))
    return percent_text(Figure(float(np.mean(values)), error))
