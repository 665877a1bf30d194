"""Scores of simple effects, off the directions that a fitted model has absorbed.

A model that was fitted has taken out of its residuals r whatever its own directions T explain:
constants, its covariates, the treatment, products of these. A covariate outside scores
Σ r f with f = d x, and what it shares with T cannot show: the sum is Σ r f̃, where f̃ = f - Tγ is
what T does not explain, γ = (T'WT)⁻¹ T'W f, W the information that a row has about the predictor.
Divided by the spread of all of f, such a score is too small; and where the model has not taken in
all that it could, since it shrinks or has not converged, every relative of its covariates scores
that. Rao's test has neither fault:

    z = Σ r f̃ / sqrt(Σ r² f̃²),

the sums of which follow from those of the products of r, r² and W with T and f. T is linear in
the covariates of the model, alone and times each direction of simple effects. A network is not; but
what another covariate shares with T is then gone from its score, whatever the network made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.network.covariates import FoldCovariates
from cstonet.network.products import Kind, Products

# Directions of a model are at most this share of the rows: more would explain noise.
_MOST_OF_ROWS = 0.1
# A feature of which less than this share of its spread is left says nothing of its own; sums are
# of single precision within blocks of rows.
_NOTHING_LEFT = 1e-4
# Directions whose share of what the others leave is less than this are among these already.
_DEPENDENT = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class OwnDirections:
    """What the predictor of a fitted model depends on.

    Attributes
    ----------
    information : (m,) float64
        Expected information of every row about the predictor: the variance that the model
        expects of the residual, up to a common factor.
    inside : tuple of int
        Covariates of the model.
    received : (m, L-1) float32, optional
        The treatment, if the model depends on it.
    """

    information: NDArray[np.float64]
    inside: tuple[int, ...] = ()
    received: NDArray[np.float32] | None = None


def projected_scores(
    covariates: FoldCovariates,
    some: NDArray[np.int64],
    residual: NDArray[np.float64],
    directions: NDArray[np.float32],
    own: OwnDirections,
) -> NDArray[np.float64]:
    """Scores z of x in the directions of simple effects, off those of the model; shape (q, e).

    Parameters
    ----------
    covariates
        On the m rows.
    some : (q,)
        Which are scored.
    residual : (m,)
        Of the predictor.
    directions : (m, e)
        Those of simple effects, 1 first.
    own
        The model's.
    """
    sums = _Sums(covariates, some, residual, directions, own)
    information, spread = (sums.moments(k) for k in range(2))
    left = sums.totals()
    z = np.zeros((len(some), directions.shape[1]))
    for d in range(directions.shape[1]):
        shared, shared_squares = (sums.shared(k, d) for k in range(2))
        slopes = _solve(information, shared)  # γ of every feature, (K, q)
        whole, squares = sums.features(d)
        top = whole - left @ slopes
        bottom = squares - 2 * np.sum(slopes * shared_squares, axis=0)
        bottom += np.sum(slopes * (spread @ slopes), axis=0)
        says = bottom > _NOTHING_LEFT * squares
        z[says, d] = top[says] / np.sqrt(bottom[says])
    return z


class _Sums:
    """Sums over the rows that scores off a model's directions are made of.

    T, K columns, is each of e directions times each of C factors: one, the covariates inside, the
    treatment. A sum with two columns has two directions, so that pairs of these are what its
    numbers of the rows are: times W, the information, or times r².
    """

    def __init__(
        self,
        covariates: FoldCovariates,
        some: NDArray[np.int64],
        residual: NDArray[np.float64],
        directions: NDArray[np.float32],
        own: OwnDirections,
    ) -> None:
        rows, self._width = directions.shape
        none = np.empty((rows, 0), dtype=np.float32)
        given = none if own.received is None else own.received
        most = int(_MOST_OF_ROWS * rows / self._width) - 1 - given.shape[1]
        inside = np.array(own.inside[: max(most, 0)], dtype=np.int64)
        self._inside = len(inside)
        self._pairs = [(a, b) for a in range(self._width) for b in range(a, self._width)]
        # Of every row: W and r² times each pair, r times each direction.
        numbers = np.empty((rows, 2 * len(self._pairs) + self._width), dtype=np.float32)
        # Of these times each two of the factors that are no covariates, sums over the rows.
        self._plain = np.empty((1 + given.shape[1], 1 + given.shape[1], numbers.shape[1]))
        alone = [*directions.T]
        both = [directions[:, a] * directions[:, b] for a, b in self._pairs]
        scales = [own.information] * len(both) + [residual**2] * len(both) + [residual] * len(alone)
        for k, (scale, direction) in enumerate(zip(scales, both + both + alone, strict=True)):
            column = scale * direction
            numbers[:, k] = column
            self._plain[:, :, k] = _sums_with(column, given)
        kinds = [(Kind.ONE, 0), *((Kind.MEMBER, int(j)) for j in inside)]
        kinds += [(Kind.GIVEN, k) for k in range(given.shape[1])]
        table = [(k, *kind) for k in range(2 * len(self._pairs)) for kind in kinds]
        table += [(2 * len(self._pairs) + d, Kind.ONE, 0) for d in range(self._width)]
        products = Products(
            residuals=numbers,
            given=given,
            treatment=none,
            network=None,
            table=np.array(table, dtype=np.int64),
            scale=np.ones(len(table), dtype=np.float32),
        )
        self._places = [0, *range(1 + len(inside), len(kinds))]
        # With the covariates inside, then with those that are scored: (2, s + q, columns).
        sums = covariates.sums(products, np.concatenate([inside, some]))
        self._scored = sums[:, :, -self._width :]
        self._crossed = sums[0, :, : -self._width].reshape(
            len(sums[0]), 2, len(self._pairs), len(kinds)
        )

    def features(self, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Σ r f and Σ r² f² of the features f = d x of a direction, (q,) each."""
        return self._scored[0, self._inside :, d], self._scored[1, self._inside :, d]

    def shared(self, kind: int, d: int) -> NDArray[np.float64]:
        """Σ W T f, or Σ r² T f, of the features of a direction: (K, q)."""
        pairs = [self._pairs.index((min(a, d), max(a, d))) for a in range(self._width)]
        crossed = self._crossed[self._inside :, kind, pairs]
        return crossed.reshape(len(crossed), -1).T

    def moments(self, kind: int) -> NDArray[np.float64]:
        """Σ W T T', or Σ r² T T', (K, K)."""
        factors = self._crossed.shape[-1]
        moments = np.empty((self._width, factors, self._width, factors))
        for k, (a, b) in enumerate(self._pairs):
            crossed = self._crossed[: self._inside, kind, k]
            block = np.empty((factors, factors))
            block[1 : 1 + self._inside], block[:, 1 : 1 + self._inside] = crossed, crossed.T
            plain = self._plain[:, :, kind * len(self._pairs) + k]
            block[np.ix_(self._places, self._places)] = plain
            moments[a, :, b] = moments[b, :, a] = block
        return moments.reshape(self._width * factors, -1)

    def totals(self) -> NDArray[np.float64]:
        """Σ r T, (K,)."""
        totals = np.empty((self._width, self._crossed.shape[-1]))
        totals[:, 1 : 1 + self._inside] = self._scored[0, : self._inside].T
        totals[:, self._places] = self._plain[0, :, -self._width :].T
        return totals.ravel()


def _sums_with(column: NDArray[np.float64], given: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sums of a column (m,) times each two of one and the given columns, (1 + g, 1 + g)."""
    sums = np.empty((1 + given.shape[1], 1 + given.shape[1]))
    sums[0, 0] = column.sum()
    for i, one in enumerate(given.T, 1):
        scaled = column * one
        sums[0, i] = sums[i, 0] = scaled.sum()
        for j, other in enumerate(given.T[i - 1 :], i):
            sums[i, j] = sums[j, i] = (scaled * other).sum()
    return sums


def _solve(moments: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares with moments (K, K) that may be dependent, of right sides (K, q)."""
    size = np.sqrt(np.diag(moments))
    inverse = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
    scaled = moments * np.outer(inverse, inverse)
    solved: NDArray[np.float64] = np.linalg.lstsq(
        scaled, inverse[:, None] * right, rcond=_DEPENDENT
    )[0]
    return inverse[:, None] * solved
