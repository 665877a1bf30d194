"""What the estimators of a continuous treatment are given: fitted functions of dose and covariates.

The dose A has mean m(x) and variance v(x) given the covariates, and residuals (A - m)/√v of one
density g for everyone; μ(a, x) is the expected outcome of a unit with covariates x at dose a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cstonet.errors import NumericalError
from cstonet.estimators.nuisances import FloatArray, IntArray, mean_one
from cstonet.estimators.residual_density import ResidualDensity

# Doses at which the average density is tabulated: some by rank, some by distance.
_DENSITY_RANKS, _DENSITY_DISTANCES = 301, 101
# Values of a table (units x doses) computed at a time: bounds the memory at large n.
_AT_ONCE = 4_000_000
# Doses at which the outcome model is tabulated: some by rank, some by distance.
_BY_RANK, _BY_DISTANCE, _CLOSEST = 41, 25, 500


def dose_grid(dose: FloatArray) -> FloatArray:
    """Doses at which μ(a, x) is tabulated, ascending, from the smallest dose to the largest.

    Many where units are, and some between far doses: between them a cubic spline is close to any
    function that a network can learn from these doses.
    """
    ranks = np.quantile(dose, np.linspace(0, 1, _BY_RANK))
    distances = np.linspace(dose.min(), dose.max(), _BY_DISTANCE)
    # Knots closer than this share of the range would only let rounding errors speak.
    least = np.ptp(dose) / _CLOSEST
    kept = [float(dose.min())]
    for value in np.union1d(ranks, distances):
        if value - kept[-1] > least and dose.max() - value > least:
            kept.append(float(value))
    return np.array([*kept, float(dose.max())])


@dataclass(frozen=True, slots=True)
class DoseNuisances:
    """Observed data and fitted nuisance functions of n units with a continuous treatment.

    Parameters
    ----------
    y : (n,) float64
        Outcomes y_i.
    dose : (n,) float64
        Doses A_i received.
    mu, slope : (n,) float64
        Outcome regression μ̂(A_i, x_i) at the dose received, and its derivative in the dose.
    mean, variance : (n,) float64
        m̂(x_i) and v̂(x_i), mean and variance of the dose given the covariates.
    residual_density : ResidualDensity
        ĝ, the density of (A_i - m̂(x_i)) / √v̂(x_i).
    grid : (G,) float64
        Doses, ascending, at which the outcome regression is tabulated.
    mu_grid : (n, G) float64
        μ̂(a, x_i) for a in `grid`.
    weights : (n,) float64 or None
        Sampling weights; their scale is irrelevant. None: every unit counts the same.
    fold : (n,) int64
        Fold in which the unit was held out; 0 for all without cross-fitting.
    spread_terms : (n, k) float64 or None
        What log v̂(x) is linear in with estimated coefficients, beside a constant. None: nothing.
    clusters : (n,) int or None
        Codes of the clusters that units belong to; None: units are independent.

    Raises
    ------
    ValueError
        If the shapes disagree, or a variance is not positive.
    NumericalError
        If a prediction is not finite.
    """

    y: FloatArray
    dose: FloatArray
    mu: FloatArray
    slope: FloatArray
    mean: FloatArray
    variance: FloatArray
    residual_density: ResidualDensity
    grid: FloatArray
    mu_grid: FloatArray
    weights: FloatArray | None
    fold: IntArray
    spread_terms: FloatArray | None = None
    clusters: IntArray | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        vectors = ("dose", "mu", "slope", "mean", "variance", "weights", "fold", "clusters")
        expected: dict[str, tuple[int, ...]] = dict.fromkeys(vectors, (n,))
        expected |= {"mu_grid": (n, len(self.grid))}
        if self.spread_terms is not None:
            expected["spread_terms"] = (n, self.spread_terms.shape[-1])
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None and value.shape != shape:
                raise ValueError(f"{name} has shape {value.shape}, expected {shape}")
        for what, values in (
            ("outcome", np.column_stack([self.mu, self.slope, self.mu_grid])),
            ("treatment", self.mean[:, None]),
        ):
            broken = ~np.isfinite(values).all(axis=1)
            if broken.any():
                raise NumericalError(
                    f"the {what} model predicts values that are not finite for {broken.sum()} of "
                    f"{n} units: its training diverged. Try more starts, another seed, or smaller "
                    "learning rates."
                )
        if not (self.variance > 0).all():
            raise ValueError("variance: the dose's variance must be positive for every unit")

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.y)

    @property
    def unit_weights(self) -> FloatArray:
        """Weights scaled to mean one; ones if there are none. Shape (n,)."""
        return mean_one(self.weights, self.n)

    @property
    def surprise(self) -> FloatArray:
        """A_i - m̂(x_i), shape (n,)."""
        return self.dose - self.mean

    @property
    def score(self) -> FloatArray:
        """-∂ log f̂(a | x_i)/∂a at the dose received, shape (n,)."""
        spread = np.sqrt(self.variance)
        return self.residual_density.score(self.surprise / spread) / spread

    def mu_at(self, doses: FloatArray, *, derivative: int = 0) -> FloatArray:
        """μ̂(a, x_i), or its derivative in a, at doses within the grid, shape (n, k)."""
        from scipy.interpolate import CubicSpline  # not at the top: only doses pay for loading it

        table: FloatArray = CubicSpline(self.grid, self.mu_grid, axis=1)(doses, derivative)
        return table

    def average_mu(self, doses: FloatArray) -> FloatArray:
        """The weighted mean of μ̂(a, x_i) over the units, at doses within the grid, shape (k,)."""
        from scipy.interpolate import CubicSpline

        average = self.unit_weights @ self.mu_grid / self.n
        values: FloatArray = CubicSpline(self.grid, average)(doses)
        return values

    def density(self) -> FloatArray:
        """f̂(A_i | x_i), the density of the dose received, shape (n,)."""
        spread = np.sqrt(self.variance)
        return self.residual_density.density(self.surprise / spread) / spread

    def average_density(self) -> FloatArray:
        """The weighted mean over all units j of f̂(A_i | x_j), shape (n,).

        Tabulated and interpolated, which spares n² densities.
        """
        from scipy.interpolate import PchipInterpolator

        weights = self.unit_weights
        counted = np.unique(self.dose[weights > 0])
        ranks = np.quantile(counted, np.linspace(0, 1, _DENSITY_RANKS))
        distances = np.linspace(counted.min(), counted.max(), _DENSITY_DISTANCES)
        table = np.union1d(ranks, distances)
        total = np.zeros(len(table))
        rows = max(1, _AT_ONCE // len(table))
        for first in range(0, self.n, rows):
            part = slice(first, first + rows)
            spread = np.sqrt(self.variance[part, None])
            errors = (table - self.mean[part, None]) / spread
            total += weights[part] @ (self.residual_density.density(errors) / spread)
        # Densities differ by orders of magnitude, hence logarithms; doses may lie close together,
        # where a spline with continuous curvature would swing.
        tiny = np.finfo(np.float64).tiny
        log_average = PchipInterpolator(table, np.log(np.maximum(total / self.n, tiny)))
        # Units of weight zero may lie beyond the table; they do not count.
        inside = np.clip(self.dose, table[0], table[-1])
        values: FloatArray = np.exp(log_average(inside))
        return values


@dataclass(frozen=True, slots=True)
class StabilisedWeights:
    """Weights that make the dose independent of the covariates.

    Parameters
    ----------
    values : (n,) float64
        f̄(A_i) / f̂(A_i | x_i), f̄ being the average density.
    n_bounded : int
        Units whose density was raised to the bound.
    """

    values: FloatArray
    n_bounded: int


def stabilised_weights(nuisances: DoseNuisances, bound: float) -> StabilisedWeights:
    """f̄(A_i) / f̂(A_i | x_i), where f̂ is kept at or above `bound` times f̄.

    This is the only place where densities are bounded: no unit then counts more than 1/bound
    times what it would in a randomised trial. It is what the clip of the propensities is for
    treatments with levels.
    """
    average = nuisances.average_density()
    density = nuisances.density()
    low = density < bound * average
    bounded = np.where(low, bound * average, density)
    counted = nuisances.unit_weights > 0
    nowhere = counted & (bounded <= 0)
    if nowhere.any():
        raise NumericalError(
            f"{int(nowhere.sum())} units received a dose whose estimated density is zero; set clip "
            "above 0 (0.01 is usual)"
        )
    values = np.divide(average, bounded, out=np.zeros_like(average), where=counted)
    return StabilisedWeights(values, int((low & counted).sum()))
