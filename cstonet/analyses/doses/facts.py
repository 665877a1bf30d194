"""What summaries and predictions ask of the rows of a continuous treatment, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cstonet.analyses.doses.cautions import explained_share
from cstonet.analyses.doses.diagnostics import overlap
from cstonet.estimators.dose_nuisances import DoseNuisances


@dataclass(frozen=True, slots=True)
class DoseFacts:
    """The doses, and how they are distributed given the covariates.

    Attributes
    ----------
    mean, sd : float
        Of the doses, by weight.
    range : (float, float)
        The doses between which the outcome model is known.
    spread : (float, float)
        Smallest and largest standard deviation of the dose given the covariates.
    explained : float
        Share of the dose's variance that the covariates explain.
    gaussian : bool
        Whether residuals of the dose are taken for normal.
    gaussian_pvalue : float
        Of the hypothesis that they are.
    largest_weight, effective : float
        The largest stabilised weight, and the number of units that all of them are worth.
    """

    mean: float
    sd: float
    range: tuple[float, float]
    spread: tuple[float, float]
    explained: float
    gaussian: bool
    gaussian_pvalue: float
    largest_weight: float
    effective: float

    @classmethod
    def of(cls, nuisances: DoseNuisances, clip: float) -> DoseFacts:
        """From the nuisances of the training rows, and the bound of their densities."""
        weights = nuisances.unit_weights
        mean = float(np.mean(weights * nuisances.dose))
        spread = np.sqrt(nuisances.variance)
        weighted = overlap(nuisances, clip=clip).loc["all"].astype(float).to_dict()
        return cls(
            mean=mean,
            sd=float(np.sqrt(np.mean(weights * (nuisances.dose - mean) ** 2))),
            range=(float(nuisances.grid[0]), float(nuisances.grid[-1])),
            spread=(float(spread.min()), float(spread.max())),
            explained=explained_share(nuisances),
            gaussian=bool(nuisances.residual_density.gaussian),
            gaussian_pvalue=float(nuisances.residual_density.pvalue),
            largest_weight=weighted["max"],
            effective=weighted["effective"],
        )
