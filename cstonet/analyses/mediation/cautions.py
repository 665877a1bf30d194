"""What the reader of a mediation is warned of, beside arms that hardly overlap."""

from __future__ import annotations

from cstonet.estimators.mediation import MediationEffects

# Share of units with bounded density ratios from which the reader is warned.
_POOR_OVERLAP = 0.05


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
