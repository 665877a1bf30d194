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

from collections.abc import Sequence
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
    directions: NDArray[np.float64],
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
    rows, width = directions.shape
    given = np.empty((rows, 0), np.float32) if own.received is None else own.received
    most = int(_MOST_OF_ROWS * rows / width) - 1 - given.shape[1]
    inside = np.array(own.inside[: max(most, 0)], dtype=np.int64)
    # T: each direction times each factor. The sums of rows that T's moments and its products with
    # features are made of have two directions each.
    pairs = [(a, b) for a in range(width) for b in range(a, width)]
    both = np.column_stack([directions[:, a] * directions[:, b] for a, b in pairs])
    weights = own.information[:, None] * both
    squares = residual[:, None] ** 2 * both
    kinds = [(Kind.ONE, 0), *((Kind.MEMBER, int(j)) for j in inside)]
    kinds += [(Kind.GIVEN, k) for k in range(given.shape[1])]
    table = [(k, *kind) for k in range(2 * len(pairs)) for kind in kinds]
    table += [(2 * len(pairs) + k, Kind.ONE, 0) for k in range(width)]
    scored = residual[:, None] * directions
    products = Products(
        residuals=np.hstack([weights, squares, scored]).astype(np.float32),
        given=given,
        treatment=given[:, :0],
        network=None,
        table=np.array(table, dtype=np.int64),
        scale=np.ones(len(table), dtype=np.float32),
    )
    sums = covariates.sums(products, np.concatenate([inside, some]))
    crossed = sums[0, :, :-width].reshape(len(sums[0]), 2, len(pairs), len(kinds))
    alone = _Alone(len(inside), given, pairs)
    information, spread = (
        alone.moments(part, crossed[: len(inside), k]) for k, part in enumerate((weights, squares))
    )
    left = alone.totals(scored, sums[0, : len(inside), -width:])
    place = np.zeros((width, width), dtype=np.int64)
    for k, (a, b) in enumerate(pairs):
        place[a, b] = place[b, a] = k
    z = np.zeros((len(some), width))
    of_features = crossed[len(inside) :]
    for d in range(width):
        # Of T with the features d x, (K, q): by information, and by squared residuals.
        shared, shared_squares = (
            of_features[:, k, place[:, d]].reshape(len(some), -1).T for k in range(2)
        )
        slopes = _solve(information, shared)
        top = sums[0, len(inside) :, d - width] - left @ slopes
        whole = sums[1, len(inside) :, d - width]
        bottom = whole - 2 * np.sum(slopes * shared_squares, axis=0)
        bottom += np.sum(slopes * (spread @ slopes), axis=0)
        says = bottom > _NOTHING_LEFT * whole
        z[says, d] = top[says] / np.sqrt(bottom[says])
    return z


class _Alone:
    """Sums of products of a model's own directions, those with its covariates given.

    Factors of the directions are one, the covariates inside, and columns that are given.
    """

    def __init__(
        self, inside: int, given: NDArray[np.float32], pairs: Sequence[tuple[int, int]]
    ) -> None:
        self._inside = inside
        self._numbers = np.column_stack([np.ones(len(given)), given])
        self._pairs = pairs
        # Factors that are no covariates, among all.
        self._plain = [0, *range(1 + inside, 1 + inside + given.shape[1])]

    def moments(
        self, weights: NDArray[np.float64], crossed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Σ weight T T', (K, K), from Σ weight x_s c of all pairs and factors c (s, pairs, C)."""
        width, factors = self._pairs[-1][1] + 1, crossed.shape[2]
        moments = np.empty((width, factors, width, factors))
        for k, (a, b) in enumerate(self._pairs):
            block = np.empty((factors, factors))
            block[1 : 1 + self._inside] = crossed[:, k]
            block[:, 1 : 1 + self._inside] = crossed[:, k].T
            for i, row in enumerate(self._plain):
                for j, column in enumerate(self._plain):
                    product = self._numbers[:, i] * self._numbers[:, j]
                    block[row, column] = np.sum(weights[:, k] * product)
            moments[a, :, b] = moments[b, :, a] = block
        return moments.reshape(width * factors, width * factors)

    def totals(
        self, columns: NDArray[np.float64], crossed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Σ column c of every column and factor, (K,), those of covariates given, (s, width)."""
        totals = np.empty((columns.shape[1], 1 + self._inside + self._numbers.shape[1] - 1))
        totals[:, 1 : 1 + self._inside] = crossed.T
        for i, column in enumerate(self._plain):
            totals[:, column] = np.sum(columns * self._numbers[:, i : i + 1], axis=0)
        return totals.ravel()


def _solve(moments: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares with moments (K, K) that may be dependent, of right sides (K, q)."""
    size = np.sqrt(np.diag(moments))
    inverse = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
    scaled = moments * np.outer(inverse, inverse)
    solved: NDArray[np.float64] = np.linalg.lstsq(
        scaled, inverse[:, None] * right, rcond=_DEPENDENT
    )[0]
    return inverse[:, None] * solved
