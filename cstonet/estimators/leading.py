"""Estimands that lead the table, jointly with the effects below them.

The covariance of effects that come from different estimators is that of their influence values.
Each estimator's own covariance stays as it is, though it may be more than the second moment of
these (the plug-in of the paper, the cost of estimated slopes and of holding them): its influence
values are first mapped to others that have it. Of all linear maps with that property the symmetric
one moves them least, T = S^{-1/2} (S^{1/2} V S^{1/2})^{1/2} S^{-1/2} for second moment S and
covariance V. So the joint covariance has the estimators' own blocks, cross-products of influence
values beside them, and no negative eigenvalue; where V = S, the map is the identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import influence_covariance
from cstonet.estimators.nuisances import FloatArray, IntArray

# Below this share of the largest, an eigenvalue is the rounding error of a zero.
_ZERO = 1e-12


def led_by(
    leading: Sequence[Effects], effects: Effects, clusters: IntArray | None = None
) -> Effects:
    """Effects with others before them, and the joint covariance of all.

    Parameters
    ----------
    leading : sequence of Effects
        Contrasts of the same n units, from the same nuisances.
    effects : Effects
        What follows them: contrasts, then means.
    clusters : (n,) int, optional
        Codes of the clusters that units belong to.

    Returns
    -------
    Effects
        Clipping and kind of variance are those of `effects`.
    """
    parts = [*leading, effects]
    influence = np.concatenate([part.influence for part in parts], axis=1)
    mapped = np.concatenate([_with_covariance(part, clusters) for part in parts], axis=1)
    covariance = influence_covariance(mapped, clusters)
    end = 0
    for part in parts:
        own = slice(end, end + len(part.names))
        covariance[own, own], end = part.covariance, own.stop
    return dataclasses.replace(
        effects,
        names=tuple(name for part in parts for name in part.names),
        n_contrasts=sum(part.n_contrasts for part in parts),
        estimates=np.concatenate([part.estimates for part in parts]),
        covariance=covariance,
        influence=influence,
        freedom=_freedom(parts),
    )


def _freedom(parts: Sequence[Effects]) -> FloatArray | None:
    """Degrees of freedom of all effects, infinite where only others have any; None: none has."""
    if all(part.freedom is None for part in parts):
        return None
    many = [np.full(len(part.names), np.inf) for part in parts]
    own = zip(parts, many, strict=True)
    return np.concatenate([inf if part.freedom is None else part.freedom for part, inf in own])


def _with_covariance(effects: Effects, clusters: IntArray | None) -> FloatArray:
    """Influence values (n, k) moved as little as gives them the covariance of the estimates."""
    moment = influence_covariance(effects.influence, clusters)
    if np.array_equal(moment, effects.covariance):
        return effects.influence  # whatever the units of the effects, which may differ by far
    root, inverse = _roots(moment)
    middle, _ = _roots(root @ effects.covariance @ root)
    moved: FloatArray = effects.influence @ (inverse @ middle @ inverse)
    return moved


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Square root of a symmetric matrix (k, k) without negative eigenvalues, and its inverse.

    The inverse is that on the range: effects may be differences of others.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    there = values > _ZERO * max(float(values.max()), 0.0)
    roots = np.sqrt(np.where(there, values, 0.0))
    inverses = np.divide(1.0, roots, out=np.zeros_like(roots), where=there)
    return (vectors * roots) @ vectors.T, (vectors * inverses) @ vectors.T
