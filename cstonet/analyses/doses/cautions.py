"""What the reader of a fit with a continuous treatment is warned of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cstonet.analyses.doses.diagnostics import overlap
from cstonet.analyses.doses.reading import point_mass
from cstonet.data.design import Design
from cstonet.data.treatment import Dose
from cstonet.estimators import Effects
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.reporting.numbers import plain

# Share of the dose's variance explained by the covariates from which the reader is warned.
_DETERMINED = 0.95
# Share of units with bounded densities, and largest stabilised weight, from which he is.
_POOR_OVERLAP, _LARGE_WEIGHT = 0.01, 50.0


def explained_share(nuisances: DoseNuisances) -> float:
    """Share of the dose's variance that the covariates explain."""
    weights = nuisances.unit_weights
    centred = nuisances.dose - np.mean(weights * nuisances.dose)
    left = np.mean(weights * nuisances.surprise**2) / np.mean(weights * centred**2)
    return max(0.0, 1 - float(left))


def dose_warnings(
    design: Design[Dose], nuisances: DoseNuisances, effects: Effects
) -> tuple[str, ...]:
    """Doses that hardly any other unit could have had, and doses without a density.

    Parameters
    ----------
    design, nuisances
        The data, and the nuisances of the training rows.
    effects
        What was estimated, with the number of bounded densities.
    """
    return tuple(_dose_warnings(design.treatment_name, nuisances, effects))


def _dose_warnings(name: str, nuisances: DoseNuisances, effects: Effects) -> Iterator[str]:
    explained = explained_share(nuisances)
    if explained >= _DETERMINED:
        yield (
            f"The covariates all but determine {name} ({explained:.0%} of its variance): hardly "
            "any unit could have had another dose, and the effects rest on extrapolation."
        )
    mass = point_mass(nuisances.dose, nuisances.weights)
    if mass is not None:
        yield (
            f"{mass[1]:.0%} of the units have the dose {plain(mass[0])}, where there is no "
            "density; the AME and the curve assume one and may be wrong."
        )
    largest = float(overlap(nuisances, clip=effects.single_clip)["max"].max())
    bounded = effects.n_clipped / len(nuisances.dose)
    if bounded > _POOR_OVERLAP or largest > _LARGE_WEIGHT:
        yield (
            f"Overlap is poor: weights f(a)/f(a|x) reach {plain(largest, 3)}, so that a few units "
            "count for very many in res.dose_response(). See res.overlap()."
        )
