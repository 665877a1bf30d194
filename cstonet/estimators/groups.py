"""Effects in several groups of units at once, with their joint covariance.

Each group's effect is that among its units alone, with weights and slopes of their own. Groups have
no unit in common, so their effects are independent, unless units of one cluster are in several: the
covariance is then that of the influence values, summed over clusters, in the proportions that the
groups' own variances have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import influence_covariance
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.targets import estimate_target


def estimate_groups(
    nuisances: Nuisances,
    groups: IntArray,
    contrast: tuple[int, int],
    *,
    clips: Sequence[Clip],
    names: Sequence[str],
) -> Effects:
    """Average effect of one level against another in each of G groups.

    Parameters
    ----------
    nuisances : Nuisances
        Data and (out-of-fold) nuisances of n units.
    groups : (n,) int
        Codes 0, …, G-1 of the groups, each of which has units in both arms; -1: in none.
    contrast : (b, a)
        Codes of the two levels.
    clips : sequence of length G
        Least propensities in each group, see `clip_propensity`.
    names : sequence of length G
        What to call the effects.

    Returns
    -------
    Effects
        G effects; influence values of a unit are zero but for its own group.
    """
    singles = []
    influence = np.zeros((nuisances.n, len(names)))
    for code, (name, clip) in enumerate(zip(names, clips, strict=True)):
        inside = groups == code
        single = estimate_target(nuisances.among(inside), "ATE", contrast, clip=clip, name=name)
        # Influence values are those of a mean over all units, whichever of them count.
        influence[inside, code] = single.influence[:, 0] * nuisances.n / inside.sum()
        singles.append(single)
    return Effects(
        names=tuple(names),
        n_contrasts=len(names),
        estimates=np.array([single.estimates[0] for single in singles]),
        covariance=_joint(influence, nuisances.clusters, singles),
        influence=influence,
        n_clipped=sum(single.n_clipped for single in singles),
        clip=clips[0],
        variance_kind="influence",
        freedom=_freedom(singles),
    )


def _joint(
    influence: FloatArray, clusters: IntArray | None, singles: Sequence[Effects]
) -> FloatArray:
    """Covariance (G, G) with the variances that the groups have by themselves."""
    own = np.array([single.covariance[0, 0] for single in singles])
    if clusters is None:
        return np.diag(own)
    rough = influence_covariance(influence, clusters)
    variances = np.diag(rough)
    ratio = np.divide(own, variances, out=np.zeros_like(own), where=variances > 0)
    scale = np.sqrt(np.maximum(ratio, 0.0))
    covariance: FloatArray = rough * np.outer(scale, scale)
    np.fill_diagonal(covariance, own)
    return covariance


def _freedom(singles: Sequence[Effects]) -> FloatArray | None:
    """Degrees of freedom of all groups, infinite where only others have few; None: none has."""
    if all(single.freedom is None for single in singles):
        return None
    return np.array([np.inf if one.freedom is None else one.freedom[0] for one in singles])
