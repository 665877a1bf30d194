"""Residual balancing: its quadratic program, its penalty, and the authors' simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

pytest.importorskip("osqp")
pytest.importorskip("sklearn")

from baselines import residual_balancing as rb


def objective(X: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    return 0.5 * weights @ weights + 0.5 * np.abs(weights @ X - target).max() ** 2


def test_weights_of_one_covariate_have_a_closed_form():
    # Without a bound that binds, γ_i = 1/n - δ (x_i - x̄) with δ = (x̄ - target) / (1 + Σ(x - x̄)²).
    x = np.array([-1.0, 0.0, 2.0, 3.0])
    target = 0.8
    imbalance = (x.mean() - target) / (1 + ((x - x.mean()) ** 2).sum())
    expected = 1 / 4 - imbalance * (x - x.mean())
    assert (expected > 0).all()
    weights = rb.balancing_weights(x[:, None], np.array([target]))
    assert weights == pytest.approx(expected, abs=1e-9)
    assert weights @ x - target == pytest.approx(imbalance, abs=1e-9)


def test_weights_meet_the_conditions_of_an_optimum():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 25)) + 0.5
    target = np.zeros(25)
    weights = rb.balancing_weights(X, target)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()
    assert objective(X, target, weights) < objective(X, target, np.full(60, 1 / 60))
    imbalances = weights @ X - target
    largest = np.abs(imbalances).max()
    assert largest < np.abs(X.mean(axis=0) - target).max()
    # Stationarity: γ_i + Σ_j μ_j s_j (x_ij - target_j) - ν - η_i = 0 with multipliers μ ≥ 0 of sum
    # δ on the largest imbalances, η ≥ 0 on the weights that are zero, and ν free.
    active = np.flatnonzero(np.abs(imbalances) > largest - 1e-8)
    zero = np.flatnonzero(weights < 1e-10)
    assert len(active) > 1
    assert len(zero) > 1
    of_imbalance = (X - target)[:, active] * np.sign(imbalances[active])
    ones = np.ones((60, 1))
    columns = np.hstack([of_imbalance, -ones, ones, -np.eye(60)[:, zero]])
    total = np.r_[np.ones(len(active)), 0, 0, np.zeros(len(zero))]
    _, distance = nnls(np.vstack([columns, total]), np.r_[-weights, largest])
    assert distance < 1e-8


def test_largest_weight_is_kept_to():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 5)) + 1.0
    free = rb.balancing_weights(X, np.zeros(5))
    bounded = rb.balancing_weights(X, np.zeros(5), largest_weight=0.05)
    assert free.max() > 0.06
    assert bounded.max() == pytest.approx(0.05, abs=1e-9)
    assert objective(X, np.zeros(5), free) < objective(X, np.zeros(5), bounded)


def test_weights_do_not_change_with_the_origin():
    rng = np.random.default_rng(3)
    X, shift = rng.normal(size=(40, 6)), np.linspace(-100, 100, 6)
    here = rb.balancing_weights(X, np.zeros(6))
    assert rb.balancing_weights(X + shift, shift) == pytest.approx(here, abs=1e-8)


def test_only_covariates_that_are_not_0_or_1_are_scaled():
    X = np.array([[0.0, 2.0, 7.0], [1.0, 4.0, 7.0], [1.0, 6.0, 7.0]])
    assert rb.balancing_scales(X).tolist() == [1.0, 2.0, 1.0]


def test_one_error_rule_by_hand():
    penalties = np.array([4.0, 3.0, 2.0, 1.0])
    # Weighted means 5, 3.5, 3, 3.25. At 2, deviations from 3 of 2, -1, -1 with weights 1, 1, 1:
    # √(6/3 / 2) = 1, so that 3.5 is near enough to 3.
    errors = np.array([[5.0, 5.0, 5.0], [3.5, 3.5, 3.5], [5.0, 2.0, 2.0], [3.25, 3.25, 3.25]])
    assert rb.one_error_rule(penalties, errors, np.ones(3)) == 3.0
    # A fold of twice the size: means 5, 3.5, 3.5, 3.25, and no spread at the best penalty.
    assert rb.one_error_rule(penalties, errors, np.array([2, 1, 1])) == 1.0


def test_regression_does_not_depend_on_units(simulated):
    rows = simulated(4, n=300, p=20)
    units = np.geomspace(1e-2, 1e2, rows.X.shape[1])
    plain, scaled = (rb.fit_arm(X, rows.y, 1, seed=5) for X in (rows.X, rows.X * units))
    assert scaled.coefficients * units == pytest.approx(plain.coefficients, abs=1e-6)
    assert scaled.intercept == pytest.approx(plain.intercept, abs=1e-6)
    constant = rb.fit_arm(rows.X, np.full(len(rows.y), 3.0), 1, seed=5)
    assert constant.predict(rows.X[:2]).tolist() == [3.0, 3.0]


def test_estimate_by_hand_from_given_regressions(simulated):
    rows = simulated(6, n=80, p=3)
    slopes = (np.array([1.0, 0.0, 0.5]), np.array([0.0, 2.0, 0.0]))
    arms = (rb.ArmRegression(0.5, slopes[0], 40), rb.ArmRegression(1.0, slopes[1], 30))
    means, variances = [], []
    scaled = rows.X / rows.X.std(axis=0, ddof=1)
    for a, (constant, freedom) in enumerate(((0.5, 40 / 37), (1.0, 30 / 28))):
        mine = rows.treat == a
        weights = rb.balancing_weights(scaled[mine], scaled.mean(axis=0))
        residuals = rows.y[mine] - constant - rows.X[mine] @ slopes[a]
        means.append(constant + rows.X.mean(axis=0) @ slopes[a] + weights @ residuals)
        variances.append(freedom * np.sum(weights**2 * residuals**2))
    estimate = rb.ArmRegressions(arms).on(rows)
    assert estimate.ate == pytest.approx(means[1] - means[0])
    assert estimate.se == pytest.approx(math.sqrt(sum(variances)))


@pytest.mark.parametrize("binary", [False, True])
def test_estimates_of_training_and_new_rows(simulated, effect_of, binary):
    train, new = (simulated(seed, n, p=20, binary=binary) for seed, n in ((7, 400), (8, 200)))
    fitted = rb.RESIDUAL_BALANCING.learn(train, 1, 3)
    inside, outside = fitted.on(train), fitted.on(new)
    again = rb.RESIDUAL_BALANCING.learn(train, 1, 3).on(train)
    assert (inside.ate, inside.se) == (again.ate, again.se)
    assert abs(inside.ate - effect_of(binary)) < 4 * inside.se
    assert abs(outside.ate - effect_of(binary)) < 4 * outside.se
    assert inside.se < outside.se


def test_an_arm_without_rows_is_named(simulated, rows_of):
    rows = simulated(9, n=300, p=20)
    fitted = rb.RESIDUAL_BALANCING.learn(rows, 1, 0)
    with pytest.raises(ValueError, match="no row has treatment 0"):
        fitted.on(rows_of(rows.y, np.ones_like(rows.treat), rows.X))


@pytest.mark.slow
def test_errors_of_the_authors_misspecified_design():
    """Athey, Imbens and Wager (2018), misspecified design with n = 400 and p = 100.

    Root mean squared errors over 400 draws of the effect on the treated are 0.249 for residual
    balancing and 0.523 for the weights without a regression (tables/misspec.tex of the authors'
    replication files). Weights are bounded by n^(-2/3) there.
    """
    published, of_draws = np.array([0.249, 0.523]), 400
    draws = 60
    squares = np.empty((draws, 2))
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        X = rng.normal(size=(400, 100))
        tau = np.logaddexp(0, -2 - 2 * X[:, 0]) / 0.915
        treated = rng.random(400) < 1 - np.exp(-tau)
        y = tau * np.where(treated, 0.5, -0.5) + X[:, :10].sum(axis=1) + rng.normal(size=400)
        X_0, y_0 = X[~treated], y[~treated]
        scales, target = rb.balancing_scales(X), X[treated].mean(axis=0)
        regression = rb.fit_arm(X_0, y_0, 1, seed=draw)
        weights = rb.balancing_weights(
            X_0 / scales, target / scales, largest_weight=len(y_0) ** (-2 / 3)
        )
        correction = weights @ (y_0 - regression.predict(X_0))
        without = [regression.predict(target[None, :])[0] + correction, weights @ y_0]
        squares[draw] = (y[treated].mean() - np.array(without) - tau[treated].mean()) ** 2
    errors = np.sqrt(squares.mean(axis=0))
    # The published figures have the Monte-Carlo errors of 400 draws, these have those of 60.
    deviations = squares.std(axis=0, ddof=1) / (2 * errors)
    tolerance = 3 * deviations * math.sqrt(1 / draws + 1 / of_draws)
    assert (np.abs(errors - published) < tolerance).all()
