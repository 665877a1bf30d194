"""Estimands that lead the table: their covariance with what follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import estimate_effects, estimate_target, led_by

CLIP = 0.05


@pytest.fixture
def nuisances(draw_nuisances):
    return draw_nuisances(600, np.random.default_rng(3), weighted=True)[1]


def targets(nuisances, *names):
    return [estimate_target(nuisances, name, (1, 0), clip=CLIP, name=name) for name in names]


def effects(nuisances, variance):
    return estimate_effects(nuisances, levels=(0, 1), clip=CLIP, variance=variance)


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_blocks_stay_and_the_whole_is_a_covariance(nuisances, variance):
    leading, following = targets(nuisances, "ATT", "ATO"), effects(nuisances, variance)
    joint = led_by(leading, following)
    assert joint.names == ("ATT", "ATO", "ATE", "POM[0]", "POM[1]")
    assert joint.n_contrasts == 3
    assert joint.variance_kind == variance
    for k, part in enumerate(leading):
        assert joint.estimates[k] == part.estimates[0]
        assert joint.covariance[k, k] == part.covariance[0, 0]
        np.testing.assert_array_equal(joint.influence[:, [k]], part.influence)
    np.testing.assert_array_equal(joint.covariance[2:, 2:], following.covariance)
    np.testing.assert_array_equal(joint.covariance, joint.covariance.T)
    values = np.linalg.eigvalsh(joint.covariance)
    assert values[0] > -1e-12 * values[-1]
    # A covariance with the ATE is the difference of those with the means.
    c = joint.covariance
    np.testing.assert_allclose(c[:2, 2], c[:2, 4] - c[:2, 3], rtol=1e-8)


def test_covariances_are_cross_products_where_variances_are(nuisances):
    (att,), following = targets(nuisances, "ATT"), effects(nuisances, "influence")
    joint = led_by([att], following)
    n = nuisances.n
    expected = att.influence.T @ following.influence / n**2
    # The map of the values is the identity, up to the rounding of a few square roots.
    np.testing.assert_allclose(joint.covariance[:1, 1:], expected, rtol=1e-7)


def test_the_same_effect_twice_has_correlation_one(nuisances):
    """Also where one of its standard errors is twice the other."""
    (ate,), following = targets(nuisances, "ATE"), effects(nuisances, "influence")
    joint = led_by([replace(ate, covariance=4 * ate.covariance)], following)
    assert joint.covariance[0, 1] == pytest.approx(2 * ate.covariance[0, 0], rel=1e-7)


def test_one_estimator_whose_variance_is_a_multiple(nuisances):
    """Standard errors twice as large make covariances twice as large."""
    (att,), following = targets(nuisances, "ATT"), effects(nuisances, "influence")
    wide = replace(following, covariance=4 * following.covariance)
    np.testing.assert_allclose(
        led_by([att], wide).covariance[:1, 1:],
        2 * led_by([att], following).covariance[:1, 1:],
        rtol=1e-7,
    )


def test_the_covariance_is_how_estimates_vary_together(draw_nuisances):
    """Over many data sets: ATT with ATE, and their difference."""
    rng, draws = np.random.default_rng(11), 600
    estimates, covariances = [], []
    for _ in range(draws):
        nuisances = draw_nuisances(300, rng)[1]
        joint = led_by(targets(nuisances, "ATT"), effects(nuisances, "paper"))
        estimates.append(joint.estimates[:2])
        covariances.append(joint.covariance[:2, :2])
    claimed = np.mean(covariances, axis=0)
    contrast = np.array([1.0, -1.0])
    seen = np.array(estimates)
    # A variance over so many draws of normal estimates has relative error sqrt(2 / draws).
    relative = 4 * np.sqrt(2 / draws)
    variance = (seen @ contrast).var(ddof=1)
    assert contrast @ claimed @ contrast == pytest.approx(variance, rel=relative)
    correlation = np.corrcoef(seen.T)[0, 1]
    expected = claimed[0, 1] / np.sqrt(claimed[0, 0] * claimed[1, 1])
    assert abs(expected - correlation) < 4 * (1 - correlation**2) / np.sqrt(draws)
    assert 0.3 < correlation < 0.98


def test_units_of_the_effects_do_not_matter(nuisances):
    """Those that follow may be in units as far apart as a squared income and a squared weight."""
    (att,), following = targets(nuisances, "ATT"), effects(nuisances, "influence")
    units = np.array([1e12, 1.0, 1e-6])
    influence = following.influence * units
    scaled = replace(
        following, influence=influence, covariance=influence.T @ influence / len(influence) ** 2
    )
    expected = att.influence.T @ influence / len(influence) ** 2
    np.testing.assert_allclose(led_by([att], scaled).covariance[:1, 1:], expected, rtol=1e-12)
