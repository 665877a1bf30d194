"""Twins: their treatments, noise and outcomes have the laws of the fit, and effects are known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import cstonet as cs
from cstonet.analyses.arms.twins import ArmsWorld
from cstonet.analyses.doses.twins import DoseWorld, OutcomeCurves
from cstonet.analyses.twins import Noise, OutcomeLaw, resampled
from cstonet.estimators import estimate_target

ONE = np.zeros(4000, dtype=np.int64)  # all in the same arm


def generator(seed=0):
    return np.random.default_rng(seed)


# Noise -------------------------------------------------------------------------------------------


def test_noise_has_the_mean_square_of_the_residuals_arm_by_arm():
    rng = generator()
    arms, weights = rng.integers(2, size=4000), rng.uniform(0.5, 2, size=4000)
    residual = (1 + 2 * arms) * rng.standard_t(5, size=4000) + 0.3
    noise = Noise.of(residual, rng.normal(size=(4000, 2)), arms, weights)
    for arm in (0, 1):
        own = weights * (arms == arm)
        left = own @ residual**2 / own.sum()
        # Of the law of the noise itself: it has no Monte-Carlo error.
        members, chances = noise.members[arm], noise.chances[arm]
        drawn = noise.studentised[members]
        assert chances @ drawn == pytest.approx(0, abs=1e-12)
        assert chances @ drawn**2 == pytest.approx(1, rel=1e-12)
        assert own @ noise.spread[:, arm] ** 2 / own.sum() == pytest.approx(left, rel=1e-12)


def test_noise_is_larger_where_residuals_are():
    rng = generator()
    mu = rng.normal(size=4000)
    residual = np.exp(mu / 2) * rng.normal(size=4000)
    noise = Noise.of(residual, mu[:, None], ONE, np.ones(4000))
    np.testing.assert_allclose(np.polyfit(mu, 2 * np.log(noise.spread[:, 0]), 1)[0], 1, atol=0.15)
    alike = Noise.of(rng.normal(size=4000), mu[:, None], ONE, np.ones(4000))
    assert np.ptp(alike.spread) == 0


def test_units_of_weight_zero_give_no_noise():
    rng = generator()
    weights = np.where(np.arange(4000) % 2, 2.0, 0.0)
    residual = np.where(weights > 0, rng.normal(size=4000), 1e6)
    noise = Noise.of(residual, rng.normal(size=(4000, 1)), ONE, weights)
    assert np.abs(noise.draw(ONE, rng)).max() < 10


def test_a_cluster_takes_the_noise_of_another():
    rng = generator()
    clusters = np.arange(4000) // 40
    common = rng.normal(size=100)[clusters]
    residual = common + 0.1 * rng.normal(size=4000)
    noise = Noise.of(residual, np.zeros((4000, 1)), ONE, np.ones(4000), clusters=clusters)
    drawn = noise.draw(ONE, rng).reshape(100, 40)
    assert drawn.std(axis=1).max() < 0.2  # of 0.1, and 0.1 / sqrt(80) of error
    assert np.unique(drawn.mean(axis=1).round(1)).size > 10
    alone = Noise.of(residual, np.zeros((4000, 1)), ONE, np.ones(4000)).draw(ONE, rng)
    assert alone.reshape(100, 40).std(axis=1).min() > 0.5


def test_binary_outcomes_are_drawn_by_their_expectations():
    mean = np.repeat([0.0, 0.2, 1.0], 4000)
    arms = np.zeros(12_000, dtype=np.int64)
    law = OutcomeLaw.of("binomial", np.round(mean), mean[:, None], arms, np.ones(12_000))
    y = law.draw(mean, arms, generator())
    none, some, all_ = y.reshape(3, 4000).mean(axis=1)
    assert (none, all_) == (0, 1)
    assert some == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 4000))


@pytest.mark.parametrize(("extra", "whole"), [(0.0, True), (2.0, True), (2.0, False)])
def test_counts_and_amounts_have_the_dispersion_of_the_residuals(extra, whole):
    rng, n = generator(), 20_000
    mean, arms = rng.uniform(1, 5, size=n), np.arange(n) % 2
    rate = rng.gamma(mean / extra, extra) if extra else mean
    y = rng.poisson(rate) * 1.0 if whole else rate
    law = OutcomeLaw.of("poisson", y, np.column_stack([mean, mean]), arms, np.ones(n))
    drawn = law.draw(mean, arms, rng)
    assert (drawn >= 0).all()
    assert (drawn == np.round(drawn)).all() == whole
    assert drawn.mean() == pytest.approx(mean.mean(), abs=4 * drawn.std() / np.sqrt(n))
    squares = (drawn - mean) ** 2
    own = np.sum((y - mean)[arms == 0] ** 2) / mean[arms == 0].sum()
    assert law.dispersion[0] == pytest.approx(own, rel=1e-12)
    # Counts cannot vary less than Poisson's: a dispersion below one by chance is drawn as one.
    expected = np.maximum(law.dispersion, 1.0 if whole else 0.0)[arms] @ mean
    assert squares.sum() == pytest.approx(expected, abs=4 * squares.std() * np.sqrt(n))


def test_populations_are_resampled_by_units_or_clusters():
    rng, weights = generator(), np.arange(1.0, 7.0)
    drawn = np.array([resampled(weights, None, rng) for _ in range(4000)])
    times = drawn / weights
    assert (times.sum(axis=1) == 6).all()
    # Multinomial: mean one, variance 5/6.
    np.testing.assert_allclose(times.mean(axis=0), 1, atol=4 * np.sqrt(5 / 6 / 4000))
    np.testing.assert_allclose(times.var(axis=0), 5 / 6, rtol=0.15)
    clustered = resampled(np.ones(6), np.array([5, 5, 5, 9, 9, 2]), rng)
    assert clustered[0] == clustered[1] == clustered[2]
    assert clustered[3] == clustered[4]
    np.testing.assert_array_equal(resampled(np.zeros(3), None, rng), np.zeros(3))


# Arms --------------------------------------------------------------------------------------------


def test_treatments_follow_the_clipped_propensity(make_results):
    results = make_results(n=4000, clip=0.2)
    world = ArmsWorld.of(results)
    clipped = np.clip(results.nuisances.propensity[:, 1], 0.2, 0.8)
    twin = world.twin(generator())
    codes = twin.design.treatment.codes
    low = clipped == 0.2
    assert codes.mean() == pytest.approx(clipped.mean(), abs=4 * 0.5 / np.sqrt(4000))
    assert codes[low].mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / low.sum()))
    assert twin.design.X is results.design.X
    assert twin.design.treatment.levels == results.design.treatment.levels
    expected = results.nuisances.mu[np.arange(4000), codes]
    left = results.nuisances.y - results.nuisances.mu[np.arange(4000), results.nuisances.treatment]
    noise = twin.design.y - expected
    assert noise.std() == pytest.approx(left.std(), rel=4 * np.sqrt(1 / 2 / 4000))
    assert noise.mean() == pytest.approx(0, abs=4 * left.std() / np.sqrt(4000))


def test_truths_are_those_of_populations_around_the_sample(make_results):
    results = make_results(n=1000, weighted=True)
    world, rng = ArmsWorld.of(results), generator()
    truths = np.array([world.twin(rng).truths for _ in range(400)])
    mu, weights = results.nuisances.mu, results.nuisances.unit_weights
    tau = mu[:, 1] - mu[:, 0]
    ate = weights @ tau / weights.sum()
    error = np.sqrt(np.sum(weights**2 * (tau - ate) ** 2)) / weights.sum()
    assert truths[:, 0].mean() == pytest.approx(ate, abs=4 * error / 20)
    assert truths[:, 0].std() == pytest.approx(error, rel=4 / np.sqrt(800))
    np.testing.assert_allclose(truths[:, 0], truths[:, 2] - truths[:, 1], rtol=1e-12)


@pytest.mark.parametrize("target", ["ATT", "ATC", "ATO"])
def test_truths_of_other_populations(make_results, make_plan, target):
    """What the estimator makes of the nuisances if no outcome differs from its expectation."""
    results = make_results(n=400, plan=make_plan(estimand=target))
    world = ArmsWorld.of(results)
    truth, ate, *_ = world._truths(np.ones(400))
    p, tau = world.propensity[:, 1], world.mu[:, 1] - world.mu[:, 0]
    density = {"ATT": p, "ATC": 1 - p, "ATO": p * (1 - p)}[target]
    assert truth == pytest.approx(density @ tau / density.sum(), rel=1e-12)
    assert ate == pytest.approx(tau.mean(), rel=1e-12)


def test_three_arms(simulation_of_three):
    world = ArmsWorld.of(simulation_of_three)
    twin = world.twin(generator())
    codes, n = twin.design.treatment.codes, len(world.mu)
    shares = np.bincount(codes, minlength=3) / n
    np.testing.assert_allclose(shares, world.propensity.mean(axis=0), atol=4 * 0.5 / np.sqrt(n))
    reference, second, third = twin.truths[2:]
    np.testing.assert_allclose(twin.truths[:2], [second - reference, third - reference])


@pytest.fixture
def simulation_of_three():
    """Results of three arms, as far as worlds look at them."""
    simulation = cs.datasets.three_arms(n=2000, p=5, seed=1)
    design = cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design
    return SimpleNamespace(
        nuisances=simulation.nuisances(),
        design=design,
        plan=SimpleNamespace(estimand="ATE"),
        effects=SimpleNamespace(clip=0.01),
    )


def test_clusters_that_were_treated_together_are(make_results):
    results = make_results(n=400)
    clusters = np.arange(400) // 20
    whole = (clusters % 2).astype(np.int64)
    results.nuisances = replace(
        results.nuisances,
        clusters=clusters,
        treatment=whole,
        propensity=np.full((400, 2), 0.5),
    )
    results.design = replace(
        results.design, treatment=replace(results.design.treatment, codes=whole)
    )
    codes = ArmsWorld.of(results).twin(generator()).design.treatment.codes.reshape(20, 20)
    assert (codes == codes[:, :1]).all()
    assert 0 < codes[:, 0].sum() < 20
    mixed = replace(results.design.treatment, codes=np.arange(400) % 2)
    results.design = replace(results.design, treatment=mixed)
    codes = ArmsWorld.of(results).twin(generator()).design.treatment.codes.reshape(20, 20)
    assert (codes != codes[:, :1]).any()


def test_the_estimator_agrees_with_the_world(make_results):
    """On a large twin, with the true nuisances, it finds the effect of the units."""
    results = make_results(n=20_000)
    world = ArmsWorld.of(results)
    twin = world.twin(generator())
    nuisances = replace(results.nuisances, y=twin.design.y, treatment=twin.design.treatment.codes)
    found = estimate_target(nuisances, "ATE", (1, 0), clip=results.effects.clip, name="ATE")
    tau = world.mu[:, 1] - world.mu[:, 0]
    assert found.estimates[0] == pytest.approx(tau.mean(), abs=4 * found.standard_errors[0])


# Doses -------------------------------------------------------------------------------------------


def dose_nuisances(n=500):
    rng = generator()
    dose = rng.normal(size=n)
    grid = np.linspace(dose.min(), dose.max(), 30)
    x = rng.normal(size=n)
    return SimpleNamespace(
        grid=grid,
        mu_grid=np.sin(grid) + x[:, None] * grid**2,
        dose=dose,
        x=x,
        mu=np.sin(dose) + x * dose**2,
        y=np.sin(dose) + x * dose**2 + rng.normal(size=n),
        mean=np.zeros(n),
        variance=np.ones(n),
        surprise=dose,
        n=n,
        clusters=None,
    )


def test_curves_are_splines_and_lines_beyond():
    nuisances = dose_nuisances(20)
    curves, a, b = OutcomeCurves.of(nuisances), nuisances.grid[0], nuisances.grid[-1]
    doses = np.linspace(a, b, 20)
    splines = [CubicSpline(nuisances.grid, row) for row in nuisances.mu_grid]
    value, slope = curves.at(doses)
    np.testing.assert_allclose(value, [s(d) for s, d in zip(splines, doses, strict=True)])
    np.testing.assert_allclose(slope, [s(d, 1) for s, d in zip(splines, doses, strict=True)])
    beyond, same = curves.at(np.full(20, b + 2))
    edge, steep = curves.at(np.full(20, b))
    np.testing.assert_allclose(same, steep)
    np.testing.assert_allclose(beyond, edge + 2 * steep)


def test_twins_with_doses():
    nuisances = dose_nuisances()
    frame = {"y": nuisances.y, "dose": nuisances.dose, "x": nuisances.x}
    design = cs.CausalStoNet.from_formula("y ~ dose | x", frame, treatment="continuous").design
    world = DoseWorld.of(SimpleNamespace(dose_nuisances=nuisances, design=design))
    # E cos(A) + 2 x E A over the residuals themselves; 64 ranks miss little of it.
    doses = world.noise.spread[0, 0] * world.noise.studentised
    expected = np.mean(np.cos(doses)) + 2 * nuisances.x * np.mean(doses)
    np.testing.assert_allclose(world.slope, expected, atol=0.03)
    rng = generator()
    twin = world.twin(rng)
    own = twin.design.treatment
    assert own.values.std() == pytest.approx(nuisances.dose.std(), rel=4 / np.sqrt(1000))
    assert own.units.center == pytest.approx(own.values.mean())
    left = twin.design.y - world.curves.at(own.values)[0]
    assert left.std() == pytest.approx((nuisances.y - nuisances.mu).std(), rel=4 / np.sqrt(1000))
    truths = [world.twin(rng).truths[0] for _ in range(200)]
    assert np.mean(truths) == pytest.approx(
        world.slope.mean(), abs=4 * world.slope.std() / np.sqrt(500 * 200)
    )


# Clusters of different kinds ---------------------------------------------------------------------


def test_noise_of_clusters_has_mean_zero_whatever_their_sizes():
    """The large clusters have other residuals than the small ones."""
    clusters = np.repeat(np.arange(40), [190] * 20 + [10] * 20)
    rng = generator()
    residual = np.where(clusters < 20, 1.0, -3.0) + rng.normal(size=4000)
    weights = np.where(clusters % 2, 2.0, 0.5)
    noise = Noise.of(residual, np.zeros((4000, 1)), ONE, weights, clusters=clusters)
    means = np.array([noise.draw(ONE, rng)[::10].mean() for _ in range(400)])
    assert means.mean() == pytest.approx(0, abs=4 * means.std() / 20)
    squares = np.array([np.mean(noise.draw(ONE, rng) ** 2) for _ in range(400)])
    expected = noise.spread[0, 0] ** 2
    assert squares.mean() == pytest.approx(expected, abs=4 * squares.std() / 20)


def test_treated_clusters_stay_whole_where_propensities_differ_within(make_results):
    results = make_results(n=400)
    clusters = np.arange(400) // 20
    whole = (clusters % 2).astype(np.int64)
    p = generator().uniform(0.1, 0.9, size=400)
    results.nuisances = replace(
        results.nuisances,
        clusters=clusters,
        treatment=whole,
        propensity=np.column_stack([1 - p, p]),
        weights=np.where(clusters == 3, 0.0, 1.0 + np.arange(400) % 3),
    )
    results.design = replace(
        results.design, treatment=replace(results.design.treatment, codes=whole)
    )
    world = ArmsWorld.of(results)
    codes = world.twin(generator()).design.treatment.codes.reshape(20, 20)
    assert (codes == codes[:, :1]).all()
    weights = results.nuisances.weights
    assert world.propensity[0, 1] == pytest.approx(np.average(p[:20], weights=weights[:20]))
    assert world.propensity[60, 1] == pytest.approx(p[60:80].mean())
