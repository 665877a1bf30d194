"""Models side by side: one column per fit, effects in rows, standard errors below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cstonet.errors import OptionError
from cstonet.reporting.exports import tidy
from cstonet.reporting.inference import EffectInference, check_alpha
from cstonet.reporting.numbers import count, with_error
from cstonet.reporting.tables import WIDTH, CausalSummary, Table, shorten

# What the stars of a table mean, from the strictest.
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_LEAST_COLUMN = 12


class Comparison(CausalSummary):
    """Fits side by side: print it, or call `as_html`, `as_latex`, `as_csv`.

    Parameters
    ----------
    table : Table
        What is printed.
    notes : sequence of str
        Notes, to be numbered.
    frame : DataFrame
        The numbers: one row per fit and effect, see `cstonet.reporting.exports.tidy`.

    Attributes
    ----------
    frame
        As above.
    """

    def __init__(self, table: Table, notes: Sequence[str], frame: pd.DataFrame) -> None:
        super().__init__([table], notes)
        self.frame = frame


def compare(models: Mapping[str, Any], *, stars: bool = False, alpha: float = 0.05) -> Comparison:
    """Put fits side by side, as `cs.compare({"all": res1, "without age": res2})` does.

    Parameters
    ----------
    models
        Results by the names that head their columns. They may be of different analyses and data.
    stars : bool
        Whether to mark p-values below 0.05, 0.01 and 0.001.
    alpha : float
        One minus the confidence level of the intervals in `frame`.

    Returns
    -------
    Comparison
        A printable table; `frame` has the numbers.
    """
    check_alpha(alpha)
    if not isinstance(models, Mapping) or not models:
        raise OptionError('compare takes results by name, such as {"a": res1, "b": res2}.')
    for name, results in models.items():
        if not isinstance(results, EffectInference):
            raise OptionError(
                f"compare: {str(name)!r} holds {type(results).__name__}, not the results of a fit."
            )
    frames = {str(name): tidy(results, alpha) for name, results in models.items()}
    terms = list(dict.fromkeys(term for frame in frames.values() for term in frame["term"]))
    rows = [line for term in terms for line in _term_rows(term, frames, stars)]
    facts: dict[str, dict[str, str]] = {
        str(name): results.comparison_facts() if hasattr(results, "comparison_facts") else {}
        for name, results in models.items()
    }
    labels = list(dict.fromkeys(label for one in facts.values() for label in one))
    below = [[label, *(str(one.get(label, "")) for one in facts.values())] for label in labels]
    notes = ["Standard errors in brackets."]
    if stars:
        notes.append("* p < 0.05, ** p < 0.01, *** p < 0.001.")
    joined = pd.concat(frames, names=["model", "row"]).reset_index("model").reset_index(drop=True)
    return Comparison(_table(rows, below, list(frames)), notes, joined)


def _term_rows(term: str, frames: Mapping[str, pd.DataFrame], stars: bool) -> list[list[str]]:
    """Two lines of an effect: estimates, and their errors in brackets."""
    estimates, errors = [term], [""]
    for frame in frames.values():
        found = frame[frame["term"] == term]
        if found.empty:
            estimates.append("")
            errors.append("")
            continue
        row = found.iloc[0]
        estimate, error = with_error(float(row["estimate"]), float(row["std_error"]))
        mark = next((mark for level, mark in _STARS if row["p_value"] < level), "") if stars else ""
        estimates.append(estimate + mark)
        errors.append(f"({error})")
    return [estimates, errors]


def _table(rows: list[list[str]], below: list[list[str]], names: list[str]) -> Table:
    cells = [*rows, *below]
    column = max(
        _LEAST_COLUMN, *(len(cell) + 2 for row in [names, *cells] for cell in row[-len(names) :])
    )
    # Names take what the columns leave, but at least a third of the width.
    column = min(column, max(2 * WIDTH // (3 * len(names)), _LEAST_COLUMN))
    first = max(WIDTH - column * len(names), max(len(row[0]) for row in cells) + 1)
    width = first + column * len(names)

    def line(row: Sequence[str]) -> str:
        shown = [shorten(cell, column - 1).rjust(column) for cell in row[1:]]
        return shorten(row[0], first - 1).ljust(first) + "".join(shown)

    headers = ["", *names]
    lines = [line(headers), "-" * width, *map(line, rows), "-" * width, *map(line, below)]
    return Table(
        cells,
        lines,
        aligns="l" + "r" * len(names),
        headers=headers,
        title="Causal-StoNet fits",
        width=width,
        rules=(len(rows),),
    )


def standard_facts(results: Any) -> dict[str, str]:
    """What is said of every fit below its effects: data and size of the model."""
    design, selection = results.design, results.selection
    facts = {
        "Outcome": str(design.outcome_name),
        "Observations": count(results.nobs),
        "Covariates": count(len(design.covariates)),
    }
    for model in ("treatment", "outcome"):
        if model in selection:
            facts[f"Selected, {model}"] = count(int(selection[model].sum()))
    return facts
