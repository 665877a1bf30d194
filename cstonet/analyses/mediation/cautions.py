"""What the reader of a mediation is warned of, beside arms that hardly overlap."""

from __future__ import annotations

import warnings

from cstonet.analyses.arms.cautions import check_separation
from cstonet.data.caller import caller_stacklevel
from cstonet.data.design import Design
from cstonet.data.treatment import Arms
from cstonet.errors import LostSupportWarning
from cstonet.estimators import Nuisances
from cstonet.estimators.mediation import MediationEffects
from cstonet.estimators.support import MOST_LOST, Overlap
from cstonet.network.mixture import log_odds, probabilities_of, sharpened

# Share of units with bounded density ratios from which the reader is warned.
_POOR_OVERLAP = 0.05


def check_overlap(nuisances: Nuisances, design: Design[Arms]) -> tuple[str, ...]:
    """Units without a counterpart in the other arm, given the covariates of the weights.

    Parameters
    ----------
    nuisances
        Those of the total effect.
    design
        The data.

    Raises
    ------
    SeparationError
        If hardly a unit has one.
    """
    counts = nuisances.unit_weights
    odds = sharpened(log_odds(nuisances.propensity), nuisances.treatment, counts)
    overlap = Overlap.of(probabilities_of(odds), nuisances)
    check_separation(overlap, design.treatment, design.X, design.covariates)
    share = overlap.lost_share("ATE", (1, 0))
    if share <= MOST_LOST:
        return ()
    text = (
        f"{share:.0%} of the units have no counterpart in the other arm: TE, NDE and NIE rest on "
        "extrapolation, and their intervals do not include what it could hide. See res.overlap()."
    )
    warnings.warn(text, LostSupportWarning, stacklevel=caller_stacklevel())
    return (text,)


def mediation_warnings(mediation: MediationEffects, n: int) -> tuple[str, ...]:
    """Mediators that tell the arms apart.

    Parameters
    ----------
    mediation
        The effects, and how many of n units had their density ratio bounded.
    n
        Number of units.
    """
    share = mediation.n_bounded / n
    if share < _POOR_OVERLAP:
        return ()
    return (
        f"The mediators tell the arms apart: the density ratios of {mediation.n_bounded} units "
        f"({share:.1%}) were bounded. NDE and NIE rest on extrapolation, and bounding that many "
        "may bias them.",
    )
