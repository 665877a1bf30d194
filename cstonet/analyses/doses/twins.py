"""Twins of data with doses: doses drawn by their model, outcomes by the regression at these."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from cstonet.analyses.doses.results import DoseResults
from cstonet.analyses.twins import Noise, OutcomeLaw, Twin, resampled
from cstonet.data.design import Design
from cstonet.data.treatment import Dose
from cstonet.data.units import Units
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.nuisances import FloatArray

# Residuals of the dose, by rank, over which the slope of every unit is averaged.
_RANKS = 64


@dataclass(frozen=True, slots=True, eq=False)
class DoseWorld:
    """A world in which the nuisances of a fit are true.

    Attributes
    ----------
    design
        The data of the fit.
    mean : (n,) float64
        Expected doses.
    curves
        Expected outcomes at any dose.
    noise
        What the model left of the doses.
    law
        How outcomes vary around their expectations.
    slope : (n,) float64
        Expected derivative of the outcome in the dose, over the doses that a unit may receive.
    """

    design: Design[Dose]
    mean: FloatArray
    curves: OutcomeCurves
    noise: Noise
    law: OutcomeLaw
    slope: FloatArray

    @classmethod
    def of(cls, results: DoseResults) -> DoseWorld:
        """The world of a fit: nuisances out of fold, averaged over repetitions."""
        nuisances, weights = results.dose_nuisances, results.design.unit_weights
        alike = np.zeros(nuisances.n, dtype=np.int64)  # one arm
        curves = OutcomeCurves.of(nuisances)
        noise = Noise.of(
            nuisances.surprise,
            nuisances.mean[:, None],
            alike,
            weights,
            variance=nuisances.variance[:, None],
            clusters=nuisances.clusters,
        )
        law = OutcomeLaw.of(
            results.design.family,
            nuisances.y,
            nuisances.mu[:, None],
            alike,
            weights,
            nuisances.clusters,
        )
        slope = _average_slope(curves, nuisances.mean, noise)
        return cls(results.design, nuisances.mean, curves, noise, law, slope)

    def twin(self, rng: np.random.Generator) -> Twin:
        """The same units with other doses and outcomes, and the effect in their world."""
        alike = np.zeros(len(self.mean), dtype=np.int64)
        doses = self.mean + self.noise.draw(alike, rng)
        expected, _ = self.curves.at(doses)
        units = Units.of(doses, "gaussian", self.design.weights)
        design = dataclasses.replace(
            self.design,
            treatment=dataclasses.replace(self.design.treatment, values=doses, units=units),
            y=self.law.draw(expected, alike, rng),
        )
        counted = resampled(self.design.unit_weights, self.design.clusters, rng)
        return Twin(design, np.array([counted @ self.slope / counted.sum()]))


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeCurves:
    """μ̂(a, x_i) of every unit as a function of the dose, a line beyond the doses of the data.

    Attributes
    ----------
    grid : (G,) float64
        Knots.
    pieces : (4, G - 1, n) float64
        Coefficients of the cubics between them, the highest power first.
    """

    grid: FloatArray
    pieces: FloatArray

    @classmethod
    def of(cls, nuisances: DoseNuisances) -> OutcomeCurves:
        """Splines through the tabulated regressions."""
        from scipy.interpolate import CubicSpline  # not at the top: only doses pay for loading it

        return cls(nuisances.grid, CubicSpline(nuisances.grid, nuisances.mu_grid, axis=1).c)

    def at(self, doses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and slopes of every unit at a dose of its own, (n,) each."""
        grid = self.grid
        inside = np.clip(doses, grid[0], grid[-1])
        place = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, len(grid) - 2)
        cubic, square, line, constant = self.pieces[:, place, np.arange(len(doses))]
        t = inside - grid[place]
        slope: FloatArray = (3 * cubic * t + 2 * square) * t + line
        value: FloatArray = ((cubic * t + square) * t + line) * t + constant
        return value + slope * (doses - inside), slope


def _average_slope(curves: OutcomeCurves, mean: FloatArray, noise: Noise) -> FloatArray:
    """Slopes averaged over the doses that a unit may receive, by ranks of residuals, (n,)."""
    (members,), (chances,) = noise.members, noise.chances
    order = np.argsort(noise.studentised[members])
    ranks = (np.arange(_RANKS) + 0.5) / _RANKS
    places = np.searchsorted(np.cumsum(chances[order]), ranks).clip(max=len(order) - 1)
    total = np.zeros(len(mean))
    for residual in noise.studentised[members][order][places]:
        total += curves.at(mean + noise.spread[:, 0] * residual)[1]
    return total / _RANKS
