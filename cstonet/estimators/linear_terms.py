"""Slopes for every covariate: the outcome is cleared of what the models leave of it linearly.

No model holds every covariate that the analyst named. One that matters a little is missed by every
test, and many of them together are a bias. So all of them get slopes, where rows allow: residuals
y - μ̂_A(x) are regressed on arms and covariates z with weights 1/p̂_A(x), and what is found,
α̂_a + γ̂_a'(z - z̄), joins the outcome model. With everything linear this is regression adjustment,
with slopes of found covariates alone the double selection of Belloni, Chernozhukov and Hansen.

Seen from the weights, it is calibration: the estimate is a weighted mean of residuals, and its
total weights, those of the propensities minus what the slopes take from them, sum to one in every
arm and, where slopes are free, give every z the mean z̄. The slopes' own error is in the influence
function. Slopes are common to the arms; those of covariates that a model found are each arm's own,
if every arm has rows enough, so that potential-outcome means are right, too, where effects depend
on them.

What is left for slopes is what the models have missed, so it should not be large. A ridge says how
large: with ridge λ every unit brings λ pseudo-observations of a slope of zero for each term, in
units of its spread, and a slope is taken for a draw of variance s²/(n λ w̄), with w̄ the mean weight:
1/√λ standard errors of a common slope that has no neighbours. Directions in which the treatment
leaves hardly any variation then no longer decide the estimate. What the ridge leaves of the
imbalance counts in the variance, with slopes of this size and without a common sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cstonet.blocks import row_blocks
from cstonet.estimators.clusters import SquaredSums
from cstonet.estimators.nuisances import (
    Clip,
    Columns,
    FloatArray,
    IntArray,
    Nuisances,
    clip_propensity,
    over_probability,
)

# Directions of z with less than this share of the largest variance have no slope of their own.
_RANK_TOLERANCE = 1e-10
# A column whose spread is this share of its mean is constant up to rounding.
_ROUNDING = 1e-12
# Rows, weighted ones counted by their effective number, that a slope needs: of all arms together,
# and of the smallest arm for slopes of its own.
ROWS_PER_SLOPE, ROWS_PER_ARM_SLOPE = 4, 10
# A residual stands for an error that is at most so much larger: a unit that decides its own fit.
_LEAST_FREEDOM = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class LinearTerms:
    """Intercepts and slopes of what the outcome model leaves, and how every unit enters them.

    The terms themselves are computed block by block when they are needed: D_i is the row of the
    unit's arm as L indicators, of the k - d terms z_i - z̄ that have common slopes, and of the d
    terms that have slopes by arm times the indicator of each arm.

    Attributes
    ----------
    columns : (n, k)
        z.
    center, scale : (k,) float64
        z̄, and the spread that the terms are in units of.
    common, by_arm : (k - d,) and (d,) int
        Terms whose slopes are the same in all arms, and those whose slopes differ.
    levels : int
        Number L of arms.
    received : (n,) int
        Treatments as codes.
    counted, weights : (n,) float64
        Weights of the units, and those of the regression: w_i / p̂_A(x_i), or what an estimator has
        in its place.
    coefficients : (L + k - d + L d,) float64
        Of D.
    inverse : (width, width) float64
        That of the mean of weight times D D', with the ridge.
    residual, error : (n,) float64
        What D leaves of y - μ̂_A(x), and the same over √(1 - leverage): a residual is smaller than
        the error it stands for.
    ridge : float
        λ.
    noise : float
        s², the variance of a slope's moment over the weight that it rests on.
    """

    columns: Columns
    center: FloatArray
    scale: FloatArray
    common: IntArray
    by_arm: IntArray
    levels: int
    received: IntArray
    counted: FloatArray
    weights: FloatArray
    coefficients: FloatArray
    inverse: FloatArray
    residual: FloatArray
    error: FloatArray
    ridge: float
    noise: float

    @property
    def width(self) -> int:
        """Number of coefficients."""
        return len(self.coefficients)

    def pull(self, rows: slice) -> FloatArray:
        """What the terms add to the outcome model of some units under each level, shape (m, L)."""
        z, (arms, common, own) = self._terms(rows), self._parts(self.coefficients)
        part: FloatArray = (z[:, self.common] @ common)[:, None] + arms
        return part + z[:, self.by_arm] @ own.T

    def expected(self, rows: slice, by_level: FloatArray) -> FloatArray:
        """Σ_i Σ_a v_ia D_ia over some units, D_ia being D had unit i received a; shape (width, c).

        Parameters
        ----------
        rows : slice
            m units.
        by_level : (m, L, c) float64
            v of c estimates.
        """
        z = self._terms(rows)
        own = np.einsum("md,mac->adc", z[:, self.by_arm], by_level)
        return np.concatenate(
            [
                by_level.sum(axis=0),
                z[:, self.common].T @ by_level.sum(axis=1),
                own.reshape(-1, by_level.shape[2]),
            ]
        )

    def moments(self, rows: slice, weights: FloatArray) -> FloatArray:
        """Σ_i v_i D_i over some units with weights v (m, c), shape (width, c)."""
        part: FloatArray = self.regressors(rows).T @ weights
        return part

    def shift(self, rows: slice, imbalance: FloatArray) -> FloatArray:
        """What the coefficients take from the weights of an estimator, for some units, (m, c).

        Parameters
        ----------
        rows : slice
            The units.
        imbalance : (width, c) float64
            Mean over all units of weights of residuals times D, minus what the same estimate
            expects of D (`expected`).

        Returns
        -------
        (m, c) float64
            The weights minus these are the total weights: their imbalance is zero without ridge.
        """
        pull = self.inverse @ imbalance
        shift: FloatArray = self.weights[rows, None] * (self.regressors(rows) @ pull)
        return shift

    def held(self, rows: slice, imbalance: FloatArray) -> FloatArray:
        """What the ridge adds to the influence values of an estimator, for some units, (m, c).

        A unit moves the coefficients by inverse · (w D e - λ_i γ̂), whose mean is zero; `shift` has
        the first part of it. Its λ_i is λ times its own weight, and w̄ times what it adds to the
        variance of the terms, whose units the ridge is in.
        """
        if self.ridge == 0:
            return np.zeros((rows.stop - rows.start, imbalance.shape[1]))
        pull = self.inverse @ imbalance
        by_coefficient = self.coefficients[:, None] * pull
        _, common, own = self._parts(by_coefficient)
        by_column = np.empty((len(self.center), imbalance.shape[1]))
        by_column[self.common], by_column[self.by_arm] = common, own.sum(axis=0)
        spread = self._terms(rows) ** 2 - 1
        held: FloatArray = self.weights[rows, None] * by_column.sum(axis=0)
        held += self.weights.mean() * self.counted[rows, None] * (spread @ by_column)
        return self.ridge * held

    def missed(self, imbalance: FloatArray) -> FloatArray:
        """Covariance (c, c) of what the ridge leaves, for slopes as large as it says.

        The total weights leave the imbalance λ w̄ (inverse · imbalance) in the terms, and slopes
        are draws of variance s²/(n λ w̄).
        """
        pull = (self.inverse @ imbalance)[self.levels :]
        scale = self.noise * self.ridge * float(self.weights.mean()) / len(self.weights)
        covariance: FloatArray = scale * pull.T @ pull
        return covariance

    def regressors(self, rows: slice) -> FloatArray:
        """D of some units, shape (m, width)."""
        z = self._terms(rows)
        return _regressors(z, self.received[rows], self.levels, self.common, self.by_arm)

    def _terms(self, rows: slice) -> FloatArray:
        return (self.columns[rows] - self.center) / self.scale

    def _parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values (width, …) of arms (L, …), common terms (k - d, …) and terms by arm (L, d, …)."""
        arms, common, own = np.split(values, [self.levels, self.levels + len(self.common)])
        return arms, common, own.reshape(self.levels, len(self.by_arm), *values.shape[1:])


def linear_terms(
    nuisances: Nuisances, clip: Clip, weights: FloatArray | None = None
) -> LinearTerms | None:
    """Fit the linear terms of what the outcome model leaves.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    weights : (n,) float64, optional
        Those of the regression, at least zero: of an estimator that asks about a part of the
        population. By default inverse propensities times the units' weights.

    Returns
    -------
    LinearTerms or None
        None if the nuisances name no columns at all. Without rows enough for all columns, those
        that no model found have no slopes.
    """
    if nuisances.linear is None:
        return None
    n, counted, levels = nuisances.n, nuisances.unit_weights, nuisances.n_levels
    if weights is None:
        weights = _inverse_propensities(nuisances, clip)
    residual = np.empty(n)
    for rows in row_blocks(n):
        codes = nuisances.treatment[rows, None]
        residual[rows] = nuisances.y[rows]
        residual[rows] -= np.take_along_axis(nuisances.mu[rows], codes, axis=1)[:, 0]
    z, by_arm = _affordable(nuisances, weights)
    common = np.setdiff1d(np.arange(z.shape[1]), by_arm)
    center, scale = _units(z, counted)

    def terms(rows: slice) -> FloatArray:
        part: FloatArray = (z[rows] - center) / scale
        return _regressors(part, nuisances.treatment[rows], levels, common, by_arm)

    width = levels + len(common) + levels * len(by_arm)
    gram, moment = np.zeros((width, width)), np.zeros(width)
    for rows in row_blocks(n, width):
        regressors = terms(rows)
        weighted = regressors * weights[rows, None]
        gram += weighted.T @ regressors
        moment += weighted.T @ residual[rows]
    information = float(np.trace(gram[levels:, levels:]))
    slopes = np.arange(levels, width)
    gram[slopes, slopes] += nuisances.ridge * weights.sum()
    inverse = np.asarray(np.linalg.pinv(gram / n, rcond=_RANK_TOLERANCE, hermitian=True))
    coefficients = inverse @ moment / n
    error, moments = np.empty(n), SquaredSums(width - levels, nuisances.clusters)
    for rows in row_blocks(n, width):
        regressors = terms(rows)
        residual[rows] -= regressors @ coefficients
        leverage = weights[rows] * np.sum((regressors @ inverse) * regressors, axis=1) / n
        error[rows] = residual[rows] / np.sqrt(np.maximum(1 - leverage, _LEAST_FREEDOM))
        moments.add(rows, weights[rows] * error[rows], regressors[:, levels:])
    return LinearTerms(
        columns=z,
        center=center,
        scale=scale,
        common=common,
        by_arm=by_arm,
        levels=levels,
        received=nuisances.treatment,
        counted=counted,
        weights=weights,
        coefficients=coefficients,
        inverse=inverse,
        residual=residual,
        error=error,
        ridge=nuisances.ridge,
        noise=moments.total() / information if information > 0 else 0.0,
    )


def _inverse_propensities(nuisances: Nuisances, clip: Clip) -> FloatArray:
    """Weights w_i / p̂_A(x_i), shape (n,)."""
    counted, weights = nuisances.unit_weights, np.empty(nuisances.n)
    for rows in row_blocks(nuisances.n):
        clipped = clip_propensity(nuisances.propensity[rows], clip).values
        received = np.equal(nuisances.treatment[rows, None], np.arange(nuisances.n_levels))
        weights[rows] = over_probability(received, counted[rows, None], clipped).sum(axis=1)
    return weights


class _Some:
    """Some columns of others, read in blocks of rows as they are."""

    def __init__(self, columns: Columns, which: IntArray) -> None:
        self._columns, self._which = columns, which

    @property
    def shape(self) -> tuple[int, ...]:
        return self._columns.shape[0], len(self._which)

    def __getitem__(self, rows: slice, /) -> FloatArray:
        return np.asarray(self._columns[rows][:, self._which], dtype=np.float64)


def _affordable(nuisances: Nuisances, weights: FloatArray) -> tuple[Columns, IntArray]:
    """Columns that have slopes, and which of these have slopes by arm.

    All columns if there are rows enough, else those that a model found, if these are few enough.
    """
    columns = nuisances.linear
    assert columns is not None
    levels, found = nuisances.n_levels, nuisances.found
    sizes = [effective_size(weights[nuisances.treatment == a]) for a in range(levels)]
    sizes = [size for size in sizes if size > 0]  # a comparison of two arms leaves out the others
    room = int(effective_size(weights) / ROWS_PER_SLOPE) - levels
    which: IntArray = np.arange(columns.shape[1])
    if len(which) > room:
        which = found if len(found) <= room else found[:0]
    by_arm = np.flatnonzero(np.isin(which, found))
    enough = len(by_arm) <= min(sizes) / ROWS_PER_ARM_SLOPE
    if not enough or len(which) + (levels - 1) * len(by_arm) > room:
        by_arm = by_arm[:0]
    return (columns if len(which) == columns.shape[1] else _Some(columns, which)), by_arm


def effective_size(weights: FloatArray) -> float:
    """Number of equally weighted units that a mean with these weights is worth (Kish)."""
    total = float(weights.sum())
    return total**2 / float(weights @ weights) if total > 0 else 0.0


def _regressors(
    z: FloatArray, codes: IntArray, levels: int, common: IntArray, by_arm: IntArray
) -> FloatArray:
    """Arms, common terms, and terms by arm of m units, shape (m, width).

    No arm is a reference for the others: a ridge treats them alike.
    """
    arms = np.equal(codes[:, None], np.arange(levels))
    own = [arms[:, [a]] * z[:, by_arm] for a in range(levels)]
    return np.column_stack([arms, z[:, common], *own])


def _units(z: Columns, counted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and spreads of columns (n, k) with weights of mean one; a constant has the spread 1."""
    n, blocks = len(counted), list(row_blocks(*z.shape))
    center = np.asarray(sum(counted[rows] @ z[rows] for rows in blocks) / n)
    spread = np.sqrt(sum(counted[rows] @ (z[rows] - center) ** 2 for rows in blocks) / n)
    varies = spread > _ROUNDING * np.abs(center)
    return center, np.asarray(np.where(varies, spread, 1.0))
