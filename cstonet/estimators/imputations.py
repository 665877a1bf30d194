"""Effects from several imputations: Rubin's rules around the influence function's variance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import cluster_count
from cstonet.estimators.nuisances import FloatArray, IntArray, Nuisances


@dataclass(frozen=True, slots=True, eq=False)
class Imputations:
    """Nuisances of the rows with gaps at each of M imputations.

    Attributes
    ----------
    rows : (g,)
        The rows with gaps.
    mu, propensity : (M, g, L)
        Their nuisances at each imputation.
    values : (e, M) float32
        The imputed entries, standardised, row by row.
    """

    rows: IntArray
    mu: FloatArray
    propensity: FloatArray
    values: NDArray[np.float32]

    @property
    def count(self) -> int:
        """Number M of imputations."""
        return len(self.mu)

    def averaged(self, nuisances: Nuisances) -> Nuisances:
        """Nuisances whose rows with gaps hold means over the imputations."""
        return self._replaced(nuisances, self.mu.mean(axis=0), self.propensity.mean(axis=0))

    def each(self, nuisances: Nuisances) -> Iterator[Nuisances]:
        """Nuisances at one imputation after the other."""
        for mu, propensity in zip(self.mu, self.propensity, strict=True):
            yield self._replaced(nuisances, mu, propensity)

    def _replaced(self, nuisances: Nuisances, mu: FloatArray, propensity: FloatArray) -> Nuisances:
        new_mu, new_propensity = nuisances.mu.copy(), nuisances.propensity.copy()
        new_mu[self.rows], new_propensity[self.rows] = mu, propensity
        return dataclasses.replace(nuisances, mu=new_mu, propensity=new_propensity)


def pooled_effects(
    estimate: Callable[[Nuisances], Effects], nuisances: Nuisances, imputations: Imputations
) -> Effects:
    """Estimate effects at every imputation and combine them.

    Parameters
    ----------
    estimate : callable
        The effects of complete nuisances.
    nuisances : Nuisances
        Those of all rows; the rows with gaps are replaced.
    imputations : Imputations
        M of them.

    Returns
    -------
    Effects
        Means of the estimates. Their covariance is W + (1 + 1/M) B, W being the mean of the
        covariances and B the covariance of the estimates over the imputations (Rubin's rules).
    """
    singles = [estimate(completed) for completed in imputations.each(nuisances)]
    estimates = np.stack([single.estimates for single in singles])
    within = np.mean([single.covariance for single in singles], axis=0)
    between = np.zeros_like(within)
    if len(singles) > 1:
        centred = estimates - estimates.mean(axis=0)
        between = centred.T @ centred / (len(singles) - 1)
    pooled = dataclasses.replace(
        singles[0],
        estimates=estimates.mean(axis=0),
        influence=np.mean([single.influence for single in singles], axis=0),
        n_clipped=round(float(np.mean([single.n_clipped for single in singles]))),
        between=(1 + 1 / len(singles)) * between,
        imputations=len(singles),
        n_counted=_counted(nuisances, singles),
    )
    return with_within(pooled, within)


def _counted(nuisances: Nuisances, singles: Sequence[Effects]) -> int:
    """Units, or clusters, that count; fewer where few decide: one more than the freedom then."""
    counts = nuisances.unit_weights > 0
    counted = int(np.count_nonzero(counts))
    if nuisances.clusters is not None:
        counted = cluster_count(nuisances.clusters[counts])
    fewest = [single.freedom.min() for single in singles if single.freedom is not None]
    return min(counted, int(min(fewest)) + 1) if fewest else counted


def with_within(effects: Effects, within: FloatArray) -> Effects:
    """Pooled effects with this covariance W within imputations, shape (k, k), and what follows."""
    assert effects.between is not None
    fraction, freedom = missing_information(
        np.diag(within), np.diag(effects.between), effects.imputations, effects.n_counted
    )
    return dataclasses.replace(
        effects,
        covariance=within + effects.between,
        missing_information=fraction,
        freedom=freedom,
    )


def missing_information(
    within: FloatArray, between: FloatArray, imputations: int, rows: int
) -> tuple[FloatArray, FloatArray]:
    """Fraction of missing information and degrees of freedom, each shape (k,).

    Parameters
    ----------
    within, between : (k,)
        Mean variance within the imputations, and (1 + 1/M) times the variance between them.
    imputations, rows
        M, and the number of rows that count.

    Returns
    -------
    fraction, freedom : (k,)
        Rubin's λ = (1 + 1/M) B / T; degrees of freedom by Barnard and Rubin.
    """
    total = within + between
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    complete = rows - 1.0
    large = np.divide(imputations - 1.0, share**2, out=np.full_like(share, np.inf), where=share > 0)
    observed = (complete + 1) / (complete + 3) * complete * (1 - share)
    freedom = 1 / (1 / large + 1 / np.maximum(observed, 1.0))
    return share, freedom


def contrast_freedom(effects: Effects, matrix: FloatArray) -> FloatArray | None:
    """Degrees of freedom of linear combinations of effects, shape (q,).

    Parameters
    ----------
    effects : Effects
        k effects.
    matrix : (q, k)
        The combinations, each with a variance above zero.

    Returns
    -------
    (q,), or None
        None where the estimates are taken for normal.
    """
    if effects.between is None:
        return _fewest(effects, matrix)
    total, between = (
        np.einsum("qk,kl,ql->q", matrix, part, matrix)
        for part in (effects.covariance, effects.between)
    )
    return _freedom(effects, between / total)


def joint_freedom(effects: Effects, matrix: FloatArray) -> float | None:
    """Degrees of freedom of several linear combinations of effects together.

    They are those of the combination of the rows that has the fewest, i.e. whose share of missing
    information is the largest. So they do not depend on how the hypotheses are written down, and
    err on the side of few.

    Parameters
    ----------
    effects : Effects
        k effects.
    matrix : (q, k)
        The combinations, linearly independent with a regular covariance.
    """
    if effects.between is None:
        fewest = _fewest(effects, matrix)
        return None if fewest is None else float(fewest.min())
    from scipy.linalg import eigh  # not at the top: only imputations pay for loading it

    total, between = (matrix @ part @ matrix.T for part in (effects.covariance, effects.between))
    scale = np.sqrt(np.outer(np.diag(total), np.diag(total)))
    shares = eigh(between / scale, total / scale, eigvals_only=True)
    return float(_freedom(effects, shares[-1:])[0])


def _fewest(effects: Effects, matrix: FloatArray) -> FloatArray | None:
    """The fewest degrees of freedom of the effects in every combination (q, k), shape (q,)."""
    if effects.freedom is None:
        return None
    fewest: FloatArray = np.where(matrix != 0, effects.freedom, np.inf).min(axis=1)
    return fewest


def _freedom(effects: Effects, share: FloatArray) -> FloatArray:
    """Degrees of freedom where this share of the variance comes from the imputations."""
    share = np.clip(share, 0.0, 1.0)
    return missing_information(1 - share, share, effects.imputations, effects.n_counted)[1]
