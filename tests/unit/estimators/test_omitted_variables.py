"""Bounds for omitted confounders, against closed forms and against DoubleML."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import Nuisances, estimate_target
from cstonet.estimators.omitted_variables import (
    Gains,
    bias_factor,
    bias_scale,
    model_variances,
    robustness_value,
)

# DoubleML 0.11.4, DoubleMLIRM with the nuisances of `known` as external predictions: sigma2, nu2
# of sensitivity_elements, and coef.
DOUBLEML = {
    "ATE": (1.1600640265411897, 5.331729826798708, 0.9268955131206521),
    "ATT": (1.1600640265411897, 6.507605797230625, 1.134019193335923),
}


@pytest.fixture
def known():
    """400 units without random numbers, as any language can make them."""
    i = np.arange(400)
    x = np.sin(1.7 * i) * 1.3 + np.cos(0.37 * i)
    p = 1 / (1 + np.exp(-0.8 * x))
    treatment = ((i * 0.6180339887498949) % 1 < p).astype(np.int64)
    mu = np.column_stack([0.5 * x, 1 + 0.9 * x])
    noise = np.sin(12.9898 * i) * 1.4 + np.cos(78.233 * i) * 0.6
    y = mu[i, treatment] + noise
    return Nuisances(y, treatment, mu, np.column_stack([1 - p, p]), None, i % 2)


@pytest.fixture
def three_levels():
    rng = np.random.default_rng(3)
    n = 300
    p = rng.dirichlet([4, 3, 5], size=n)
    treatment = np.array([rng.choice(3, p=row) for row in p])
    mu = rng.normal(size=(n, 3))
    y = mu[np.arange(n), treatment] + rng.normal(size=n)
    return Nuisances(y, treatment, mu, p, rng.uniform(0.5, 2, n), np.zeros(n, dtype=np.int64))


@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_both_parts_of_the_scale_are_those_of_doubleml(known, target):
    sigma2, nu2, coef = DOUBLEML[target]
    scale = bias_scale(known, target, (1, 0), clip=0.0)
    np.testing.assert_allclose(scale.estimates, [sigma2, nu2], rtol=1e-12)
    effect = estimate_target(known, target, (1, 0), clip=0.0, name=target)
    np.testing.assert_allclose(effect.estimates, [coef], rtol=1e-12)


@pytest.mark.parametrize("target", ["ATE", "ATT", "ATC", "ATO"])
def test_parts_of_the_scale_follow_their_definition_unit_by_unit(three_levels, target):
    b, a = 2, 0
    nuisances, w = three_levels, three_levels.unit_weights
    squares, moments, shares, expected = [], [], [], []
    for i in range(nuisances.n):
        p, arm = nuisances.propensity[i], nuisances.treatment[i]
        overlap = p[a] * p[b] / (p[a] + p[b])
        h = {"ATE": 1.0, "ATT": p[b], "ATC": p[a], "ATO": overlap}[target]
        g = {"ATE": 1.0, "ATT": arm == b, "ATC": arm == a, "ATO": overlap}[target]

        def alpha(level, h=h, p=p):
            return h / p[b] if level == b else -h / p[a] if level == a else 0.0

        squares.append((nuisances.y[i] - nuisances.mu[i, arm]) ** 2 if arm in (a, b) else 0.0)
        moments.append(2 * g * (alpha(b) - alpha(a)) - alpha(arm) ** 2)
        expected.append(p[b] * alpha(b) ** 2 + p[a] * alpha(a) ** 2)
        shares.append(g)
    share = np.mean(w * shares)
    scale = bias_scale(nuisances, target, (b, a), clip=0.0)
    sigma2 = np.mean(w * squares)
    np.testing.assert_allclose(
        scale.estimates, [sigma2, np.mean(w * moments) / share**2], rtol=1e-12
    )
    np.testing.assert_allclose(
        model_variances(nuisances, target, (b, a), clip=0.0),
        [sigma2, np.mean(w * expected) / share**2],
        rtol=1e-12,
    )


@pytest.mark.parametrize("target", ["ATE", "ATT", "ATO"])
def test_influence_values_are_derivatives_in_the_weights(three_levels, target):
    n, step, weights = three_levels.n, 1e-4, three_levels.unit_weights

    def parts(unit, by):
        moved = weights.copy()
        moved[unit] += by
        return bias_scale(replace(three_levels, weights=moved), target, (1, 0), clip=0.0).estimates

    influence = bias_scale(three_levels, target, (1, 0), clip=0.0).influence
    assert np.abs(influence.mean(axis=0)).max() < 1e-12
    for unit in (0, 5, 17, 200):
        slope = (parts(unit, step) - parts(unit, -step)) / (2 * step)
        # A unit's influence value is that of its whole weight: n w_i ∂/∂w_i.
        np.testing.assert_allclose(n * weights[unit] * slope, influence[unit], rtol=1e-6)


def test_covariance_is_that_of_influence_values_and_knows_clusters(known):
    clusters = np.arange(known.n) // 4
    influence = bias_scale(known, "ATE", (1, 0), clip=0.0).influence
    alone = bias_scale(known, "ATE", (1, 0), clip=0.0).covariance
    np.testing.assert_allclose(alone, influence.T @ influence / known.n**2, rtol=1e-12)
    sums = influence.reshape(100, 4, 2).sum(axis=1)
    together = bias_scale(replace(known, clusters=clusters), "ATE", (1, 0), clip=0.0).covariance
    np.testing.assert_allclose(together, 100 / 99 * sums.T @ sums / known.n**2, rtol=1e-12)


def test_propensities_that_are_far_off_leave_the_square_in_place_of_an_absurd_moment(known):
    wrong = known.propensity.copy()
    chosen = known.treatment == 1
    wrong[chosen] = [0.999, 0.001]
    scale = bias_scale(replace(known, propensity=wrong), "ATE", (1, 0), clip=0.0)
    alpha = np.where(chosen, 1 / wrong[:, 1], -1 / wrong[:, 0])
    assert scale.estimates[1] == pytest.approx(np.mean(alpha**2), rel=1e-12)


@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_the_bias_of_an_omitted_confounder_is_what_the_formula_says(target):
    """All of a population of cells (x, u, a, e), so that no estimate is in it.

    The long models know u, the short ones average it out. Bias, R_Y, R_D and their correlation come
    from their definitions, the scale from `bias_scale` at the short models.
    """
    cells = [(x, u, a, e) for x in (0, 1, 2) for u in (0, 1) for a in (0, 1) for e in (-1, 1)]
    x, u, a, e = np.array(cells).T
    p_u = np.array([0.3, 0.5, 0.6])[x]
    p_long = 1 / (1 + np.exp(-(0.4 * x - 0.5 + 0.9 * u)))
    probability = np.where(u == 1, p_u, 1 - p_u) * np.where(a == 1, p_long, 1 - p_long) / 6
    assert probability.sum() == pytest.approx(1)

    def mean(values, where):
        return np.sum(values[where] * probability[where]) / np.sum(probability[where])

    def long_mean(level):
        return 1 + level * (1 + 0.5 * x) + x + 0.8 * u + 0.3 * level * u

    y = long_mean(a) + 0.7 * e
    p_short = np.array([mean(a, x == value) for value in x])
    mu_short = np.column_stack(
        [[mean(y, (x == value) & (a == level)) for value in x] for level in (0, 1)]
    )
    population = a if target == "ATT" else np.ones(len(a))
    share = np.sum(population * probability)

    def representer(p):
        h = p if target == "ATT" else np.ones(len(p))
        return h * np.where(a == 1, 1 / p, -1 / (1 - p)) / share

    short_effect = np.sum(population * (mu_short[:, 1] - mu_short[:, 0]) * probability) / share
    long_effect = np.sum(population * (long_mean(1) - long_mean(0)) * probability) / share
    g_gap = long_mean(a) - mu_short[np.arange(len(a)), a]
    long, short = representer(p_long), representer(p_short)
    r2_outcome = np.sum(g_gap**2 * probability) / np.sum(
        (y - long_mean(a) + g_gap) ** 2 * probability
    )
    r2_treatment = 1 - np.sum(short**2 * probability) / np.sum(long**2 * probability)
    rho = np.sum(g_gap * (long - short) * probability) / np.sqrt(
        np.sum(g_gap**2 * probability) * np.sum((long - short) ** 2 * probability)
    )
    nuisances = Nuisances(
        y, a, mu_short, np.column_stack([1 - p_short, p_short]), probability, np.zeros(len(a), int)
    )
    scale = np.sqrt(bias_scale(nuisances, target, (1, 0), clip=0.0).estimates.prod())
    bias = scale * float(bias_factor(r2_outcome, r2_treatment, rho))
    assert abs(short_effect - long_effect) > 0.05
    assert bias == pytest.approx(abs(short_effect - long_effect), rel=1e-10)


@pytest.mark.parametrize("factor", [1e-6, 0.01, 0.1496, 0.7, 3.0, 1e4])
def test_robustness_value_is_the_strength_whose_bias_is_the_factor(factor):
    r = robustness_value(factor)
    assert 0 < r < 1
    assert float(bias_factor(r, r)) == pytest.approx(factor, rel=1e-6)
    published = (np.sqrt(factor**4 + 4 * factor**2) - factor**2) / 2
    assert r == pytest.approx(published, abs=1e-8)


def test_extreme_strengths():
    assert robustness_value(0.0) == robustness_value(-1.0) == 0.0
    assert robustness_value(np.inf) == 1.0
    np.testing.assert_array_equal(bias_factor([0.0, 0.5, 0.5], [1.0, 1.0, 0.0]), [0, np.inf, 0])
    np.testing.assert_allclose(bias_factor(0.2, [0.1, 0.3], 0.5), 0.5 * np.sqrt([2 / 90, 6 / 70]))


def test_gains_are_partial_r2_over_their_rest_in_a_linear_regression():
    rng = np.random.default_rng(1)
    n = 500
    x, z = rng.normal(size=(2, n))
    dose = 0.6 * x + 0.3 * z + rng.normal(size=n)
    y = dose + x - z + rng.normal(size=n)

    def residual(values, *others):
        basis = np.column_stack([np.ones(n), *others])
        return values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]

    def variances(*others):
        return np.mean(residual(y, dose, *others) ** 2), 1 / np.mean(residual(dose, *others) ** 2)

    gains = Gains.of(variances(x, z), variances(z))
    own = np.corrcoef(residual(y, dose, z), residual(x, dose, z))[0, 1] ** 2
    treated = np.corrcoef(residual(dose, z), residual(x, z))[0, 1] ** 2
    assert gains.r2_outcome == pytest.approx(own / (1 - own), rel=1e-10)
    assert gains.r2_treatment == pytest.approx(treated / (1 - treated), rel=1e-10)


def test_gains_are_shares():
    assert Gains.of((1.0, 4.0), (0.9, 5.0)) == Gains(0.0, 0.0)
    assert Gains.of((1.0, 9.0), (3.0, 4.0)) == Gains(1.0, 1.0)
