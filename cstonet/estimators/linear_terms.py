"""Covariates that stay out of the weights: the outcome is cleared of what they explain linearly.

A covariate z that was found to explain the treatment and not the outcome has at most a small
effect on the outcome. In the propensities it would multiply weights, and with them the variance;
left out altogether its small effect would bias the estimate. So it gets a slope: the residuals
y - μ̂_A(x) are regressed on arms and z with weights 1/p̂_A(x), and γ̂'(z - z̄) joins the outcome
model. With everything linear this is the double selection of Belloni, Chernozhukov and Hansen. It
costs what a regression on z costs, and γ̂ is in the influence function, because the weights do not
balance z. The slopes are the same in all arms; where small effects of z differ between arms, they
are removed on average over equally large arms. The covariates of the outcome are among the z, too:
otherwise a z that is correlated with them would stand in for what μ̂ gets wrong about them, and the
estimate would no longer be right if only the propensities are.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from cstonet.errors import NumericalError
from cstonet.estimators.nuisances import FloatArray, Nuisances, arm_weights

# Directions of z with less than this share of the largest variance have no slope of their own.
_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearTerms:
    """Slopes of the linear terms, and how every unit's residual enters them.

    Attributes
    ----------
    terms : (n, k) float64
        z - z̄ in units of its spread.
    slopes : (k,) float64
        γ̂, one slope for all arms.
    leverage : (n, k) float64
        γ̂ - γ is the mean over units of leverage times residual.
    residual : (n,) float64
        What arms and z leave of y - μ̂_A(x).
    inflation : float
        √(n / (n - fitted numbers)), by which residuals are smaller than errors.
    """

    terms: FloatArray
    slopes: FloatArray
    leverage: FloatArray
    residual: FloatArray
    inflation: float

    def shift(self, weights: FloatArray) -> FloatArray:
        """What γ̂ takes from the weights of an estimator, shape (n, m).

        Parameters
        ----------
        weights : (n, m) float64
            Weights of the residuals in m estimates, each their mean.

        Returns
        -------
        (n, m) float64
            The weights minus these balance z: their mean with each term is zero.
        """
        imbalance = self.terms.T @ weights / len(weights)
        shift: FloatArray = self.leverage @ imbalance
        return shift

    def influence(self, weights: FloatArray) -> FloatArray:
        """Part of the estimates' influence values that comes from γ̂, shape (n, m)."""
        part: FloatArray = -self.shift(weights) * self.residual[:, None]
        return part


def linear_terms(nuisances: Nuisances, propensity: FloatArray) -> LinearTerms | None:
    """Fit the linear terms of the outcome model.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    propensity : (n, L) float64
        Clipped probabilities.

    Returns
    -------
    LinearTerms or None
        None if there is no covariate to adjust for.
    """
    if nuisances.linear is None or nuisances.linear.shape[1] == 0:
        return None
    n, counted = nuisances.n, nuisances.unit_weights
    terms = nuisances.linear - counted @ nuisances.linear / n
    spread = np.sqrt(counted @ terms**2 / n)
    terms = terms / np.where(spread > 0, spread, 1.0)
    weights = arm_weights(nuisances, propensity).sum(axis=1)
    expected = np.take_along_axis(nuisances.mu, nuisances.treatment[:, None], axis=1)[:, 0]
    regressors = np.column_stack([nuisances.received, terms])
    weighted = regressors * weights[:, None]
    gram = weighted.T @ regressors / n
    inverse = np.linalg.pinv(gram, rcond=_RANK_TOLERANCE, hermitian=True)
    units = int(np.count_nonzero(counted))
    left = units - int(
        np.linalg.matrix_rank(gram, tol=_RANK_TOLERANCE * gram.max(), hermitian=True)
    )
    if left < units / 2:
        raise NumericalError(
            f"{units - left} slopes and arms for {units} units: too many covariates were found for "
            "the treatment to adjust for them by linear terms. Use more units or fewer covariates, "
            "or SearchOptions.adjust='union'."
        )
    residual = nuisances.y - expected
    coefficients = inverse @ (weighted.T @ residual) / n
    return LinearTerms(
        terms=terms,
        slopes=coefficients[nuisances.n_levels :],
        leverage=weighted @ inverse[:, nuisances.n_levels :],
        residual=residual - regressors @ coefficients,
        inflation=float(np.sqrt(units / left)),
    )


def with_terms(nuisances: Nuisances, linear: LinearTerms | None) -> Nuisances:
    """Nuisances whose outcome model holds the linear terms."""
    if linear is None:
        return nuisances
    return dataclasses.replace(nuisances, mu=nuisances.mu + (linear.terms @ linear.slopes)[:, None])
