"""Linear terms against plain regressions, numerical derivatives and what their weights promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet import blocks
from cstonet.estimators import Nuisances, clip_propensity, estimate_effects, estimate_target
from cstonet.estimators.linear_terms import (
    ROWS_PER_ARM_SLOPE,
    ROWS_PER_SLOPE,
    LinearTerms,
    effective_size,
    linear_terms,
)
from cstonet.estimators.nuisances import arm_weights
from cstonet.estimators.targets import TARGETS
from cstonet.estimators.targets import total_weights as weights_of_effect
from cstonet.reporting.diagnostics import balance

CLIP = 0.05
N = 150
# Sums of some hundred terms of order one, and a matrix of condition number about ten.
TWIN = {"rtol": 1e-10, "atol": 1e-11}


@pytest.fixture(params=["plain", "weighted", "slopes by arm", "three arms", "three arms' slopes"])
def nuisances(request) -> Nuisances:
    """Nuisances with three covariates that move treatment and outcome and are in neither model."""
    rng = np.random.default_rng(5)
    levels = 3 if "three" in request.param else 2
    odds = np.exp(rng.normal(0.0, 0.7, (N, levels)))
    propensity = odds / odds.sum(axis=1, keepdims=True)
    treatment = np.array([rng.choice(levels, p=p) for p in propensity])
    linear = rng.normal(2.0, [0.5, 1.0, 30.0], (N, 3))
    linear[:, 0] += 0.3 * treatment
    linear[:, 1] += linear[:, 0] - 0.5 * treatment
    mu = rng.normal(0.0, 1.0, (N, levels)) + np.arange(levels)
    by_arm = "slopes" in request.param
    made = Nuisances(
        y=mu[np.arange(N), treatment] + linear @ [0.4, -0.3, 0.01] + rng.normal(0.0, 0.5, N),
        treatment=treatment,
        mu=mu + 0.1 * mu**2,
        propensity=propensity,
        weights=rng.uniform(0.5, 2.0, N) if request.param == "weighted" else None,
        fold=np.zeros(N, dtype=np.int64),
        linear=linear,
        found=np.array([0, 2] if by_arm else [], dtype=np.int64),
    )
    terms = linear_terms(made, CLIP)
    assert terms.width == levels + 3 + (levels - 1) * 2 * by_arm
    return made


@pytest.fixture(params=[0.0, 0.4])
def held(nuisances, request) -> Nuisances:
    """The same, slopes free or held by a ridge that takes about a fifth of each."""
    return replace(nuisances, ridge=request.param)


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


def regressors(nuisances, received):
    """Arms, centred covariates, and these by arm where a model found them, (n, width)."""
    z = nuisances.linear - np.average(nuisances.linear, axis=0, weights=nuisances.unit_weights)
    arms = np.eye(nuisances.n_levels)[received]
    own = [arms[:, [a]] * z[:, nuisances.found] for a in range(1, nuisances.n_levels)]
    return np.column_stack([arms, z, *own])


class Twin:
    """Weighted least squares by numpy's own solver, and what every unit counts in each mean."""

    def __init__(self, nuisances: Nuisances) -> None:
        n, codes = nuisances.n, nuisances.treatment
        rows, w = np.arange(n), nuisances.unit_weights
        design = regressors(nuisances, codes)
        p = clip_propensity(nuisances.propensity, CLIP).values
        root = np.sqrt(w / p[rows, codes])[:, None]
        left = nuisances.y - nuisances.mu[rows, codes]
        beta = np.linalg.lstsq(root * design, root[:, 0] * left, rcond=None)[0]
        every = [regressors(nuisances, np.full(n, a)) for a in range(nuisances.n_levels)]
        self.mu = nuisances.mu + np.column_stack([d @ beta for d in every])
        self.means = w @ self.mu / n
        hat = root * design @ np.linalg.pinv(root * design)
        self.error = (left - design @ beta) / np.sqrt(1 - np.diag(hat))
        # What the fitted values of everyone under each level take from each residual.
        taken = np.column_stack([w @ d for d in every])
        self.total = root * (np.linalg.pinv(root * design).T @ taken)


def test_estimates_are_those_of_a_regression_of_the_residuals(nuisances):
    levels = nuisances.n_levels
    np.testing.assert_allclose(
        estimate(nuisances).estimates[levels - 1 :], Twin(nuisances).means, **TWIN
    )


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_covariance_is_that_of_errors_and_total_weights(nuisances, variance):
    n, levels, twin = nuisances.n, nuisances.n_levels, Twin(nuisances)
    signal = nuisances.unit_weights[:, None] * (twin.mu - twin.means)
    noise = twin.total * twin.error[:, None]
    parts = [noise, signal] if variance == "paper" else [noise + signal]
    expected = sum(part.T @ part for part in parts) / n**2
    found = estimate(nuisances, variance).covariance[levels - 1 :, levels - 1 :]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    squares = (twin.total**2).sum(axis=0)
    freedom = np.maximum(squares**2 / (twin.total**4).sum(axis=0) - 1, 1)
    np.testing.assert_allclose(estimate(nuisances).freedom[levels - 1 :], freedom, rtol=1e-9)


def total_weights(nuisances):
    """Weights minus shift for every mean, (n, L), and the terms they belong to."""
    terms, everyone = linear_terms(nuisances, CLIP), slice(0, nuisances.n)
    p = clip_propensity(nuisances.propensity, CLIP).values
    weights = arm_weights(nuisances, p)
    by_level = nuisances.unit_weights[:, None, None] * np.eye(nuisances.n_levels)
    imbalance = terms.moments(everyone, weights) - terms.expected(everyone, by_level)
    return weights - terms.shift(everyone, imbalance / nuisances.n), terms


def test_total_weights_sum_to_n_in_the_arm_and_give_covariates_their_means(nuisances):
    total, _ = total_weights(nuisances)
    z, arms = nuisances.linear, np.eye(nuisances.n_levels)[nuisances.treatment]
    np.testing.assert_allclose(arms.T @ total / N, np.eye(nuisances.n_levels), atol=1e-10)
    mean = np.average(z, axis=0, weights=nuisances.unit_weights)
    np.testing.assert_allclose(z.T @ total / N, np.tile(mean[:, None], total.shape[1]), rtol=1e-10)
    for a in range(nuisances.n_levels):  # slopes of an arm's own: its units alone have the means
        own = (z * arms[:, [a]])[:, nuisances.found].T @ total[:, a] / N
        np.testing.assert_allclose(own, mean[nuisances.found], rtol=1e-10)
    np.testing.assert_allclose(total, Twin(nuisances).total, rtol=1e-9, atol=1e-10)


def test_total_weights_have_no_imbalance(nuisances):
    total, terms = total_weights(nuisances)
    by_level = nuisances.unit_weights[:, None, None] * np.eye(nuisances.n_levels)
    left = terms.moments(slice(0, N), total) - terms.expected(slice(0, N), by_level)
    np.testing.assert_allclose(left / N, 0, atol=1e-10)


def test_an_outcome_moves_the_means_by_its_total_weight(held):
    """The estimates are linear in y, so that a difference quotient has no error but rounding."""
    total, _ = total_weights(held)
    levels, before = held.n_levels, estimate(held).estimates
    for i in range(0, N, 15):
        y = held.y.copy()
        y[i] += 1.0
        moved = (estimate(replace(held, y=y)).estimates - before)[levels - 1 :]
        np.testing.assert_allclose(moved, total[i] / N, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TARGETS)
def test_an_outcome_moves_an_effect_by_its_total_weight(held, name):
    """Also without linear terms: the effect is linear in y either way."""
    for given in (held, replace(held, linear=None, found=held.found[:0])):
        total = weights_of_effect(given, name, (1, 0), clip=CLIP)
        before = target(given, name).estimates[0]
        for i in range(0, N, 15):
            y = given.y.copy()
            y[i] += 1.0
            moved = target(replace(given, y=y), name).estimates[0] - before
            # Differences of numbers of order one.
            assert moved == pytest.approx(total[i], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", TARGETS)
def test_total_weights_of_an_effect_compare_alike_populations(nuisances, name):
    """One in b, minus one in a, nothing in other arms; both have the same covariates' means."""
    total = weights_of_effect(nuisances, name, (1, 0), clip=CLIP)
    arms = np.eye(nuisances.n_levels)[nuisances.treatment]
    np.testing.assert_allclose(arms.T @ total, [-1, 1, 0][: nuisances.n_levels], atol=1e-10)
    scale = np.abs(nuisances.linear).max(axis=0)
    np.testing.assert_allclose(nuisances.linear.T @ total / scale, 0, atol=1e-10)


@every_estimator
def test_influence_is_the_derivative_by_the_units_weights(held, name):
    """Each unit's weight moves the estimate by its influence value over n, exactly."""
    step, weights = 1e-5, held.unit_weights
    held = replace(held, weights=weights)
    influence = ESTIMATORS[name](held).influence
    for i in range(0, N, 10):
        moved = []
        for sign in (1, -1):
            changed = weights.copy()
            changed[i] += sign * step
            moved.append(ESTIMATORS[name](replace(held, weights=changed)).estimates)
        slope = N * (moved[0] - moved[1]) / (2 * step)
        # Rounding of about 1e-15 n / 1e-5; the next term of the series is of order 1e-10.
        np.testing.assert_allclose(slope, influence[i] / weights[i], rtol=1e-6, atol=1e-7)


@every_estimator
def test_influence_averages_to_zero(held, name):
    influence = ESTIMATORS[name](held).influence
    np.testing.assert_allclose(influence.mean(axis=0), 0, atol=1e-12)


@every_estimator
def test_what_the_covariates_do_linearly_does_not_matter(nuisances, name):
    z = nuisances.linear - np.average(nuisances.linear, axis=0, weights=nuisances.unit_weights)
    before = ESTIMATORS[name](nuisances)
    after = ESTIMATORS[name](replace(nuisances, y=nuisances.y + z @ [5.0, -7.0, 0.5]))
    np.testing.assert_allclose(after.estimates, before.estimates, **TWIN)
    if len(before.names) == 1:  # the means' own variance counts what z does
        np.testing.assert_allclose(after.covariance, before.covariance, **TWIN)


@pytest.mark.parametrize("interacted", [False, True])
def test_with_everything_linear_the_effect_is_that_of_least_squares(interacted):
    """OLS on arms and covariates; with products, its coefficient at the covariates' means."""
    rng = np.random.default_rng(3)
    n, x = 200, rng.normal(size=(200, 4))
    treatment = (x[:, 0] + rng.normal(size=n) > 0).astype(np.int64)
    share = 0.3 if interacted else 0.5  # weights do not matter where every arm has its own slopes
    nuisances = Nuisances(
        y=1.5 * treatment + x @ [1.0, -2.0, 0.5, 0.0] + treatment * x[:, 1] + rng.normal(size=n),
        treatment=treatment,
        mu=np.column_stack([x @ [0.5, -1.0, 0.0, 0.0], 1 + x @ [0.7, 0.0, 0.2, 0.0]])
        if interacted
        else (x @ [0.5, -1.0, 0.0, 0.0])[:, None] + [0.0, 1.0],
        propensity=np.tile([1 - share, share], (n, 1)),
        weights=None,
        fold=np.zeros(n, dtype=np.int64),
        linear=x,
        found=np.arange(4 if interacted else 0),
    )
    z = x - x.mean(axis=0)
    products = [treatment[:, None] * z] if interacted else []
    design = np.column_stack([treatment, np.ones(n), z, *products])
    ols = np.linalg.lstsq(design, nuisances.y, rcond=None)[0]
    assert estimate(nuisances).estimates[0] == pytest.approx(ols[0], rel=1e-10)


def two_arms(sizes, columns, found=0, seed=0):
    """Arms of given sizes whose propensities are their shares, and noise."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    return Nuisances(
        y=rng.normal(size=n),
        treatment=np.repeat([0, 1], sizes),
        mu=np.zeros((n, 2)),
        propensity=np.tile(np.array(sizes) / n, (n, 1)),
        weights=None,
        fold=np.zeros(n, dtype=np.int64),
        linear=rng.normal(size=(n, columns)),
        found=np.arange(found),
    )


def test_without_covariates_the_variance_is_that_of_two_means():
    """HC2: s²/n of each arm with n - 1, Neyman's variance of their difference."""
    nuisances = two_arms((9, 31), 0)
    effects = estimate_effects(nuisances, levels=(0, 1), clip=0.0, variance="influence")
    arms = [nuisances.y[nuisances.treatment == a] for a in (0, 1)]
    means, variances = [a.mean() for a in arms], [a.var(ddof=1) / len(a) for a in arms]
    np.testing.assert_allclose(effects.estimates, [means[1] - means[0], *means], **TWIN)
    np.testing.assert_allclose(
        np.diag(effects.covariance), [sum(variances), *variances], rtol=1e-12
    )
    np.testing.assert_allclose(effects.freedom[1:], [8, 30], rtol=1e-12)


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


# Slopes that are held -----------------------------------------------------------------------------


def standardised(nuisances):
    """The covariates in units of their spread, (n, 3)."""
    w, z = nuisances.unit_weights, nuisances.linear
    z = z - np.average(z, axis=0, weights=w)
    return z / np.sqrt(np.average(z**2, axis=0, weights=w))


def held_regressors(nuisances, received):
    """Arms, covariates with common slopes, and those found, by arm: every arm is coded alike."""
    z, arms = standardised(nuisances), np.eye(nuisances.n_levels)[received]
    common = np.setdiff1d(np.arange(3), nuisances.found)
    own = [arms[:, [a]] * z[:, nuisances.found] for a in range(nuisances.n_levels)]
    return np.column_stack([arms, z[:, common], *own])


class HeldTwin:
    """Least squares with pseudo-observations of slopes of zero, by numpy's own solver."""

    def __init__(self, nuisances: Nuisances) -> None:
        n, codes, levels = nuisances.n, nuisances.treatment, nuisances.n_levels
        rows, w = np.arange(n), nuisances.unit_weights
        design = held_regressors(nuisances, codes)
        weights = w / clip_propensity(nuisances.propensity, CLIP).values[rows, codes]
        left = nuisances.y - nuisances.mu[rows, codes]
        penalty = np.sqrt(nuisances.ridge * weights.sum()) * np.eye(design.shape[1])[levels:]
        root = np.sqrt(weights)
        stacked = np.vstack([root[:, None] * design, penalty])
        answers = np.concatenate([root * left, np.zeros(len(penalty))])
        beta = np.linalg.lstsq(stacked, answers, rcond=None)[0]
        every = [held_regressors(nuisances, np.full(n, a)) for a in range(levels)]
        self.mu = nuisances.mu + np.column_stack([d @ beta for d in every])
        arms = np.eye(levels)[codes] * weights[:, None]
        correction = arms * (nuisances.y - self.mu[rows, codes])[:, None]
        self.means = (w[:, None] * self.mu + correction).mean(axis=0)
        inverse = np.linalg.inv(stacked.T @ stacked)
        leverage = weights * np.sum(design @ inverse * design, axis=1)
        error = (left - design @ beta) / np.sqrt(1 - leverage)
        imbalance = design.T @ arms - np.column_stack([w @ d for d in every])
        pull = inverse @ imbalance
        total = arms - weights[:, None] * (design @ pull)
        # A unit brings its pseudo-observations, and moves the units that they are in.
        common = np.setdiff1d(np.arange(3), nuisances.found)
        shares = np.eye(3)[np.concatenate([common, *[nuisances.found] * levels])]
        products = shares.T @ (beta[levels:, None] * pull[levels:])
        z = standardised(nuisances)
        moves = weights[:, None] + weights.mean() * w[:, None] * (z**2 - 1)
        added = nuisances.ridge * moves @ products
        moved = w[:, None] * (self.mu - self.means) + total * error[:, None] + added
        # What total weights leave of the imbalance, for slopes of variance s² / (n λ w̄).
        remains = (design.T @ total - np.column_stack([w @ d for d in every]))[levels:] / n
        sizes = np.sum(design[:, levels:] ** 2, axis=1)
        noise = np.sum((weights * error) ** 2 * sizes) / np.sum(weights * sizes)
        slope = noise / (n * nuisances.ridge * weights.mean())
        self.covariance = moved.T @ moved / n**2 + slope * remains.T @ remains


def test_held_slopes_are_those_of_pseudo_observations(nuisances):
    held = replace(nuisances, ridge=0.4)
    found, twin, levels = estimate(held), HeldTwin(held), nuisances.n_levels
    np.testing.assert_allclose(found.estimates[levels - 1 :], twin.means, **TWIN)
    covariance = found.covariance[levels - 1 :, levels - 1 :]
    np.testing.assert_allclose(covariance, twin.covariance, rtol=1e-9)


def test_a_ridge_leads_from_free_slopes_to_none(nuisances):
    levels = nuisances.n_levels
    free, none = nuisances, replace(nuisances, linear=np.empty((N, 0)), found=nuisances.found[:0])
    for ridge, limit in ((1e-9, free), (1e8, none)):
        found = estimate(replace(nuisances, ridge=ridge))
        # Off by about the ridge, or by its inverse, times some hundred units of the terms.
        np.testing.assert_allclose(found.estimates, estimate(limit).estimates, rtol=1e-5)
        np.testing.assert_allclose(found.covariance, estimate(limit).covariance, rtol=1e-5)
    # A slope of zero is a claim of no size: the more it is held, the smaller what it may hide.
    weak, firm = (linear_terms(replace(nuisances, ridge=r), CLIP) for r in (1.0, 1e6))
    some = np.ones((weak.width, levels))
    assert np.trace(firm.missed(some)) < 1e-3 * np.trace(weak.missed(some))


@pytest.mark.parametrize("name", TARGETS)
def test_what_the_ridge_leaves_counts_with_slopes_of_its_size(nuisances, name, monkeypatch):
    """The imbalance of the effect's own total weights, times the variance of a slope."""
    plain = replace(nuisances, ridge=0.4, found=nuisances.found[:0])
    seen = []

    def without(terms, imbalance):
        seen.append(terms)
        return np.zeros((imbalance.shape[1],) * 2)

    whole = target(plain, name).covariance[0, 0]
    monkeypatch.setattr(LinearTerms, "missed", without)
    rest = target(plain, name).covariance[0, 0]
    (terms,) = seen
    slope = terms.noise / (N * 0.4 * terms.weights.mean())
    left = standardised(plain).T @ weights_of_effect(plain, name, (1, 0), clip=CLIP)
    assert whole - rest == pytest.approx(slope * left @ left, rel=1e-9)
    assert whole > rest


@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_no_arm_is_the_reference_of_the_others(nuisances, ridge):
    """Arms in reverse order: the same means, covariances and, up to its sign, the same effect."""
    given, levels = replace(nuisances, ridge=ridge), nuisances.n_levels
    mirrored = replace(
        given,
        treatment=levels - 1 - given.treatment,
        mu=given.mu[:, ::-1].copy(),
        propensity=given.propensity[:, ::-1].copy(),
    )
    one, other = estimate(given), estimate(mirrored)
    means = slice(levels - 1, None)
    np.testing.assert_allclose(other.estimates[means][::-1], one.estimates[means], **TWIN)
    turned = other.covariance[means, means][::-1, ::-1]
    np.testing.assert_allclose(turned, one.covariance[means, means], **TWIN)
    for name, opposite in (("ATE", "ATE"), ("ATT", "ATC"), ("ATO", "ATO")):
        found = target(given, name)
        turned = estimate_target(
            mirrored, opposite, (levels - 1, levels - 2), clip=CLIP, name=opposite
        )
        np.testing.assert_allclose(turned.estimates, -found.estimates, **TWIN)
        np.testing.assert_allclose(turned.covariance, found.covariance, **TWIN)


# Slopes that rows allow ---------------------------------------------------------------------------


def test_effective_size():
    assert effective_size(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_size(np.array([2.0, 0.0, 0.0])) == 1
    assert effective_size(np.array([1.0, 3.0])) == pytest.approx(16 / 10)
    assert effective_size(np.zeros(3)) == 0


def test_slopes_are_as_many_as_rows_allow():
    room = 80 // ROWS_PER_SLOPE - 2
    own = 40 // ROWS_PER_ARM_SLOPE

    def width(columns, found):
        return linear_terms(two_arms((40, 40), columns, found), 0.0).width

    assert width(room, 0) == 2 + room
    assert width(room + 1, 0) == 2  # none was found: only the arms are left
    assert width(room + 1, 3) == 2 + 3 + 3  # those found, by arm
    assert width(room + 1, room + 1) == 2
    assert width(own, own) == 2 + 2 * own
    assert width(own + 1, own + 1) == 2 + own + 1  # too few rows in an arm
    assert width(room, own) == 2 + room  # too few in all
    assert width(room - own, own) == 2 + room


def test_weights_that_few_units_decide_leave_few_slopes():
    """Forty of eighty units with all the weight are forty."""
    heavy = replace(two_arms((40, 40), 9), weights=np.tile([1.0, 1e-9], 40))
    assert linear_terms(heavy, 0.0).width == 2
    few = replace(heavy, linear=heavy.linear[:, :8])
    assert linear_terms(few, 0.0).width == 2 + 40 // ROWS_PER_SLOPE - 2


def test_columns_that_rows_do_not_allow_change_nothing(nuisances):
    many = np.column_stack([nuisances.linear, np.random.default_rng(0).normal(size=(N, N // 2))])
    one = estimate(replace(nuisances, linear=many))
    only = nuisances.linear[:, nuisances.found]
    other = estimate(replace(nuisances, linear=only, found=np.arange(only.shape[1])))
    for a, b in zip(vars_of(one), vars_of(other), strict=True):
        np.testing.assert_array_equal(a, b)


def vars_of(effects):
    return effects.estimates, effects.covariance, effects.influence, effects.freedom


def test_units_and_constants_of_the_covariates_do_not_matter(held):
    more = np.column_stack([1e3 * held.linear + 1e4, np.full(held.n, 3.0)])
    one, other = estimate(held), estimate(replace(held, linear=more))
    np.testing.assert_allclose(other.estimates, one.estimates, rtol=1e-8)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-8)


def test_copies_of_covariates_do_not_matter_to_free_slopes(nuisances):
    """A ridge holds a covariate that is there twice half as firmly."""
    twice = np.column_stack([nuisances.linear, nuisances.linear[:, :1]])
    one, other = estimate(nuisances), estimate(replace(nuisances, linear=twice))
    np.testing.assert_allclose(other.estimates, one.estimates, rtol=1e-8)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-8)


def test_rows_without_weight_do_not_matter(held):
    some = replace(held, weights=np.where(np.arange(held.n) % 5, 1.0, 0.0))
    only = some.among(some.weights > 0)
    np.testing.assert_allclose(estimate(some).estimates, estimate(only).estimates, **TWIN)
    errors = [estimate(each).standard_errors for each in (some, only)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-8)


def test_some_units_are_the_same_units(nuisances, monkeypatch):
    """With blocks so small that the chosen rows come from several."""
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 16)
    some = np.arange(N) % 3 != 1
    only = nuisances.among(some)
    assert only.n == some.sum()
    assert replace(nuisances, ridge=0.3).among(some).ridge == 0.3
    for part in ("y", "treatment", "mu", "propensity", "fold", "linear"):
        np.testing.assert_array_equal(getattr(only, part), getattr(nuisances, part)[some])
    np.testing.assert_array_equal(only.found, nuisances.found)
    assert (only.weights is None) == (nuisances.weights is None)
    if only.weights is not None:
        np.testing.assert_array_equal(only.weights, nuisances.weights[some])
    assert replace(nuisances, linear=None).among(some).linear is None


def test_arms_alone_make_weights_sum_to_one(nuisances):
    """With no covariate the terms are the arms' intercepts: residuals are averaged by arm."""
    p = clip_propensity(nuisances.propensity, CLIP).values
    weights = arm_weights(nuisances, p)
    left = nuisances.y - nuisances.mu[np.arange(N), nuisances.treatment]
    means = nuisances.unit_weights @ nuisances.mu / N + left @ weights / weights.sum(axis=0)
    none = replace(nuisances, linear=np.empty((N, 0)), found=nuisances.found[:0])
    np.testing.assert_allclose(estimate(none).estimates[nuisances.n_levels - 1 :], means, **TWIN)
    plain = estimate(replace(none, linear=None))
    scores = nuisances.unit_weights @ nuisances.mu / N + left @ weights / N
    np.testing.assert_allclose(plain.estimates[nuisances.n_levels - 1 :], scores, **TWIN)


def test_the_estimators_weights_balance_the_covariates(nuisances):
    levels = tuple(range(nuisances.n_levels))
    arguments = {"covariates": ["a", "b", "c"], "levels": levels, "clip": CLIP}
    table = balance(nuisances, nuisances.linear, kind="multilevel", **arguments)
    assert np.abs(table.filter(like="before").to_numpy()).max() > 0.3
    np.testing.assert_allclose(table.filter(like="after"), 0, atol=1e-12)


def test_impossible_shapes_are_refused(nuisances):
    with pytest.raises(ValueError, match="linear has shape"):
        replace(nuisances, linear=nuisances.linear[:-1])


def test_blocks_of_rows_change_nothing_but_the_order_of_sums(held, monkeypatch):
    whole = estimate(held)
    monkeypatch.setattr(blocks, "_VALUES_AT_ONCE", 64)
    monkeypatch.setattr(blocks, "_FEWEST_ROWS", 7)
    assert len(list(blocks.row_blocks(N, linear_terms(held, CLIP).width))) > 10
    for one, other in zip(vars_of(whole), vars_of(estimate(held)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)
