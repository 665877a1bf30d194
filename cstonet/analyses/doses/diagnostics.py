"""Can doses be compared? Overlap of the densities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.matrix import dense_part, parts
from cstonet.data.units import factor_of
from cstonet.estimators.dose_nuisances import DoseNuisances, stabilised_weights
from cstonet.estimators.linear_terms import effective_size
from cstonet.estimators.nuisances import FloatArray

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

# Groups of doses in the overlap table, of equal size.
_GROUPS = 5


def overlap(nuisances: DoseNuisances, *, clip: float) -> pd.DataFrame:
    """How much units count when weighted to make the dose independent of the covariates.

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and nuisances of n units.
    clip : float
        Bound of the densities.

    Returns
    -------
    DataFrame
        One row per fifth of the doses and one for all: `n`, `from` and `to` (doses), `median` and
        `max` of the stabilised weights f̄(A)/f̂(A | x), `effective` (the number of units that, if
        equally weighted, would give the same variance), `n_bounded`.
    """
    weights, bounded = counting(nuisances, clip=clip)
    order = np.argsort(nuisances.dose, kind="stable")
    groups = {str(k + 1): part for k, part in enumerate(np.array_split(order, _GROUPS))}
    groups["all"] = order
    rows = []
    for members in groups.values():
        own = weights[members] * nuisances.unit_weights[members]
        rows.append(
            {
                "n": len(members),
                "from": nuisances.dose[members].min(),
                "to": nuisances.dose[members].max(),
                "median": np.median(weights[members]),
                "max": weights[members].max(),
                "effective": effective_size(own),
                "n_bounded": int(bounded[members].sum()),
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(groups), name="fifth"))


def counting(nuisances: DoseNuisances, *, clip: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """By how much each unit counts at its dose, and whether its density was raised to the bound.

    Returns
    -------
    weights, bounded : (n,)
        Stabilised weights f̄(A)/f̂(A | x), and for whom f̂ is the bound.
    """
    weights = stabilised_weights(nuisances, clip).values
    bounded = nuisances.density() * weights < nuisances.average_density() * (1 - 1e-9)
    return weights, bounded


def balance(
    nuisances: DoseNuisances,
    X: Matrix,
    *,
    covariates: Sequence[str],
    clip: float,
) -> pd.DataFrame:
    """Correlation of every covariate with the dose, before and after weighting.

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and nuisances of n units.
    X : (n, p)
        Covariates.
    covariates : sequence of length p
        Their names.
    clip : float
        Bound of the densities behind the stabilised weights.

    Returns
    -------
    DataFrame
        Indexed by covariate; columns `correlation_before`, `correlation_after`. Zero for a
        constant covariate.
    """
    before = nuisances.unit_weights
    after = before * stabilised_weights(nuisances, clip).values
    table = _correlations(X, nuisances.dose, np.column_stack([before, after]))
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    return pd.DataFrame(table, index=index, columns=["correlation_before", "correlation_after"])


def _correlations(X: Matrix, dose: FloatArray, weights: FloatArray) -> FloatArray:
    """Correlations of the columns of X (n, p) with the dose under weights (n, k); shape (p, k)."""
    shares = weights / weights.sum(axis=0)
    doses = dose[:, None] - dose @ shares
    means, covariance, squares = (np.zeros((X.shape[1], shares.shape[1])) for _ in range(3))

    def shifted() -> Iterator[tuple[slice, slice, FloatArray]]:
        """Parts of X minus its first row, which makes a constant column zero."""
        for rows, columns in parts(X):
            first = dense_part(X, slice(1), columns)
            part = dense_part(X, rows, columns).astype(np.float64)
            yield rows, columns, part - first

    for rows, columns, part in shifted():
        means[columns] += part.T @ shares[rows]
    factor = factor_of(np.abs(means).max(axis=1))
    for rows, columns, part in shifted():
        for k, share in enumerate(shares.T):
            centred = (part - means[columns, k]) * factor[columns]
            covariance[columns, k] += (share[rows] * doses[rows, k]) @ centred
            squares[columns, k] += share[rows] @ centred**2
    scale = np.sqrt(squares * np.sum(shares * doses**2, axis=0))
    values: FloatArray = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
    return values
