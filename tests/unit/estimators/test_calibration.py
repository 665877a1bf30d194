"""Calibration of predicted effects against statsmodels, and the size of the test on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t

from cstonet.estimators.calibration import estimate_calibration, within_folds
from cstonet.estimators.heterogeneity_test import (
    autoc_statistics,
    calibration_statistics,
    combined_test,
    fold_statistics,
)
from cstonet.estimators.pseudo_outcomes import effect_scores

CLIP = 0.01


def test_coefficients_are_a_regression_with_intercepts_of_folds(draw_nuisances):
    import statsmodels.api as sm

    _, nuisances = draw_nuisances(200, np.random.default_rng(1), weighted=True)
    effects = estimate_calibration(nuisances, (1, 0), clip=CLIP)
    scores, weights = effect_scores(nuisances, (1, 0), CLIP), nuisances.unit_weights
    predicted = nuisances.mu[:, 1] - nuisances.mu[:, 0]
    folds = np.equal.outer(nuisances.fold, np.arange(3)).astype(float)
    fit = sm.WLS(scores, np.column_stack([predicted, folds]), weights).fit(cov_type="HC0")
    assert effects.names == ("mean", "differential")
    assert effects.estimates[1] == pytest.approx(fit.params[0], rel=1e-10)
    assert effects.standard_errors[1] == pytest.approx(fit.bse[0], rel=1e-10)
    level = np.average(predicted, weights=weights)
    mean = np.average(scores, weights=weights)
    assert effects.estimates[0] == pytest.approx(mean / level, rel=1e-12)


def test_true_predictions_are_calibrated(draw_nuisances):
    _, nuisances = draw_nuisances(20_000, np.random.default_rng(2))
    effects = estimate_calibration(nuisances, (1, 0), clip=CLIP)
    assert np.all(np.abs(effects.estimates - 1) < 3 * effects.standard_errors)
    assert effects.standard_errors.max() < 0.1


def test_clusters_of_copies_count_once(draw_nuisances):
    """A unit copied five times in its cluster adds nothing but the small-sample factor."""
    _, single = draw_nuisances(150, np.random.default_rng(3))
    copies = np.repeat(np.arange(150), 5)
    many = replace(
        single,
        y=single.y[copies],
        treatment=single.treatment[copies],
        mu=single.mu[copies],
        propensity=single.propensity[copies],
        fold=single.fold[copies],
        clusters=copies,
    )
    one, five = (estimate_calibration(each, (1, 0), clip=CLIP) for each in (single, many))
    np.testing.assert_allclose(five.estimates, one.estimates, rtol=1e-12)
    factor = np.sqrt(150 / 149)
    np.testing.assert_allclose(five.standard_errors, factor * one.standard_errors, rtol=1e-12)
    alone, grouped = (calibration_statistics(each, (1, 0), CLIP) for each in (single, many))
    # Fifty clusters in a fold: the factor is 50 / 49, and 49 degrees of freedom are the same.
    as_t = t.isf(norm.sf(alone), 49) / np.sqrt(50 / 49)
    np.testing.assert_allclose(grouped, norm.isf(t.sf(as_t, 49)), rtol=1e-9)


def test_statistic_of_a_fold_by_hand():
    rng = np.random.default_rng(4)
    scores, direction, weights = rng.normal(size=40), rng.normal(size=40), rng.uniform(1, 2, 40)
    fold = np.repeat([0, 1], 20)
    got = fold_statistics(scores, direction, weights, fold, None)
    for k in range(2):
        own = fold == k
        w, d, s = weights[own], direction[own], scores[own]
        products = w * (d - np.average(d, weights=w)) * (s - np.average(s, weights=w))
        student = products.sum() / np.sqrt((products**2).sum())
        assert got[k] == pytest.approx(norm.isf(t.sf(student, 19)), rel=1e-9)


def test_units_count_by_their_overlap(draw_nuisances):
    _, nuisances = draw_nuisances(90, np.random.default_rng(9), weighted=True)
    scores, predicted = effect_scores(nuisances, (1, 0), CLIP), np.diff(nuisances.mu)[:, 0]
    weights = nuisances.unit_weights * nuisances.propensity.prod(axis=1)
    expected = fold_statistics(scores, predicted, weights, nuisances.fold, None)
    got = calibration_statistics(nuisances, (1, 0), CLIP)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_far_tails_stay_finite():
    scores = np.arange(2000.0)
    statistics = fold_statistics(scores, scores, np.ones(2000), np.arange(2000) % 2, None)
    assert np.isfinite(statistics).all()
    assert combined_test([statistics]).pvalue < 1e-90


@pytest.mark.parametrize("noise", [0.0, 1e-14])
def test_predictions_that_do_not_vary_are_no_evidence(draw_nuisances, noise):
    rng = np.random.default_rng(5)
    _, nuisances = draw_nuisances(60, rng)
    flat = replace(nuisances, mu=np.array([1.0, 3.0]) + noise * rng.normal(size=(60, 2)))
    test = combined_test([calibration_statistics(flat, (1, 0), CLIP)])
    assert (test.statistic, test.pvalue) == (0.0, 1.0)
    effects = estimate_calibration(flat, (1, 0), clip=CLIP)
    assert np.isnan(effects.estimates[1])
    assert np.isfinite(effects.estimates[0])
    assert 0 < combined_test([autoc_statistics(flat, (1, 0), CLIP)]).pvalue <= 1


def test_folds_that_do_not_vary_are_left_out(draw_nuisances):
    _, nuisances = draw_nuisances(90, np.random.default_rng(6))
    mu = nuisances.mu.copy()
    mu[nuisances.fold == 1] = 1.0
    statistics = calibration_statistics(replace(nuisances, mu=mu), (1, 0), CLIP)
    every = calibration_statistics(nuisances, (1, 0), CLIP)
    assert len(every) == 3
    # Scores are made of mu, but those of other folds are as they were.
    np.testing.assert_allclose(statistics, every[[0, 2]], rtol=1e-12)


def test_repetitions_are_averaged():
    first, second = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    test = combined_test([first, second, np.empty(0)])
    assert test.statistic == pytest.approx((3 / 2 + 1 / 2) / 2)
    assert test.pvalue == pytest.approx(norm.sf(1.0))


@pytest.mark.parametrize("folds", [2, 5])
def test_size_where_folds_teach_each_other(folds):
    """Slopes of scores on 20 covariates, learned from other folds, where all effects are equal.

    The sum of the folds' statistics has twice the variance of independent ones: taken for
    independent they reject twice as often as they should, and more.
    """
    rng = np.random.default_rng(7)
    draws, n, p = 1500, 200, 20
    fold = np.arange(n) % folds
    statistics = np.empty((draws, folds))
    for draw in range(draws):
        X, scores = rng.normal(size=(n, p)), rng.normal(size=n)
        slopes = np.stack([X[fold == k].T @ scores[fold == k] for k in range(folds)])
        predicted = np.sum(X * (slopes.sum(axis=0) - slopes)[fold], axis=1)
        statistics[draw] = fold_statistics(scores, predicted, np.ones(n), fold, None)
    rejected = np.mean([combined_test([one]).pvalue < 0.05 for one in statistics])
    independent = np.mean(statistics.sum(axis=1) / np.sqrt(folds) > norm.isf(0.05))
    error = np.sqrt(0.05 * 0.95 / draws)
    assert rejected < 0.05 + 3 * error
    assert rejected > 0.02
    assert independent > 0.05 + 6 * error


def test_within_folds_has_mean_zero_in_each():
    rng = np.random.default_rng(8)
    values, weights, fold = rng.normal(size=30), rng.uniform(1, 2, 30), np.arange(30) % 4 + 2
    centred = within_folds(values, weights, fold)
    for k in range(2, 6):
        assert (weights * centred)[fold == k].sum() == pytest.approx(0.0, abs=1e-12)


def test_clusters_of_weight_zero_do_not_count(draw_nuisances):
    _, nuisances = draw_nuisances(120, np.random.default_rng(5))
    scores, direction = effect_scores(nuisances, (1, 0), 0.01), nuisances.mu[:, 1]
    clusters = np.arange(120) // 4
    fold, weights = clusters % 2, np.where(clusters < 20, 1.0, 0.0)
    some = clusters < 20
    expected = fold_statistics(
        scores[some], direction[some], weights[some], fold[some], clusters[some]
    )
    got = fold_statistics(scores, direction, weights, fold, clusters)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_few_clusters_have_few_degrees_of_freedom(draw_nuisances):
    _, nuisances = draw_nuisances(120, np.random.default_rng(5))
    few = replace(nuisances, clusters=np.arange(120) % 12)
    np.testing.assert_allclose(estimate_calibration(few, (1, 0), clip=0.01).freedom, 11)
    assert estimate_calibration(nuisances, (1, 0), clip=0.01).freedom is None
