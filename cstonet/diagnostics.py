"""Can the arms be compared? Overlap of the propensities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from cstonet.estimators import Nuisances, clip_propensity
from cstonet.estimators.nuisances import FloatArray

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

# Columns of X turned into float64 at a time: bounds the extra memory at high p.
_BLOCK = 1024


def overlap(nuisances: Nuisances, *, levels: Sequence[object], clip: float) -> pd.DataFrame:
    """Distribution of the estimated propensity in each arm of a binary treatment.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    levels : sequence of length 2
        Labels of the treatment codes; the propensity is that of the second.
    clip : float
        Distance the estimator keeps the propensities from 0 and 1.

    Returns
    -------
    DataFrame
        One row per arm and one for all units: `n`, `min`, quantiles ("1%", …, "99%"), `max` of the
        unclipped p̂(x), and `n_clipped`.
    """
    arms = nuisances.received
    rows = {level: arms[:, code] for code, level in enumerate(levels)}
    rows["all"] = np.ones(nuisances.n, dtype=bool)
    table = pd.DataFrame(
        [_propensity_row(nuisances.propensity[members], clip) for members in rows.values()],
        index=pd.Index(list(rows), name="arm", dtype=object),
    )
    return table.astype({"n": int, "n_clipped": int})


def _propensity_row(propensity: FloatArray, clip: float) -> dict[str, float]:
    """One line of the overlap table, for the units whose (m, 2) propensities are given."""
    treated = propensity[:, 1]
    quantiles = zip(_QUANTILES, np.quantile(treated, _QUANTILES), strict=True)
    return {
        "n": len(treated),
        "min": treated.min(),
        **{f"{level:.0%}": value for level, value in quantiles},
        "max": treated.max(),
        "n_clipped": clip_propensity(propensity, clip).n_clipped,
    }


def balance(
    nuisances: Nuisances,
    X: NDArray[np.floating],
    *,
    covariates: Sequence[str],
    clip: float,
) -> pd.DataFrame:
    """Standardised mean differences before and after inverse propensity weighting.

    Both are differences of arm means (second level minus first) over the same yardstick, the root
    of the average of the two arms' variances before weighting, so that they can be compared. As a
    rule of thumb, absolute values above 0.1 deserve a look. Sampling weights enter both.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units of a binary treatment.
    X : (n, p) float
        Covariates.
    covariates : sequence of str, length p
        Their names.
    clip : float
        Distance the estimator keeps the propensities from 0 and 1.

    Returns
    -------
    DataFrame
        Indexed by covariate, in the order of `covariates`; columns `smd_before`, `smd_after`.
    """
    before = nuisances.received * nuisances.unit_weights[:, None]
    after = before / clip_propensity(nuisances.propensity, clip).values
    before, after = before / before.sum(axis=0), after / after.sum(axis=0)
    smd = np.empty((len(covariates), 2))
    for start in range(0, len(covariates), _BLOCK):
        block = slice(start, start + _BLOCK)
        smd[block] = _standardised_differences(X[:, block].astype(np.float64), before, after)
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    return pd.DataFrame(smd, index=index, columns=["smd_before", "smd_after"])


def _standardised_differences(X: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """SMDs of the columns of X, shape (columns, 2), under arm weights (n, 2) that sum to one."""
    # Shifting by a row of the data limits cancellation in the variances, as the mean would, and
    # makes a constant column exactly zero, as the mean would not.
    X -= X[0].copy()
    means = X.T @ before
    variances = (X**2).T @ before - means**2
    scale = np.sqrt(np.maximum(variances, 0.0).mean(axis=1))
    difference = np.column_stack([np.diff(means), np.diff(X.T @ after)])
    # A covariate that is constant within the arms: no difference is 0, any other is infinite.
    with np.errstate(divide="ignore"):
        smd: FloatArray = np.divide(
            difference, scale[:, None], out=np.zeros_like(difference), where=difference != 0
        )
    return smd


def arm_separation(nuisances: Nuisances) -> float:
    """Probability that a treated unit has the larger propensity of a treated and a control unit.

    The area under the ROC curve: 0.5 if the covariates say nothing about the treatment, 1 if they
    separate the arms.
    """
    treated = nuisances.treatment == 1
    ranks = rankdata(nuisances.propensity[:, 1])
    n_treated = int(treated.sum())
    excess = ranks[treated].sum() - n_treated * (n_treated + 1) / 2
    return float(excess / (n_treated * int((~treated).sum())))
