"""The average marginal effect of a continuous treatment, by a doubly robust score.

    AME = E ∂μ(A, X)/∂a,    score_i = ∂μ̂/∂a (A_i, x_i) + α̂_i (y_i - μ̂(A_i, x_i)).

α is the Riesz representer: E[α g(A, X)] = E ∂g/∂a (A, X) for every smooth g. Integration by parts
gives α = -∂ log f(A | X)/∂a; that is (A - m(X))/v(X) where the dose is gaussian given the
covariates.
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
    residual = nuisances.y - nuisances.mu
    scores = nuisances.slope + riesz_representer(nuisances) * residual
    weights = nuisances.unit_weights
    estimate = float(np.mean(weights * scores))
    influence: FloatArray = weights * (scores - estimate)
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
