"""The summary of a treatment with levels: its header rows, the table of arms, its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cstonet.reporting.diagnostics import arm_separation
from cstonet.reporting.summary import (
    Row,
    SummaryParts,
    effects_table,
    estimator_row,
    format_probability,
    network_rows,
    note_errors,
    note_selection,
    notes_data,
    role_rows,
    selected_covariates,
    training_rows,
)
from cstonet.reporting.tables import Table, count, table_with_headers

if TYPE_CHECKING:
    from cstonet.analyses.arms.comparisons import ComparedArms
    from cstonet.analyses.arms.results import ArmsResults

_ARM_WIDTHS = (28, 9, 15, 15, 7)
_LINEAR_NOTE = (
    "Both models adjust for the outcome's covariates; those found for the treatment alone are "
    "adjusted for by linear terms, and enter the weights only if they may matter to the outcome."
)
_POOR_OVERLAP = 0.05  # share of clipped units from which the notes warn
# Area under the ROC curve of the propensities above which the arms count as separated.
_SEPARATED = 0.95


def arms_summary(results: ArmsResults, alpha: float) -> SummaryParts:
    """Header rows, tables and notes of a fit."""
    design, plan, effects = results.design, results.plan, results.effects
    tables = [
        effects_table(results, alpha),
        selected_covariates(results.selection, results.n_supports),
    ]
    if results.arms.kind == "multilevel":
        tables.insert(0, _arms_table(results))
    return SummaryParts(
        left=[
            *role_rows(design),
            ("Covariates:", count(len(design.covariates))),
            *network_rows(plan),
        ],
        right=arms_rows(results, "AIPW"),
        tables=tables,
        notes=[
            _note_estimand(results),
            note_errors(effects, plan),
            *notes_data(design, effects, _note_levels(results)),
            note_overlap(results),
            note_selection(
                plan,
                results.selection,
                linear=_LINEAR_NOTE,
                false=results.expected_false_selections,
            ),
            *results.notes,
        ],
    )


def arms_rows(results: ComparedArms, estimator: str) -> list[Row]:
    """The right half of the header: estimator, units, clipping, training."""
    effects, plan, networks = results.effects, results.plan, results.networks
    sizes = results.nuisances.received.sum(axis=0)
    arms = "" if len(sizes) > 2 else f" ({' / '.join(str(size) for size in sizes)})"
    bounds = f"[{effects.clip:g}, {1 - (len(sizes) - 1) * effects.clip:g}]"
    return [
        estimator_row(estimator, plan),
        ("Observations:", f"{results.nobs}{arms}"),
        ("Units clipped:", f"{effects.n_clipped} at {bounds}"),
        *training_rows(plan, networks.n_nonzero, networks.n_weights),
    ]


def note_overlap(results: ComparedArms) -> str:
    """How far apart the arms are."""
    # Of the second level if the treatment is binary, otherwise of every level.
    binary = results.arms.kind == "binary"
    shown = results.nuisances.propensity[:, 1 if binary else slice(None)]
    low, high = (format_probability(p) for p in (shown.min(), shown.max()))
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


def _arms_table(results: ArmsResults) -> Table:
    """Sizes of the arms, and how likely each was for those who did and did not receive it."""
    received, propensity = results.nuisances.received, results.nuisances.propensity
    cells = []
    for code, level in enumerate(results.arms.levels):
        members = received[:, code]
        others = propensity[~members, code]
        label = f"{level} (reference)" if code == 0 else str(level)
        shown = (propensity[members, code].mean(), others.mean(), propensity[:, code].min())
        cells.append([label, count(int(members.sum())), *map(format_probability, shown)])
    headers = ["Arm", "units", "mean p, in arm", "mean p, others", "min p"]
    return table_with_headers(cells, headers, _ARM_WIDTHS)


def _note_estimand(results: ArmsResults) -> str:
    design = results.design
    names, means = results.effects.names, results.effects.n_contrasts
    if results.arms.kind == "binary":
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


def _note_levels(results: ArmsResults) -> Iterator[str]:
    """Numbers as levels may be a misunderstanding."""
    arms = results.arms
    if arms.kind == "multilevel" and all(isinstance(level, int | float) for level in arms.levels):
        yield "The treatment's numbers are levels to compare, not amounts."
