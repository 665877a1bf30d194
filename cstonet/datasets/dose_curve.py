"""A confounded dose with a curved effect: a continuous treatment with every truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.polynomial.hermite_e import hermegauss

from cstonet.datasets.simulation import (
    FloatArray,
    assemble_frame,
    check_options,
    frozen,
)
from cstonet.datasets.three_arms import autoregressive
from cstonet.datasets.truths import as_text, dependencies, one_effect, oracle_line
from cstonet.errors import OptionError
from cstonet.estimators.aipw import Effects
from cstonet.estimators.dose_curve import TRIM, DoseCurve, dose_support, estimate_curve
from cstonet.estimators.dose_nuisances import DoseNuisances, dose_grid
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.residual_density import ResidualDensity
from cstonet.streams import DataStream

OUTCOME_SUPPORT = ("x1", "x2", "x3", "x4")
TREATMENT_SUPPORT = ("x1", "x3", "x5")
FORMULA = "y ~ dose | ."

# The dose is CENTRE + UNIT z: what the network sees is z, what the user sees is not.
CENTRE, UNIT = 5.0, 2.0
# Nodes per dimension of the quadrature behind the AME; twice as many change it by less than 2e-7.
_NODES = 60


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DoseSimulation:
    """A simulated data set of n units with a continuous treatment, with all its truths.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``dose``, covariates ``x1``, …, ``xp``.
    formula : str
        The formula to fit.
    seed : int
        Seed it was made with.
    mu, slope : (n,) float64
        Expected outcome of each unit at its own dose, and the derivative in the dose.
    mean, variance : (n,) float64
        Mean and variance of each unit's dose given its covariates.
    outcome_support, treatment_support : tuple of str
        The covariates that the outcome, and the dose, depend on.
    ame : float
        Average marginal effect in the population, by quadrature to six digits: what an interval
        should cover.
    """

    data: pd.DataFrame
    formula: str
    seed: int
    mu: FloatArray
    slope: FloatArray
    mean: FloatArray
    variance: FloatArray
    outcome_support: tuple[str, ...]
    treatment_support: tuple[str, ...]
    ame: float

    def __repr__(self) -> str:
        n, columns = self.data.shape
        return f"<dose_curve: n={n}, p={columns - 2}, seed={self.seed}, ame={self.ame:.4f}>"

    @property
    def sample_ame(self) -> float:
        """Mean slope over the rows: what the error of an estimate is measured against."""
        return float(self.slope.mean())

    def row_truths(self) -> pd.DataFrame:
        """The true nuisances of every row: mu, slope, mean, variance."""
        names = ("mu", "slope", "mean", "variance")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def describe(self) -> str:
        """Formula, true effects, and what the variables depend on: one per line."""
        oracle = oracle_line("oracle estimate", self.oracle(), "AME")
        return as_text(
            [
                ("formula", self.formula),
                *one_effect("AME", self.sample_ame, self.ame, oracle),
                *dependencies(self.treatment_support, self.outcome_support),
            ]
        )

    def curve(self, doses: FloatArray) -> FloatArray:
        """The true dose-response curve θ(a) = E μ(a, X), shape (k,)."""
        return _response((np.asarray(doses, dtype=np.float64) - CENTRE) / UNIT)

    def nuisances(self) -> DoseNuisances:
        """The true nuisances, for estimators that are told everything."""
        dose = self.data["dose"].to_numpy(np.float64)
        x = self.data[list(OUTCOME_SUPPORT)].to_numpy(np.float64)
        grid = dose_grid(dose)
        return DoseNuisances(
            y=self.data["y"].to_numpy(np.float64),
            dose=dose,
            mu=self.mu,
            slope=self.slope,
            mean=self.mean,
            variance=self.variance,
            residual_density=ResidualDensity.standard_normal(),
            grid=grid,
            mu_grid=outcome_mean((grid[None, :] - CENTRE) / UNIT, x[:, :, None]),
            weights=None,
            fold=np.zeros(len(dose), np.int64),
        )

    def oracle(self) -> Effects:
        """The AME estimated with the true nuisances: the best that any fit can hope for."""
        return estimate_marginal_effect(self.nuisances(), clip=0.0)

    def oracle_curve(self, doses: FloatArray) -> DoseCurve:
        """The dose-response curve estimated with the true nuisances."""
        truth, values = self.nuisances(), np.asarray(doses, dtype=np.float64)
        return estimate_curve(truth, values, support=dose_support(truth, TRIM), clip=0.0)


def dose_curve(
    n: int = 2000,
    p: int = 100,
    *,
    seed: int = 0,
    noise: float = 1.0,
    heteroscedastic: bool = False,
) -> DoseSimulation:
    """Confounded continuous dose whose effect rises, then levels off and falls.

    The covariates are standard normal with correlation 0.5^|j-k|. The dose is 5 + 2 z with

        z = 0.6 x1 + 0.5 tanh(2 x3) - 0.4 x5 + s(x) e,

    e standard normal and s = 1, or s = exp(0.5 tanh(x1)) on request. The outcome is

        y = 2 tanh(z) - ¼ z² + ½ z x4 + x1 + ½ (x2² - 1) + tanh(2 x3) + σ ε,

    so that the dose-response curve is 2 tanh(z) - ¼ z², every other term having mean zero.

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise.
    heteroscedastic : bool
        Whether the spread of the dose depends on x1.

    Returns
    -------
    DoseSimulation
        Data and truths.

    Examples
    --------
    >>> from cstonet.datasets import dose_curve
    >>> dose_curve(n=300, p=10, seed=1)
    <dose_curve: n=300, p=10, seed=1, ame=0.5098>
    """
    check_options(n, p, seed, noise=noise)
    if not isinstance(heteroscedastic, bool):
        raise OptionError(f"heteroscedastic must be True or False, not {heteroscedastic!r}")
    rng = DataStream.DOSE_CURVE.generator(seed)
    covariates = autoregressive(rng, p, n)
    x1, x3, x5 = covariates[[0, 2, 4]]
    mean, spread = _mean_dose(x1, x3, x5), _spread(x1, heteroscedastic)
    z = mean + spread * rng.standard_normal(n)
    mu = outcome_mean(z, covariates.T[:, :4])
    y = mu + noise * rng.standard_normal(n)
    data = assemble_frame(y, CENTRE + UNIT * z, covariates, name="dose")
    return DoseSimulation(
        data=data,
        formula=FORMULA,
        seed=int(seed),
        mu=frozen(mu),
        slope=frozen((_response_slope(z) + 0.5 * covariates[3]) / UNIT),
        mean=frozen(CENTRE + UNIT * mean),
        variance=frozen((UNIT * spread) ** 2),
        outcome_support=OUTCOME_SUPPORT,
        treatment_support=TREATMENT_SUPPORT,
        ame=average_marginal_effect(heteroscedastic),
    )


def outcome_mean(z: FloatArray, x: FloatArray) -> FloatArray:
    """μ at standardised doses z; x holds the four covariates that matter along axis 1."""
    x1, x2, x3, x4 = (x[:, j] for j in range(4))
    mu: FloatArray = _response(z) + 0.5 * z * x4 + x1 + 0.5 * (x2**2 - 1) + np.tanh(2 * x3)
    return mu


@lru_cache(maxsize=2)
def average_marginal_effect(heteroscedastic: bool, nodes: int = _NODES) -> float:
    """E ∂μ/∂dose, by Gauss-Hermite quadrature over x1, x3 and what is left of the dose.

    Given x1 and x3 the dose is gaussian, because x5 is. The term ½ x4 of the slope has mean zero.
    """
    points, weights = hermegauss(nodes)
    weights = weights / weights.sum()
    # x1 and x3 have correlation 1/4; x5 depends on x1 through x3 only.
    x1, x3 = points[:, None, None], 0.25 * points[:, None, None]
    x3 = x3 + np.sqrt(1 - 0.25**2) * points[None, :, None]
    centre = _mean_dose(x1, x3, 0.25 * x3)
    deviation = np.sqrt(0.4**2 * (1 - 0.25**2) + _spread(x1, heteroscedastic) ** 2)
    slopes = _response_slope(centre + deviation * points[None, None, :])
    return float(np.einsum("i,j,k,ijk", weights, weights, weights, slopes)) / UNIT


def _mean_dose(x1: FloatArray, x3: FloatArray, x5: FloatArray) -> FloatArray:
    return 0.6 * x1 + 0.5 * np.tanh(2 * x3) - 0.4 * x5


def _spread(x1: FloatArray, heteroscedastic: bool) -> FloatArray:
    return np.exp(0.5 * np.tanh(x1)) if heteroscedastic else np.ones_like(x1)


def _response(z: FloatArray) -> FloatArray:
    curve: FloatArray = 2 * np.tanh(z) - 0.25 * z**2
    return curve


def _response_slope(z: FloatArray) -> FloatArray:
    slope: FloatArray = 2 / np.cosh(z) ** 2 - 0.5 * z
    return slope
