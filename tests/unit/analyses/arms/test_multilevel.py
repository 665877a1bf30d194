"""Treatments with more than two levels: reading them, estimating, asking the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.errors import (
    OneArmedError,
    OptionError,
    TreatmentLeakError,
    UnknownLevelError,
)
from cstonet.estimators import aipw_scores, clip_propensity, estimate_effects
from cstonet.network.spec import causal_network
from cstonet.reporting.inference import largest_quantile, largest_quantile_by_influence

N = 30


@pytest.fixture
def frame():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"y": rng.normal(size=N), "arm": np.resize(["b", "a", "c"], N), "x": rng.normal(size=N)}
    )


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["b", "a", "c"], ("a", "b", "c")),
        ([2, 0, 1], (0, 1, 2)),
        ([2.0, -1.0, 1.0], (-1, 1, 2)),
        (pd.Categorical(["lo", "hi", "no"], ["no", "lo", "hi"]), ("no", "lo", "hi")),
    ],
)
def test_more_levels_are_found(values, levels, frame):
    arm = pd.Series(values).iloc[np.resize(np.arange(3), N)].to_numpy()
    arm = pd.Categorical(arm, levels) if isinstance(values, pd.Categorical) else arm
    design = CausalStoNet.from_formula("y ~ arm | x", frame.assign(arm=arm)).design
    assert design.treatment.kind == "multilevel"
    assert design.treatment.levels == levels
    assert [levels[code] for code in design.treatment.codes] == list(arm)


@pytest.mark.parametrize("values", [np.resize([0.5, 1.0, 2.0], N), np.resize(np.arange(15), N)])
def test_numbers_are_levels_on_request(values, frame):
    design = CausalStoNet.from_formula(
        "y ~ arm | x", frame.assign(arm=values), treatment="multilevel"
    ).design
    assert design.treatment.levels == tuple(np.unique(values))


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_reference_comes_first(reference, frame):
    design = CausalStoNet.from_formula("y ~ arm | x", frame, reference=reference).design
    assert design.treatment.levels[0] == reference
    assert list(design.treatment.levels[1:]) == sorted({"a", "b", "c"} - {reference})
    np.testing.assert_array_equal(
        np.array(design.treatment.levels)[design.treatment.codes], frame.arm
    )


def test_reference_of_a_binary_treatment_by_any_spelling(frame):
    treat = np.resize([0, 1, 1], N)
    design = CausalStoNet(frame.y, treat, frame[["x"]], reference=1.0).design
    assert design.treatment.kind == "binary"
    assert design.treatment.levels == (1, 0)
    np.testing.assert_array_equal(design.treatment.codes, 1 - treat)


def test_unknown_reference(frame):
    with pytest.raises(UnknownLevelError, match=r"'arm' has no level 'd'.*'a', 'b', 'c'"):
        CausalStoNet.from_formula("y ~ arm | x", frame, reference="d").design
    with pytest.raises(UnknownLevelError, match="reference"):
        cs.CausalStoNet.from_formula("y ~ arm | x", frame, reference=0)


def test_small_arms(frame):
    rare = frame.assign(arm=np.where(np.arange(N) == 0, "d", frame.arm))
    with pytest.raises(OneArmedError, match="arm = 'd' has 1 unit"):
        CausalStoNet.from_formula("y ~ arm | x", rare).design
    rare = frame.assign(arm=np.where(np.arange(N) < 3, "d", frame.arm))
    with pytest.raises(OneArmedError, match=r"'d' has 3 unit.*5 fold"):
        cs.fit("y ~ arm | x", rare, folds=5)


@pytest.mark.parametrize(
    "leak",
    [
        lambda arm: arm,
        lambda arm: arm.map({"a": 3.0, "b": 1.0, "c": 2.0}),
        lambda arm: (arm == "b").astype(float),
    ],
    ids=["copy", "relabelled", "one arm's indicator"],
)
def test_covariate_made_of_the_treatment(leak, frame):
    with pytest.raises(TreatmentLeakError, match="is the treatment 'arm'"):
        CausalStoNet.from_formula("y ~ arm | .", frame.assign(z=leak(frame.arm))).design


def test_covariate_constant_in_one_arm_is_legal(frame):
    z = np.where(frame.arm == "a", 0.0, np.random.default_rng(0).normal(size=N))
    assert CausalStoNet.from_formula("y ~ arm | .", frame.assign(z=z)).design.covariates == (
        "x",
        "z",
    )


def test_network_is_widened_by_the_further_units():
    binary, four = (causal_network(9, (5, 4), 2, outcome="gaussian", levels=k) for k in (2, 4))
    assert (binary.label, four.label) == ("9-5-4-1", "9-5-6-1")
    assert [block.family for block in four.layers[1]] == ["gaussian", "categorical"]
    assert (binary.treatment_width, four.treatment_width, four.treatment_layer) == (1, 3, 1)
    assert binary.layers[1][0] == four.layers[1][0]


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


# Simultaneous intervals ---------------------------------------------------------------------------


def largest_by_covariance(influence, alpha, seed):
    return largest_quantile(influence.T @ influence, None, alpha, seed)


both_ways = pytest.mark.parametrize(
    "largest", [largest_quantile_by_influence, largest_by_covariance]
)


@both_ways
def test_largest_of_independent_estimates_has_the_known_quantile(largest):
    rng = np.random.default_rng(0)
    influence = np.linalg.qr(rng.normal(size=(1000, 4)))[0] * [1, 10, 0.1, 3]
    from scipy.special import ndtri

    exact = -ndtri((1 - 0.95 ** (1 / 4)) / 2)  # Šidák
    # Standard error of a quantile from 20 000 draws, its density being 4 · 2φ(q) · 0.95^(3/4).
    density = 8 * np.exp(-(exact**2) / 2) / np.sqrt(2 * np.pi) * 0.95**0.75
    error = np.sqrt(0.05 * 0.95 / 20_000) / density
    assert abs(largest(influence, 0.05, seed=1) - exact) < 4 * error


@both_ways
def test_one_estimate_or_copies_of_it_need_no_correction(largest):
    influence = np.random.default_rng(0).normal(size=(100, 1))
    single = largest(influence, 0.05, seed=0)
    assert single == pytest.approx(1.959964, abs=1e-6)
    error = np.sqrt(0.05 * 0.95 / 20_000) / 0.1169  # 2φ(1.96)
    copies = largest(np.hstack([influence, -2 * influence]), 0.05, seed=0)
    assert abs(copies - single) < 4 * error
