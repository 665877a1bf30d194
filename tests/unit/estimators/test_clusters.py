"""Units in clusters: every variance against its closed form in influence values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.datasets import clustered, three_mediators
from cstonet.estimators import (
    TARGETS,
    PathNuisances,
    estimate_effects,
    estimate_mediation,
    estimate_mediator_effects,
    estimate_paths,
    estimate_target,
    led_by,
    pooled_effects,
)
from cstonet.estimators.clusters import (
    MANY_DEGREES,
    cluster_count,
    cluster_freedom,
    cluster_sums,
    influence_covariance,
    mean_square,
    small_sample_factor,
)
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.marginal_effect import estimate_marginal_effect
from cstonet.estimators.projections import estimate_projection
from cstonet.estimators.targets import total_weights
from cstonet.reporting.inference import Effect
from cstonet.reporting.simultaneous import largest_quantile_by_influence

TWIN = {"rtol": 1e-11, "atol": 1e-14}
N, G = 240, 30


@pytest.fixture(scope="module")
def codes():
    """Clusters of unequal size, in no order, some codes absent."""
    return 3 * np.random.default_rng(5).integers(G, size=N)


@pytest.fixture(scope="module")
def nuisances(draw_nuisances, codes):
    rng = np.random.default_rng(1)
    _, known = draw_nuisances(N, rng, weighted=True)
    return replace(known, mu=known.mu + 0.3, clusters=codes)


def by_hand(influence: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """G/(G-1) Σ_g s_g s_gᵀ / n², cluster by cluster."""
    groups = np.unique(codes)
    total = sum(
        np.outer(influence[codes == g].sum(axis=0), influence[codes == g].sum(axis=0))
        for g in groups
    )
    return len(groups) / (len(groups) - 1) * total / len(influence) ** 2


def effects_of(nuisances, variance="influence"):
    return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance=variance)


def repeated(nuisances, times):
    """The same units as rows that occur so many times, in clusters of what was one row."""
    rows = np.repeat(np.arange(len(times)), times)
    fields = ("y", "treatment", "mu", "propensity", "fold")
    return replace(
        nuisances,
        **{name: getattr(nuisances, name)[rows] for name in fields},
        weights=None,
        clusters=rows,
    )


def test_sums_and_their_covariance(codes):
    influence = np.random.default_rng(0).normal(size=(N, 3))
    sums = cluster_sums(influence, codes)
    assert sums.shape == (cluster_count(codes), 3)
    np.testing.assert_allclose(sums[4], influence[codes == np.unique(codes)[4]].sum(axis=0), **TWIN)
    np.testing.assert_allclose(
        influence_covariance(influence, codes), by_hand(influence, codes), **TWIN
    )
    variances = np.diag(by_hand(influence, codes))
    np.testing.assert_allclose(mean_square(influence, codes) / N, variances, **TWIN)
    np.testing.assert_allclose(mean_square(influence[:, 1], codes) / N, variances[1], **TWIN)
    assert cluster_sums(influence, None) is influence
    assert small_sample_factor(None) == 1.0


def test_clusters_without_a_part_in_an_estimate_do_not_count(codes):
    influence = np.random.default_rng(0).normal(size=(N, 2))
    inside = codes < 30
    influence[~inside] = 0.0
    few = by_hand(influence[inside], codes[inside]) * inside.sum() ** 2 / N**2
    np.testing.assert_allclose(influence_covariance(influence, codes), few, **TWIN)


@pytest.mark.parametrize("variance", ["influence", "paper"])
def test_effects_have_the_closed_form_whatever_the_kind(nuisances, codes, variance):
    effects = effects_of(nuisances, variance)
    alone = effects_of(replace(nuisances, clusters=None))
    np.testing.assert_allclose(effects.covariance, by_hand(alone.influence, codes), **TWIN)
    np.testing.assert_array_equal(effects.estimates, alone.estimates)
    np.testing.assert_array_equal(effects.influence, alone.influence)
    assert effects.variance_kind == "influence"


@pytest.mark.parametrize("target", TARGETS)
def test_targets_have_the_closed_form(nuisances, codes, target):
    effects = estimate_target(nuisances, target, (1, 0), clip=0.01, name=target)
    np.testing.assert_allclose(effects.covariance, by_hand(effects.influence, codes), **TWIN)


def test_leading_effects_are_joint_over_clusters(nuisances, codes):
    att = estimate_target(nuisances, "ATT", (1, 0), clip=0.01, name="ATT")
    joint = led_by([att], effects_of(nuisances), nuisances.clusters)
    np.testing.assert_allclose(joint.covariance, by_hand(joint.influence, codes), rtol=1e-9)


def test_slopes_and_what_a_ridge_leaves(draw_nuisances, codes):
    X, known = draw_nuisances(N, np.random.default_rng(2))
    held = replace(known, linear=X, found=np.array([0]), ridge=0.1, clusters=codes)
    terms = linear_terms(held, 0.01)
    everyone = slice(0, N)
    D = terms.regressors(everyone)[:, 2:]
    moments = D * (terms.weights * terms.error)[:, None]
    information = np.sum(terms.weights[:, None] * D**2)
    squares = np.trace(by_hand(moments, codes)) * N**2
    assert terms.noise == pytest.approx(squares / information, rel=1e-11)
    # Free slopes leave nothing. Errors over √(1 - leverage) are summed in place of residuals.
    free = replace(held, ridge=0.0)
    effects = estimate_target(free, "ATE", (1, 0), clip=0.01, name="ATE")
    terms = linear_terms(free, 0.01)
    weights = N * total_weights(free, "ATE", (1, 0), clip=0.01)
    summed = effects.influence[:, 0] + weights * (terms.error - terms.residual)
    np.testing.assert_allclose(effects.covariance, by_hand(summed[:, None], codes), rtol=1e-10)
    table = effects_of(free)
    np.testing.assert_allclose(table.covariance[0, 0], effects.covariance[0, 0], rtol=1e-10)


def test_each_unit_a_cluster_is_the_factor_alone(nuisances):
    alone = effects_of(replace(nuisances, clusters=None))
    single = effects_of(replace(nuisances, clusters=np.arange(N)))
    np.testing.assert_allclose(single.covariance, alone.covariance * N / (N - 1), **TWIN)


def test_integer_weights_are_repeated_rows_in_clusters(nuisances):
    """Estimates are equal, variances up to the factor G/(G-1): copies say nothing new."""
    times = np.random.default_rng(3).integers(1, 5, size=N)
    once = replace(nuisances, weights=times.astype(float), clusters=None)
    often = repeated(nuisances, times)
    one, other = effects_of(once), effects_of(often)
    np.testing.assert_allclose(other.estimates, one.estimates, **TWIN)
    np.testing.assert_allclose(other.covariance, one.covariance * N / (N - 1), **TWIN)
    for target in TARGETS:
        one, other = (
            estimate_target(case, target, (1, 0), clip=0.01, name=target) for case in (once, often)
        )
        np.testing.assert_allclose(other.estimates, one.estimates, **TWIN)
        np.testing.assert_allclose(other.covariance, one.covariance * N / (N - 1), **TWIN)
    # Without clusters copies would count as units of their own.
    assert effects_of(replace(often, clusters=None)).covariance[0, 0] < 0.6 * other.covariance[0, 0]


def test_rows_of_weight_zero_change_nothing(nuisances):
    silent = np.zeros(N)
    silent[: N // 2] = 1.0
    clusters = np.where(silent > 0, np.arange(N) // 4, 1000 + np.arange(N))
    all_rows = effects_of(replace(nuisances, weights=silent, clusters=clusters))
    own = replace(nuisances, weights=None, clusters=clusters).among(silent > 0)
    np.testing.assert_allclose(all_rows.covariance, effects_of(own).covariance, **TWIN)
    np.testing.assert_allclose(all_rows.freedom, effects_of(own).freedom, **TWIN)


def test_marginal_effect_and_curve(linear, curve_of, codes):
    nuisances = replace(linear(N), clusters=codes)
    effects = estimate_marginal_effect(nuisances, clip=0.01)
    np.testing.assert_allclose(effects.covariance, by_hand(effects.influence, codes), **TWIN)
    assert effects.freedom is not None
    assert effects.freedom.max() <= cluster_count(codes) - 1
    doses = np.array([-0.5, 0.0, 1.0])
    curve = curve_of(nuisances, doses, bandwidth=0.5)
    plain = curve_of(replace(nuisances, clusters=None), doses, bandwidth=0.5)
    np.testing.assert_array_equal(curve.estimates, plain.estimates)
    clustered_only = np.diag(by_hand(curve.influence, codes))
    # At least that of the residuals as they are: leverage only adds.
    assert (curve.variance >= 0.99 * clustered_only).all()
    assert plain.freedom is None
    assert curve.freedom is not None
    assert curve.freedom.max() <= cluster_count(codes) - 1


def test_mediation_and_paths(codes):
    simulation = three_mediators(n=N, p=5, seed=1)
    nuisances = replace(simulation.nuisances(), clusters=codes)
    effects = estimate_mediation(nuisances, clip=0.01).effects
    np.testing.assert_allclose(effects.covariance, by_hand(effects.influence, codes), rtol=1e-9)
    assert effects.freedom is not None
    assert effects.freedom.max() <= cluster_count(codes) - 1
    rng = np.random.default_rng(0)
    mediators, means = rng.normal(size=(N, 2)), rng.normal(size=(N, 2, 2))
    on = estimate_mediator_effects(nuisances, mediators, means, clip=0.01)
    for j in range(2):
        total = replace(nuisances.total(), y=mediators[:, j], mu=means[:, :, j])
        twin = effects_of(total)
        assert on.errors[j] == pytest.approx(twin.standard_errors[0], rel=1e-12)
    ones = np.ones((N, 2, 2))
    paths = PathNuisances(ones, rng.normal(size=(N, 2)), 0 * ones, 0 * ones)
    through = estimate_paths(nuisances, paths, clip=0.01)
    p = np.clip(nuisances.propensity, 0.01, 0.99)
    received = np.equal(nuisances.treatment[:, None], np.arange(2)) / p
    score = (received[:, 1] - received[:, 0])[:, None] * paths.own
    influence = score - score.mean(axis=0)
    np.testing.assert_allclose(through.errors**2, np.diag(by_hand(influence, codes)), rtol=1e-10)


def test_few_clusters_have_few_degrees_of_freedom():
    codes = np.repeat(np.arange(10), 5)
    even = np.ones((50, 1))
    np.testing.assert_allclose(cluster_freedom(even, codes), [9.0])
    # The arms of a cluster do not cancel.
    contrast = np.where(np.arange(50) % 5 < 2, -1.5, 1.0)[:, None]
    np.testing.assert_allclose(cluster_freedom(contrast, codes), [9.0])
    one_decides = np.where(codes == 3, 100.0, 1.0)[:, None]
    assert cluster_freedom(one_decides, codes) == pytest.approx(1.0, abs=0.01)
    assert cluster_freedom(even, None) is None
    many = int(MANY_DEGREES) + 1
    assert cluster_freedom(np.ones((2 * many, 1)), np.repeat(np.arange(many), 2)) is None


def test_projection_on_a_constant_is_the_effect(nuisances):
    one = {"clip": 0.01, "names": ("mean",)}
    projection = estimate_projection(nuisances, np.ones((N, 1)), (1, 0), **one)
    effect = estimate_target(nuisances, "ATE", (1, 0), clip=0.01, name="ATE")
    np.testing.assert_allclose(projection.estimates, effect.estimates, rtol=1e-10)
    np.testing.assert_allclose(projection.freedom, effect.freedom, rtol=1e-10)


def test_imputations_count_clusters(nuisances, codes, imputed):
    rows = np.arange(5)
    moves = np.random.default_rng(0).normal(size=(4, 5, 2))
    pooled = pooled_effects(effects_of, nuisances, imputed(nuisances, rows, moves))
    assert pooled.n_counted <= cluster_count(codes)
    within = pooled.covariance - pooled.between
    np.testing.assert_allclose(within[0, 0], by_hand(pooled.influence, codes)[0, 0], rtol=0.05)


def test_bands_draw_one_multiplier_per_cluster(codes):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(codes.max() + 1, 2))[codes]
    influence = shared + 0.3 * rng.normal(size=(N, 2))
    clustered_quantile = largest_quantile_by_influence(influence, 0.05, 1, codes)
    sums = cluster_sums(influence, codes)
    assert clustered_quantile == largest_quantile_by_influence(sums, 0.05, 1)
    few = largest_quantile_by_influence(influence, 0.05, 1, codes, freedom=5.0)
    assert few > 1.15 * clustered_quantile  # t with five degrees of freedom has 2.57 for 1.96
    single = largest_quantile_by_influence(influence[:, :1], 0.05, 1, codes, freedom=5.0)
    assert single == pytest.approx(2.5706, abs=1e-4)


def test_intervals_cover_where_plain_ones_do_not():
    """True nuisances, 200 data sets: 95 % intervals miss by at most three standard errors."""
    inside = []
    for seed in range(1, 201):
        told = clustered(n_clusters=40, p=5, seed=seed).nuisances()
        each = [effects_of(told), effects_of(replace(told, clusters=None))]
        inside.append([Effect.of(e, "ATE", 0.05) for e in each])
    covered = np.mean([[e.lower <= 1 <= e.upper for e in pair] for pair in inside], axis=0)
    assert abs(covered[0] - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 200)
    assert covered[1] < 0.85
