"""What summaries say of the rows of a comparison of arms, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from cstonet.estimators import Nuisances


@dataclass(frozen=True, slots=True)
class ArmFacts:
    """Sizes of the arms, and how likely they were.

    Attributes
    ----------
    sizes : tuple of int, length L
        Units in each arm.
    inside, outside : tuple of float, length L
        Mean estimated propensity of each arm among those who received it, and among the others.
    lowest, highest : tuple of float, length L
        The range of these propensities.
    """

    sizes: tuple[int, ...]
    inside: tuple[float, ...]
    outside: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]

    @classmethod
    def of(cls, nuisances: Nuisances) -> ArmFacts:
        """From the nuisances of the training rows."""
        received, propensity = nuisances.received, nuisances.propensity
        arms = range(nuisances.n_levels)
        return cls(
            sizes=tuple(int(received[:, a].sum()) for a in arms),
            inside=tuple(float(propensity[received[:, a], a].mean()) for a in arms),
            outside=tuple(float(propensity[~received[:, a], a].mean()) for a in arms),
            lowest=tuple(float(propensity[:, a].min()) for a in arms),
            highest=tuple(float(propensity[:, a].max()) for a in arms),
        )
