"""The printed summary: header, tables and notes. What every fit says; layout lives in `tables`.

An analysis yields the parts of its own summary; here they are put together, and here are those
that all have in common.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cstonet.data.design import AnyDesign
from cstonet.estimators import Effects
from cstonet.reporting.inference import EffectInference, check_alpha, studentised
from cstonet.reporting.methods import cross_fitting
from cstonet.reporting.numbers import count, pvalue, share, statistic, with_errors
from cstonet.reporting.tables import (
    WIDTH,
    CausalSummary,
    Table,
    halves,
    shorten,
    table_with_headers,
)
from cstonet.settings.plan import Plan

Row = tuple[str, str]

_HALVES = 36, 3, 39  # of the header, and the gap between them
_ESTIMAND_LINES = 3
_EFFECT_WIDTHS = (14, 11, 9, 9, 7, 11, 11)
_VOTE_WIDTH, _STRENGTH_WIDTH = (14, 11), 9  # of two models and of more
_SELECTION_ROWS = 12
_NAMED = 5  # columns with gaps that a note names
_ERRORS = {"paper": "the plug-in variance", "influence": "the influence function"}


@dataclass(frozen=True, slots=True)
class SummaryParts:
    """What an analysis puts into its summary.

    Attributes
    ----------
    estimand
        What leads the table, and in which direction, in words.
    left, right
        Rows of the header, (label, value) each, as many on either side.
    tables
        Tables below the header, from top to bottom.
    notes
        Notes, to be numbered.
    """

    estimand: str
    left: Sequence[Row]
    right: Sequence[Row]
    tables: Sequence[Table]
    notes: Sequence[str]


def summarize(
    formula: str | None, parts: SummaryParts, warnings: Sequence[str] = ()
) -> CausalSummary:
    """Put the parts of a summary together; warnings come first among the notes.

    Returns
    -------
    CausalSummary
        A statsmodels `Summary`: print it, or call `as_html`, `as_latex`, `as_csv`.
    """
    notes = [*(f"Warning: {warning}" for warning in warnings), *parts.notes]
    return CausalSummary([_header(formula, parts), *parts.tables], notes)


# Header ------------------------------------------------------------------------------------------


def _header(formula: str | None, parts: SummaryParts) -> Table:
    """What was estimated: who was compared, on what data, by which network."""
    cells = [["Estimand:", parts.estimand, "", ""]]
    lines = textwrap.wrap(
        f"Estimand: {parts.estimand}",
        WIDTH,
        subsequent_indent=" " * len("Estimand: "),
        max_lines=_ESTIMAND_LINES,
        placeholder="…",
    )
    if formula is not None:
        # A formula may hold thousands of terms: it is cut in every format.
        formula = shorten(formula, WIDTH - len("Formula: "))
        cells.append(["Formula:", formula, "", ""])
        lines.append(f"Formula: {formula}")
    for left, right in zip(parts.left, parts.right, strict=True):
        cells.append([*left, *right])
        lines += halves(left, right, _HALVES)
    return Table(cells, lines, aligns="lrlr", title="Causal-StoNet Results")


def role_rows(design: AnyDesign) -> list[Row]:
    """Outcome and treatment."""
    return [
        ("Outcome:", f"{design.outcome_name} ({design.family})"),
        ("Treatment:", f"{design.treatment.name} ({design.treatment.label})"),
    ]


def cluster_rows(design: AnyDesign) -> list[Row]:
    """Number of clusters, for the left half of the header; empty without them."""
    if design.n_clusters is None:
        return []
    return [("Clusters:", f"{count(design.n_clusters)} ({design.cluster_name})")]


def cluster_size_rows(design: AnyDesign) -> list[Row]:
    """Sizes of the clusters, for the right half; as many rows as `cluster_rows`."""
    if design.cluster_sizes is None:
        return []
    least, most = map(count, design.cluster_sizes)
    return [("Units per cluster:", least if least == most else f"{least} to {most}")]


def network_rows(plan: Plan) -> list[Row]:
    """Widths of the network, and the preset."""
    return [("Network:", plan.network_label), ("Preset:", plan.preset)]


def estimator_row(estimator: str, plan: Plan) -> Row:
    """The estimator, and how often its rows were dealt."""
    return ("Estimator:", f"{estimator}, {cross_fitting(plan)}")


def training_rows(plan: Plan, n_nonzero: int, n_weights: int) -> list[Row]:
    """What was trained, how often, from which seed."""
    return [
        ("Non-zero weights:", f"{count(n_nonzero)} of {count(n_weights)}"),
        ("Starts x folds, seed:", f"{plan.starts} x {plan.folds}, {plan.seed}"),
    ]


# Effects -----------------------------------------------------------------------------------------


def effects_table(results: EffectInference, alpha: float) -> Table:
    """Estimates, standard errors, tests and confidence limits."""
    check_alpha(alpha)
    effects = results.effects
    z = "z" if effects.freedom is None else "t"
    headers = ["", "coef", "std err", z, f"P>|{z}|", f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
    limits = results.conf_int(alpha).to_numpy()
    values = np.column_stack([effects.estimates, effects.standard_errors, limits])
    rooms = [_EFFECT_WIDTHS[k] for k in (1, 2, 5, 6)]
    numbers = with_errors(values, effects.standard_errors, rooms)
    tests = zip(studentised(results.effects), results.pvalues, strict=True)
    cells = [
        [name, coef, error, statistic(z), pvalue(p), low, high]
        for name, (coef, error, low, high), (z, p) in zip(
            effects.names, numbers, tests, strict=True
        )
    ]
    return table_with_headers(cells, headers, _effect_widths([headers, *cells]))


def _effect_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Column widths; long names take from the columns that can spare something, widest first."""
    name, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    widths = list(_EFFECT_WIDTHS)
    spare = [width - 1 - needed for width, needed in zip(widths[1:], others, strict=True)]
    while widths[0] < name and max(spare) > 0:
        place = int(np.argmax(spare))
        spare[place] -= 1
        widths[place + 1] -= 1
        widths[0] += 1
    return widths


# Selection ---------------------------------------------------------------------------------------


def selected_covariates(
    selection: pd.DataFrame, supports: int, models: Sequence[str] = ("treatment", "outcome")
) -> Table:
    """The strongest of the selected covariates, and how many there are.

    Parameters
    ----------
    selection : DataFrame
        One row per covariate.
    supports : int
        Number of supports behind its counts.
    models : sequence of str
        The models that have columns in it.
    """
    selected = selection[selection[list(models)].any(axis=1)]
    shown = selected.sort_values("strength", ascending=False, kind="stable").head(_SELECTION_ROWS)
    rows: Iterable[Any] = shown.itertuples()  # of mixed types
    cells = []
    for row in rows:
        cells.append([str(row.Index)])
        for model in models:
            votes = getattr(row, f"{model}_count")
            # Pruning may take out what was to be kept: then the votes are the news.
            kept = getattr(row, "kept", False) and votes == supports
            vote = "kept" if kept else _vote(getattr(row, model), votes, supports)
            cells[-1] += [vote, share(getattr(row, f"{model}_strength"))]
    title = "Covariate selection" if len(models) == 2 else "Covariate"
    headers = [title, *(header for model in models for header in (model, "strength"))]
    footer = f"{count(len(selected))} of {count(len(selection))} covariates selected"
    if len(shown) < len(selected):
        footer = f"... {footer}; all of them in res.selection"
    width = max(len(_vote(True, supports, supports)), _VOTE_WIDTH[len(models) > 2])
    numbers = [width, _STRENGTH_WIDTH - (len(models) > 2)] * len(models)
    widths = (WIDTH - sum(numbers) - len(numbers), *numbers)
    return table_with_headers(cells, headers, widths, footer=footer)


def _vote(selected: bool, votes: int, supports: int) -> str:
    """Say whether a covariate is selected, and in how many of the supports it was."""
    return f"{'yes' if selected else '-'} ({votes:{len(str(supports))}d}/{supports})"


# Notes -------------------------------------------------------------------------------------------


def note_methods(estimator: str, design: AnyDesign, effects: Effects, plan: Plan) -> str:
    """One line on how it was done, and where the rest is."""
    clustered = "" if design.clusters is None else f", clustered by {design.cluster_name}"
    imputed = "" if effects.between is None else f", {effects.imputations} imputations"
    source = _ERRORS[effects.variance_kind]
    return (
        f"Methods: {estimator}, {cross_fitting(plan)}{imputed}; standard errors from {source}"
        f"{clustered}; res.methods() has the full text."
    )


def notes_data(design: AnyDesign, effects: Effects, own: Iterable[str] = ()) -> Iterator[str]:
    """What was inferred, left out, imputed and weighted; an analysis' own notes come second."""
    if design.family_inferred:
        counts = '; for counts there is family="poisson"' if design.may_be_counts else ""
        yield f'Family "{design.family}" inferred from the outcome; family= overrides it{counts}.'
    yield from own
    if design.n_dropped:
        nobs = len(design.y)
        yield (
            f"{design.n_dropped} rows with missing values dropped (complete cases only): "
            f"{nobs} of {design.n_dropped + nobs} remain."
        )
    yield from _note_imputed(design, effects)
    if design.weights is not None:
        yield "Weighted: the effects are those of the population that the weights represent."
    yield from _note_clusters(design)


def _note_clusters(design: AnyDesign) -> Iterator[str]:
    """How clusters were respected; where there are none, whether there should be."""
    groups = design.n_clusters
    if groups is not None:
        yield (
            f"Clustered by {design.cluster_name}: standard errors, tests and intervals are "
            f"cluster-robust (G = {count(groups)}, factor G/(G-1) = {groups / (groups - 1):.3f}); "
            "folds keep clusters whole. Score tests of covariates take rows for independent."
        )
    elif design.n_copies:
        rows = (
            "1 row is an exact copy"
            if design.n_copies == 1
            else (f"{count(design.n_copies)} rows are exact copies")
        )
        yield (
            f"{rows} of another in outcome, treatment and all covariates, and counts as a unit of "
            "its own. If units were repeated, name them with cluster=, or keep one row each with "
            "weights=; standard errors are too small otherwise."
        )


def _note_imputed(design: AnyDesign, effects: Effects) -> Iterator[str]:
    """What was imputed, under which assumption, and how much that costs."""
    gaps = design.gaps
    if gaps is None:
        return
    names = [variable.name for variable in gaps.variables]
    columns = f"{len(names)} columns" if len(names) > 1 else "1 column"
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    assumed = "missing at random" if gaps.mechanism == "mar" else "missing not at random"
    note = (
        f"{count(gaps.n_values)} missing values imputed in {columns} ({shown}) of "
        f"{count(gaps.n_rows)} rows, assumed {assumed}"
    )
    fractions = effects.missing_information
    if fractions is not None:
        name, fraction = effects.names[0], float(fractions[0])
        note += f"; fraction of missing information on the {name}: {fraction:.1%}"
    yield f"{note}."


def note_selection(selection: pd.DataFrame, *, false: pd.Series | None = None) -> str:
    """How to read the table of covariates.

    Parameters
    ----------
    selection
        The table with one row per covariate.
    false
        Expected number of false ones among those selected for each model; NaN: not known.
    """
    note = (
        "Selection: yes if found for the model in three quarters of the supports (in brackets: "
        "in how many); strength: share in the model's path weights."
    )
    if "kept" in selection:
        note += " Kept: held by choice (keep=)."
    if false is not None:
        numbers = [
            f"{model} {_format_expected(number)}"
            for model, number in false.dropna().items()
            if selection[model].any()
        ]
        if numbers:
            note += f" Expected number of false selections: {', '.join(numbers)}."
    return note


def _format_expected(number: float) -> str:
    return f"{number:.1f}" if number >= 0.05 else "< 0.05"
