"""Least squares of treatments, with errors that hold for any variances (HC1).

`adjust` has the same slopes in all arms, `adjust_within_arms` slopes of each arm's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import FloatArray
from loaders import standardised
from numpy.typing import NDArray
from scipy.linalg import qr

# Columns of which others leave less than this share of a variance of one are explained by them.
_UNEXPLAINED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Adjusted:
    """Coefficients, or effects.

    Parameters
    ----------
    coefficients : (k,) float64
        What is estimated.
    scores : (n, k) float64
        What each row adds to its error; HC1's factor √(n / (n - coefficients)) is within.
    """

    coefficients: FloatArray
    scores: FloatArray

    @property
    def errors(self) -> FloatArray:
        """Standard errors (k,)."""
        errors: FloatArray = np.sqrt((self.scores**2).sum(axis=0))
        return errors


def adjust(y: FloatArray, treatments: FloatArray, controls: FloatArray) -> Adjusted:
    """Coefficients of treatments beside a constant and controls, which may be collinear.

    Parameters
    ----------
    y : (n,) float64
        Outcomes.
    treatments : (n, k) float64
        The treatment, or indicators of the arms but one.
    controls : (n, c) float64
        What is adjusted for.

    Raises
    ------
    ValueError
        If the controls determine the treatment of all rows.
    """
    n, k = treatments.shape
    others = np.column_stack([np.ones(n), controls])
    both = np.column_stack([treatments, y])
    explained, _, rank, _ = np.linalg.lstsq(others, both, rcond=None)
    # What others leave of both has the same coefficients (Frisch and Waugh).
    left = both - others @ explained
    apart, outcome = left[:, :k], left[:, k]
    freedom = n - int(rank) - k
    squares = apart.T @ apart
    if freedom <= 0 or np.linalg.eigvalsh(squares)[0] < _UNEXPLAINED * n:
        raise ValueError(
            f"the {controls.shape[1]} covariates determine the treatment of all {n} rows; ask "
            "about more rows, or adjust for fewer covariates"
        )
    inverse = np.linalg.inv(squares)
    coefficients = inverse @ (apart.T @ outcome)
    residuals = outcome - apart @ coefficients
    scores = np.sqrt(n / freedom) * (apart * residuals[:, None]) @ inverse
    return Adjusted(coefficients, scores)


def adjust_within_arms(
    y: FloatArray, arms: NDArray[np.int64], X: FloatArray
) -> tuple[Adjusted, FloatArray]:
    """Effects where every arm has slopes of its own, at the covariates' means (Lin 2013).

    Least squares on arms, covariates, and products of arms with centred covariates. A covariate
    that others of the same arm explain, such as one that is constant there, has the same slope in
    all arms.

    Parameters
    ----------
    y : (n,) float64
        Outcomes.
    arms : (n,) int64
        Arms, from 0, the reference.
    X : (n, p) float64
        Covariates.

    Returns
    -------
    effects : Adjusted
        Effects of the k arms from 1 on. Their errors are those of the effects in the population:
        they count that the covariates' means are means of a sample, which HC1 alone does not.
    of_rows : (n, k) float64
        The rows' effects.

    Raises
    ------
    ValueError
        If an arm has too few rows for slopes of its own.
    """
    n, k = len(y), int(arms.max())
    indicators = (arms[:, None] == np.arange(1, k + 1)).astype(np.float64)
    centred = standardised(X)
    own = centred
    for arm in range(k + 1):
        own = own[:, _independent(own[arms == arm])]
    fewest = int(np.bincount(arms, minlength=k + 1).min())
    if fewest <= own.shape[1] + 1:
        raise ValueError(
            f"an arm has {fewest} rows, too few for slopes of its own of {X.shape[1]} covariates: "
            "ask about more rows, or adjust for fewer covariates"
        )
    products = (indicators[:, :, None] * own[:, None, :]).reshape(n, -1)
    effects = adjust(y, indicators, np.column_stack([centred, products]))
    design = np.column_stack([products, indicators, np.ones(n), centred])
    slopes = np.linalg.lstsq(design, y, rcond=None)[0][: products.shape[1]].reshape(k, -1)
    from_means = own @ slopes.T
    scores = effects.scores + from_means / n
    return Adjusted(effects.coefficients, scores), effects.coefficients + from_means


def _independent(columns: FloatArray) -> NDArray[np.intp]:
    """Positions of columns (n, p) that no others and no constant explain."""
    triangle, order = qr(columns - columns.mean(axis=0), mode="r", pivoting=True)
    left = np.diag(triangle) ** 2  # of each column in this order, beside those before
    return np.sort(order[: len(left)][left > _UNEXPLAINED * len(columns)])
