"""The printed summary: header, effects, covariate selection, notes. Layout lives in `tables`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstonet.analyses.doses import summary as dose_summary
from cstonet.analyses.doses.results import DoseResults
from cstonet.analyses.mediation.results import MediationResults
from cstonet.analyses.mediation.summary import (
    MEDIATION_SELECTION_NOTE,
    MEDIATION_UNION_NOTE,
    mediation_notes,
    mediator_table,
)
from cstonet.reporting.diagnostics import arm_separation
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.tables import (
    WIDTH,
    CausalSummary,
    Table,
    count,
    pair,
    shorten,
    table_with_headers,
)

if TYPE_CHECKING:
    from cstonet.analyses.arms.results import CausalResults
    from cstonet.estimators.nuisances import FloatArray

_LEFT, _GAP, _RIGHT = 36, 3, 39  # the two halves of the header
_EFFECT_WIDTHS = (14, 11, 9, 9, 7, 11, 11)
_SPARE = 6  # characters that coef and the limits can give to a long name
_ARM_WIDTHS = (28, 9, 15, 15, 7)
_MAX_DECIMALS = 6  # of a standard error in fixed notation
_SELECTION_WIDTHS = (30, 17, 17, 11)
_SELECTION_ROWS = 12
_NAMED = 5  # columns with gaps that a note names
_SELECTION_NOTE = (
    "Selection: the covariate was found to explain the treatment or the outcome in at least three "
    "quarters of the supports; in brackets: in how many."
)
_UNION_NOTE = " Both models adjust for the covariates found for either."
_LINEAR_NOTE = (
    " Both models adjust for the outcome's covariates; those found for the treatment alone are "
    "adjusted for by linear terms, and enter the weights only if they may matter to the outcome."
)
_POOR_OVERLAP = 0.05  # share of clipped units from which the notes warn
# Area under the ROC curve of the propensities above which the arms count as separated.
_SEPARATED = 0.95


def summarize(results: CausalResults, *, alpha: float = 0.05) -> CausalSummary:
    """Build the summary of a fit.

    Parameters
    ----------
    results : CausalResults
        The fit.
    alpha : float
        One minus the confidence level.

    Returns
    -------
    CausalSummary
        A statsmodels `Summary`: print it, or call `as_html`, `as_latex`, `as_csv`.
    """
    check_alpha(alpha)
    tables = [_header(results), _effects(results, alpha), _selection(results)]
    if results.design.treatment_kind == "multilevel":
        tables.insert(1, _arms(results))
    if isinstance(results, MediationResults):
        tables.insert(2, mediator_table(results))
    return CausalSummary(tables, _notes(results, alpha))


# Header ------------------------------------------------------------------------------------------


def _header(results: CausalResults) -> Table:
    """Who was compared, on what data, by which network."""
    rows = list(zip(_header_left(results), _header_right(results), strict=True))
    cells = [[*left, *right] for left, right in rows]
    lines = [pair(*left, _LEFT) + " " * _GAP + pair(*right, _RIGHT) for left, right in rows]
    if results.design.formula is not None:
        # A formula may hold thousands of terms: it is cut in every format.
        formula = shorten(results.design.formula, WIDTH - len("Formula: "))
        cells.insert(0, ["Formula:", formula, "", ""])
        lines.insert(0, f"Formula: {formula}")
    return Table(cells, lines, aligns="lrlr", title="Causal-StoNet Results")


def _header_left(results: CausalResults) -> list[tuple[str, str]]:
    design, plan = results.design, results.plan
    levels = ", ".join(str(level) for level in design.treatment_levels)
    if design.treatment_kind == "multilevel":
        levels = f"{len(design.treatment_levels)} levels"
    if design.treatment_kind == "continuous":
        levels = "continuous"
    return [
        ("Outcome:", f"{design.outcome_name} ({design.family})"),
        ("Treatment:", f"{design.treatment_name} ({levels})"),
        *([dose_summary.dose_row(results)] if isinstance(results, DoseResults) else []),
        _covariate_count(results),
        ("Network:", plan.network_label),
        ("Preset:", plan.preset),
    ]


def _covariate_count(results: CausalResults) -> tuple[str, str]:
    covariates = count(len(results.design.covariates))
    if isinstance(results, MediationResults):
        return "Covariates, mediators:", f"{covariates}, {len(results.mediators)}"
    return "Covariates:", covariates


def _header_right(results: CausalResults) -> list[tuple[str, str]]:
    plan, effects, networks = results.plan, results.effects, results.networks
    times = f"{plan.repeats} x " if plan.repeats > 1 else ""
    fitting = "in-sample" if plan.folds == 1 else f"{times}{plan.folds}-fold cross-fit"
    shared = [
        ("Non-zero weights:", f"{count(networks.n_nonzero)} of {count(networks.n_weights)}"),
        ("Starts x folds, seed:", f"{plan.starts} x {plan.folds}, {plan.seed}"),
    ]
    if isinstance(results, DoseResults):
        return [
            ("Estimator:", f"DR, {fitting}"),
            ("Observations:", str(results.nobs)),
            dose_summary.spread_row(results),
            ("Densities bounded:", f"{effects.n_clipped} at {effects.clip:g}"),
            *shared,
        ]
    sizes = results.nuisances.received.sum(axis=0)
    arms = "" if len(sizes) > 2 else f" ({' / '.join(str(size) for size in sizes)})"
    bounds = f"[{effects.clip:g}, {1 - (len(sizes) - 1) * effects.clip:g}]"
    return [
        ("Estimator:", f"{results.estimator}, {fitting}"),
        ("Observations:", f"{results.nobs}{arms}"),
        ("Units clipped:", f"{effects.n_clipped} at {bounds}"),
        *shared,
    ]


# Arms --------------------------------------------------------------------------------------------


def _arms(results: CausalResults) -> Table:
    """Sizes of the arms, and how likely each was for those who did and did not receive it."""
    received, propensity = results.nuisances.received, results.nuisances.propensity
    cells = []
    for code, level in enumerate(results.design.treatment_levels):
        members = received[:, code]
        others = propensity[~members, code]
        label = f"{level} (reference)" if code == 0 else str(level)
        shown = (propensity[members, code].mean(), others.mean(), propensity[:, code].min())
        cells.append([label, count(int(members.sum())), *map(_format_probability, shown)])
    headers = ["Arm", "units", "mean p, in arm", "mean p, others", "min p"]
    return table_with_headers(cells, headers, _ARM_WIDTHS)


# Effects -----------------------------------------------------------------------------------------


def _effects(results: CausalResults, alpha: float) -> Table:
    """Estimates, standard errors, tests and confidence limits."""
    effects = results.effects
    z = "z" if effects.freedom is None else "t"
    headers = ["", "coef", "std err", z, f"P>|{z}|", f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
    limits = results.conf_int(alpha).to_numpy()
    widths = _effect_widths(results)
    numbers = _format_effects(effects.estimates, effects.standard_errors, limits, widths)
    tests = zip(results.tvalues, results.pvalues, strict=True)
    cells = [
        [name, coef, error, _format_z(z), f"{p:.3f}", low, high]
        for name, (coef, error, low, high), (z, p) in zip(
            effects.names, numbers, tests, strict=True
        )
    ]
    return table_with_headers(cells, headers, widths)


def _effect_widths(results: CausalResults) -> tuple[int, ...]:
    """Column widths; long names of contrasts take from the columns that can spare something."""
    longest = max(map(len, results.effects.names[: results.effects.n_contrasts]))
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


def _selection(results: CausalResults) -> Table:
    """The strongest of the selected covariates, and how many there are."""
    selection = results.selection
    models = [name for name in ("treatment", "mediator", "outcome") if name in selection]
    selected = selection[selection[models].any(axis=1)]
    shown = selected.sort_values("strength", ascending=False, kind="stable").head(_SELECTION_ROWS)
    rows: Iterable[Any] = shown.itertuples()  # of mixed types
    fits = int(selection.attrs["fits"])
    cells = [
        [
            str(row.Index),
            *(_vote(getattr(row, m), getattr(row, f"{m}_count"), fits) for m in models),
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


def _vote(selected: bool, count: int, fits: int) -> str:
    """Say whether a covariate is selected, and in how many of the networks it was."""
    return f"{'yes' if selected else '-'} ({count:{len(str(fits))}d}/{fits})"


def _format_strength(strength: float) -> str:
    return f"{strength:.2f}" if strength == 0 or 0.01 <= strength < 1e5 else f"{strength:.1e}"


# Notes -------------------------------------------------------------------------------------------


def _notes(results: CausalResults, alpha: float) -> list[str]:
    """What the reader must know to read the numbers, then what training had to say."""
    if isinstance(results, DoseResults):
        estimand = [dose_summary.note_estimand(results)]
        overlap = [dose_summary.note_density(results), dose_summary.note_overlap(results)]
    elif isinstance(results, MediationResults):
        estimand, overlap = list(mediation_notes(results, alpha)), [_note_overlap(results)]
    else:
        estimand, overlap = [_note_estimand(results)], [_note_overlap(results)]
    notes = [*estimand, _note_errors(results), *_notes_data(results), *overlap]
    notes.append(_note_selection(results))
    return [*notes, *results.notes]


def _note_estimand(results: CausalResults) -> str:
    design = results.design
    names, means = results.effects.names, results.effects.n_contrasts
    if design.treatment_kind == "binary":
        contrast = f"{names[0]} = {names[means + 1]} - {names[means]}"
    else:
        contrast = "ATE[b-a] = POM[b] - POM[a]"
    received = f"had every unit received that level of {design.treatment_name}"
    if design.family == "binomial":
        return (
            f"{contrast} is a risk difference; POM[level] is the risk of "
            f"{design.outcome_name} = 1 {received}."
        )
    return f"{contrast}; POM[level] is the mean of {design.outcome_name} {received}."


def _note_errors(results: CausalResults) -> str:
    source = {
        "paper": "the plug-in estimator of the efficient variance",
        "influence": "the empirical variance of the influence function",
    }[results.effects.variance_kind]
    if results.imputations is None:
        note = f"Standard errors from {source}; normal approximation."
    else:
        note = (
            f"Standard errors from {source} within, and the variance between, "
            f"{results.imputations.count} imputations (Rubin's rules); Student's t with at least "
            f"{_least_freedom(results):.0f} degrees of freedom."
        )
    if results.plan.repeats > 1:
        repeated = "cross-fitting" if results.plan.folds > 1 else "training"
        note += (
            f" Estimates average the {results.plan.repeats} repetitions of the {repeated}; "
            "their errors are those of a single one, plus what the repetitions differ by."
        )
    if results.plan.folds == 1:
        note += (
            " No cross-fitting (folds=1): the models are evaluated on the rows they were fitted "
            "to, and overfitting can make these errors too small."
        )
    return note


def _notes_data(results: CausalResults) -> Iterable[str]:
    design = results.design
    if design.family_inferred:
        yield f'Family "{design.family}" inferred from the outcome; family= overrides it.'
    numbers = all(isinstance(level, int | float) for level in design.treatment_levels)
    if design.treatment_kind == "multilevel" and numbers:
        yield "The treatment's numbers are levels to compare, not amounts."
    if design.n_dropped:
        total = design.n_dropped + results.nobs
        yield (
            f"{design.n_dropped} rows with missing values dropped (complete cases only): "
            f"{results.nobs} of {total} remain."
        )
    if design.gaps is not None:
        yield _note_imputed(results)
    if design.weights is not None:
        yield "Weighted: the effects are those of the population that the weights represent."


def _note_imputed(results: CausalResults) -> str:
    """What was imputed, under which assumption, and how much that costs."""
    gaps = results.design.gaps
    if gaps is None:
        return ""
    names = [variable.name for variable in gaps.variables]
    columns = f"{len(names)} columns" if len(names) > 1 else "1 column"
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    note = (
        f"{count(gaps.n_values)} missing values imputed in {columns} ({shown}) of "
        f"{count(len(gaps.rows))} rows. "
    )
    outcome, treatment = results.design.outcome_name, results.design.treatment_name
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
    fractions = results.effects.missing_information
    if fractions is not None:
        name, fraction = results.effects.names[0], float(fractions[0])
        note += f" Fraction of missing information on the {name}: {fraction:.1%}."
    return note


def _least_freedom(results: CausalResults) -> float:
    freedom = results.effects.freedom
    return math.inf if freedom is None else math.floor(float(freedom.min()))


def _note_overlap(results: CausalResults) -> str:
    # Of the second level if the treatment is binary, otherwise of every level.
    binary = results.design.treatment_kind == "binary"
    shown = results.nuisances.propensity[:, 1 if binary else slice(None)]
    low, high = (_format_probability(p) for p in (shown.min(), shown.max()))
    given = " (given the covariates in the weights)" if results.nuisances.linear is not None else ""
    note = f"Overlap: estimated propensities{given} from {low} to {high}"
    share = results.effects.n_clipped / results.nobs
    separation = arm_separation(results.nuisances)
    if share == 0:
        note += ", none clipped."
    else:
        note += f"; {results.effects.n_clipped} units ({share:.1%}) clipped."
    if share >= _POOR_OVERLAP:
        note += " Overlap is poor: clipping that many may bias the effects."
    if separation >= _SEPARATED:
        note += (
            f" The covariates all but tell the arms apart (AUC {separation:.2f}): the arms hardly "
            "overlap, and the effects rest on extrapolation."
        )
    poor = share > 0 or separation >= _SEPARATED
    return f"{note} See res.overlap()." if poor else note


def _note_selection(results: CausalResults) -> str:
    note, union = _SELECTION_NOTE, _UNION_NOTE
    if isinstance(results, MediationResults):
        note, union = MEDIATION_SELECTION_NOTE, MEDIATION_UNION_NOTE
    if results.plan.adjusts_linearly:
        note += _LINEAR_NOTE
    elif results.plan.unites_supports:
        note += union
    screen, covariates = results.plan.screen, len(results.selection)
    if screen is not None and screen < covariates:
        note += (
            f" Screened: in every fold only the {count(screen)} of {count(covariates)} covariates "
            "with the largest marginal scores took part."
        )
    return note


def _format_probability(p: float) -> str:
    if p < 0.001:
        return "<0.001"
    return ">0.999" if p > 0.999 else f"{p:.3f}"
