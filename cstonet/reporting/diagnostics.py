"""Can the arms be compared? Overlap of the propensities, balance of the covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.data.matrix import dense_part, parts
from cstonet.data.treatment import ArmsKind
from cstonet.estimators import Nuisances, clip_propensity
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.nuisances import Clip, FloatArray, arm_weights
from cstonet.estimators.unit_blocks import unit_blocks

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

    Returns
    -------
    DataFrame
        Indexed by covariate, in the order of `covariates`; columns `smd_before`, `smd_after`, or
        for a multilevel treatment `smd_before[b-a]`, `smd_after[b-a]` for every level b against
        the reference a.
    """
    smd = _standardised_differences(X, *_weights_of_arms(nuisances, clip))
    index = pd.Index(list(covariates), name="covariate", dtype=object)
    reference, *others = levels
    pairs = [""] if kind == "binary" else [f"[{other}-{reference}]" for other in others]
    columns = [f"smd_{when}{pair}" for pair in pairs for when in ("before", "after")]
    return pd.DataFrame(smd, index=index, columns=columns)


def _weights_of_arms(nuisances: Nuisances, clip: Clip) -> tuple[FloatArray, FloatArray]:
    """Weights of the units in the mean of every arm, before and after weighting, (n, L) each."""
    linear = linear_terms(nuisances, clip)
    n, levels = shape = nuisances.mu.shape
    before, after = np.empty(shape), np.empty(shape)
    imbalance = np.zeros((0 if linear is None else linear.width, levels))
    for units in unit_blocks(nuisances, clip, linear):
        before[units.rows] = units.received * units.unit_weights[:, None]
        after[units.rows] = arm_weights(units, units.propensity)
        if linear is not None:
            imbalance += linear.moments(units.rows, after[units.rows])
            everyone = units.unit_weights[:, None, None] * np.eye(levels)
            imbalance -= linear.expected(units.rows, everyone)
    if linear is not None:
        for rows in row_blocks(n, linear.width):
            after[rows] -= linear.shift(rows, imbalance / n)
    before /= before.sum(axis=0)
    after /= after.sum(axis=0)
    return before, after


def _standardised_differences(X: Matrix, before: FloatArray, after: FloatArray) -> FloatArray:
    """SMDs of the columns of X under arm weights (n, L) that sum to one.

    Shape (columns, 2(L-1)): before and after, for each arm against the first.
    """
    shape = (X.shape[1], before.shape[1])
    means, means_after, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for rows, columns in parts(X):
        # Shifting by a row of the data limits cancellation in the variances, as the mean would, and
        # makes a constant column exactly zero, as the mean would not.
        part = dense_part(X, rows, columns) - dense_part(X, slice(1), columns).astype(np.float64)
        means[columns] += part.T @ before[rows]
        means_after[columns] += part.T @ after[rows]
        squares[columns] += (part**2).T @ before[rows]
    variances = np.maximum(squares - means**2, 0.0)
    differences = []
    for arm in range(1, before.shape[1]):
        scale = np.sqrt(variances[:, [0, arm]].mean(axis=1))
        for arm_means in (means, means_after):
            difference = arm_means[:, arm] - arm_means[:, 0]
            # A covariate that is constant within the arms: no difference is 0, any other infinite.
            with np.errstate(divide="ignore"):
                smd = np.zeros_like(difference)
                differences.append(np.divide(difference, scale, out=smd, where=difference != 0))
    return np.column_stack(differences)
