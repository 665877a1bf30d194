"""Estimators of a continuous treatment on data whose nuisances are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cstonet as cs
from cstonet.errors import NumericalError
from cstonet.estimators.dispersion import fit_dispersion
from cstonet.estimators.dose_curve import (
    TRIM,
    cross_validated_bandwidth,
    dose_support,
    estimate_curve,
)
from cstonet.estimators.dose_nuisances import DoseNuisances, dose_grid, stabilised_weights
from cstonet.estimators.marginal_effect import estimate_marginal_effect, riesz_representer
from cstonet.estimators.residual_density import ResidualDensity, fit_residual_density

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


def linear(n: int = 4000, seed: int = 0) -> DoseNuisances:
    """Y = 2 A + 3 x + ε and A = x + e, with the true nuisances: AME 2, curve 2a."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    dose = x + rng.normal(size=n)
    grid = dose_grid(dose)
    return DoseNuisances(
        y=2 * dose + 3 * x + rng.normal(size=n),
        dose=dose,
        mu=2 * dose + 3 * x,
        slope=np.full(n, 2.0),
        mean=x,
        variance=np.ones(n),
        residual_density=ResidualDensity.standard_normal(),
        grid=grid,
        mu_grid=2 * grid[None, :] + 3 * x[:, None],
        weights=None,
        fold=np.zeros(n, np.int64),
    )


def without_outcome_model(nuisances: DoseNuisances) -> DoseNuisances:
    zeros = np.zeros(nuisances.n)
    return replace(nuisances, mu=zeros, slope=zeros, mu_grid=np.zeros_like(nuisances.mu_grid))


def without_treatment_model(nuisances: DoseNuisances) -> DoseNuisances:
    return replace(nuisances, mean=np.full(nuisances.n, 0.3), variance=np.full(nuisances.n, 1.5))


def curve_of(nuisances, doses, **options):
    support = dose_support(nuisances, TRIM)
    return estimate_curve(nuisances, doses, support=support, clip=0.0, **options)


WRONG = {
    "neither": lambda nuisances: nuisances,
    "outcome": without_outcome_model,
    "treatment": without_treatment_model,
}


# Nuisances ----------------------------------------------------------------------------------------


def test_shapes_and_values_are_checked():
    nuisances = linear(50)
    with pytest.raises(ValueError, match="mean has shape"):
        replace(nuisances, mean=np.zeros(3))
    with pytest.raises(ValueError, match="variance must be positive"):
        replace(nuisances, variance=np.zeros(50))
    with pytest.raises(NumericalError, match=r"outcome model .* 1 of 50 units"):
        replace(nuisances, slope=np.where(np.arange(50) == 3, np.nan, 1.0))
    with pytest.raises(NumericalError, match="treatment model"):
        replace(nuisances, mean=np.full(50, np.inf))


def test_grid_spans_the_doses_and_keeps_its_knots_apart():
    rng = np.random.default_rng(0)
    for dose in (rng.normal(size=500), rng.lognormal(sigma=2, size=500), np.arange(500) // 100):
        grid = dose_grid(dose.astype(float))
        assert grid[0] == dose.min()
        assert grid[-1] == dose.max()
        assert np.diff(grid).min() >= np.ptp(dose) / 500


def test_table_interpolates_the_outcome_model():
    """A cubic spline of spacing h errs by at most 5/384 h⁴ max|f⁗|."""
    simulation = cs.datasets.dose_curve(n=500, p=5, seed=1)
    nuisances = simulation.nuisances()
    own = np.array([nuisances.mu_at(nuisances.dose[[i]])[i, 0] for i in range(0, 500, 25)])
    # In units of z, 2 tanh has a fourth derivative below 9.
    spacing = np.diff(nuisances.grid).max() / 2
    # At the ends the not-a-knot spline errs a few times more than within.
    np.testing.assert_allclose(own, nuisances.mu[::25], atol=4 * 5 / 384 * spacing**4 * 9)


def test_average_density_is_the_mean_of_densities():
    nuisances = linear(300)
    errors = nuisances.dose[:, None] - nuisances.mean[None, :]
    np.testing.assert_allclose(
        nuisances.average_density(), stats.norm.pdf(errors).mean(axis=1), rtol=1e-4
    )
    np.testing.assert_allclose(nuisances.density(), stats.norm.pdf(nuisances.surprise), rtol=1e-12)


def test_bound_on_the_densities():
    nuisances = linear(500)
    free = stabilised_weights(nuisances, 0.0)
    assert free.n_bounded == 0
    bounded = stabilised_weights(nuisances, 0.2)
    assert bounded.n_bounded == int((free.values > 5).sum()) > 0
    np.testing.assert_allclose(bounded.values, np.minimum(free.values, 5.0))
    far = replace(nuisances, mean=nuisances.dose - 60.0)
    with pytest.raises(NumericalError, match="density is zero; set clip above 0"):
        stabilised_weights(far, 0.0)


# Marginal effect ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", WRONG)
def test_marginal_effect_is_doubly_robust(wrong):
    effects = estimate_marginal_effect(WRONG[wrong](linear()), clip=0.01)
    assert effects.names == ("AME",)
    assert abs(effects.estimates[0] - 2) < FOUR * effects.standard_errors[0]
    assert effects.standard_errors[0] < 0.2
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0, atol=1e-12)


def test_marginal_effect_is_biased_if_both_models_are_wrong():
    wrong = without_treatment_model(without_outcome_model(linear()))
    effects = estimate_marginal_effect(wrong, clip=0.01)
    assert abs(effects.estimates[0] - 2) > FOUR * effects.standard_errors[0]


def test_a_line_needs_no_gaussian_dose():
    """With a normalised representer the estimate is the regression on the dose's residual."""
    rng = np.random.default_rng(1)
    nuisances = linear(500)
    dose = nuisances.mean + rng.exponential(size=500) - 1
    nuisances = replace(
        nuisances, dose=dose, y=2 * dose + 3 * nuisances.mean, variance=np.full(500, 7.0)
    )
    estimate = estimate_marginal_effect(without_outcome_model(nuisances), clip=0.01).estimates[0]
    residual = dose - nuisances.mean
    np.testing.assert_allclose(estimate, residual @ nuisances.y / (residual @ residual))
    moment = np.mean(riesz_representer(nuisances) * residual)
    np.testing.assert_allclose(moment, 1, rtol=1e-12)


def test_weights_count_as_repeated_rows():
    nuisances = linear(200)
    times = np.random.default_rng(0).integers(1, 4, size=200)
    rows = np.repeat(np.arange(200), times)
    fields = ("y", "dose", "mu", "slope", "mean", "variance", "mu_grid", "fold")
    repeated = replace(nuisances, **{name: getattr(nuisances, name)[rows] for name in fields})
    weighted = replace(nuisances, weights=times.astype(float))
    doses = np.array([-0.5, 0.0, 1.0])
    for one, other in (
        (
            estimate_marginal_effect(weighted, clip=0.01).estimates,
            estimate_marginal_effect(repeated, clip=0.01).estimates,
        ),
        (
            curve_of(weighted, doses, bandwidth=0.5).estimates,
            curve_of(repeated, doses, bandwidth=0.5).estimates,
        ),
        (dose_support(weighted, 0.1), dose_support(repeated, 0.1)),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_units_of_weight_zero_do_not_count():
    nuisances = linear(300)
    weights = np.where(np.arange(300) < 20, 0.0, 1.0)
    far = np.where(weights > 0, nuisances.dose, 1e4)
    weighted = replace(nuisances, dose=far, weights=weights)
    fields = ("y", "dose", "mu", "slope", "mean", "variance", "mu_grid", "fold")
    without = replace(nuisances, **{f: getattr(nuisances, f)[weights > 0] for f in fields})
    assert dose_support(weighted, 0.0) == dose_support(without, 0.0)
    doses = np.array([-0.5, 0.0, 1.0])
    one, other = (curve_of(each, doses) for each in (weighted, without))
    assert one.bandwidth == pytest.approx(other.bandwidth, rel=0.02)  # n enters its candidates
    np.testing.assert_allclose(one.estimates, other.estimates, atol=0.02)
    np.testing.assert_allclose(
        weighted.average_density()[weights > 0], without.average_density(), rtol=1e-10
    )


@pytest.mark.parametrize("spread", [0.5, 1.5, 2.5])
def test_average_density_of_skewed_doses(spread):
    """Without covariates all units have the same density, hence weights of one."""
    dose = np.exp(spread * np.random.default_rng(3).normal(size=600))
    nuisances = replace(
        linear(600), dose=dose, mean=np.full(600, dose.mean()), variance=np.full(600, dose.var())
    )
    np.testing.assert_allclose(nuisances.average_density(), nuisances.density(), rtol=1e-3)


def test_knots_at_a_dose_that_many_share_stay_apart():
    rng = np.random.default_rng(4)
    dose = np.where(rng.random(2000) < 0.7, 0.0, rng.exponential(size=2000))
    residual = dose - dose.mean() + 1e-6 * rng.normal(size=2000)
    density = fit_residual_density(residual / residual.std(), np.ones(2000))
    assert np.abs(density.scores).max() < 50
    assert np.isfinite(density.density(np.linspace(-3, 3, 7))).all()


# Curve --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", WRONG)
def test_curve_is_doubly_robust(wrong):
    """The curve is a line, so that smoothing adds no bias."""
    nuisances = WRONG[wrong](linear())
    doses = np.linspace(-1.5, 1.5, 7)
    curve = curve_of(nuisances, doses)
    assert (abs(curve.estimates - 2 * doses) < FOUR * curve.standard_errors).all()


def test_curve_is_biased_if_both_models_are_wrong():
    doses = np.array([-1.5, 1.5])
    curve = curve_of(without_treatment_model(without_outcome_model(linear())), doses)
    assert (abs(curve.estimates - 2 * doses) > FOUR * curve.standard_errors).all()


def test_local_regression_is_weighted_least_squares():
    nuisances = without_outcome_model(linear(300))
    at, bandwidth = 0.4, 0.7
    curve = curve_of(nuisances, np.array([at]), bandwidth=bandwidth)
    response = stabilised_weights(nuisances, 0.0).values * nuisances.y
    kernel = stats.norm.pdf(nuisances.dose, at, bandwidth)
    line = np.polyfit(nuisances.dose - at, response, 1, w=np.sqrt(kernel))
    np.testing.assert_allclose(curve.estimates, line[1], rtol=1e-9)


def test_influence_is_the_derivative_in_the_weights():
    """The dose is independent of x here, so that the average density is what it is."""
    nuisances = linear(60)
    nuisances = replace(
        nuisances, mean=np.zeros(60), variance=np.full(60, 2.0), weights=np.ones(60)
    )
    doses, step = np.array([-1.0, 0.5]), 1e-5
    influence = curve_of(nuisances, doses, bandwidth=0.6).influence
    np.testing.assert_allclose(influence.mean(axis=0), 0, atol=1e-10)
    for row in (0, 17, 59):
        moved = []
        for sign in (1, -1):
            weights = np.ones(60)
            weights[row] += sign * step
            changed = replace(nuisances, weights=weights)
            moved.append(curve_of(changed, doses, bandwidth=0.6).estimates)
        derivative = 60 * (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(derivative, influence[row], rtol=1e-4, atol=1e-6)


def test_bandwidth_is_near_that_of_exact_cross_validation():
    rng = np.random.default_rng(3)
    dose = rng.normal(size=250)
    response = np.sin(3 * dose) + 0.5 * rng.normal(size=250)
    ones, inside = np.ones(250), abs(dose) < 2

    def error(bandwidth: float) -> float:
        residuals = []
        for i in np.flatnonzero(inside):
            others = np.arange(250) != i
            kernel = stats.norm.pdf(dose[others], dose[i], bandwidth)
            line = np.polyfit(dose[others] - dose[i], response[others], 1, w=np.sqrt(kernel))
            residuals.append(response[i] - line[1])
        return float(np.mean(np.square(residuals)))

    chosen = cross_validated_bandwidth(dose, response, ones, inside)
    candidates = 0.5 * 2.0 ** (np.arange(9) / 4) * dose.std() * 250**-0.2
    # Binning moves a dose by at most half a bin, a hundredth of the bandwidth.
    assert error(chosen) < 1.02 * min(map(error, candidates))


def test_doses_that_repeat_have_a_curve():
    nuisances = linear(400)
    rounded = np.round(nuisances.dose * 2) / 2
    grid = dose_grid(rounded)
    mu_grid = 2 * grid[None, :] + 3 * nuisances.mean[:, None]
    nuisances = replace(nuisances, dose=rounded, grid=grid, mu_grid=mu_grid)
    curve = curve_of(nuisances, np.array([-0.5, 0.2, 0.5]), bandwidth=1e-3)
    assert np.isfinite(curve.estimates).all()
    assert (curve.standard_errors > 0).all()


# Density of the residuals -------------------------------------------------------------------------

LAWS = {
    "gamma": stats.gamma(4, loc=-2, scale=0.5),
    "student": stats.t(6, scale=np.sqrt(4 / 6)),
    "mixture": None,
}


def draw(law: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if LAWS[law] is None:
        return 0.5 * rng.normal(size=n) + np.sqrt(0.75) * rng.choice([-1, 1], size=n)
    return LAWS[law].rvs(n, random_state=rng)


def test_gaussian_residuals_have_a_linear_score():
    r = np.random.default_rng(0).normal(size=2000)
    fitted = fit_residual_density(r, np.ones(2000))
    assert fitted.gaussian
    points = np.linspace(-4, 4, 9)
    # Score matching of a line is (r - mean) / variance.
    np.testing.assert_allclose(fitted.score(points), (points - r.mean()) / r.var(), rtol=1e-9)
    np.testing.assert_allclose(
        fitted.density(points), stats.norm.pdf(points, r.mean(), r.std()), rtol=1e-6
    )
    normal = ResidualDensity.standard_normal()
    np.testing.assert_allclose(normal.score(points), points)
    np.testing.assert_allclose(normal.density(points), stats.norm.pdf(points), rtol=1e-12)


def test_gaussian_residuals_are_rarely_rejected():
    rng = np.random.default_rng(1)
    rejected = [
        not fit_residual_density(rng.normal(size=500), np.ones(500)).gaussian for _ in range(100)
    ]
    # Twice the level allows for 500 rows being few; four standard deviations for 100 draws.
    assert np.mean(rejected) < 0.02 + FOUR * np.sqrt(0.02 * 0.98 / 100)


@pytest.mark.parametrize("law", LAWS)
def test_other_residuals_obey_steins_identity(law):
    """E[ψ h] = E[h'] for other functions and other draws than the fit's."""
    n = 20_000
    fitted = fit_residual_density(draw(law, n, 0), np.ones(n))
    assert not fitted.gaussian
    r = draw(law, n, 1)
    for h, slope in ((np.tanh, lambda x: 1 / np.cosh(x) ** 2), (np.sin, np.cos)):
        products = fitted.score(r) * h(r) - slope(r)
        assert abs(products.mean()) < FOUR * np.sqrt(2) * products.std() / np.sqrt(n)
    gaussian = r * np.sin(r) - np.cos(r)
    cubic = r**4 - 3 * r**2
    skew = r * r**2 - 2 * r
    z = [abs(p.mean()) / p.std() * np.sqrt(n) for p in (gaussian, cubic, skew)]
    assert max(z) > 2 * FOUR  # the gaussian score does not obey it
    grid = np.linspace(-20, 30, 50_001)
    np.testing.assert_allclose(np.trapezoid(fitted.density(grid), grid), 1, atol=1e-3)


@pytest.mark.parametrize("law", ["gamma", "student"])
def test_density_is_near_the_true_one(law):
    n = 20_000
    fitted = fit_residual_density(draw(law, n, 0), np.ones(n))
    points = np.linspace(-1.5, 2.5, 9)
    truth = LAWS[law].pdf(points)
    gaussian = stats.norm.pdf(points)
    assert abs(fitted.density(points) - truth).max() < 0.3 * abs(gaussian - truth).max()


# Variance of the dose -----------------------------------------------------------------------------


def test_constant_variance_is_one_number():
    rng = np.random.default_rng(0)
    residual, z = 2 * rng.normal(size=1000), rng.normal(size=(1000, 3))
    fitted = fit_dispersion(residual, z, np.ones(1000), np.zeros(1000, np.int64))
    assert not fitted.heteroscedastic
    np.testing.assert_allclose(fitted.values, np.mean(residual**2))


def test_constant_variance_is_rarely_rejected():
    """Also where the residuals have heavy tails: the test is studentised."""
    rng = np.random.default_rng(1)
    fold = np.zeros(500, np.int64)
    rejected = [
        fit_dispersion(
            rng.standard_t(6, size=500), rng.normal(size=(500, 3)), np.ones(500), fold
        ).heteroscedastic
        for _ in range(100)
    ]
    assert np.mean(rejected) < 0.01 + FOUR * np.sqrt(0.01 * 0.99 / 100)


@pytest.mark.parametrize("folds", [1, 3])
def test_variance_that_depends_on_a_covariate_is_found(folds):
    rng = np.random.default_rng(2)
    n, k = 3000, 3
    z = rng.normal(loc=5, scale=3, size=(n, k))
    log_variance = 0.2 * (z[:, 0] - 5)
    residual = np.exp(0.5 * log_variance) * rng.normal(size=n)
    fitted = fit_dispersion(residual, z, np.ones(n), np.arange(n) % folds)
    assert fitted.heteroscedastic
    error = np.log(fitted.values) - log_variance
    # Each coefficient of a log-linear variance has variance 2/n.
    trained_on = n if folds == 1 else n * (1 - 1 / folds)
    assert np.sqrt(np.mean(error**2)) < FOUR * np.sqrt(2 * (k + 1) / trained_on)


def test_variance_does_not_run_away():
    """One wild residual, a constant feature, two features that are one."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(400, 1))
    residual = np.exp(3 * z[:, 0]) * rng.normal(size=400)
    residual[0] = 1e6
    features = np.column_stack([z, z, np.ones(400)])
    fitted = fit_dispersion(residual, features, np.ones(400), np.arange(400) % 2)
    assert np.isfinite(fitted.values).all()
    average = np.mean(residual**2)
    assert (fitted.values >= average / 20.001).all()
    assert (fitted.values <= average * 20.001).all()
