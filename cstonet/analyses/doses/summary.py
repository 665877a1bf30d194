"""The summary of a continuous treatment: its rows of the header, its table, its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cstonet.reporting.balance_note import note_balance
from cstonet.reporting.numbers import count, plain
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

if TYPE_CHECKING:
    from cstonet.analyses.doses.results import DoseResults


def dose_summary(results: DoseResults, alpha: float) -> SummaryParts:
    """Header rows, tables and notes of a fit."""
    design, plan, effects = results.design, results.plan, results.effects
    networks = results.networks
    return SummaryParts(
        estimand=f"AME, slope of {design.outcome_name} in {design.treatment_name}",
        left=[
            *role_rows(design),
            _dose_row(results),
            ("Covariates:", count(len(design.covariates))),
            *cluster_rows(design),
            *network_rows(plan),
        ],
        right=[
            estimator_row("DR", plan),
            ("Observations:", str(results.nobs)),
            *cluster_size_rows(design),
            _spread_row(results),
            ("Densities bounded:", f"{effects.n_clipped} at {plain(effects.single_clip)}"),
            *training_rows(plan, networks.n_nonzero, networks.n_weights),
        ],
        tables=[
            effects_table(results, alpha),
            selected_covariates(results.selection, results.n_supports),
        ],
        notes=[
            _note_estimand(results),
            _note_overlap(results),
            *_notes_balance(results),
            note_selection(results.selection, false=results.expected_false_selections),
            *notes_data(design, effects),
            *results.notes,
            note_methods("doubly robust score", design, effects, plan),
        ],
    )


def _dose_row(results: DoseResults) -> Row:
    """Mean and standard deviation of the dose."""
    facts = results.dose_facts
    return ("Dose, mean (sd):", f"{plain(facts.mean)} ({plain(facts.sd)})")


def _spread_row(results: DoseResults) -> Row:
    """Standard deviation of the dose given the covariates."""
    low, high = results.dose_facts.spread
    if not results.dispersion.heteroscedastic:
        return ("Dose given x, sd:", plain(low))
    return ("Dose given x, sd:", f"{plain(low)} to {plain(high)}")


def _note_estimand(results: DoseResults) -> str:
    """What the AME is."""
    design = results.design
    what = "risk of {} = 1" if design.family == "binomial" else "mean of {}"
    return (
        f"AME: average marginal effect, the change of the {what.format(design.outcome_name)} per "
        f"unit of {design.treatment_name}. The curve is in res.dose_response()."
    )


def _note_overlap(results: DoseResults) -> str:
    """How far the densities are from those of a randomised dose."""
    facts = results.dose_facts
    return (
        f"Overlap: the covariates explain {facts.explained:.0%} of the variance of "
        f"{results.design.treatment_name}; weights f(a)/f(a|x) up to "
        f"{plain(facts.largest_weight, 3)} are worth {facts.effective:.0f} of {results.nobs} units."
    )


def _notes_balance(results: DoseResults) -> Iterator[str]:
    """What the weights leave of the covariates' correlations with the dose."""
    if results.largest_imbalance is not None:
        yield note_balance(
            results.largest_imbalance, f"correlation with {results.design.treatment_name}"
        )
