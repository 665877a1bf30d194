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
If s_i depends on estimated numbers β (values of the score at knots), their influence values enter
with the gradient ∂κ̂/∂β = mean(∂s_i/∂β (r_i - κ̂ ê_i)) / mean(s_i ê_i). Errors of m̂(x) and of slopes
in v̂(x) multiply errors of the outcome model, which vanish with n, and are left out as those are.
"""

from __future__ import annotations

import numpy as np

from cstonet.estimators.aipw import Effects
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
    influence += _influence_of_shape(nuisances, left)
    estimate = plug_in + correction
    return Effects(
        names=(NAME,),
        n_contrasts=1,
        estimates=np.array([estimate]),
        covariance=np.array([[np.mean(influence**2) / nuisances.n]]),
        influence=influence[:, None],
        n_clipped=stabilised_weights(nuisances, clip).n_bounded,
        clip=clip,
        variance_kind="influence",
    )


def _influence_of_shape(nuisances: DoseNuisances, left: FloatArray) -> FloatArray:
    """What the estimated score of the dose's density adds to the influence values, shape (n,).

    Parameters
    ----------
    nuisances : DoseNuisances
        Data and nuisances.
    left : (n,) float64
        Residuals of the outcome without what the correction explains of them, r - κ̂ ê.
    """
    density, weights = nuisances.residual_density, nuisances.unit_weights
    if not density.estimated:
        return np.zeros(nuisances.n)
    spread = np.sqrt(nuisances.variance)
    matching = density.matching(nuisances.surprise / spread, weights)
    moment = np.mean(weights * nuisances.score * nuisances.surprise)
    gradient = (weights * left / spread) @ matching.basis / (nuisances.n * moment)
    values: FloatArray = matching.influence @ gradient
    return values
