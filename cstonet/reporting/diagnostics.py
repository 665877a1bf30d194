"""Can the arms be compared? Overlap of the propensities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from cstonet.data.treatment import ArmsKind
from cstonet.estimators import Nuisances, clip_propensity
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.nuisances import FloatArray, arm_weights

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

# Columns of X turned into float64 at a time: bounds the extra memory at high p.
_BLOCK = 1024


def overlap(
    nuisances: Nuisances,
    *,
    levels: Sequence[object],
    clip: float,
    kind: ArmsKind = "binary",
) -> pd.DataFrame:
    """Distribution of the estimated propensity in each arm.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    levels : sequence of length L
        Labels of the treatment codes.
    clip : float
        Distance the estimator keeps the propensities from 0 and 1.
    kind : {"binary", "multilevel"}
        Kind of treatment.

    Returns
    -------
    DataFrame
        One row per arm and one for all units: `n`, `min`, quantiles ("1%", …, "99%"), `max` of the
        unclipped p̂(x) of the second level, given the covariates in the weights, and `n_clipped`.
        For a multilevel treatment the same for the propensity of every level, indexed by
        (propensity, arm).
    """
    arms = nuisances.received
    rows = {level: arms[:, code] for code, level in enumerate(levels)}
    rows["all"] = np.ones(nuisances.n, dtype=bool)

    def table(code: int) -> pd.DataFrame:
        parts = [nuisances.propensity[members] for members in rows.values()]
        return pd.DataFrame(
            [_propensity_row(part, code, clip) for part in parts],
            index=pd.Index(list(rows), name="arm", dtype=object),
        ).astype({"n": int, "n_clipped": int})

    if kind == "binary":
        return table(1)
    tables = {level: table(code) for code, level in enumerate(levels)}
    return pd.concat(tables, names=["propensity"])


def _propensity_row(propensity: FloatArray, code: int, clip: float) -> dict[str, float]:
    """One line of the overlap table, for the units whose (m, L) propensities are given."""
    own = propensity[:, code]
    quantiles = zip(_QUANTILES, np.quantile(own, _QUANTILES), strict=True)
    return {
        "n": len(own),
        "min": own.min(),
        **{f"{level:.0%}": value for level, value in quantiles},
        "max": own.max(),
        "n_clipped": clip_propensity(propensity, clip).n_clipped,
    }


def balance(
    nuisances: Nuisances,
    X: NDArray[np.floating],
    *,
    covariates: Sequence[str],
    levels: Sequence[object],
    clip: float,
    kind: ArmsKind = "binary",
) -> pd.DataFrame:
    """Standardised mean differences before and after weighting, as the estimator does it.

    It weights by inverse propensities, given the covariates in these. Covariates with linear terms
    are balanced by construction, up to values beyond the bound on standardised ones: their zeros
    say nothing about overlap. An arm's weights are then those of its mean, in which units of other
    arms have a share through the common slopes.

    Both are differences of arm means (a level minus the reference) over the same yardstick, the
    root of the average of the two arms' variances before weighting, so that they can be compared.
    As a rule of thumb, absolute values above 0.1 deserve a look. Sampling weights enter both.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    X : (n, p) float
        Covariates.
    covariates : sequence of str, length p
        Their names.
    levels : sequence of length L
        Labels of the treatment codes, the reference first.
    clip : float
        Distance the estimator keeps the propensities from 0 and 1.
    kind : {"binary", "multilevel"}
        Kind of treatment.

    Returns
    -------
    DataFrame
        Indexed by covariate, in the order of `covariates`; columns `smd_before`, `smd_after`, or
        for a multilevel treatment `smd_before[b-a]`, `smd_after[b-a]` for every level b against
        the reference a.
    """
    before = nuisances.received * nuisances.unit_weights[:, None]
    propensity = clip_propensity(nuisances.propensity, clip).values
    after, linear = arm_weights(nuisances, propensity), linear_terms(nuisances, propensity)
    if linear is not None:
        after -= linear.shift(after)
    before, after = before / before.sum(axis=0), after / after.sum(axis=0)
    smd = np.empty((len(covariates), 2 * (len(levels) - 1)))
    for start in range(0, len(covariates), _BLOCK):
        block = slice(start, start + _BLOCK)
        smd[block] = _standardised_differences(X[:, block].astype(np.float64), before, after)
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    reference, *others = levels
    pairs = [""] if kind == "binary" else [f"[{other}-{reference}]" for other in others]
    columns = [f"smd_{when}{pair}" for pair in pairs for when in ("before", "after")]
    return pd.DataFrame(smd, index=index, columns=columns)


def _standardised_differences(X: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """SMDs of the columns of X under arm weights (n, L) that sum to one.

    Shape (columns, 2(L-1)): before and after, for each arm against the first.
    """
    # Shifting by a row of the data limits cancellation in the variances, as the mean would, and
    # makes a constant column exactly zero, as the mean would not.
    X -= X[0].copy()
    means, means_after = X.T @ before, X.T @ after
    variances = np.maximum((X**2).T @ before - means**2, 0.0)
    columns = []
    for arm in range(1, before.shape[1]):
        scale = np.sqrt(variances[:, [0, arm]].mean(axis=1))
        for arm_means in (means, means_after):
            difference = arm_means[:, arm] - arm_means[:, 0]
            # A covariate that is constant within the arms: no difference is 0, any other infinite.
            with np.errstate(divide="ignore"):
                smd = np.zeros_like(difference)
                columns.append(np.divide(difference, scale, out=smd, where=difference != 0))
    return np.column_stack(columns)


def arm_separation(nuisances: Nuisances) -> float:
    """Probability that a unit of an arm has the larger propensity for it than a unit of another.

    The area under the ROC curve, of the arm where it is largest: 0.5 if the covariates say nothing
    about the treatment, 1 if they separate an arm from the others. Covariates with linear terms
    count by a linear score of them and the propensity.
    """
    areas = []
    for members, propensity in zip(nuisances.received.T, nuisances.propensity.T, strict=True):
        score = propensity
        if nuisances.linear is not None:
            features = np.column_stack([np.ones(nuisances.n), propensity, nuisances.linear])
            score = features @ np.linalg.lstsq(features, members.astype(np.float64), rcond=None)[0]
        n_members = int(members.sum())
        excess = rankdata(score)[members].sum() - n_members * (n_members + 1) / 2
        areas.append(float(excess / (n_members * int((~members).sum()))))
    return max(areas)
