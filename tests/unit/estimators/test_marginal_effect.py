"""The average marginal effect of a dose on data whose nuisances are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import dispersion
from cstonet.estimators.dose_nuisances import DoseNuisances
from cstonet.estimators.marginal_effect import estimate_marginal_effect, riesz_representer
from cstonet.estimators.residual_density import ResidualDensity, fit_residual_density

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.mark.parametrize(
    "wrong", [(), ("outcome",), ("treatment",)], ids=["neither", "outcome", "treatment"]
)
def test_marginal_effect_is_doubly_robust(wrong, linear, misspecify):
    effects = estimate_marginal_effect(misspecify(linear(), *wrong), clip=0.01)
    assert effects.names == ("AME",)
    assert abs(effects.estimates[0] - 2) < FOUR * effects.standard_errors[0]
    assert effects.standard_errors[0] < 0.2
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0, atol=1e-12)


def test_marginal_effect_is_biased_if_both_models_are_wrong(linear, misspecify):
    wrong = misspecify(linear(), "outcome", "treatment")
    effects = estimate_marginal_effect(wrong, clip=0.01)
    assert abs(effects.estimates[0] - 2) > FOUR * effects.standard_errors[0]


def test_a_line_needs_no_gaussian_dose(linear, misspecify):
    """With a normalised representer the estimate is the regression on the dose's residual."""
    rng = np.random.default_rng(1)
    nuisances = linear(500)
    dose = nuisances.mean + rng.exponential(size=500) - 1
    nuisances = replace(
        nuisances, dose=dose, y=2 * dose + 3 * nuisances.mean, variance=np.full(500, 7.0)
    )
    estimate = estimate_marginal_effect(misspecify(nuisances, "outcome"), clip=0.01).estimates[0]
    residual = dose - nuisances.mean
    np.testing.assert_allclose(estimate, residual @ nuisances.y / (residual @ residual))
    moment = np.mean(riesz_representer(nuisances) * residual)
    np.testing.assert_allclose(moment, 1, rtol=1e-12)


def wrong_outcome(n, seed, *, residuals):
    """Y = 2 A + 5 x + ε, A = x + e and no outcome model; scale and shape of e are estimated."""
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=n), residuals(rng, n)
    dose, zeros, grid = x + e, np.zeros(n), np.array([-1.0, 1.0])
    known = DoseNuisances(
        y=2 * dose + 3 * x + rng.normal(size=n), dose=dose, mu=zeros, slope=zeros, mean=x,
        variance=zeros + 1, residual_density=ResidualDensity.standard_normal(), grid=grid,
        mu_grid=np.zeros((n, 2)), weights=np.ones(n), fold=np.zeros(n, np.int64),
    )  # fmt: skip
    return fitted_density(known)


def fitted_density(nuisances):
    """The same with scale and shape of the dose's residuals from the data and their weights."""
    weights, surprise = nuisances.unit_weights, nuisances.surprise
    variance = np.full(nuisances.n, np.mean(weights * surprise**2))
    density = fit_residual_density(surprise / np.sqrt(variance), weights)
    return replace(nuisances, variance=variance, residual_density=density)


def test_estimated_scale_is_in_the_variance():
    """With r = 2 e + 5 x + ε the estimate is the slope of r on e, of variance 26 / n.

    A known scale would leave 2 (e² - 1) in it, whose variance is another 8 / n. The variance of
    1000 estimates has a relative standard error of √(2 / 1000).
    """
    n, draws = 300, 1000
    estimates, variances = np.array(
        [
            (effects.estimates[0], effects.covariance[0, 0])
            for effects in (
                estimate_marginal_effect(
                    wrong_outcome(n, seed, residuals=lambda rng, k: rng.normal(size=k)), clip=0.01
                )
                for seed in range(draws)
            )
        ]
    ).T
    error = np.sqrt(2 / draws)
    assert abs(n * estimates.var() / 26 - 1) < FOUR * error
    assert abs(variances.mean() / estimates.var() - 1) < FOUR * error


@pytest.mark.parametrize("shape", ["gaussian", "skewed"])
def test_influence_is_the_derivative_in_the_weights(shape):
    """Scale and shape are fitted anew with the weight of one unit changed."""
    draw = {
        "gaussian": lambda rng, k: rng.normal(size=k),
        "skewed": lambda rng, k: rng.gamma(4.0, size=k) / 2 - 2,
    }[shape]
    n, step = 400, 1e-5
    nuisances = wrong_outcome(n, 5, residuals=draw)
    assert nuisances.residual_density.gaussian == (shape == "gaussian")
    influence = estimate_marginal_effect(nuisances, clip=0.01).influence[:, 0]
    np.testing.assert_allclose(influence.mean(), 0, atol=1e-10)
    for row in (0, 17, 259):
        moved = []
        for sign in (1, -1):
            weights = np.ones(n)
            weights[row] += sign * step
            changed = fitted_density(replace(nuisances, weights=weights))
            moved.append(estimate_marginal_effect(changed, clip=0.01).estimates[0])
        derivative = n * (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(derivative, influence[row], rtol=1e-4, atol=1e-5)


def test_coefficients_of_the_variance_are_in_the_influence(monkeypatch):
    """The same where log v(x) is a line in x, fitted without its ridge, which is no moment."""
    monkeypatch.setattr(dispersion, "_RIDGE", 0.0)
    n, step = 500, 1e-4
    base = wrong_outcome(n, 2, residuals=lambda rng, k: rng.normal(size=k))
    x = base.mean
    dose = x + np.exp(0.4 * x) * base.surprise
    base = replace(base, dose=dose, y=dose**2 + 3 * x)

    def effects(weights):
        found = dispersion.fit_dispersion(dose - x, x[:, None], weights, base.fold)
        assert found.heteroscedastic
        density = fit_residual_density((dose - x) / np.sqrt(found.values), weights)
        assert density.gaussian
        nuisances = replace(
            base,
            variance=found.values,
            residual_density=density,
            weights=weights,
            spread_terms=found.terms,
        )
        return nuisances, estimate_marginal_effect(nuisances, clip=0.01)

    nuisances, found = effects(np.ones(n))
    known = estimate_marginal_effect(replace(nuisances, spread_terms=None), clip=0.01)
    influence = found.influence[:, 0]
    for row in (3, 100, 321):
        moved = [effects(np.ones(n) + sign * step * (np.arange(n) == row))[1] for sign in (1, -1)]
        derivative = n * (moved[0].estimates[0] - moved[1].estimates[0]) / (2 * step)
        np.testing.assert_allclose(derivative, influence[row], rtol=1e-3, atol=1e-3)
    # The term is not negligible here: the test could fail.
    assert abs(known.influence[:, 0] - influence)[[3, 100, 321]].max() > 0.1
