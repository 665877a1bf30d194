"""Critical values that several estimates share, so that all their intervals hold together."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtrit

from cstonet.estimators.clusters import cluster_sums
from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.streams import Stream

# Draws of the multiplier bootstrap: a 95 % critical value near 2.3 then has an error of 0.01.
_DRAWS = 20_000


def largest_quantile_by_influence(
    influence: FloatArray,
    alpha: float,
    seed: int,
    clusters: IntArray | None = None,
    freedom: float | None = None,
) -> float:
    """Quantile 1 - alpha of the largest |z|, or |t|, among k estimates, by a multiplier bootstrap.

    The bootstrap draws Σ_i ξ_i IF_i / n with standard normal ξ_i, one for each unit or cluster.
    Given the data that is a normal vector with the covariance of the influence values, from which
    it is drawn directly. The estimates may be more than the units.

    Parameters
    ----------
    influence : (n, k) float64
        Influence values of the estimates.
    alpha : float
        One minus the joint level.
    seed : int
        Seed of the draws.
    clusters : (n,) int, optional
        Codes of the clusters that units belong to.
    freedom : float, optional
        Degrees of freedom, where clusters are few.
    """
    if influence.shape[1] <= 1:
        return _single(alpha, freedom)
    influence = cluster_sums(influence, clusters)
    scale = np.sqrt(np.mean(influence**2, axis=0))
    studentised = influence / np.where(scale > 0, scale, 1.0)
    # A square root of the correlations that allows them to be singular.
    root = np.asarray(np.linalg.qr(studentised / np.sqrt(len(influence)), mode="r"))
    return _drawn(root, alpha, seed, freedom)


def largest_quantile(
    covariance: FloatArray, freedom: FloatArray | None, alpha: float, seed: int
) -> float:
    """Quantile 1 - alpha of the largest |z|, or |t|, among k estimates with a covariance.

    Where they have degrees of freedom they are drawn as multivariate t, with the fewest of them.

    Parameters
    ----------
    covariance : (k, k) float64
        Covariance of the estimates.
    freedom : (k,) float64 or None
        Their degrees of freedom; None if they are taken for normal.
    alpha : float
        One minus the joint level.
    seed : int
        Seed of the draws.
    """
    least = None if freedom is None else float(freedom.min())
    if len(covariance) <= 1:
        return _single(alpha, least)
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return _drawn(root.T, alpha, seed, least)


def _single(alpha: float, freedom: float | None) -> float:
    """Quantile 1 - alpha of one |z|, or |t|."""
    return float(-ndtri(alpha / 2) if freedom is None else -stdtrit(freedom, alpha / 2))


def _drawn(root: FloatArray, alpha: float, seed: int, freedom: float | None) -> float:
    """Quantile 1 - alpha of the largest |z|, or |t|, whose correlations are root' root."""
    rng = Stream.MULTIPLIERS.generator(seed)
    largest = np.abs(rng.standard_normal((_DRAWS, len(root))) @ root).max(axis=1)
    if freedom is not None and math.isfinite(freedom):
        largest /= np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
    return float(np.quantile(largest, 1 - alpha))
