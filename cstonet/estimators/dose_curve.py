"""The dose-response curve θ(a) = E μ(a, X): doubly robust, local linear (Kennedy et al. 2017).

With the plug-in curve μ̄(a) = E_n μ̂(a, x_i) and the stabilised weights w_i = f̄(A_i)/f̂(A_i | x_i),
which make dose and covariates independent,

    θ(a) = μ̄(a) + E[w (y - μ̂(A, x)) | A = a] / E[w | A = a]

if either μ̂ or f̂ is right. The second part is a local linear regression of the residuals on the
dose in which every unit counts w_i times its kernel. Only what the plug-in curve gets wrong is
smoothed, not the curve itself. Where the outcome model is good there is hardly anything to smooth
away, so that the bandwidth that is best for the curve need not be made smaller for intervals to be
centred.

At the ends of the curve a few units with large weights decide. Their squared residuals are all that
the influence function has to tell a variance from: few, and too small because the line bends toward
these very units. So the variance is the larger of two. One is that of the influence function with
residuals over √(1 - leverage), which have the variance of the errors; it is right on average
whatever that variance depends on. The other takes the weights as given and one variance for the
residuals of all units near the dose, which many units tell: it is hardly random. Where units are in
clusters, residuals are summed over clusters in the first of them.

Standard errors follow the rule of :mod:`cstonet.estimators.repetitions`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.clusters import cluster_freedom, mean_square
from cstonet.estimators.dose_nuisances import DoseNuisances, stabilised_weights
from cstonet.estimators.nuisances import FloatArray, IntArray, mean_one
from cstonet.estimators.repetitions import variance_over_repetitions

# Candidate bandwidths, in units of sd(A) n^(-1/5), up to one standard deviation of the dose.
_CANDIDATES = 0.5 * 2.0 ** (np.arange(17) / 4)
# Share of the units beyond either end of the doses that a curve is estimated for.
TRIM = 0.025
# Below this many units a line and the spread around it are not estimated but copied.
FEWEST = 3.0
# Bins of the dose on which bandwidths are compared.
_BINS = 401
# Least 1 - leverage of a unit: without those of more leverage a line would extrapolate.
_LEAST_LEFT = 0.1


@dataclass(frozen=True, slots=True)
class DoseCurve:
    """An estimated dose-response curve.

    Parameters
    ----------
    doses : (k,) float64
        Where it was estimated.
    estimates : (k,) float64
        θ̂(a).
    influence : (n, k) float64
        Influence values of the estimates: how they vary together.
    variance : (k,) float64
        Variances of the estimates.
    effective : (k,) float64
        Units near each dose, by kernel and row weights alone: the squared sum of these divided by
        the sum of their squares. The weights f̄(A)/f̂(A | x) do not enter, so that the estimate may
        rest on fewer.
    bandwidth : float
        Standard deviation of the gaussian kernel.
    n_bounded : int
        Units whose density was raised to the bound.
    clusters : (n,) int or None
        Codes of the clusters that units belong to.
    freedom : (k,) float64 or None
        Degrees of freedom, where few clusters decide; None: estimates are taken for normal.
    """

    doses: FloatArray
    estimates: FloatArray
    influence: FloatArray
    variance: FloatArray
    effective: FloatArray
    bandwidth: float
    n_bounded: int
    clusters: IntArray | None = None
    freedom: FloatArray | None = None

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the estimates, shape (k,); NaN where too few units decide."""
        return np.where(self.effective >= FEWEST, np.sqrt(self.variance), np.nan)

    def over_repetitions(self, singles: Sequence[DoseCurve]) -> DoseCurve:
        """The same estimates, with the errors of a single repetition of the cross-fitting.

        Parameters
        ----------
        singles : sequence of DoseCurve
            Curves from each repetition by itself, at the same doses.
        """
        variance = variance_over_repetitions(
            self.estimates, [(single.estimates, single.variance) for single in singles]
        )
        return dataclasses.replace(self, variance=variance)


def dose_support(nuisances: DoseNuisances, trim: float) -> tuple[float, float]:
    """Doses between which the curve is estimated: `trim` of the units lie beyond either end."""
    counted = np.flatnonzero(nuisances.unit_weights > 0)
    order = counted[np.argsort(nuisances.dose[counted], kind="stable")]
    share = np.cumsum(nuisances.unit_weights[order]) / nuisances.n
    sorted_dose = nuisances.dose[order]
    low = sorted_dose[np.searchsorted(share, trim, side="left")]
    high = sorted_dose[min(int(np.searchsorted(share, 1 - trim, side="left")), len(order) - 1)]
    return float(low), float(high)


def estimate_curve(
    nuisances: DoseNuisances,
    doses: FloatArray,
    *,
    support: tuple[float, float],
    clip: float,
    bandwidth: float | None = None,
) -> DoseCurve:
    """Estimate the dose-response curve.

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and (out-of-fold) nuisances of n units.
    doses : (k,) float64
        Where to estimate it, within the range of the data.
    support : (float, float)
        Doses between which the curve is wanted, and the bandwidth judged.
    clip : float
        Bound of the densities, see `stabilised_weights`.
    bandwidth : float, optional
        By default chosen by leave-one-out cross-validation.
    """
    stabilised = stabilised_weights(nuisances, clip)
    residual, weights = nuisances.y - nuisances.mu, nuisances.unit_weights
    if bandwidth is None:
        balanced = mean_one(weights * stabilised.values, nuisances.n)
        response = residual + nuisances.average_mu(nuisances.dose)
        inside = (nuisances.dose >= support[0]) & (nuisances.dose <= support[1])
        bandwidth = cross_validated_bandwidth(nuisances.dose, response, balanced, inside)
    plug_in = nuisances.mu_at(doses)
    average = weights @ plug_in / nuisances.n
    estimates, variance, effective, freedom = (np.empty(len(doses)) for _ in range(4))
    clusters = nuisances.clusters
    # The average over the units is one part of the estimate, the local regression the other.
    influence: FloatArray = weights[:, None] * (plug_in - average)
    for k, dose in enumerate(doses):
        t = (nuisances.dose - dose) / bandwidth
        kernel = _kernel(t, weights)
        line = _local_line(t, residual, kernel * stabilised.values)
        own = mean_square(influence[:, k] + nuisances.n * line.shares * line.inflated, clusters)
        near = kernel @ line.residual**2 / kernel.sum()
        given_weights = np.mean(influence[:, k] ** 2) + nuisances.n * near * np.sum(line.shares**2)
        variance[k] = max(float(own), float(given_weights)) / nuisances.n
        estimates[k] = average[k] + line.value
        influence[:, k] += nuisances.n * line.shares * line.residual
        effective[k] = kernel.sum() ** 2 / np.sum(kernel**2)
        few = cluster_freedom(line.shares[:, None], clusters)
        freedom[k] = np.inf if few is None else few[0]
    return DoseCurve(
        doses=doses,
        estimates=estimates,
        influence=influence,
        variance=variance,
        effective=effective,
        bandwidth=bandwidth,
        n_bounded=stabilised.n_bounded,
        clusters=clusters,
        freedom=freedom if np.isfinite(freedom).any() else None,
    )


def _kernel(t: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights (n,) of units at distances t, in bandwidths, from a dose."""
    # Relative to the nearest unit, so that the kernel does not vanish between far doses. One of
    # weight zero may be nearer still.
    nearest = np.min(t[weights > 0] ** 2)
    values: FloatArray = weights * np.exp(0.5 * np.minimum(nearest - t**2, 0.0))
    return values


@dataclass(frozen=True, slots=True)
class _LocalLine:
    """A weighted line at a dose.

    Parameters
    ----------
    value : float
        Its value there: the sum of shares times responses.
    shares : (n,) float64
        What a response counts for.
    residual, inflated : (n,) float64
        Responses minus this line, and these over √(1 - leverage).
    """

    value: float
    shares: FloatArray
    residual: FloatArray
    inflated: FloatArray


def _local_line(t: FloatArray, response: FloatArray, weights: FloatArray) -> _LocalLine:
    """The line through responses (n,) with these weights (n,), at distance t = 0."""
    s0, s1, s2 = weights.sum(), weights @ t, weights @ t**2
    determinant = s0 * s2 - s1**2
    if not determinant > 1e-10 * s0 * max(float(s2), np.finfo(float).tiny):
        # All units within reach have one dose: their mean is what a line through it would give.
        shares = leverage = weights / s0
        slope = 0.0
    else:
        shares = weights * (s2 - s1 * t) / determinant
        leverage = weights * (s2 - 2 * s1 * t + s0 * t**2) / determinant
        slope = float(weights @ ((s0 * t - s1) * response) / determinant)
    value = float(shares @ response)
    residual = response - value - slope * t
    inflated = residual / np.sqrt(np.maximum(1 - leverage, _LEAST_LEFT))
    return _LocalLine(value, shares, residual, inflated)


def cross_validated_bandwidth(
    dose: FloatArray, response: FloatArray, weights: FloatArray, judged: NDArray[np.bool_]
) -> float:
    """Bandwidth with the smallest leave-one-out error of a local linear regression.

    Doses are put into bins, their weight shared between the two nearest bin centres, so that the
    cost does not grow with the square of n.

    Parameters
    ----------
    dose, response, weights : (n,) float64
        The data and their weights, of mean one.
    judged : (n,) bool
        Units whose errors count: in the tails few units with large weights would decide.
    """
    n = len(dose)
    mean = np.mean(weights * dose)
    spread = float(np.sqrt(np.mean(weights * (dose - mean) ** 2)))
    counted = dose[weights > 0]
    centres = np.linspace(counted.min(), counted.max(), _BINS)
    dose = np.clip(dose, centres[0], centres[-1])  # units of weight zero do not count
    position = (dose - centres[0]) / (centres[1] - centres[0])
    left = np.clip(position.astype(np.int64), 0, _BINS - 2)
    share = position - left
    mass, total = np.zeros(_BINS), np.zeros(_BINS)
    for at, part in ((left, weights * (1 - share)), (left + 1, weights * share)):
        mass += np.bincount(at, part, _BINS)
        total += np.bincount(at, part * response, _BINS)
    distance = centres[None, :] - centres[:, None]
    # Not below two bins, where binning would decide; not above one standard deviation, beyond
    # which the line is hardly local.
    least = 2 * (centres[1] - centres[0])
    candidates = np.unique(np.clip(_CANDIDATES * spread * n**-0.2, least, max(spread, least)))
    errors = []
    for bandwidth in candidates:
        t = distance / bandwidth
        kernel = np.exp(-0.5 * t**2)
        s0, s1, s2 = kernel @ mass, (kernel * t) @ mass, (kernel * t**2) @ mass
        r0, r1 = kernel @ total, (kernel * t) @ total
        determinant = np.maximum(s0 * s2 - s1**2, 1e-10 * s0 * s2 + np.finfo(float).tiny)
        fitted = np.interp(dose, centres, (s2 * r0 - s1 * r1) / determinant)
        # What a unit's own outcome contributes to its fitted value.
        own = weights * np.interp(dose, centres, s2 / determinant)
        left_out = (response - fitted) / np.maximum(1 - own, _LEAST_LEFT)
        errors.append(float(np.mean((weights * left_out**2)[judged])))
    return float(candidates[int(np.argmin(errors))])
