"""What an estimator is given: outcomes, treatments and the fitted μ̂_a(x), p̂_a(x) of every unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.errors import NumericalError, OptionError

FloatArray: TypeAlias = NDArray[np.float64]
# Least propensity: of all levels alike, or of each.
Clip: TypeAlias = float | tuple[float, ...]
IntArray: TypeAlias = NDArray[np.integer]

# Networks may predict in float32: the probabilities of a unit then sum to one up to this.
_SUM_TOLERANCE = 1e-5


class Units(Protocol):
    """What scores of units are made of: nuisances, or a block of their units."""

    @property
    def y(self) -> FloatArray:
        """Outcomes, shape (n,)."""

    @property
    def mu(self) -> FloatArray:
        """Outcome regressions, shape (n, L)."""

    @property
    def received(self) -> NDArray[np.bool_]:
        """Indicators 1(A_i = a), shape (n, L)."""

    @property
    def unit_weights(self) -> FloatArray:
        """Weights of mean one over all units, shape (n,)."""


class Columns(Protocol):
    """Columns (n, k) of which blocks of rows can be had, as arrays are: all at once is too much."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, k)."""

    def __getitem__(self, rows: slice, /) -> NDArray[np.floating]:
        """Some neighbouring rows (m, k)."""


def mean_one(weights: FloatArray | None, n: int) -> FloatArray:
    """Weights of n units scaled to mean one; ones if there are none. Shape (n,)."""
    if weights is None:
        return np.ones(n)
    return np.divide(weights, np.mean(weights), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Observed data and fitted nuisance functions of n units and L treatment levels.

    Parameters
    ----------
    y : (n,) float64
        Outcomes y_i, in the units of the data.
    treatment : (n,) int
        Treatments A_i as codes 0, …, L-1.
    mu : (n, L) float64
        Outcome regressions μ̂_a(x_i), in the units of the data.
    propensity : (n, L) float64
        Treatment probabilities p̂_a(x_i), not clipped; each row sums to one.
    weights : (n,) float64 or None
        Sampling weights; their scale is irrelevant. None: every unit counts the same.
    fold : (n,) int
        Fold in which the unit was held out; 0 for all without cross-fitting.
    linear : (n, k) Columns, such as a float array, or None
        Covariates that have slopes, see :mod:`cstonet.estimators.linear_terms`; not all of them are
        in the models. None: not even the arms have intercepts of their own.
    found : (f,) int
        Which of these columns a model found.
    ridge : float
        How firmly slopes are held at zero, see `cstonet.estimators.linear_terms`; 0: not at all.
    clusters : (n,) int or None
        Codes of the clusters that units belong to, see `cstonet.estimators.clusters`; None: units
        are independent.

    Raises
    ------
    ValueError
        If the shapes disagree, or a code or a probability is impossible.
    NumericalError
        If a prediction is not finite.
    """

    y: FloatArray
    treatment: IntArray
    mu: FloatArray
    propensity: FloatArray
    weights: FloatArray | None
    fold: IntArray
    linear: Columns | None = None
    found: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    ridge: float = 0.0
    clusters: IntArray | None = None

    def __post_init__(self) -> None:
        self._check_shapes()
        self._check_finite()
        if self.treatment.min() < 0 or self.treatment.max() >= self.n_levels:
            raise ValueError(f"treatment codes must lie in 0, ..., {self.n_levels - 1}")
        for rows in row_blocks(self.n):
            part = self.propensity[rows]
            if part.min() < 0 or np.abs(part.sum(axis=1) - 1).max() > _SUM_TOLERANCE:
                raise ValueError("propensity: every row must hold probabilities that sum to one")

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.y)

    @property
    def n_levels(self) -> int:
        """Number of treatment levels L."""
        return int(self.mu.shape[1])

    @property
    def received(self) -> NDArray[np.bool_]:
        """Indicators 1(A_i = a), shape (n, L)."""
        return np.equal(self.treatment[:, None], np.arange(self.n_levels))

    @property
    def unit_weights(self) -> FloatArray:
        """Weights scaled to mean one; ones if there are none. Shape (n,)."""
        return mean_one(self.weights, self.n)

    @property
    def shares(self) -> FloatArray:
        """Shares of the levels among the units, by their weights, shape (L,)."""
        weights = self.unit_weights
        shares: FloatArray = np.bincount(self.treatment, weights, self.n_levels) / weights.sum()
        return shares

    def among(self, chosen: NDArray[np.bool_]) -> Nuisances:
        """The same of some units, chosen by a mask (n,)."""
        places = np.flatnonzero(chosen)
        linear = self.linear
        return Nuisances(
            y=self.y[places],
            treatment=self.treatment[places],
            mu=self.mu[places],
            propensity=self.propensity[places],
            weights=None if self.weights is None else self.weights[places],
            fold=self.fold[places],
            linear=None if linear is None else _rows_of(linear, chosen),
            found=self.found,
            ridge=self.ridge,
            clusters=None if self.clusters is None else self.clusters[places],
        )

    def _check_shapes(self) -> None:
        n = len(self.y)
        if n == 0 or self.mu.ndim != 2:
            raise ValueError("nuisances need at least one unit, and mu of shape (n, L)")
        levels = self.mu.shape[1]
        expected = {"y": (n,), "treatment": (n,), "mu": (n, levels), "propensity": (n, levels)}
        expected |= {"weights": (n,), "fold": (n,), "clusters": (n,)}
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None and value.shape != shape:
                raise ValueError(f"{name} has shape {value.shape}, expected {shape}")
        if self.linear is not None and (len(self.linear.shape) != 2 or self.linear.shape[0] != n):
            raise ValueError(f"linear has shape {self.linear.shape}, expected ({n}, k)")

    def _check_finite(self) -> None:
        linear = self.linear
        if linear is not None:
            blocks = row_blocks(self.n, linear.shape[1])
            if not all(np.isfinite(linear[rows]).all() for rows in blocks):
                raise ValueError("linear must be finite")
        for what, values in (("outcome", self.mu), ("treatment", self.propensity)):
            broken = ~np.isfinite(values).all(axis=1)
            if broken.any():
                folds = ", ".join(str(fold) for fold in np.unique(self.fold[broken]))
                raise NumericalError(
                    f"the {what} model predicts values that are not finite for "
                    f"{broken.sum()} of {self.n} units (fold {folds}): its training diverged. "
                    "Try more starts, another seed, or smaller learning rates."
                )


def _rows_of(columns: Columns, chosen: NDArray[np.bool_]) -> FloatArray:
    """Some rows of columns, chosen by a mask (n,), as an array."""
    blocks = row_blocks(len(chosen), columns.shape[1])
    return np.concatenate([np.asarray(columns[rows], np.float64)[chosen[rows]] for rows in blocks])


@dataclass(frozen=True, slots=True)
class Clipped:
    """Propensities kept away from 0 and 1.

    Parameters
    ----------
    values : (n, L) float64
        The clipped probabilities.
    n_clipped : int
        Number of units (rows) with a probability that had to be moved.
    """

    values: FloatArray
    n_clipped: int


def clip_propensity(propensity: FloatArray, bound: Clip) -> Clipped:
    """Keep the probability of every level at or above a bound.

    This is the only place where propensities are clipped. Rows go on summing to one: what the
    levels below their bounds receive is taken from the levels above, in proportion to what these
    have. For a binary treatment that is plain clipping to [b_1, 1 - b_0].

    Parameters
    ----------
    propensity : (n, L) float64
        Estimated probabilities p̂_a(x_i).
    bound : float, or L of them
        Least probability of all levels, in [0, 1/L), or of each, which sum to less than one; 0
        clips nothing.

    Returns
    -------
    Clipped
        The clipped probabilities and the number of units they were changed for.

    Raises
    ------
    OptionError
        If a bound is impossible.
    """
    levels = propensity.shape[1]
    if not isinstance(bound, tuple) and not 0 <= bound < 1 / levels:
        raise OptionError(
            f"clip must be at least 0 and below 1/{levels} for a treatment with {levels} levels, "
            f"not {bound!r}"
        )
    if isinstance(bound, tuple) and (len(bound) != levels or min(bound) < 0 or not sum(bound) < 1):
        raise OptionError(
            f"clip must hold {levels} numbers, the least probability of each level: at least 0, "
            f"and below 1 together; got {bound!r}"
        )
    least = np.broadcast_to(np.asarray(bound, dtype=np.float64), (levels,))
    if levels == 2:
        values = np.clip(propensity, least, 1 - least[::-1])
        moved = (values != propensity).any(axis=1)
        return Clipped(values, int(moved.sum()))
    moved = (propensity < least).any(axis=1)
    values = propensity.copy()
    values[moved] = _shared_out(propensity[moved], least)
    return Clipped(values, int(moved.sum()))


def _shared_out(propensity: FloatArray, least: FloatArray) -> FloatArray:
    """Rows (m, L) with least values (L,), the rest shared in proportion; sums are one."""
    low = propensity < least
    while True:
        rest = np.where(low, 0.0, propensity)
        factor = (1 - low @ least) / rest.sum(axis=1)
        values: FloatArray = np.where(low, least, propensity * factor[:, None])
        # Giving may bring a level that was just above its bound below it. All never are, because
        # the bounds sum to less than one, so this ends with some level left to give.
        below = ~low & (values < least)
        if not below.any():
            return values
        low |= below


def arm_weights(units: Units, propensity: FloatArray) -> FloatArray:
    """Weights w_i 1(A_i = a) / p̂_a(x_i) of the units in every arm, given clipped probabilities.

    Shape (n, L). Their means are about one.
    """
    return over_probability(units.received, units.unit_weights[:, None], propensity)


def inverse_probability_residuals(units: Units, propensity: FloatArray) -> FloatArray:
    """Residuals of the received treatment over its probability.

    Parameters
    ----------
    units : Nuisances, or a block of their units
        Data and nuisances of n units.
    propensity : (n, L) float64
        Clipped probabilities.

    Returns
    -------
    (n, L) float64
        1(A_i = a) (y_i - μ̂_a(x_i)) / p̂_a(x_i).

    Raises
    ------
    NumericalError
        If a unit received a treatment to which it is given no chance at all.
    """
    return over_probability(units.received, units.y[:, None] - units.mu, propensity)


def over_probability(
    received: NDArray[np.bool_], values: FloatArray, propensity: FloatArray
) -> FloatArray:
    """1(A_i = a) v_ia / p̂_a(x_i), shape (n, L), if every unit could receive what it did."""
    check_possible(received, propensity)
    divided = np.zeros_like(propensity)
    np.divide(values, propensity, out=divided, where=received)
    return divided


def check_possible(received: NDArray[np.bool_], propensity: FloatArray) -> None:
    """Raise NumericalError if a unit received what it had no chance of, by (n, L) arrays."""
    impossible = (received & (propensity <= 0)).any(axis=1)
    if impossible.any():
        raise NumericalError(
            f"{impossible.sum()} units received a treatment whose estimated probability is zero; "
            "set clip above 0, or leave it out"
        )
