"""What the reader of a comparison of arms is warned of."""

from __future__ import annotations

from collections.abc import Iterator

from cstonet.estimators import Effects, Nuisances
from cstonet.reporting.diagnostics import arm_separation

# Share of clipped units from which overlap is called poor.
_POOR_OVERLAP = 0.05
# Area under the ROC curve of the propensities above which the arms count as separated.
_SEPARATED = 0.95
# How a summary calls an effect that the data say nothing about.
NOT_ESTIMABLE = "not estimable"


def not_estimable(estimand: str) -> str:
    """What to say of an estimand without enough support, and what to ask for instead."""
    text = f"The {estimand} is {NOT_ESTIMABLE} with these data: its interval is not to be used."
    if estimand == "ATO":
        return text
    return (
        f'{text} estimand="ATO" asks for less: the effect among units that could have received '
        "either level."
    )


def overlap_warnings(nuisances: Nuisances, effects: Effects) -> tuple[str, ...]:
    """Arms that hardly overlap, one sentence or two for each way to notice.

    Parameters
    ----------
    nuisances
        Those of the training rows.
    effects
        What was estimated, with the number of clipped units.
    """
    return tuple(_overlap_warnings(nuisances, effects))


def _overlap_warnings(nuisances: Nuisances, effects: Effects) -> Iterator[str]:
    share = effects.n_clipped / nuisances.n
    if share >= _POOR_OVERLAP:
        yield (
            f"Overlap is poor: the propensities of {effects.n_clipped} units ({share:.1%}) were "
            "clipped, and clipping that many may bias the effects. See res.overlap()."
        )
    separation = arm_separation(nuisances)
    if separation >= _SEPARATED:
        yield (
            f"The covariates all but tell the arms apart (AUC {separation:.2f}): the arms hardly "
            "overlap, and the effects rest on extrapolation. See res.overlap()."
        )
