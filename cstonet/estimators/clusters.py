"""Units that belong together: sums over clusters, and what they make of a variance.

Units of one cluster (a village, a school, a person seen twice) may have anything in common; those
of different clusters are independent. The variance of a mean of influence values is then that of
their sums over clusters, with the small-sample factor G / (G - 1) for G clusters (Liang and Zeger
1986). Where clusters are few, estimates are compared with Student's t (`cluster_freedom`).
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.nuisances import FloatArray, IntArray

# Degrees of freedom from which on Student's t is as good as normal.
MANY_DEGREES = 100.0


def cluster_count(clusters: IntArray) -> int:
    """Number G of clusters, by codes 0, …, G-1 of the units (n,), some of which may be absent."""
    return len(np.unique(clusters))


def cluster_sums(values: FloatArray, clusters: IntArray | None) -> FloatArray:
    """Sums over the units of each cluster, shape (G, k); the values themselves without clusters.

    Parameters
    ----------
    values : (n, k) float64
        Values of the units, such as influence values.
    clusters : (n,) int or None
        Codes of the clusters.
    """
    if clusters is None:
        return values
    _, codes = np.unique(clusters, return_inverse=True)
    count = int(codes.max()) + 1
    columns = [np.bincount(codes, column, count) for column in values.T]
    return np.column_stack(columns) if columns else np.empty((count, 0))


def small_sample_factor(clusters: IntArray | None) -> float:
    """G / (G - 1) for G clusters; one where units are independent."""
    if clusters is None:
        return 1.0
    count = cluster_count(clusters)
    return count / max(count - 1, 1)


def influence_covariance(influence: FloatArray, clusters: IntArray | None = None) -> FloatArray:
    """Covariance (k, k) of estimates with these influence values (n, k): Σ_g s_g s_gᵀ c / n².

    Clusters that have no part in the estimates, because their units have weight zero or are in
    another group, do not count in c = G / (G - 1).
    """
    sums, factor = _sums_and_factor(influence, clusters)
    covariance: FloatArray = factor * (sums.T @ sums) / len(influence) ** 2
    return covariance


def mean_square(values: FloatArray, clusters: IntArray | None = None) -> FloatArray:
    """Variances of the means of these values, times n: c Σ_g s_g² / n, shape (k,) or ().

    Parameters
    ----------
    values : (n, k) or (n,) float64
        Values of the units that average to zero.
    clusters : (n,) int or None
        Codes of the clusters. Without them it is the mean of the squares.
    """
    if clusters is None:
        return np.asarray(np.mean(values**2, axis=0))
    sums, factor = _sums_and_factor(values.reshape(len(values), -1), clusters)
    squares = factor * np.sum(sums**2, axis=0) / len(values)
    return np.asarray(squares.reshape(values.shape[1:]))


def cluster_freedom(weights: FloatArray, clusters: IntArray | None) -> FloatArray | None:
    """Degrees of freedom of c estimates that rest on few clusters, shape (c,), at most G - 1.

    Where the errors of a cluster have one sign, its part of an estimate is its sum V_g of absolute
    weights times a common error, and the variance has (Σ V_g²)² / Σ V_g⁴ degrees of freedom
    (Satterthwaite), less one for a mean. Absolute weights, because the arms within a cluster must
    not cancel: it is one cluster still.

    Parameters
    ----------
    weights : (n, c) float64
        Weights of the units' errors in every estimate.
    clusters : (n,) int or None
        Codes of the clusters.

    Returns
    -------
    (c,) float64 or None
        None without clusters, or if all are many.
    """
    if clusters is None:
        return None
    squares = cluster_sums(np.abs(weights), clusters) ** 2
    return spread_freedom(squares.sum(axis=0), (squares**2).sum(axis=0))


def spread_freedom(squares: FloatArray, fourths: FloatArray) -> FloatArray | None:
    """(Σ v²)² / Σ v⁴ - 1 from these sums (c,), at least one; None if all are many."""
    spread = np.divide(squares**2, fourths, out=np.ones_like(squares), where=fourths > 0)
    freedom: FloatArray = np.maximum(spread - 1, 1.0)
    return None if freedom.min() >= MANY_DEGREES else freedom


def _sums_and_factor(influence: FloatArray, clusters: IntArray | None) -> tuple[FloatArray, float]:
    """Sums over clusters (G, k), and G / (G - 1) for those that have a part in the estimates."""
    if clusters is None:
        return influence, 1.0
    moving = (influence != 0).any(axis=1)
    return cluster_sums(influence, clusters), small_sample_factor(clusters[moving])


class SquaredSums:
    """Σ |v|² of vectors v of the units, added in blocks; with clusters c Σ_g |Σ v|².

    Parameters
    ----------
    length : int
        That of a vector.
    clusters : (n,) int or None
        Codes of the clusters.
    """

    def __init__(self, length: int, clusters: IntArray | None) -> None:
        self._squares, self._clusters = 0.0, clusters
        self._sums = np.zeros((0 if clusters is None else int(clusters.max()) + 1, length))

    def add(self, rows: slice, factors: FloatArray, vectors: FloatArray) -> None:
        """Add m units: v is a factor, of (m,), times a vector, of (m, length)."""
        if self._clusters is None:
            self._squares += float(factors**2 @ np.sum(vectors**2, axis=1))
        else:
            codes, count = self._clusters[rows], len(self._sums)
            for sums, column in zip(self._sums.T, vectors.T, strict=True):
                sums += np.bincount(codes, factors * column, count)

    def total(self) -> float:
        """The sum."""
        if self._clusters is None:
            return self._squares
        moving = np.flatnonzero(self._sums.any(axis=1))
        return small_sample_factor(moving) * float(np.sum(self._sums**2))
