"""Can the arms be compared? Overlap of the propensities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.matrix import dense_part, parts
from cstonet.data.treatment import ArmsKind
from cstonet.data.units import factor_of
from cstonet.estimators import Nuisances, clip_propensity
from cstonet.estimators.nuisances import Clip, FloatArray
from cstonet.estimators.targets import Target, total_weights

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def overlap(
    nuisances: Nuisances,
    *,
    levels: Sequence[object],
    clip: Clip,
    kind: ArmsKind = "binary",
) -> pd.DataFrame:
    """Distribution of the estimated propensity in each arm.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    levels : sequence of length L
        Labels of the treatment codes.
    clip : float, or L of them
        The estimator's least propensities.
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
    rows: dict[object, NDArray[np.bool_] | slice] = {
        level: nuisances.treatment == code for code, level in enumerate(levels)
    }
    rows["all"] = slice(None)

    def table(code: int) -> pd.DataFrame:
        return pd.DataFrame(
            [_propensity_row(nuisances.propensity[who], code, clip) for who in rows.values()],
            index=pd.Index(list(rows), name="arm", dtype=object),
        ).astype({"n": int, "n_clipped": int})

    if kind == "binary":
        return table(1)
    tables = {level: table(code) for code, level in enumerate(levels)}
    return pd.concat(tables, names=["propensity"])


def _propensity_row(propensity: FloatArray, code: int, clip: Clip) -> dict[str, float]:
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
    X: Matrix,
    *,
    covariates: Sequence[str],
    levels: Sequence[object],
    clip: Clip,
    kind: ArmsKind = "binary",
    target: Target = "ATE",
) -> pd.DataFrame:
    """Standardised mean differences before and after weighting, as the estimator does it.

    The weights are the estimator's total ones: inverse propensities, and what slopes take from
    them. Covariates with slopes are balanced by construction, up to values beyond the bound on
    standardised ones: their zeros say nothing about overlap.

    Both are differences of arm means (a level minus the reference) over the same yardstick, the
    root of the average of the two arms' variances before weighting, so that they can be compared.
    As a rule of thumb, absolute values above 0.1 deserve a look. Sampling weights enter both.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    X : (n, p) float, dense or sparse
        Covariates.
    covariates : sequence of str, length p
        Their names.
    levels : sequence of length L
        Labels of the treatment codes, the reference first.
    clip : float, or L of them
        The estimator's least propensities.
    kind : {"binary", "multilevel"}
        Kind of treatment.
    target : {"ATE", "ATT", "ATC", "ATO"}
        The population in which the arms are compared.

    Returns
    -------
    DataFrame
        Indexed by covariate, in the order of `covariates`; columns `smd_before`, `smd_after`, or
        for a multilevel treatment `smd_before[b-a]`, `smd_after[b-a]` for every level b against
        the reference a.
    """
    before = nuisances.received * nuisances.unit_weights[:, None]
    before /= before.sum(axis=0)
    after = np.column_stack(
        [_compared(nuisances, target, (arm, 0), clip) for arm in range(1, nuisances.n_levels)]
    )
    smd = _standardised_differences(X, before, after)
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    reference, *others = levels
    pairs = [""] if kind == "binary" else [f"[{other}-{reference}]" for other in others]
    columns = [f"smd_{when}{pair}" for pair in pairs for when in ("before", "after")]
    return pd.DataFrame(smd, index=index, columns=columns)


def _compared(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], clip: Clip
) -> FloatArray:
    """Weights of the units (n,) in the difference of two arms' means.

    Only linear terms make the estimator's weights sum to one in an arm; means are asked for here.
    """
    weights = total_weights(nuisances, target, contrast, clip=clip)
    if nuisances.linear is None:
        for level in contrast:
            arm = nuisances.treatment == level
            weights[arm] /= abs(weights[arm].sum())
    return weights


def _standardised_differences(X: Matrix, before: FloatArray, after: FloatArray) -> FloatArray:
    """SMDs of the columns of X.

    Parameters
    ----------
    X : (n, p)
        Covariates.
    before : (n, L)
        Weights of the units in the mean of every arm, which sum to one.
    after : (n, L-1)
        Weights of the units in the difference of each arm from the first.

    Returns
    -------
    (p, 2(L-1))
        Before and after, for each arm against the first.
    """
    factor = np.ones(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # of columns of extreme size
        means, weighted, squares = _arm_moments(X, before, after, factor)
    factor = factor_of(np.abs(means).max(axis=1))
    if (factor != 1).any():  # no digit changes
        means, weighted, squares = _arm_moments(X, before, after, factor)
    variances = np.maximum(squares - means**2, 0.0)
    differences = []
    for arm in range(1, before.shape[1]):
        scale = np.sqrt(variances[:, [0, arm]].mean(axis=1))
        for difference in (means[:, arm] - means[:, 0], weighted[:, arm - 1]):
            # A covariate that is constant within the arms: no difference is 0, any other infinite.
            with np.errstate(divide="ignore"):
                smd = np.zeros_like(difference)
                differences.append(np.divide(difference, scale, out=smd, where=difference != 0))
    return np.column_stack(differences)


def _arm_moments(
    X: Matrix, before: FloatArray, after: FloatArray, factor: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means of the columns times factors (p,) in the arms, their differences, and mean squares.

    All of them from the first row on: that limits cancellation in the variances, as the mean would,
    and makes a constant column exactly zero, as the mean would not.
    """
    shape = (X.shape[1], before.shape[1])
    means, squares = np.zeros(shape), np.zeros(shape)
    weighted = np.zeros((X.shape[1], after.shape[1]))
    for rows, columns in parts(X):
        part = dense_part(X, rows, columns) - dense_part(X, slice(1), columns).astype(np.float64)
        part *= factor[columns]
        means[columns] += part.T @ before[rows]
        weighted[columns] += part.T @ after[rows]
        squares[columns] += (part**2).T @ before[rows]
    return means, weighted, squares
