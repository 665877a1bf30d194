"""The estimators against plain loops over the paper's formulas, and against known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.errors import NumericalError, OptionError
from cstonet.estimators import (
    Nuisances,
    aipw_scores,
    clip_propensity,
    estimate_effects,
    inverse_probability_residuals,
)

CLIP = 0.05


def estimate(nuisances, *, clip=0.0, variance="paper"):
    return estimate_effects(nuisances, levels=(0, 1), clip=clip, variance=variance)


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def nuisances(request, draw_nuisances):
    _, drawn = draw_nuisances(60, np.random.default_rng(3), weighted=request.param)
    # Imperfect regressions, so that no term of the formulas vanishes.
    return replace(drawn, mu=drawn.mu + 0.3 * drawn.mu**2)


# Twins: loops written from the paper --------------------------------------------------------------


def loop_data(nuisances):
    """(w_i, A_i, Y_i, p(x_i) clipped, μ_1(x_i), μ_0(x_i)) of every unit, Σ w_i = n."""
    n = len(nuisances.y)
    total = n if nuisances.weights is None else sum(nuisances.weights)
    for i in range(n):
        w = 1.0 if nuisances.weights is None else nuisances.weights[i] * n / total
        p = min(max(nuisances.propensity[i, 1], CLIP), 1 - CLIP)
        yield w, nuisances.treatment[i], nuisances.y[i], p, nuisances.mu[i, 1], nuisances.mu[i, 0]


def loop_tau(nuisances):
    """Equation (1), term by term as printed."""
    total = 0.0
    for w, A, Y, p, mu1, mu0 in loop_data(nuisances):
        total += w * (
            A * Y / p - (A - p) / p * mu1 - (1 - A) * Y / (1 - p) - (A - p) / (1 - p) * mu0
        )
    return total / len(nuisances.y)


def loop_mean(nuisances, a):
    """μ̂_a of the appendix."""
    total = 0.0
    for w, A, Y, p, mu1, mu0 in loop_data(nuisances):
        mu, p_a = (mu1, p) if a == 1 else (mu0, 1 - p)
        total += w * ((a == A) * (Y - mu) / p_a + mu)
    return total / len(nuisances.y)


def loop_variance(nuisances):
    """V̂_τ of the appendix; with weights, the variance of a weighted mean (w² in each average)."""
    mean1, mean0 = loop_mean(nuisances, 1), loop_mean(nuisances, 0)
    noise = heterogeneity = 0.0
    for w, A, Y, p, mu1, mu0 in loop_data(nuisances):
        noise += w**2 * (
            (A == 1) * (Y - mu1) ** 2 / p**2 + (A == 0) * (Y - mu0) ** 2 / (1 - p) ** 2
        )
        heterogeneity += w**2 * ((mu1 - mean1) - (mu0 - mean0)) ** 2
    return (noise + heterogeneity) / len(nuisances.y)


# Sums of 60 terms of order one, in another order: a few hundred units in the last place.
TWIN = {"rtol": 1e-12, "atol": 1e-13}


def test_ate_is_equation_1(nuisances):
    np.testing.assert_allclose(
        estimate(nuisances, clip=CLIP).estimates[0], loop_tau(nuisances), **TWIN
    )


def test_means_are_those_of_the_appendix(nuisances):
    effects = estimate(nuisances, clip=CLIP)
    twins = [loop_mean(nuisances, 0), loop_mean(nuisances, 1)]
    np.testing.assert_allclose(effects.estimates[1:], twins, **TWIN)


def test_variance_of_the_ate_is_the_appendix_v(nuisances):
    effects = estimate(nuisances, clip=CLIP)
    np.testing.assert_allclose(
        effects.covariance[0, 0], loop_variance(nuisances) / nuisances.n, **TWIN
    )


def test_variance_of_a_mean_and_covariance(nuisances):
    """The generalisation to single means: noise of the arm, plus (co)variation of μ̂_a(x)."""
    means = loop_mean(nuisances, 0), loop_mean(nuisances, 1)
    v11 = v01 = 0.0
    for w, A, Y, p, mu1, mu0 in loop_data(nuisances):
        v11 += w**2 * ((A == 1) * (Y - mu1) ** 2 / p**2 + (mu1 - means[1]) ** 2)
        v01 += w**2 * (mu1 - means[1]) * (mu0 - means[0])
    covariance = estimate(nuisances, clip=CLIP).covariance
    np.testing.assert_allclose(covariance[2, 2], v11 / nuisances.n**2, **TWIN)
    np.testing.assert_allclose(covariance[1, 2], v01 / nuisances.n**2, **TWIN)


def test_influence_covariance_is_that_of_the_scores(nuisances):
    effects = estimate(nuisances, clip=CLIP, variance="influence")
    scores = aipw_scores(nuisances, clip_propensity(nuisances.propensity, CLIP).values)
    weights = np.ones(nuisances.n) if nuisances.weights is None else nuisances.weights
    deviations = weights[:, None] * (scores - np.average(scores, axis=0, weights=weights))
    expected = deviations.T @ deviations / weights.sum() ** 2
    np.testing.assert_allclose(effects.covariance[1:, 1:], expected, **TWIN)


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_effects_are_consistent_with_each_other(nuisances, variance):
    effects = estimate(nuisances, variance=variance)
    contrast = np.array([0.0, -1.0, 1.0])
    np.testing.assert_allclose(effects.estimates[0], contrast @ effects.estimates, **TWIN)
    np.testing.assert_allclose(
        effects.covariance[0, 0], contrast @ effects.covariance @ contrast, **TWIN
    )
    np.testing.assert_allclose(effects.influence.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(effects.influence[:, 0], effects.influence @ contrast, **TWIN)
    assert effects.names == ("ATE", "POM[0]", "POM[1]")


# Invariances --------------------------------------------------------------------------------------


def test_swapping_the_arms_flips_the_ate(nuisances):
    swapped = replace(
        nuisances,
        treatment=1 - nuisances.treatment,
        mu=nuisances.mu[:, ::-1],
        propensity=nuisances.propensity[:, ::-1],
    )
    original, flipped = estimate(nuisances), estimate(swapped)
    np.testing.assert_allclose(flipped.estimates, original.estimates[[0, 2, 1]] * [-1, 1, 1])
    np.testing.assert_allclose(flipped.standard_errors, original.standard_errors[[0, 2, 1]])


def test_affine_map_of_the_outcome(nuisances):
    mapped = replace(nuisances, y=5 - 3 * nuisances.y, mu=5 - 3 * nuisances.mu)
    original, moved = estimate(nuisances), estimate(mapped)
    np.testing.assert_allclose(moved.estimates, [0, 5, 5] - 3 * original.estimates, **TWIN)
    np.testing.assert_allclose(moved.standard_errors, 3 * original.standard_errors)


def test_scale_of_the_weights_is_irrelevant(nuisances):
    weights = np.full(nuisances.n, 2.0) if nuisances.weights is None else 7 * nuisances.weights
    original, scaled = estimate(nuisances), estimate(replace(nuisances, weights=weights))
    np.testing.assert_allclose(scaled.estimates, original.estimates, **TWIN)
    np.testing.assert_allclose(scaled.covariance, original.covariance, **TWIN)


def test_integer_weights_estimate_like_repeated_rows(draw_nuisances):
    _, drawn = draw_nuisances(40, np.random.default_rng(4))
    times = np.arange(40) % 3 + 1
    repeated = Nuisances(
        *(np.repeat(array, times, axis=0) for array in (drawn.y, drawn.treatment, drawn.mu)),
        propensity=np.repeat(drawn.propensity, times, axis=0),
        weights=None,
        fold=np.repeat(drawn.fold, times),
    )
    weighted = estimate(replace(drawn, weights=times.astype(float)))
    np.testing.assert_allclose(weighted.estimates, estimate(repeated).estimates, **TWIN)


# Clipping -----------------------------------------------------------------------------------------


def test_clip_counts_units_not_entries():
    p1 = np.array([0.0, 0.009, 0.01, 0.5, 0.99, 0.9901, 1.0])
    clipped = clip_propensity(np.column_stack([1 - p1, p1]), 0.01)
    assert clipped.n_clipped == 4
    np.testing.assert_array_equal(clipped.values[:, 1], [0.01, 0.01, 0.01, 0.5, 0.99, 0.99, 0.99])
    np.testing.assert_allclose(clipped.values.sum(axis=1), 1, rtol=1e-15)


def test_clip_of_zero_changes_nothing():
    propensity = np.array([[1.0, 0.0], [0.25, 0.75]])
    clipped = clip_propensity(propensity, 0)
    assert clipped.n_clipped == 0
    np.testing.assert_array_equal(clipped.values, propensity)


@pytest.mark.parametrize("bound", [-0.01, 0.5, 1.0, np.nan])
def test_clip_out_of_range(bound):
    with pytest.raises(OptionError, match="clip must be"):
        clip_propensity(np.array([[0.5, 0.5]]), bound)


def test_effects_report_the_clip(nuisances):
    p1 = nuisances.propensity[:, 1]
    effects = estimate(nuisances, clip=0.3)
    assert effects.n_clipped == np.sum((p1 < 0.3) | (p1 > 0.7)) > 0
    assert effects.clip == 0.3
    assert estimate(nuisances).n_clipped == 0


# What cannot be estimated -------------------------------------------------------------------------


def test_a_treatment_received_against_all_odds(nuisances):
    first = nuisances.treatment[0]
    propensity = nuisances.propensity.copy()
    propensity[0] = np.eye(2)[1 - first]
    impossible = replace(nuisances, propensity=propensity)
    with pytest.raises(NumericalError, match=r"1 units received .* clip above 0"):
        estimate(impossible)
    assert np.isfinite(estimate(impossible, clip=0.01).estimates).all()


def test_zero_probability_of_the_other_arm_is_harmless(nuisances):
    propensity = nuisances.propensity.copy()
    propensity[0] = np.eye(2)[nuisances.treatment[0]]
    residuals = inverse_probability_residuals(nuisances, propensity)
    assert np.isfinite(residuals).all()
    assert residuals[0, 1 - nuisances.treatment[0]] == 0


def test_diverged_network_is_named_by_fold(nuisances):
    mu = nuisances.mu.copy()
    mu[5, 1] = np.nan
    with pytest.raises(NumericalError, match=rf"outcome model .* \(fold {nuisances.fold[5]}\)"):
        replace(nuisances, mu=mu)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mu", np.zeros((3, 2)), "mu has shape"),
        ("weights", np.ones(3), "weights has shape"),
        ("treatment", np.full(60, 2), "codes"),
        ("propensity", np.full((60, 2), 0.6), "sum to one"),
    ],
)
def test_inconsistent_nuisances(nuisances, field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(nuisances, **{field: value})


def test_unknown_variance(nuisances):
    with pytest.raises(OptionError, match="paper, influence, not 'bootstrap'"):
        estimate(nuisances, variance="bootstrap")


def test_labels_must_fit_the_levels(nuisances):
    with pytest.raises(ValueError, match="3 labels for 2 treatment levels"):
        estimate_effects(nuisances, levels="abc", clip=0.01, variance="paper")


# Truths -------------------------------------------------------------------------------------------

TRUE_ATE = 2.0  # of `draw_nuisances`, gaussian


@pytest.mark.parametrize("wrong", ["outcome", "treatment"])
def test_double_robustness(draw_nuisances, wrong):
    """One wrong nuisance leaves the estimate consistent; here within 4 of its standard errors."""
    _, truth = draw_nuisances(20_000, np.random.default_rng(11))
    if wrong == "outcome":
        fitted = replace(truth, mu=np.zeros_like(truth.mu))
    else:
        fitted = replace(truth, propensity=np.full_like(truth.propensity, 0.5))
    effects = estimate(fitted, variance="influence")
    assert abs(effects.estimates[0] - TRUE_ATE) < 4 * effects.standard_errors[0]


def test_both_nuisances_wrong_is_biased(draw_nuisances):
    """The control of the test above: confounding is there to be removed."""
    _, truth = draw_nuisances(20_000, np.random.default_rng(11))
    fitted = replace(
        truth, mu=np.zeros_like(truth.mu), propensity=np.full_like(truth.propensity, 0.5)
    )
    effects = estimate(fitted, variance="influence")
    assert abs(effects.estimates[0] - TRUE_ATE) > 10 * effects.standard_errors[0]


REPLICATIONS = 1000


def replicate(draw, seed):
    """Errors and standard errors of the ATE over replications, shape (R,) each."""
    rngs = np.random.default_rng(seed).spawn(REPLICATIONS)
    fits = [draw(rng) for rng in rngs]
    errors = np.array([effects.estimates[0] - TRUE_ATE for effects in fits])
    return errors, np.array([effects.standard_errors[0] for effects in fits])


def assert_unbiased_and_covering(errors, standard_errors):
    """Bias and coverage within 4 and 3 Monte-Carlo standard errors of what they should be.

    Coverage may also be off by the normal approximation at n = 400: 1 %.
    """
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(REPLICATIONS)
    coverage = np.mean(np.abs(errors) < 1.959964 * standard_errors)
    assert abs(coverage - 0.95) < 3 * np.sqrt(0.95 * 0.05 / REPLICATIONS) + 0.01


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_unbiased_with_valid_intervals(draw_nuisances, variance):
    def fit(rng):
        return estimate(draw_nuisances(400, rng)[1], variance=variance)

    assert_unbiased_and_covering(*replicate(fit, seed=21))


@pytest.mark.parametrize("variance", ["paper", "influence"])
def test_sampling_weights_undo_biased_sampling(draw_nuisances, variance):
    """Rows sampled with probability π(x), weighted by 1/π(x): the population's ATE, covered."""

    def fit(rng):
        X, drawn = draw_nuisances(800, rng)
        inclusion = 1 / (1 + np.exp(-X[:, 0]))  # favours large effects: τ(x) = 2 + x1
        kept = rng.uniform(size=800) < np.clip(inclusion, 0.2, 0.8)
        sample = Nuisances(
            y=drawn.y[kept],
            treatment=drawn.treatment[kept],
            mu=drawn.mu[kept],
            propensity=drawn.propensity[kept],
            weights=1 / np.clip(inclusion, 0.2, 0.8)[kept],
            fold=drawn.fold[kept],
        )
        return estimate(sample, variance=variance)

    errors, standard_errors = replicate(fit, seed=22)
    assert_unbiased_and_covering(errors, standard_errors)
