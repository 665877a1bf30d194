"""AIPW estimates of a treatment with more than two levels, and the clip of its probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import OptionError
from cstonet.estimators import aipw_scores, clip_propensity, estimate_effects

# Clip ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_clipped_rows_sum_to_one_and_keep_their_distance(levels):
    rng = np.random.default_rng(levels)
    p = rng.dirichlet(np.full(levels, 0.3), size=500)
    clipped = clip_propensity(p, 0.1)
    np.testing.assert_allclose(clipped.values.sum(axis=1), 1, rtol=1e-15 * 10 * levels)
    assert clipped.values.min() >= 0.1
    changed = (clipped.values != p).any(axis=1)
    assert clipped.n_clipped == changed.sum() == (p.min(axis=1) < 0.1).sum() > 50


def test_levels_above_the_bound_give_in_proportion():
    values = clip_propensity(np.array([[0.0, 0.3, 0.7]]), 0.1).values
    np.testing.assert_allclose(values, [[0.1, 0.27, 0.63]], rtol=1e-15)


def test_giving_may_not_push_another_below_the_bound():
    values = clip_propensity(np.array([[0.0, 0.105, 0.895]]), 0.1).values
    np.testing.assert_allclose(values, [[0.1, 0.1, 0.8]], rtol=1e-15)


def test_clip_must_leave_room_for_all_levels():
    with pytest.raises(OptionError, match="below 1/4 for a treatment with 4 levels"):
        clip_propensity(np.full((3, 4), 0.25), 0.25)


# Estimates ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.three_arms(n=400, p=6, seed=2)


@pytest.fixture
def nuisances(simulation):
    # Imperfect regressions, so that no term of the formulas vanishes.
    exact = simulation.nuisances()
    return replace(exact, mu=exact.mu + 0.2 * exact.mu**2)


def estimate(nuisances, levels="abc", variance="paper", kind="multilevel"):
    return estimate_effects(nuisances, levels=levels, clip=0.02, variance=variance, kind=kind)


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_contrasts_and_means_belong_together(nuisances, variance):
    effects = estimate(nuisances, variance=variance)
    assert effects.names == ("ATE[b-a]", "ATE[c-a]", "POM[a]", "POM[b]", "POM[c]")
    scores = aipw_scores(nuisances, clip_propensity(nuisances.propensity, 0.02).values)
    np.testing.assert_allclose(effects.estimates[2:], scores.mean(axis=0), rtol=1e-13)
    R = np.array([[-1, 1, 0], [-1, 0, 1]])
    means = effects.covariance[2:, 2:]
    np.testing.assert_allclose(effects.estimates[:2], R @ effects.estimates[2:], rtol=1e-12)
    np.testing.assert_allclose(effects.covariance[:2, :2], R @ means @ R.T, rtol=1e-12)
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0, atol=1e-13)
    if variance == "influence":
        np.testing.assert_allclose(means, np.cov(scores.T, ddof=0) / len(scores), rtol=1e-12)


def test_two_arms_of_three_are_the_binary_formula(nuisances):
    """A pair's contrast has the paper's variance, whatever the third arm."""
    effects = estimate(nuisances)
    p = clip_propensity(nuisances.propensity, 0.02).values
    mu = nuisances.mu
    noise = sum(
        np.mean((nuisances.treatment == k) * (nuisances.y - mu[:, k]) ** 2 / p[:, k] ** 2)
        for k in (0, 1)
    )
    spread = np.mean((mu[:, 1] - mu[:, 0] - np.mean(mu[:, 1] - mu[:, 0])) ** 2)
    # The paper centres each μ̂_a(x) at its AIPW mean, not at its average.
    shift = (effects.estimates[0] - np.mean(mu[:, 1] - mu[:, 0])) ** 2
    expected = (noise + spread + shift) / len(nuisances.y)
    np.testing.assert_allclose(effects.covariance[0, 0], expected, rtol=1e-12)


def test_relabelling_permutes_the_table(nuisances):
    order = np.array([2, 0, 1])  # new code -> old code
    permuted = replace(
        nuisances,
        treatment=np.argsort(order)[nuisances.treatment],
        mu=nuisances.mu[:, order],
        propensity=nuisances.propensity[:, order],
    )
    one, other = estimate(nuisances), estimate(permuted, levels="cab")
    for name in ("POM[a]", "POM[b]", "POM[c]"):
        i, j = one.names.index(name), other.names.index(name)
        np.testing.assert_allclose(other.estimates[j], one.estimates[i], rtol=1e-12)
        np.testing.assert_allclose(other.covariance[j, j], one.covariance[i, i], rtol=1e-12)
    i, j = one.names.index("ATE[c-a]"), other.names.index("ATE[a-c]")
    np.testing.assert_allclose(other.estimates[j], -one.estimates[i], rtol=1e-12)


def test_three_levels_are_not_binary(nuisances):
    with pytest.raises(ValueError, match="exactly two levels"):
        estimate(nuisances, kind="binary")
