"""Least squares of peers and baselines, against statsmodels and the spread of its estimates."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from least_squares import adjust, adjust_within_arms


def arms_and_covariates(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, three arms, four covariates with units; every arm has slopes of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 1.0, 0.0]
    arms = rng.integers(0, 3, size=n)
    y = X[:, 0] + arms * (1 + X[:, 3]) + (1 + (arms == 2)) * rng.normal(size=n)
    return y, arms, X


def test_coefficients_and_errors_are_those_of_statsmodels():
    y, arms, X = arms_and_covariates(1)
    indicators = np.column_stack([arms == 1, arms == 2]).astype(float)
    fit = sm.OLS(y, np.column_stack([indicators, np.ones(len(y)), X])).fit(cov_type="HC1")
    # Collinear controls change nothing: neither the fit, nor its degrees of freedom.
    for controls in (X, np.column_stack([X, X[:, 0] - 3 * X[:, 2], np.ones(len(y))])):
        found = adjust(y, indicators, controls)
        assert found.coefficients == pytest.approx(fit.params[:2], rel=1e-9)
        assert found.errors == pytest.approx(fit.bse[:2], rel=1e-9)


def test_treatments_that_controls_determine_are_refused():
    y, arms, X = arms_and_covariates(2)
    treat = (arms > 0).astype(float)[:, None]
    with pytest.raises(ValueError, match=r"the 5 covariates determine the treatment of all 300"):
        adjust(y, treat, np.column_stack([X, 2 * treat]))
    with pytest.raises(ValueError, match="ask about more rows, or adjust for fewer"):
        adjust(y[:5], np.array([0.0, 1.0, 0.0, 1.0, 1.0])[:, None], X[:5])


def test_slopes_of_each_arm_by_their_full_regression():
    y, arms, X = arms_and_covariates(3)
    n, centred = len(y), X - X.mean(axis=0)
    indicators = np.column_stack([arms == 1, arms == 2]).astype(float)
    products = [indicators[:, [k]] * centred for k in range(2)]
    fit = sm.OLS(y, np.column_stack([indicators, *products, np.ones(n), X])).fit()
    effects, of_rows = adjust_within_arms(y, arms, X)
    assert effects.coefficients == pytest.approx(fit.params[:2], rel=1e-9)
    solve = np.linalg.pinv(fit.model.exog)
    for k in range(2):
        slopes = fit.params[2 + 4 * k : 6 + 4 * k]
        assert of_rows[:, k] == pytest.approx(fit.params[k] + centred @ slopes, abs=1e-9)
        # HC1's part, and the part of means that another sample would have otherwise.
        by_row = math.sqrt(n / (n - 15)) * solve[k] * fit.resid + centred @ slopes / n
        assert effects.errors[k] == pytest.approx(math.sqrt(by_row @ by_row), rel=1e-9)


def test_errors_are_the_spread_over_samples_of_the_population():
    # τ(x) = 1 + 2x: the mean of x among the rows moves the effect by 2/√n, more than the noise.
    draws, n = 800, 100
    estimates, errors = np.empty((2, draws))
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        x, arms = rng.normal(size=n), rng.integers(0, 2, size=n)
        y = arms * (1 + 2 * x) + 0.5 * rng.normal(size=n)
        effects, _ = adjust_within_arms(y, arms, x[:, None])
        estimates[draw], errors[draw] = effects.coefficients[0], effects.errors[0]
    spread = estimates.std(ddof=1)
    # A spread of m normal draws is known to a share of 1/√(2m).
    assert abs(errors.mean() / spread - 1) < 4 / math.sqrt(2 * draws)
    assert abs(estimates.mean() - 1) < 4 * spread / math.sqrt(draws)
    # Without the means' part the errors would be about 2 · 0.5/√n, half of it.
    assert spread == pytest.approx(math.sqrt(4 + 1) / math.sqrt(n), rel=4 / math.sqrt(2 * draws))


def test_covariates_that_an_arm_does_not_tell_apart_have_one_slope():
    y, arms, X = arms_and_covariates(4)
    rng = np.random.default_rng(5)
    rare = np.where(arms == 1, 0.0, rng.integers(0, 2, size=len(y)))  # constant within one arm
    twin = np.where(arms == 2, X[:, 0], rng.normal(size=len(y)))  # within another it is the first
    n, all_covariates = len(y), np.column_stack([X, rare, twin])
    effects, _ = adjust_within_arms(y, arms, all_covariates)
    indicators = np.column_stack([arms == 1, arms == 2]).astype(float)
    candidates = []
    # Which of two equal columns keeps slopes of its own is a matter of rounding.
    for kept in (X, np.column_stack([X[:, 1:], twin])):
        centred = kept - kept.mean(axis=0)
        products = [indicators[:, [k]] * centred for k in range(2)]
        design = np.column_stack([indicators, *products, np.ones(n), all_covariates])
        candidates.append(sm.OLS(y, design).fit().params[:2])
    assert any(effects.coefficients == pytest.approx(each, rel=1e-8) for each in candidates)


def test_an_arm_with_as_many_coefficients_as_rows_is_refused():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 12)), rng.normal(size=60)
    arms = (np.arange(60) < 13).astype(np.int64)
    with pytest.raises(ValueError, match="13 rows, too few for slopes of its own of 12 covariates"):
        adjust_within_arms(y, arms, X)
    enough = (np.arange(60) < 14).astype(np.int64)
    assert np.isfinite(adjust_within_arms(y, enough, X)[0].errors).all()
