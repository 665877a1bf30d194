"""The dose-response curve θ(a) = E μ(a, X): doubly robust, local linear (Kennedy et al. 2017).

With the stabilised weights w_i = f̄(A_i)/f̂(A_i | x_i) and the plug-in curve μ̄(a) = E_n μ̂(a, x_i),
the pseudo-outcome

    ξ_i = w_i (y_i - μ̂(A_i, x_i)) + μ̄(A_i)

has mean θ(a) given A_i = a if either μ̂ or f̂ is right. A local linear regression on the dose gives
the curve. Only ξ - μ̄(A) is smoothed and μ̄ is added where the curve is wanted: the regression then
has to follow the error of the plug-in curve, not the curve itself. Where the outcome model is good
there is hardly anything to smooth away, so that the bandwidth that is best for ξ need not be made
smaller for intervals to be centred.

Standard errors follow the rule of :mod:`cstonet.estimators.repetitions`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.dose_nuisances import DoseNuisances, stabilised_weights
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.repetitions import variance_over_repetitions

# Candidate bandwidths, in units of sd(A) n^(-1/5), up to one standard deviation of the dose.
_CANDIDATES = 0.5 * 2.0 ** (np.arange(17) / 4)
# Share of the units beyond either end of the doses that a curve is estimated for.
TRIM = 0.025
# Below this many units a line and the spread around it are not estimated but copied.
FEWEST = 3.0
# Bins of the dose on which bandwidths are compared.
_BINS = 401


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
        Influence values of the estimates.
    effective : (k,) float64
        Units near each dose, by kernel and row weights alone: the squared sum of these divided by
        the sum of their squares. The weights f̄(A)/f̂(A | x) do not enter, so that the estimate may
        rest on fewer.
    bandwidth : float
        Standard deviation of the gaussian kernel.
    n_bounded : int
        Units whose density was raised to the bound.
    """

    doses: FloatArray
    estimates: FloatArray
    influence: FloatArray
    effective: FloatArray
    bandwidth: float
    n_bounded: int

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the estimates, shape (k,); NaN where too few units decide."""
        return np.where(self.effective >= FEWEST, np.sqrt(self._variance), np.nan)

    @property
    def _variance(self) -> FloatArray:
        variance: FloatArray = np.mean(self.influence**2, axis=0) / len(self.influence)
        return variance

    def over_repetitions(self, singles: Sequence[DoseCurve]) -> DoseCurve:
        """The same estimates, with the errors of a single repetition of the cross-fitting.

        Parameters
        ----------
        singles : sequence of DoseCurve
            Curves from each repetition by itself, at the same doses.
        """
        variance = variance_over_repetitions(
            self.estimates, [(single.estimates, single._variance) for single in singles]
        )
        own = np.maximum(self._variance, np.finfo(float).tiny)
        return dataclasses.replace(self, influence=self.influence * np.sqrt(variance / own))


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
        By default chosen by leave-one-out cross-validation of the pseudo-outcomes.
    """
    stabilised = stabilised_weights(nuisances, clip)
    correction = stabilised.values * (nuisances.y - nuisances.mu)
    weights = nuisances.unit_weights
    if bandwidth is None:
        pseudo = correction + nuisances.average_mu(nuisances.dose)
        inside = (nuisances.dose >= support[0]) & (nuisances.dose <= support[1])
        bandwidth = cross_validated_bandwidth(nuisances.dose, pseudo, weights, inside)
    plug_in = nuisances.mu_at(doses)
    average = weights @ plug_in / nuisances.n
    estimates, effective = np.empty(len(doses)), np.empty(len(doses))
    # The average over the units is one part of the estimate, the local regression the other.
    influence: FloatArray = weights[:, None] * (plug_in - average)
    for k, dose in enumerate(doses):
        t = (nuisances.dose - dose) / bandwidth
        kernel = _kernel(t, weights)
        value, own = _local_linear(t, correction, kernel)
        estimates[k] = average[k] + value
        influence[:, k] += own
        effective[k] = kernel.sum() ** 2 / np.sum(kernel**2)
    return DoseCurve(doses, estimates, influence, effective, bandwidth, stabilised.n_bounded)


def _kernel(t: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights (n,) of units at distances t, in bandwidths, from a dose."""
    # Relative to the nearest unit, so that the kernel does not vanish between far doses. One of
    # weight zero may be nearer still.
    nearest = np.min(t[weights > 0] ** 2)
    values: FloatArray = weights * np.exp(0.5 * np.minimum(nearest - t**2, 0.0))
    return values


def _local_linear(
    t: FloatArray, response: FloatArray, kernel: FloatArray
) -> tuple[float, FloatArray]:
    """Intercept of a kernel-weighted line at distance t = 0, and its influence values (n,)."""
    s0, s1, s2 = kernel.sum(), kernel @ t, kernel @ t**2
    determinant = s0 * s2 - s1**2
    if not determinant > 1e-10 * s0 * max(float(s2), np.finfo(float).tiny):
        # All units within reach have one dose: their mean is what a line through it would give.
        value = float(kernel @ response / s0)
        return value, len(t) * kernel * (response - value) / s0
    r0, r1 = kernel @ response, kernel @ (t * response)
    intercept, slope = (s2 * r0 - s1 * r1) / determinant, (s0 * r1 - s1 * r0) / determinant
    residual = response - intercept - slope * t
    # e1' D^-1 g_i K_i (residual_i), scaled so that the mean of squares is n times the variance.
    influence = len(t) * kernel * (s2 - s1 * t) / determinant * residual
    return float(intercept), influence


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
        left_out = (response - fitted) / np.maximum(1 - own, 0.1)
        errors.append(float(np.mean((weights * left_out**2)[judged])))
    return float(candidates[int(np.argmin(errors))])
