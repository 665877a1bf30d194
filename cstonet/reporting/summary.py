"""The printed summary: header, tables and notes. What every fit says; layout lives in `tables`.

An analysis yields the parts of its own summary; here they are put together, and here are those
that all have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cstonet.data.design import AnyDesign
from cstonet.estimators import Effects
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.inference import EffectInference, check_alpha
from cstonet.reporting.tables import (
    WIDTH,
    CausalSummary,
    Table,
    count,
    pair,
    shorten,
    table_with_headers,
)
from cstonet.settings.plan import Plan

Row = tuple[str, str]

_LEFT, _GAP, _RIGHT = 36, 3, 39  # the two halves of the header
_EFFECT_WIDTHS = (14, 11, 9, 9, 7, 11, 11)
_SPARE = 6  # characters that coef and the limits can give to a long name
_MAX_DECIMALS = 6  # of a standard error in fixed notation
_SELECTION_WIDTHS = (30, 17, 17, 11)
_SELECTION_ROWS = 12
_NAMED = 5  # columns with gaps that a note names


@dataclass(frozen=True, slots=True)
class SummaryParts:
    """What an analysis puts into its summary.

    Attributes
    ----------
    left, right
        Rows of the header, (label, value) each, as many on either side.
    tables
        Tables below the header, from top to bottom.
    notes
        Notes, to be numbered.
    """

    left: Sequence[Row]
    right: Sequence[Row]
    tables: Sequence[Table]
    notes: Sequence[str]


def summarize(formula: str | None, parts: SummaryParts) -> CausalSummary:
    """Put the parts of a summary together.

    Returns
    -------
    CausalSummary
        A statsmodels `Summary`: print it, or call `as_html`, `as_latex`, `as_csv`.
    """
    return CausalSummary([_header(formula, parts), *parts.tables], parts.notes)


# Header ------------------------------------------------------------------------------------------


def _header(formula: str | None, parts: SummaryParts) -> Table:
    """Who was compared, on what data, by which network."""
    rows = list(zip(parts.left, parts.right, strict=True))
    cells = [[*left, *right] for left, right in rows]
    lines = [pair(*left, _LEFT) + " " * _GAP + pair(*right, _RIGHT) for left, right in rows]
    if formula is not None:
        # A formula may hold thousands of terms: it is cut in every format.
        formula = shorten(formula, WIDTH - len("Formula: "))
        cells.insert(0, ["Formula:", formula, "", ""])
        lines.insert(0, f"Formula: {formula}")
    return Table(cells, lines, aligns="lrlr", title="Causal-StoNet Results")


def role_rows(design: AnyDesign) -> list[Row]:
    """Outcome and treatment."""
    return [
        ("Outcome:", f"{design.outcome_name} ({design.family})"),
        ("Treatment:", f"{design.treatment.name} ({design.treatment.label})"),
    ]


def network_rows(plan: Plan) -> list[Row]:
    """Widths of the network, and the preset."""
    return [("Network:", plan.network_label), ("Preset:", plan.preset)]


def estimator_row(estimator: str, plan: Plan) -> Row:
    """The estimator, and how often its rows were dealt."""
    times = f"{plan.repeats} x " if plan.repeats > 1 else ""
    fitting = "in-sample" if plan.folds == 1 else f"{times}{plan.folds}-fold cross-fit"
    return ("Estimator:", f"{estimator}, {fitting}")


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
    widths = _effect_widths(effects)
    numbers = _format_effects(effects.estimates, effects.standard_errors, limits, widths)
    tests = zip(results.tvalues, results.pvalues, strict=True)
    cells = [
        [name, coef, error, _format_z(z), f"{p:.3f}", low, high]
        for name, (coef, error, low, high), (z, p) in zip(
            effects.names, numbers, tests, strict=True
        )
    ]
    return table_with_headers(cells, headers, widths)


def _effect_widths(effects: Effects) -> tuple[int, ...]:
    """Column widths; long names of contrasts take from the columns that can spare something."""
    longest = max(map(len, effects.names[: effects.n_contrasts]))
    spare = min(max(longest - _EFFECT_WIDTHS[0], 0), _SPARE)
    name, coef, error, z, p, low, high = _EFFECT_WIDTHS
    taken = (spare // 3, (spare + 1) // 3, (spare + 2) // 3)
    return (name + spare, coef - taken[0], error, z, p, low - taken[1], high - taken[2])


def _format_effects(
    estimates: FloatArray, errors: FloatArray, limits: FloatArray, widths: tuple[int, ...]
) -> list[list[str]]:
    """Format coef, std err and limits of all rows with as many decimals as the errors call for.

    The effects share the outcome's unit, hence one precision for the table: the smallest standard
    error shows at least two significant digits, and three decimals unless these make more than
    six. Scales that fixed notation cannot show go to scientific notation.
    """
    positive = errors[np.isfinite(errors) & (errors > 0)]
    magnitude = math.floor(math.log10(positive.min())) if positive.size else 0
    needed = max(0, 1 - magnitude)
    wanted = max(needed, min(3, 5 - magnitude))
    rows = np.column_stack([estimates, errors, limits])
    rooms = (widths[1], widths[2], *widths[5:])
    for decimals in range(wanted, needed - 1, -1) if needed <= _MAX_DECIMALS else ():
        places = (decimals + 1, decimals, decimals, decimals)
        table = [[f"{x:.{k}f}" for x, k in zip(row, places, strict=True)] for row in rows]
        if all(len(cell) <= room for row in table for cell, room in zip(row, rooms, strict=True)):
            return table
    return [[f"{x:.{k}e}" for x, k in zip(row, (3, 2, 3, 3), strict=True)] for row in rows]


def _format_z(z: float) -> str:
    return f"{z:.2e}" if abs(z) >= 1e4 else f"{z:.3f}"


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
    cells = [
        [
            str(row.Index),
            *(_vote(getattr(row, m), getattr(row, f"{m}_count"), supports) for m in models),
            _format_strength(row.strength),
        ]
        for row in rows
    ]
    headers = ["Covariate selection", *models, "strength"]
    name, vote, _, strength = _SELECTION_WIDTHS
    # A third model takes its room from the names and the other two.
    widths = _SELECTION_WIDTHS if len(models) == 2 else (name - 6, *[vote - 4] * 3, strength)
    footer = f"{count(len(selected))} of {count(len(selection))} covariates selected"
    if len(shown) < len(selected):
        footer = f"... {footer}; all of them in res.selection"
    return table_with_headers(cells, headers, widths, footer=footer)


def _vote(selected: bool, votes: int, supports: int) -> str:
    """Say whether a covariate is selected, and in how many of the supports it was."""
    return f"{'yes' if selected else '-'} ({votes:{len(str(supports))}d}/{supports})"


def _format_strength(strength: float) -> str:
    return f"{strength:.2f}" if strength == 0 or 0.01 <= strength < 1e5 else f"{strength:.1e}"


# Notes -------------------------------------------------------------------------------------------


def note_errors(effects: Effects, plan: Plan) -> str:
    """Where the standard errors come from."""
    source = {
        "paper": "the plug-in estimator of the efficient variance",
        "influence": "the empirical variance of the influence function",
    }[effects.variance_kind]
    if effects.freedom is None:
        note = f"Standard errors from {source}; normal approximation."
    else:
        note = (
            f"Standard errors from {source} within, and the variance between, "
            f"{effects.imputations} imputations (Rubin's rules); Student's t with at least "
            f"{math.floor(float(effects.freedom.min())):.0f} degrees of freedom."
        )
    if plan.repeats > 1:
        repeated = "cross-fitting" if plan.folds > 1 else "training"
        note += (
            f" Estimates average the {plan.repeats} repetitions of the {repeated}; "
            "their errors are those of a single one, plus what the repetitions differ by."
        )
    if plan.folds == 1:
        note += (
            " No cross-fitting (folds=1): the models are evaluated on the rows they were fitted "
            "to, and overfitting can make these errors too small."
        )
    return note


def notes_data(design: AnyDesign, effects: Effects, own: Iterable[str] = ()) -> Iterator[str]:
    """What was inferred, left out, imputed and weighted; an analysis' own notes come second."""
    if design.family_inferred:
        yield f'Family "{design.family}" inferred from the outcome; family= overrides it.'
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


def _note_imputed(design: AnyDesign, effects: Effects) -> Iterator[str]:
    """What was imputed, under which assumption, and how much that costs."""
    gaps = design.gaps
    if gaps is None:
        return
    names = [variable.name for variable in gaps.variables]
    columns = f"{len(names)} columns" if len(names) > 1 else "1 column"
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    note = (
        f"{count(gaps.n_values)} missing values imputed in {columns} ({shown}) of "
        f"{count(len(gaps.rows))} rows. "
    )
    outcome, treatment = design.outcome_name, design.treatment_name
    if gaps.mechanism == "mar":
        note += (
            "Assumed: missing at random, i.e. independent of the missing values given the "
            f"observed covariates, {treatment} and {outcome}."
        )
    else:
        note += (
            "Assumed: whether a value is missing may depend on the value itself, but is "
            f"independent of {outcome} given {treatment} and all covariates; its log-odds are "
            f"linear in {treatment}, the value, and other covariates that score tests find; gaps "
            "of different columns are independent given these. The data cannot tell whether this "
            "holds."
        )
    fractions = effects.missing_information
    if fractions is not None:
        name, fraction = effects.names[0], float(fractions[0])
        note += f" Fraction of missing information on the {name}: {fraction:.1%}."
    yield note


def note_selection(
    plan: Plan,
    selection: pd.DataFrame,
    *,
    explained: str = "the treatment or the outcome",
    union: str = "Both models adjust for the covariates found for either.",
    linear: str = "",
    false: pd.Series | None = None,
) -> str:
    """What it takes to be selected, and how what was found is adjusted for.

    Parameters
    ----------
    plan, selection
        The plan, and the table with one row per covariate.
    explained
        What the covariates are found to explain.
    union, linear
        What to say if models adjust for the covariates found for any, or for some by linear terms.
    false
        Expected number of false ones among those selected for each model; NaN: not known.
    """
    note = (
        f"Selection: the covariate was found to explain {explained} in at least three quarters of "
        "the supports; in brackets: in how many."
    )
    if false is not None:
        numbers = [
            f"{model} {_format_expected(number)}"
            for model, number in false.dropna().items()
            if selection[model].any()
        ]
        if numbers:
            note += f" Expected number of false selections: {', '.join(numbers)}."
    if plan.adjusts_linearly:
        note += f" {linear}"
    elif plan.unites_supports:
        note += f" {union}"
    covariates = len(selection)
    if plan.screen is not None and plan.screen < covariates:
        note += (
            f" Screened: in every fold only the {count(plan.screen)} of {count(covariates)} "
            "covariates with the largest scores took part."
        )
    return note


def _format_expected(number: float) -> str:
    return f"{number:.1f}" if number >= 0.05 else "< 0.05"


def format_probability(p: float) -> str:
    """A probability with three decimals."""
    if p < 0.001:
        return "<0.001"
    return ">0.999" if p > 0.999 else f"{p:.3f}"
