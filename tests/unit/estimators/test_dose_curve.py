"""The dose-response curve on data whose nuisances are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cstonet.estimators.dose_curve import cross_validated_bandwidth, dose_support
from cstonet.estimators.dose_nuisances import dose_grid, stabilised_weights
from cstonet.estimators.marginal_effect import estimate_marginal_effect

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


@pytest.mark.parametrize(
    "wrong", [(), ("outcome",), ("treatment",)], ids=["neither", "outcome", "treatment"]
)
def test_curve_is_doubly_robust(wrong, linear, misspecify, curve_of):
    """The curve is a line, so that smoothing adds no bias."""
    nuisances = misspecify(linear(), *wrong)
    doses = np.linspace(-1.5, 1.5, 7)
    curve = curve_of(nuisances, doses)
    assert (abs(curve.estimates - 2 * doses) < FOUR * curve.standard_errors).all()


def test_curve_is_biased_if_both_models_are_wrong(linear, misspecify, curve_of):
    doses = np.array([-1.5, 1.5])
    curve = curve_of(misspecify(linear(), "outcome", "treatment"), doses)
    assert (abs(curve.estimates - 2 * doses) > FOUR * curve.standard_errors).all()


def test_local_regression_is_weighted_least_squares(linear, misspecify, curve_of):
    nuisances = misspecify(linear(300), "outcome")
    at, bandwidth = 0.4, 0.7
    curve = curve_of(nuisances, np.array([at]), bandwidth=bandwidth)
    kernel = stats.norm.pdf(nuisances.dose, at, bandwidth)
    weights = kernel * stabilised_weights(nuisances, 0.0).values
    line = np.polyfit(nuisances.dose - at, nuisances.y, 1, w=np.sqrt(weights))
    np.testing.assert_allclose(curve.estimates, line[1], rtol=1e-9)
    # The two variances, from the hat matrix of this regression. The plug-in is zero.
    design = np.column_stack([np.ones(300), nuisances.dose - at])
    solved = np.linalg.solve((design * weights[:, None]).T @ design, (design * weights[:, None]).T)
    residual, leverage = nuisances.y - design @ (solved @ nuisances.y), np.diag(design @ solved)
    own = np.sum(solved[0] ** 2 * residual**2 / (1 - leverage))
    given_weights = np.sum(solved[0] ** 2) * np.average(residual**2, weights=kernel)
    np.testing.assert_allclose(curve.variance, max(own, given_weights), rtol=1e-9)


def test_variance_where_few_units_count(linear, curve_of):
    """Noise of variance one on one design: the estimate's variance is the sum of squared shares.

    The mean over 400 draws of an estimated variance must not fall short of it, and intervals must
    not cover less than 95 % by more than four standard errors. At these doses one unit has three
    quarters, and one a quarter, of all weight: the influence function alone gives less than a third
    of the variance.
    """
    n, draws, doses = 200, 400, np.array([-2.6, 2.6])
    known = linear(n)
    known = replace(known, mu=2 * known.dose, mu_grid=np.tile(2 * known.grid, (n, 1)))
    rng = np.random.default_rng(0)
    curves = [
        curve_of(replace(known, y=known.mu + rng.normal(size=n)), doses, bandwidth=0.6)
        for _ in range(draws)
    ]
    errors = np.array([curve.estimates for curve in curves]) - 2 * doses
    standard_errors = np.array([curve.standard_errors for curve in curves])
    truth = errors.var(axis=0)
    tolerance = FOUR * np.sqrt(2 / draws)
    assert (np.mean(standard_errors**2, axis=0) > (1 - tolerance) * truth).all()
    naive = np.mean([np.mean(curve.influence**2, axis=0) / n for curve in curves], axis=0)
    assert (naive < truth / 3).all()
    covered = np.mean(abs(errors) < 1.96 * standard_errors, axis=0)
    assert (covered > 0.95 - FOUR * np.sqrt(0.95 * 0.05 / draws)).all()


def test_influence_is_the_derivative_in_the_weights(linear, curve_of):
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


def test_doses_that_repeat_have_a_curve(linear, curve_of):
    nuisances = linear(400)
    rounded = np.round(nuisances.dose * 2) / 2
    grid = dose_grid(rounded)
    mu_grid = 2 * grid[None, :] + 3 * nuisances.mean[:, None]
    nuisances = replace(nuisances, dose=rounded, grid=grid, mu_grid=mu_grid)
    curve = curve_of(nuisances, np.array([-0.5, 0.2, 0.5]), bandwidth=1e-3)
    assert np.isfinite(curve.estimates).all()
    assert (curve.standard_errors > 0).all()


def test_weights_count_as_repeated_rows(linear, curve_of):
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


def test_units_of_weight_zero_do_not_count(linear, curve_of):
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
