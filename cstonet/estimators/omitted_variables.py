"""What an omitted confounder could do to an effect: bounds, and how strong it would have to be.

An effect θ = E m(W; g) is linear in the regression g of the outcome, and E m(W; f) = E[α f] for all
f with one α, its Riesz representer: 1(A=b)/p_b - 1(A=a)/p_a for the ATE. A fit knows the short
ones, g_s and α_s, given the covariates that it has; the long ones would know the omitted confounder
too. The short ones are projections of the long ones, so (Chernozhukov, Cinelli, Newey, Sharma and
Syrgkanis 2022, "Long story short: omitted variable bias in causal machine learning")

    θ_s - θ = E[(g - g_s)(α_s - α)],    |θ_s - θ|² = ρ² C_Y² C_D² S²,    S² = E(Y - g_s)² · E α_s²,

in which C_Y² = R_Y is the share of the outcome's residual variance that the confounder explains,
C_D² = R_D / (1 - R_D) with 1 - R_D = E α_s² / E α², and ρ ≤ 1 the correlation of the two gaps. The
data know S; R_Y and R_D are for the analyst to judge, against what observed covariates do.

Both parts of S² have influence values: those of σ² = E(Y - g_s)² are the squared residuals less
their mean, and ν² = E α_s² is estimated as E[2 m(W; α_s) - α_s²], whose error is of second order in
that of the propensities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cstonet.estimators.aipw import Effects
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.marginal_effect import riesz_representer
from cstonet.estimators.nuisances import Clip, FloatArray, IntArray, Nuisances
from cstonet.estimators.targets import Target, target_regression

RESIDUAL_VARIANCE, REPRESENTER_VARIANCE = "residual variance", "representer variance"
# A representer has nothing to lose below this part of what its square says.
_LEAST = 0.1


def bias_factor(r2_outcome: ArrayLike, r2_treatment: ArrayLike, rho: float = 1.0) -> FloatArray:
    """ρ C_Y C_D: the bias of an omitted confounder over the scale S.

    Parameters
    ----------
    r2_outcome, r2_treatment : array_like
        R_Y and R_D in [0, 1], of shapes that broadcast.
    rho : float
        Correlation of what the confounder explains of either; 1 is the worst case.

    Returns
    -------
    float64 array of their common shape
        √(R_Y R_D / (1 - R_D)) ρ; infinite where R_D is one, unless the outcome does not care.
    """
    own, treated = np.broadcast_arrays(
        np.asarray(r2_outcome, dtype=np.float64), np.asarray(r2_treatment, dtype=np.float64)
    )
    odds = np.divide(treated, 1 - treated, out=np.full(treated.shape, np.inf), where=treated < 1)
    product = np.multiply(own, odds, out=np.zeros(own.shape), where=own > 0)
    factor: FloatArray = abs(rho) * np.sqrt(product)
    return factor


def robustness_value(factor: float) -> float:
    """The strength r = R_Y = R_D of a confounder whose bias is so many times S.

    It solves r / √(1 - r) = f: r = (√(f⁴ + 4f²) - f²) / 2. With f = |θ|/S it is the least strength
    that could have made the whole estimate.
    """
    if not np.isfinite(factor):
        return 1.0 if factor > 0 else 0.0
    square = max(factor, 0.0) ** 2
    # Twice the square over the sum, rather than half the difference, which would cancel.
    return 2 * square / (np.sqrt(square**2 + 4 * square) + square) if square > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Gains:
    """How much of outcome and treatment a covariate accounts for, as R_Y and R_D of one like it.

    With σ² and ν² of a fit, and those of one without the covariate, an omitted confounder that
    adds as much again has

        R_Y = (σ²_without - σ²) / σ²,    R_D = (ν² - ν²_without) / ν²_without,

    cut at zero and one. In a linear regression they are the partial R² over one minus itself: the
    bounds of Cinelli and Hazlett (2020) for a confounder as strong as the covariate.

    Attributes
    ----------
    r2_outcome, r2_treatment : float
        R_Y and R_D.
    """

    r2_outcome: float
    r2_treatment: float

    @classmethod
    def of(cls, with_it: tuple[float, float], without: tuple[float, float]) -> Gains:
        """Gains from (σ², ν²) with and without the covariate, all positive."""
        outcome = (without[0] - with_it[0]) / with_it[0]
        treatment = (with_it[1] - without[1]) / without[1]
        return cls(min(max(outcome, 0.0), 1.0), min(max(treatment, 0.0), 1.0))


def model_variances(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: Clip
) -> tuple[float, float]:
    """σ² and ν² as models with and without a covariate are compared by them, see `Gains`.

    ν² is the mean of E[α² | x] by the propensities, which has less noise than the estimate in
    `bias_scale` and differs from it where the propensities are wrong.
    """
    parts, weights = (
        target_regression(nuisances, target, contrast, clip=clip),
        nuisances.unit_weights,
    )
    compared = np.isin(nuisances.treatment, contrast)
    squares = np.where(compared, parts.residual**2, 0.0)
    return float(np.mean(weights * squares)), float(np.mean(weights * parts.expected))


def bias_scale(
    nuisances: Nuisances, target: Target, contrast: tuple[int, int], *, clip: Clip
) -> Effects:
    """σ² and ν², the two parts of S², for an effect of arms.

    Only units in the two arms that are compared count for σ²: in all others the Riesz
    representer is zero, whatever is omitted.

    Parameters
    ----------
    nuisances, target, contrast, clip
        See :func:`cstonet.estimators.targets.estimate_target`. Overlap weights of the ATO are taken
        as they are: the population that they describe, whatever is omitted.

    Returns
    -------
    Effects
        "residual variance" and "representer variance", with influence values.
    """
    parts = target_regression(nuisances, target, contrast, clip=clip)
    compared = np.isin(nuisances.treatment, contrast)
    squares = np.where(compared, parts.residual**2, 0.0)
    plain = parts.representer**2
    moments = np.column_stack([2 * parts.moment - plain, plain])
    return _two_variances(
        squares, moments, nuisances.unit_weights, parts.share, nuisances.clusters, clip
    )


def dose_model_variances(nuisances: DoseNuisances) -> tuple[float, float]:
    """σ² and ν² of a dose as models with and without a covariate are compared by them.

    ν² is one over the residual variance of the dose, what α² is on average in a partially linear
    model: that of the density's own score would hang on its tails.
    """
    weights = nuisances.unit_weights
    residual = float(np.mean(weights * (nuisances.y - nuisances.mu) ** 2))
    return residual, 1 / float(np.mean(weights * nuisances.surprise**2))


def dose_bias_scale(nuisances: DoseNuisances, *, clip: float) -> Effects:
    """σ² and ν², the two parts of S², for the average marginal effect of a dose.

    The representer is that of the estimator, minus the derivative of the dose's log-density; ν² is
    the mean of its square.
    """
    squares = (nuisances.y - nuisances.mu) ** 2
    representer = riesz_representer(nuisances) ** 2
    parts = np.column_stack([representer, representer])
    ones = np.ones(nuisances.n)
    return _two_variances(squares, parts, nuisances.unit_weights, ones, nuisances.clusters, clip)


def _two_variances(
    squares: FloatArray,
    representer: FloatArray,
    weights: FloatArray,
    share: FloatArray,
    clusters: IntArray | None,
    clip: Clip,
) -> Effects:
    """Effects of squared residuals (n,) and of the representer, (n, 2): debiased, and its square.

    Parameters
    ----------
    share : (n,) float64
        How much units belong to the population asked about, with (weighted) mean one: ν² has its
        square in the denominator.
    """
    debiased, plain = (float(np.mean(weights * column)) for column in representer.T)
    # Propensities that are far off can make the debiased moment absurd, the square never is.
    column, nu2 = (0, debiased) if debiased > _LEAST * plain else (1, plain)
    sigma2 = float(np.mean(weights * squares))
    influence = weights[:, None] * np.column_stack(
        [squares - sigma2, representer[:, column] - nu2 - 2 * nu2 * (share - 1)]
    )
    names, estimates = (RESIDUAL_VARIANCE, REPRESENTER_VARIANCE), np.array([sigma2, nu2])
    return Effects.of_influence(names, estimates, influence, clusters, clip, n_contrasts=0)
