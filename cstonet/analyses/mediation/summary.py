"""The summary of a mediation: the effects, the table of the mediators, its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cstonet.analyses.arms.summary import arms_rows, note_overlap, notes_balance
from cstonet.analyses.arms.wording import direction
from cstonet.reporting.numbers import count, pvalue, with_error
from cstonet.reporting.summary import (
    SummaryParts,
    cluster_rows,
    effects_table,
    network_rows,
    note_methods,
    note_selection,
    notes_data,
    role_rows,
    selected_covariates,
)
from cstonet.reporting.tables import Table, table_with_headers

if TYPE_CHECKING:
    from cstonet.analyses.mediation.results import MediationResults

_WIDTHS = (17, 9, 11, 9, 6, 10, 9)
_ROWS = 12
_SHOWN = 3  # mediators named in a note
_MODELS = ("treatment", "mediator", "outcome")


def mediation_summary(results: MediationResults, alpha: float) -> SummaryParts:
    """Header rows, tables and notes of a fit."""
    design, plan, effects = results.design, results.plan, results.effects
    numbers = f"{count(len(design.covariates))}, {len(results.mediators)}"
    return SummaryParts(
        estimand=f"TE, {direction(results.arms)}, split into direct (NDE) and mediated (NIE)",
        left=[
            *role_rows(design),
            ("Covariates, mediators:", numbers),
            *cluster_rows(design),
            *network_rows(plan),
        ],
        right=arms_rows(results, "EIF"),
        tables=[
            effects_table(results, alpha),
            _mediator_table(results),
            selected_covariates(results.selection, results.n_supports, _MODELS),
        ],
        notes=[
            *_notes_effects(results, alpha),
            note_overlap(results),
            *notes_balance(results),
            note_selection(results.selection),
            *notes_data(design, effects),
            *results.notes,
            note_methods("multiply robust estimator", design, effects, plan),
        ],
    )


def _mediator_table(results: MediationResults) -> Table:
    """Effect of the treatment on each mediator, and what goes through it; strongest path first."""
    mediators = results.mediators
    errors = mediators["indirect_se"].where(mediators["indirect_se"] > 0)
    strength = (mediators["indirect"].abs() / errors).fillna(0.0)
    ranked = strength.sort_values(ascending=False, kind="stable").index
    shown = mediators.loc[ranked].head(_ROWS)
    rows: Iterable[Any] = shown.itertuples()  # of mixed types
    cells = [
        [
            str(row.Index),
            f"{row.outcome_count}/{results.n_supports}",
            *with_error(row.effect, row.effect_se, width=9),
            pvalue(row.effect_pvalue),
            *with_error(row.indirect, row.indirect_se, width=9),
        ]
        for row in rows
    ]
    headers = ["Mediator", "held", "effect", "std err", "P>|z|", "path", "std err"]
    footer = None
    if len(shown) < len(mediators):
        footer = f"... {len(mediators)} mediators; all of them in res.mediators"
    return table_with_headers(cells, headers, _WIDTHS, footer=footer)


def _notes_effects(results: MediationResults, alpha: float) -> Iterator[str]:
    """What the effects are, what they assume, how they divide."""
    design = results.design
    control, treated = (str(level) for level in results.arms.levels)
    treatment, outcome = design.treatment_name, design.outcome_name
    names = list(map(str, results.mediators.index))
    through = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    risk = "risk of" if design.family == "binomial" else "mean of"
    yield (
        f"TE = NDE + NIE. TE: what {treatment} = {treated} instead of {control} does to the {risk} "
        f"{outcome}. NDE: with the mediators as they would be under {control}. NIE: what their "
        f"change ({through}) adds under {treated}."
    )
    yield (
        "Assumed: sequential ignorability, which no data can confirm. Mediators: held, in how many "
        "of the supports found for the outcome; path, what goes through this mediator alone."
    )
    yield _note_share(results, alpha)
    yield from _note_levels(results)


def _note_levels(results: MediationResults) -> Iterator[str]:
    """Which level of a labelled mediator is coded 1; 0 and 1, False and True go without saying."""
    mediators = results.design.mediators
    coded = [
        f"{name} = {levels[1]} (not {levels[0]})"
        for name, levels in zip(mediators.names, mediators.levels, strict=True)
        if levels and levels != (0, 1)
    ]
    if coded:
        shown = "; ".join(coded[:_ROWS]) + ("; ..." if len(coded) > _ROWS else "")
        yield (
            f"Mediators with two levels, of which 1 stands for: {shown}; the effect is a change of "
            "its probability."
        )


def _note_share(results: MediationResults, alpha: float) -> str:
    if results.estimated.uncertain_total:
        return (
            "Proportion mediated not shown: TE is within three standard errors of zero, where a "
            "share of it says little."
        )
    share = results.proportion_mediated(alpha=alpha)
    estimate, se, lower, upper = with_error(share.estimate, share.se, share.lower, share.upper)
    return (
        f"Proportion mediated NIE/TE = {estimate} (std err {se}, {100 * (1 - alpha):g}% interval "
        f"{lower} to {upper}, delta method)."
    )
