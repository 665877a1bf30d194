"""The summary of a continuous treatment: its rows of the header, its table, its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cstonet.analyses.doses.diagnostics import largest_imbalance
from cstonet.analyses.doses.reading import point_mass
from cstonet.reporting.balance_note import note_balance
from cstonet.reporting.summary import (
    Row,
    SummaryParts,
    effects_table,
    estimator_row,
    network_rows,
    note_errors,
    note_selection,
    notes_data,
    role_rows,
    selected_covariates,
    training_rows,
)
from cstonet.reporting.tables import count

if TYPE_CHECKING:
    from cstonet.analyses.doses.results import DoseResults

# Share of the dose's variance explained by the covariates from which a note warns.
_DETERMINED = 0.95
# Share of units with bounded densities, and largest stabilised weight, from which a note warns.
_POOR_OVERLAP, _LARGE_WEIGHT = 0.01, 50.0


def dose_summary(results: DoseResults, alpha: float) -> SummaryParts:
    """Header rows, tables and notes of a fit."""
    design, plan, effects = results.design, results.plan, results.effects
    networks = results.networks
    return SummaryParts(
        left=[
            *role_rows(design),
            _dose_row(results),
            ("Covariates:", count(len(design.covariates))),
            *network_rows(plan),
        ],
        right=[
            estimator_row("DR", plan),
            ("Observations:", str(results.nobs)),
            _spread_row(results),
            ("Densities bounded:", f"{effects.n_clipped} at {effects.clip:g}"),
            *training_rows(plan, networks.n_nonzero, networks.n_weights),
        ],
        tables=[
            effects_table(results, alpha),
            selected_covariates(results.selection, results.n_supports),
        ],
        notes=[
            _note_estimand(results),
            note_errors(effects, plan),
            *notes_data(design, effects),
            _note_density(results),
            _note_overlap(results),
            *_notes_balance(results),
            note_selection(plan, results.selection, false=results.expected_false_selections),
            *results.notes,
        ],
    )


def _dose_row(results: DoseResults) -> Row:
    """Mean and standard deviation of the dose."""
    nuisances = results.dose_nuisances
    weights = nuisances.unit_weights
    mean = float(np.mean(weights * nuisances.dose))
    spread = float(np.sqrt(np.mean(weights * (nuisances.dose - mean) ** 2)))
    return ("Dose, mean (sd):", f"{mean:.4g} ({spread:.4g})")


def _spread_row(results: DoseResults) -> Row:
    """Standard deviation of the dose given the covariates."""
    spread = np.sqrt(results.dose_nuisances.variance)
    if not results.dispersion.heteroscedastic:
        return ("Dose given x, sd:", f"{spread[0]:.4g}")
    return ("Dose given x, sd:", f"{spread.min():.4g} to {spread.max():.4g}")


def _note_estimand(results: DoseResults) -> str:
    """What the AME is."""
    design = results.design
    what = "risk of {} = 1" if design.family == "binomial" else "mean of {}"
    return (
        f"AME: average marginal effect, the change of the {what.format(design.outcome_name)} per "
        f"unit of {design.treatment_name} if every unit received slightly more than it did. The "
        "curve is in res.dose_response()."
    )


def _note_density(results: DoseResults) -> str:
    """What was assumed and found about the dose given the covariates."""
    nuisances, dispersion = results.dose_nuisances, results.dispersion
    weights = nuisances.unit_weights
    centred = nuisances.dose - np.mean(weights * nuisances.dose)
    left = np.mean(weights * nuisances.surprise**2) / np.mean(weights * centred**2)
    density = nuisances.residual_density
    variance = "a variance that depends on them" if dispersion.heteroscedastic else "one variance"
    shape = "gaussian residuals" if density.gaussian else "residuals of a shape that was estimated"
    explained = max(0.0, 1 - left)
    overlap = ""
    if explained >= _DETERMINED:
        overlap = (
            " They all but determine it: hardly any unit could have had another dose, and the "
            "effects rest on extrapolation."
        )
    mass, shared = point_mass(nuisances.dose, nuisances.weights), ""
    if mass is not None:
        shared = (
            f" {mass[1]:.0%} of the units have the dose {mass[0]:g}, where there is no density; "
            "the AME and the curve assume one and may be wrong."
        )
    return (
        f"Treatment model: given the covariates, {results.design.treatment_name} has {variance} "
        f"and {shape} (tests of one variance and of gaussian residuals: "
        f"{_format_p(dispersion.pvalue)}, {_format_p(density.pvalue)}); they explain "
        f"{explained:.0%} of its variance.{overlap}{shared}"
    )


def _note_overlap(results: DoseResults) -> str:
    """How far the densities are from those of a randomised dose."""
    overlap = results.overlap().loc["all"]
    bounded, share = results.effects.n_clipped, results.effects.n_clipped / results.nobs
    bound = f" (bounded there: {bounded} of {results.nobs} units)" if bounded else ""
    note = (
        f"Overlap: weights f(a)/f(a|x) behind res.dose_response() up to {overlap['max']:.3g}"
        f"{bound}, worth {overlap['effective']:.0f} units."
    )
    if share > _POOR_OVERLAP or overlap["max"] > _LARGE_WEIGHT:
        note += " A few units count for very many: see res.overlap()."
    return note


def _notes_balance(results: DoseResults) -> Iterator[str]:
    """What the weights leave of the covariates' correlations with the dose."""
    imbalance = largest_imbalance(results)
    if imbalance is not None:
        yield note_balance(imbalance, f"correlation with {results.design.treatment_name}")


def _format_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
