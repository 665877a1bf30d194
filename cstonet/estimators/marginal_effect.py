"""The average marginal effect of a continuous treatment, by a doubly robust score.

    AME = E ∂μ(A, X)/∂a,    score_i = ∂μ̂/∂a (A_i, x_i) + α̂_i (y_i - μ̂(A_i, x_i)).

α is the Riesz representer: E[α g(A, X)] = E ∂g/∂a (A, X) for every smooth g. Integration by parts
gives α = -∂ log f(A | X)/∂a; that is (A - m(X))/v(X) where the dose is gaussian given the
covariates.

The scale of the dose's residuals, and the shape of their density, are estimated from the same
units, and the estimate depends on them unless the outcome model is right. With s_i the fitted score
of the density, ê_i = A_i - m̂(x_i) and r_i = y_i - μ̂(A_i, x_i), the correction of the plug-in is

    κ̂ = Σ s_i r_i / Σ s_i ê_i,

a ratio that no scale enters: the denominator is its estimate, and linearising the ratio gives the
influence value α̂_i (r_i - κ̂ ê_i). So a residual counts by what the correction itself leaves of it.
If s_i depends on estimated numbers β (values of the score at knots, coefficients of log v(x)),
their influence values enter with the gradient ∂κ̂/∂β = mean(∂s_i/∂β (r_i - κ̂ ê_i)) / mean(s_i ê_i).
A factor common to all v(x_i) changes nothing: the shape is fitted to what it leaves.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.aipw import Effects
from cstonet.estimators.clusters import cluster_freedom, mean_square
from cstonet.estimators.dispersion import coefficient_influence
from cstonet.estimators.dose_nuisances import DoseNuisances, stabilised_weights
from cstonet.estimators.nuisances import FloatArray

NAME = "AME"


def riesz_representer(nuisances: DoseNuisances) -> FloatArray:
    """α̂_i, the score of the dose's density times a factor, shape (n,).

    The factor makes the defining equation of α exact for g = A - m̂(x): the weighted mean of
    α̂ (A - m̂) is one. A dose effect that is the same line for everyone is then estimated
    consistently whatever the shape of the dose's density.
    """
    representer = nuisances.score
    moment = np.mean(nuisances.unit_weights * representer * nuisances.surprise)
    values: FloatArray = representer / moment
    return values


def estimate_marginal_effect(nuisances: DoseNuisances, *, clip: float) -> Effects:
    """The AME with the standard error of its influence function.

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and (out-of-fold) nuisances.
    clip : float
        Bound of the densities behind `dose_response`; the AME itself needs none, but the units it
        concerns are counted here.

    Returns
    -------
    Effects
        The one effect "AME".
    """
    weights, residual = nuisances.unit_weights, nuisances.y - nuisances.mu
    representer = riesz_representer(nuisances)
    plug_in = float(np.mean(weights * nuisances.slope))
    correction = float(np.mean(weights * representer * residual))
    left = residual - correction * nuisances.surprise
    influence: FloatArray = weights * (nuisances.slope - plug_in + representer * left)
    influence += _influence_of_density(nuisances, left)
    estimate, clusters = plug_in + correction, nuisances.clusters
    return Effects(
        names=(NAME,),
        n_contrasts=1,
        estimates=np.array([estimate]),
        covariance=np.array([[mean_square(influence, clusters) / nuisances.n]]),
        influence=influence[:, None],
        n_clipped=stabilised_weights(nuisances, clip).n_bounded,
        clip=clip,
        variance_kind="influence",
        freedom=cluster_freedom((weights * representer)[:, None], clusters),
    )


def _influence_of_density(nuisances: DoseNuisances, left: FloatArray) -> FloatArray:
    """What the estimated density of the dose adds to the influence values, shape (n,).

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and nuisances.
    left : (n,) float64
        Residuals of the outcome without what the correction explains of them, r - κ̂ ê.
    """
    n, weights, spread = nuisances.n, nuisances.unit_weights, np.sqrt(nuisances.variance)
    standardised = nuisances.surprise / spread
    matching = nuisances.residual_density.matching(standardised, weights)
    # Derivatives of κ̂: in the score ψ of each unit, in the score's values at the knots.
    moment = np.mean(weights * nuisances.score * nuisances.surprise)
    in_scores = weights * left / (spread * n * moment)
    in_values = in_scores @ matching.basis
    if not nuisances.residual_density.estimated:
        in_values = np.zeros_like(in_values)
    influence: FloatArray = matching.influence @ in_values
    if nuisances.spread_terms is not None:
        # A larger log v(x_i) divides residual and score of a unit, and so moves the matched score.
        own = -0.5 * in_scores * (matching.score + standardised * matching.slope)
        in_log_variance = own + matching.stretch @ in_values / n
        coefficients = coefficient_influence(standardised**2, nuisances.spread_terms, weights)
        influence += coefficients @ (in_log_variance @ nuisances.spread_terms)
    return influence
