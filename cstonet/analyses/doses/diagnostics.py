"""Can doses be compared? Overlap of the densities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.estimators.dose_nuisances import DoseNuisances, stabilised_weights
from cstonet.estimators.nuisances import FloatArray

# Groups of doses in the overlap table, of equal size.
_GROUPS = 5
# Columns of X turned into float64 at a time: bounds the extra memory at high p.
_BLOCK = 1024


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
    weights = stabilised_weights(nuisances, clip).values
    bounded = nuisances.density() * weights < nuisances.average_density() * (1 - 1e-9)
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
                "effective": own.sum() ** 2 / (own**2).sum(),
                "n_bounded": int(bounded[members].sum()),
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(groups), name="fifth"))


def balance(
    nuisances: DoseNuisances,
    X: NDArray[np.floating],
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
    table = np.empty((len(covariates), 2))
    for start in range(0, len(covariates), _BLOCK):
        block = slice(start, start + _BLOCK)
        values = X[:, block].astype(np.float64)
        values -= values[0].copy()  # limits cancellation, and makes a constant column zero
        table[block] = np.column_stack(
            [_correlations(values, nuisances.dose, weights) for weights in (before, after)]
        )
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    return pd.DataFrame(table, index=index, columns=["correlation_before", "correlation_after"])


def _correlations(X: FloatArray, dose: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted correlations of the columns of X with the dose, shape (columns,)."""
    share = weights / weights.sum()
    centred, dose = X - share @ X, dose - share @ dose
    covariance = (share * dose) @ centred
    scale = np.sqrt((share @ centred**2) * (share @ dose**2))
    values: FloatArray = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
    return values
