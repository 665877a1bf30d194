"""Errors of predicted effects: the jackknife of a mean, what folds miss, and all rows together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from cstonet.estimators.cate_bands import CateSpread, jackknife_variances, largest_of_rows

K, R = 5, 2


def test_of_a_mean_the_jackknife_is_its_variance():
    """K means of all but one block: exactly the variance of the mean of K block means."""
    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(R, K, 7))
    without = (blocks.sum(axis=1, keepdims=True) - blocks) / (K - 1)
    expected = blocks.var(axis=1, ddof=1).mean(axis=0) / K
    np.testing.assert_allclose(jackknife_variances(without), expected, rtol=1e-12)


def linear_predictions(n: int, share: float, seed: int):
    """Folds predict `share` of what least squares of scores on x say of the slope 1, by blocks."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    scores = x + rng.normal(size=n) * 2
    predictions = np.empty((R, K, n))
    out_of_fold = np.zeros(n)
    for r in range(R):
        fold = rng.permutation(np.arange(n) % K)
        for k in range(K):
            inside = fold != k
            slope = share * (x[inside] @ scores[inside]) / (x[inside] @ x[inside])
            predictions[r, k] = slope * x
            out_of_fold[~inside] += slope * x[~inside] / R
    return x, scores, predictions, out_of_fold


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_mean_squared_errors_of_shrunken_slopes(share):
    """(1 - share)² of the slope is bias, share² of its variance 4/n remains: both are seen."""
    n, found = 400, []
    for seed in range(60):
        x, scores, predictions, out_of_fold = linear_predictions(n, share, seed)
        terms = np.column_stack([np.ones(n), x])
        spread = CateSpread.of(predictions, scores - out_of_fold, terms, np.ones(n))
        found.append([spread.typical, spread.missed])
    typical, missed = np.mean(found, axis=0)
    assert typical == pytest.approx(share**2 * 4 / n, rel=0.35, abs=1e-12)
    noise = 2 * 4 / n  # of the two coefficients
    assert (1 - share) ** 2 - noise < missed < (1 - share) ** 2 + noise


def test_half_of_a_variance_is_that_of_all_units():
    spread = CateSpread(typical=0.4, alone=0.1, missed=0.05, freedom=8.0)
    jackknife = np.array([0.0, 0.4, 2.0])
    np.testing.assert_allclose(spread.variances(jackknife, out_of_fold=False), [0.25, 0.45, 1.25])
    np.testing.assert_allclose(spread.variances(jackknife, out_of_fold=True), [0.35, 0.55, 1.35])


def test_what_a_single_fold_adds_is_the_variance_between_folds():
    predictions = np.random.default_rng(1).normal(size=(R, K, 50))
    n = 50
    spread = CateSpread.of(predictions, np.zeros(n), np.ones((n, 1)), np.ones(n))
    assert spread.alone == pytest.approx(predictions.var(axis=1, ddof=1).mean() / R)
    assert spread.freedom == R * (K - 1)


def test_critical_value_of_one_row_is_students():
    predictions = np.random.default_rng(2).normal(size=(R, K, 1))
    critical = largest_of_rows(predictions, np.array([30.0]), 8.0, 0.05, seed=1)
    # A quantile of 1000 draws: its error is sqrt(0.05 · 0.95 / 1000) over the density, about 0.15.
    assert critical == pytest.approx(-stdtrit(8.0, 0.025), abs=0.45)


def test_more_rows_need_a_larger_value_and_copies_of_a_row_none():
    rng = np.random.default_rng(3)
    predictions = rng.normal(size=(R, K, 2000))
    jackknife = jackknife_variances(predictions)
    many = largest_of_rows(predictions, jackknife, 8.0, 0.05, seed=1)
    few = largest_of_rows(predictions[:, :, :10], jackknife[:10], 8.0, 0.05, seed=1)
    assert 2.3 < few < many < 9
    # All of the variance from folds that agree about the rows: one row, however often.
    copies = np.repeat(predictions[:, :, :1], 500, axis=2)
    shared = jackknife_variances(copies) / 2
    one = largest_of_rows(copies, shared, 8.0, 0.05, seed=1)
    assert one == pytest.approx(-stdtrit(8.0, 0.025), abs=0.45)
    assert one == largest_of_rows(copies, shared, 8.0, 0.05, seed=1)
