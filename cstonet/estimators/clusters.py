"""Units that belong together: sums over clusters, and what they make of a variance.

Units of one cluster (a village, a school, a person seen twice) may have anything in common; those
of different clusters are independent. The variance of a mean of influence values is then that of
their sums over clusters, with the small-sample factor G / (G - 1) for G clusters.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.nuisances import FloatArray, IntArray


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
    """Covariance (k, k) of estimates with these influence values (n, k): Σ_g s_g s_gᵀ c / n²."""
    sums = cluster_sums(influence, clusters)
    covariance: FloatArray = small_sample_factor(clusters) * (sums.T @ sums) / len(influence) ** 2
    return covariance
