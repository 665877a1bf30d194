"""What the summary of a mediation fit adds: the table of the mediators, and its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy.special import ndtri

from cstonet.mediation_results import MediationResults
from cstonet.tables import Table, table_with_headers

_WIDTHS = (17, 9, 11, 9, 6, 10, 9)
_ROWS = 12
_SHOWN = 3  # mediators named in a note


def mediator_table(results: MediationResults, alpha: float) -> Table:
    """Effect of the treatment on each mediator, and what goes through it; strongest path first."""
    mediators = results.mediators
    order = (-mediators["indirect"].abs() / mediators["indirect_se"].where(lambda se: se > 0)).fillna(
        0.0
    )
    shown = mediators.loc[order.sort_values(kind="stable").index].head(_ROWS)
    fits = int(mediators.attrs["fits"])
    treatment = results.design.treatment_name
    cells = [
        [
            str(name),
            f"{int(row['outcome_count'])}/{fits}",
            _number(row["effect"]),
            _number(row["effect_se"]),
            f"{row['effect_pvalue']:.3f}",
            _number(row["indirect"]),
            _number(row["indirect_se"]),
        ]
        for name, row in shown.iterrows()
    ]
    headers = ["Mediator", "held", f"{treatment} on it", "std err", "P>|z|", "path", "std err"]
    headers[2] = headers[2] if len(headers[2]) <= _WIDTHS[2] else "effect"
    footer = None
    if len(shown) < len(mediators):
        footer = f"... {len(mediators)} mediators; all of them in res.mediators"
    return table_with_headers(cells, headers, _WIDTHS, footer=footer)


def mediation_notes(results: MediationResults) -> Iterator[str]:
    """What the effects are, what they assume, how they divide, what was bounded."""
    design = results.design
    control, treated = (str(level) for level in design.treatment_levels)
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
        "Assumed (sequential ignorability): the covariates leave no common cause of treatment and "
        "outcome, of treatment and mediators, or of mediators and outcome, and no common cause of "
        "the latter two is itself changed by the treatment. No data can confirm this."
    )
    yield _note_share(results)
    yield (
        f"Mediator: effect of the treatment on it, doubly robust. Path: interventional indirect "
        f"effect, the change of the {risk} {outcome} if this mediator alone were drawn from its "
        "law under the other treatment; paths need not add up to the NIE. Held: in how many of "
        "the outcome supports."
    )
    yield _note_ratio(results)


def _note_share(results: MediationResults) -> str:
    if results.estimated.uncertain_total:
        return (
            "Proportion mediated not shown: TE is within three standard errors of zero, where a "
            "share of it says little."
        )
    share = results.estimated.proportion()
    estimate, error = float(share.estimates[0]), float(share.standard_errors[0])
    half = float(-ndtri(0.025)) * error
    return (
        f"Proportion mediated NIE/TE = {estimate:.3f} (std err {error:.3f}, 95% interval "
        f"{estimate - half:.3f} to {estimate + half:.3f}, delta method)."
    )


def _note_ratio(results: MediationResults) -> str:
    n_bounded, clip = results.estimated.n_bounded, results.effects.clip
    note = "Density ratios of the mediators from the network: "
    if n_bounded == 0:
        return note + "none bounded."
    return (
        f"{note}{n_bounded} units ({n_bounded / results.nobs:.1%}) had a treatment probability "
        f"given mediators outside [{clip:g}, {1 - clip:g}] and were bounded there."
    )


def _number(value: Any) -> str:
    """A number in at most nine characters."""
    fixed = f"{value:.3f}"
    return fixed if value == 0 or (len(fixed) <= 8 and abs(value) >= 0.001) else f"{value:.2e}"
