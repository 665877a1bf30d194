"""Linear terms against a plain regression and a numerical influence function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.errors import NumericalError
from cstonet.estimators import Nuisances, clip_propensity, estimate_effects, estimate_target
from cstonet.estimators.linear_terms import linear_terms
from cstonet.reporting.diagnostics import arm_separation, balance

CLIP = 0.05
N = 150
# Sums of some hundred terms of order one, and a matrix of condition number about ten.
TWIN = {"rtol": 1e-10, "atol": 1e-11}


@pytest.fixture(params=["plain", "weighted", "three arms"])
def nuisances(request) -> Nuisances:
    """Nuisances with three covariates that move treatment and outcome and are in neither model."""
    rng = np.random.default_rng(5)
    levels = 3 if request.param == "three arms" else 2
    odds = np.exp(rng.normal(0.0, 0.7, (N, levels)))
    propensity = odds / odds.sum(axis=1, keepdims=True)
    treatment = np.array([rng.choice(levels, p=p) for p in propensity])
    linear = rng.normal(2.0, [0.5, 1.0, 30.0], (N, 3))
    linear[:, 0] += 0.3 * treatment
    linear[:, 1] += linear[:, 0] - 0.5 * treatment
    mu = rng.normal(0.0, 1.0, (N, levels)) + np.arange(levels)
    return Nuisances(
        y=mu[np.arange(N), treatment] + linear @ [0.4, -0.3, 0.01] + rng.normal(0.0, 0.5, N),
        treatment=treatment,
        mu=mu + 0.1 * mu**2,
        propensity=propensity,
        weights=rng.uniform(0.5, 2.0, N) if request.param == "weighted" else None,
        fold=np.zeros(N, dtype=np.int64),
        linear=linear,
    )


def estimate(nuisances, variance="influence"):
    return estimate_effects(
        nuisances,
        levels=tuple(range(nuisances.n_levels)),
        clip=CLIP,
        variance=variance,
        kind="multilevel",
    )


def target(nuisances, name):
    return estimate_target(nuisances, name, (1, 0), clip=CLIP, name=name)


ESTIMATORS = {
    "effects": estimate,
    "ATT": lambda nuisances: target(nuisances, "ATT"),
    "ATC": lambda nuisances: target(nuisances, "ATC"),
    "ATO": lambda nuisances: target(nuisances, "ATO"),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def weighted_means(nuisances):
    """Means over units with sampling weights."""
    w = np.ones(nuisances.n) if nuisances.weights is None else nuisances.weights
    return lambda values: np.average(values, axis=0, weights=w)


def test_estimates_are_those_of_a_regression_of_the_residuals(nuisances):
    """Twin: weighted least squares by numpy's own solver, then equation (1) with cleared y."""
    mean = weighted_means(nuisances)
    p = clip_propensity(nuisances.propensity, CLIP).values
    rows = np.arange(nuisances.n)
    own, expected = p[rows, nuisances.treatment], nuisances.mu[rows, nuisances.treatment]
    w = np.ones(nuisances.n) if nuisances.weights is None else nuisances.weights
    root = np.sqrt(w / own)[:, None]
    z = nuisances.linear - mean(nuisances.linear)
    design = np.column_stack([np.eye(nuisances.n_levels)[nuisances.treatment], z])
    solution = np.linalg.lstsq(root * design, root[:, 0] * (nuisances.y - expected), rcond=None)[0]
    cleared = nuisances.y - z @ solution[nuisances.n_levels :]
    plain = estimate(replace(nuisances, y=cleared, linear=None))
    np.testing.assert_allclose(estimate(nuisances).estimates, plain.estimates, **TWIN)


@every_estimator
def test_influence_is_the_derivative_by_the_units_weights(nuisances, name):
    """Each unit's weight moves the estimate by its influence value over n.

    The influence function takes the weights' means within the arms for one, which they are up to
    chance. What this leaves out is a unit's pull on the mean of z.
    """
    step, n = 1e-6, nuisances.n
    weights = (
        np.ones(n) if nuisances.weights is None else nuisances.weights / nuisances.weights.mean()
    )
    nuisances = replace(nuisances, weights=weights)
    effects = ESTIMATORS[name](nuisances)
    p = clip_propensity(nuisances.propensity, CLIP).values
    pull = linear_terms(nuisances, CLIP).pull(slice(None))
    excess = np.zeros(len(effects.names))
    if len(effects.names) > 1:
        arms = (weights[:, None] * nuisances.received / p).mean(axis=0) - 1
        excess = np.r_[arms[1:] - arms[0], arms]
    else:
        # The weights of a contrast have the mean zero up to chance; this is how far they are off.
        ones = replace(nuisances, y=np.ones(n), mu=np.zeros_like(p), linear=None)
        excess[0] = ESTIMATORS[name](ones).estimates[0]
    for i in range(0, n, 10):
        moved = []
        for sign in (1, -1):
            changed = weights.copy()
            changed[i] += sign * step
            moved.append(ESTIMATORS[name](replace(nuisances, weights=changed)).estimates)
        slope = n * (moved[0] - moved[1]) / (2 * step)
        analytic = effects.influence[i] / weights[i] + excess * pull[i]
        # Central differences of step 1e-6: rounding of about 1e-16 n / 1e-6.
        np.testing.assert_allclose(slope, analytic, rtol=1e-6, atol=1e-7)


@every_estimator
def test_what_the_covariates_do_linearly_does_not_matter(nuisances, name):
    mean = weighted_means(nuisances)
    z = nuisances.linear - mean(nuisances.linear)
    before = ESTIMATORS[name](nuisances)
    after = ESTIMATORS[name](replace(nuisances, y=nuisances.y + z @ [5.0, -7.0, 0.5]))
    np.testing.assert_allclose(after.estimates, before.estimates, **TWIN)
    if len(before.names) == 1:  # the means' own variance counts what z does
        np.testing.assert_allclose(after.covariance, before.covariance, **TWIN)


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_covariance_counts_slopes_that_arms_share(nuisances, variance):
    """Twin: the noise of every unit in every mean, by a loop, and how it moves the slopes."""
    n, levels = nuisances.n, nuisances.n_levels
    w = np.ones(n) if nuisances.weights is None else nuisances.weights * n / nuisances.weights.sum()
    p = clip_propensity(nuisances.propensity, CLIP).values
    z = nuisances.linear - weighted_means(nuisances)(nuisances.linear)
    design = np.column_stack([np.eye(levels)[nuisances.treatment], z])
    own = p[np.arange(n), nuisances.treatment]
    expected = nuisances.mu[np.arange(n), nuisances.treatment]
    gram = sum(w[i] / own[i] * np.outer(design[i], design[i]) for i in range(n)) / n
    moment = sum(w[i] / own[i] * design[i] * (nuisances.y[i] - expected[i]) for i in range(n)) / n
    coefficients = np.linalg.solve(gram, moment)
    slopes = coefficients[levels:]
    means = estimate(nuisances).estimates[levels - 1 :]
    noise, signal = np.zeros((n, levels)), np.zeros((n, levels))
    for a in range(levels):
        in_arm = nuisances.treatment == a
        imbalance = sum(w[i] / own[i] * z[i] for i in np.flatnonzero(in_arm)) / n
        for i in range(n):
            left = nuisances.y[i] - expected[i] - z[i] @ slopes
            moved = np.linalg.solve(gram, w[i] / own[i] * design[i])[levels:]
            error = nuisances.y[i] - expected[i] - design[i] @ coefficients
            noise[i, a] = in_arm[i] * w[i] / own[i] * left - imbalance @ moved * error
            signal[i, a] = w[i] * (nuisances.mu[i, a] + z[i] @ slopes - means[a])
    noise *= np.sqrt(n / (n - levels - 3))
    parts = [noise, signal] if variance == "paper" else [noise + signal]
    twin = sum(part.T @ part for part in parts) / n**2
    assert np.abs(noise.T @ noise - np.diag(np.diag(noise.T @ noise))).max() > 1
    covariance = estimate(nuisances, variance).covariance[levels - 1 :, levels - 1 :]
    np.testing.assert_allclose(covariance, twin, rtol=1e-9)


def test_errors_allow_for_the_fitted_slopes():
    """Twenty slopes and two arms of 100 units: residuals are smaller than errors by √0.78."""
    rng = np.random.default_rng(7)
    estimates, errors = [], []
    for _ in range(400):
        treatment = rng.integers(0, 2, 100)
        nuisances = Nuisances(
            y=rng.normal(size=100),
            treatment=treatment,
            mu=np.zeros((100, 2)),
            propensity=np.full((100, 2), 0.5),
            weights=None,
            fold=np.zeros(100, dtype=np.int64),
            linear=rng.normal(size=(100, 20)) + 0.2 * treatment[:, None],
        )
        effects = estimate(nuisances)
        estimates.append(effects.estimates[0])
        errors.append(effects.standard_errors[0])
    # The spread of 400 estimates has a standard error of 3.5 %; without the allowance the mean
    # error would be 12 % too small.
    ratio = np.mean(errors) / np.std(estimates)
    assert 1 - 3 * 0.035 < ratio < 1 + 3 * 0.035


def test_more_slopes_than_units_can_bear_are_refused(nuisances):
    many = np.random.default_rng(0).normal(size=(N, N // 2))
    with pytest.raises(NumericalError, match="too many covariates were found for the treatment"):
        estimate(replace(nuisances, linear=many))


@every_estimator
def test_influence_averages_to_zero(nuisances, name):
    influence = ESTIMATORS[name](nuisances).influence
    np.testing.assert_allclose(influence.mean(axis=0), 0, atol=1e-12)


def test_units_copies_and_constants_of_the_covariates_do_not_matter(nuisances):
    linear = nuisances.linear
    more = np.column_stack([1e3 * linear + 1e4, linear[:, :1], np.full(nuisances.n, 3.0)])
    one, other = estimate(nuisances), estimate(replace(nuisances, linear=more))
    np.testing.assert_allclose(other.estimates, one.estimates, rtol=1e-8)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-8)


def test_rows_without_weight_do_not_matter(nuisances):
    weights = np.where(np.arange(nuisances.n) % 5, 1.0, 0.0)
    some = replace(nuisances, weights=weights)
    kept = weights > 0
    parts = ("y", "treatment", "mu", "propensity", "weights", "fold", "linear")
    only = Nuisances(**{name: getattr(some, name)[kept] for name in parts})
    np.testing.assert_allclose(estimate(some).estimates, estimate(only).estimates, **TWIN)
    errors = [estimate(each).standard_errors for each in (some, only)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-8)


def test_no_linear_terms_change_nothing(nuisances):
    none = replace(nuisances, linear=None)
    empty = replace(nuisances, linear=np.empty((nuisances.n, 0)))
    for one, other in zip(vars_of(estimate(none)), vars_of(estimate(empty)), strict=True):
        np.testing.assert_array_equal(one, other)


def vars_of(effects):
    return effects.estimates, effects.covariance, effects.influence


def test_the_estimators_weights_balance_the_covariates(nuisances):
    levels = tuple(range(nuisances.n_levels))
    arguments = {"covariates": ["a", "b", "c"], "levels": levels, "clip": CLIP}
    table = balance(nuisances, nuisances.linear, kind="multilevel", **arguments)
    assert np.abs(table.filter(like="before").to_numpy()).max() > 0.3
    np.testing.assert_allclose(table.filter(like="after"), 0, atol=1e-12)


def test_impossible_shapes_are_refused(nuisances):
    with pytest.raises(ValueError, match="linear has shape"):
        replace(nuisances, linear=nuisances.linear[:-1])


def test_separation_by_covariates_that_are_not_in_the_weights_is_seen(nuisances):
    assert arm_separation(nuisances) < 0.9
    linear = np.column_stack([nuisances.linear, nuisances.treatment == 1])
    assert arm_separation(replace(nuisances, linear=linear)) == 1.0
