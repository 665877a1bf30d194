"""The summary of a treatment with levels: its header rows, the table of arms, its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cstonet.analyses.arms.wording import (
    clip_label,
    estimand_words,
    leading_estimand,
    population,
)
from cstonet.reporting.balance_note import note_balance
from cstonet.reporting.numbers import count, probability
from cstonet.reporting.summary import (
    Row,
    SummaryParts,
    cluster_rows,
    cluster_size_rows,
    effects_table,
    estimator_row,
    network_rows,
    note_methods,
    note_selection,
    notes_data,
    role_rows,
    selected_covariates,
    training_rows,
)
from cstonet.reporting.tables import Table, table_with_headers

if TYPE_CHECKING:
    from cstonet.analyses.arms.comparisons import ComparedArms
    from cstonet.analyses.arms.results import ArmsResults

_ARM_WIDTHS = (28, 9, 15, 15, 7)


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
        estimand=estimand_words(results),
        left=[
            *role_rows(design),
            ("Covariates:", count(len(design.covariates))),
            *cluster_rows(design),
            *network_rows(plan),
        ],
        right=arms_rows(results, "AIPW"),
        tables=tables,
        notes=[
            _note_estimand(results),
            note_overlap(results),
            *notes_balance(results),
            note_selection(results.selection, false=results.expected_false_selections),
            *notes_data(design, effects, _note_levels(results)),
            *results.notes,
            note_methods("AIPW", design, effects, plan),
        ],
    )


def notes_balance(results: ComparedArms) -> Iterator[str]:
    """What the estimator's weights leave of the covariates' differences."""
    if results.largest_imbalance is not None:
        yield note_balance(results.largest_imbalance, "difference")


def arms_rows(results: ComparedArms, estimator: str) -> list[Row]:
    """The right half of the header: estimator, units, clipping, training."""
    effects, plan, networks = results.effects, results.plan, results.networks
    sizes = results.arm_facts.sizes
    arms = "" if len(sizes) > 2 else f" ({' / '.join(str(size) for size in sizes)})"
    return [
        estimator_row(estimator, plan),
        ("Observations:", f"{results.nobs}{arms}"),
        *cluster_size_rows(results.design),
        ("Units clipped:", f"{effects.n_clipped} at {clip_label(effects.clip, len(sizes))}"),
        *training_rows(plan, networks.n_nonzero, networks.n_weights),
    ]


def note_overlap(results: ComparedArms) -> str:
    """The range of the propensities."""
    # Of the second level if the treatment is binary, otherwise of every level.
    shown = slice(1 if results.arms.kind == "binary" else 0, None)
    facts = results.arm_facts
    low, high = probability(min(facts.lowest[shown])), probability(max(facts.highest[shown]))
    clipped = results.effects.n_clipped
    if clipped == 0:
        return f"Overlap: estimated propensities from {low} to {high}, none clipped."
    return (
        f"Overlap: estimated propensities from {low} to {high}; {clipped} units "
        f"({clipped / results.nobs:.1%}) clipped. See res.overlap()."
    )


def _arms_table(results: ArmsResults) -> Table:
    """Sizes of the arms, and how likely each was for those who did and did not receive it."""
    facts = results.arm_facts
    cells = []
    for code, level in enumerate(results.arms.levels):
        label = f"{level} (reference)" if code == 0 else str(level)
        shown = (facts.inside[code], facts.outside[code], facts.lowest[code])
        cells.append([label, count(facts.sizes[code]), *map(probability, shown)])
    headers = ["Arm", "units", "mean p, in arm", "mean p, others", "min p"]
    return table_with_headers(cells, headers, _ARM_WIDTHS)


def _note_estimand(results: ArmsResults) -> str:
    design = results.design
    names, leading = results.effects.names, leading_estimand(results)
    if results.arms.kind == "binary":
        control, treated = names[-2:]
        contrast = f"ATE = {treated} - {control}"
    else:
        contrast = "ATE[b-a] = POM[b] - POM[a]"
    if leading != "ATE":
        contrast = f"{leading}: {population(results.arms, leading)}; {contrast}"
    risk = "risk" if design.family == "binomial" else "mean"
    which = f"{design.outcome_name} = 1" if risk == "risk" else design.outcome_name
    difference = " is a risk difference" if risk == "risk" else ""
    return (
        f"{contrast}{difference}; POM[level] is the {risk} of {which} had every unit received that "
        f"level of {design.treatment_name}."
    )


def _note_levels(results: ArmsResults) -> Iterator[str]:
    """Numbers as levels may be a misunderstanding."""
    arms = results.arms
    if arms.kind == "multilevel" and all(isinstance(level, int | float) for level in arms.levels):
        yield "The treatment's numbers are levels to compare, not amounts."
