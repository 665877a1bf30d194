"""Standard errors over the repetitions of the cross-fitting: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import (
    CrossFit,
    effects_over_repetitions,
    estimate_effects,
    missing_information,
    pooled_effects,
)


def estimate(nuisances):
    return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="influence")


def by_hand(estimates, singles):
    """Mean of each repetition's covariance and the outer product of its distance."""
    total = np.zeros((len(estimates), len(estimates)))
    for single in singles:
        for i, first in enumerate(single.estimates - estimates):
            for j, second in enumerate(single.estimates - estimates):
                total[i, j] += single.covariance[i, j] + first * second
    return total / len(singles)


@pytest.fixture(scope="module")
def nuisances(draw_nuisances):
    return draw_nuisances(200, np.random.default_rng(1))[1]


def disturbed(nuisances, rng):
    """The same data with other regressions."""
    return replace(nuisances, mu=nuisances.mu + 0.5 * rng.normal(size=nuisances.mu.shape))


def test_covariance_by_hand(nuisances):
    rng = np.random.default_rng(2)
    singles = [estimate(disturbed(nuisances, rng)) for _ in range(3)]
    whole = estimate(nuisances)
    found = effects_over_repetitions(whole, singles)
    np.testing.assert_array_equal(found.estimates, whole.estimates)
    np.testing.assert_allclose(found.covariance, by_hand(whole.estimates, singles), rtol=1e-12)
    # The ATE stays the difference of the means.
    difference = np.array([0.0, -1.0, 1.0])
    assert found.covariance[0, 0] == pytest.approx(difference @ found.covariance @ difference)
    # One repetition is its own average, and none says nothing.
    np.testing.assert_array_equal(
        effects_over_repetitions(whole, [whole]).covariance, whole.covariance
    )
    assert effects_over_repetitions(whole, []) is whole


def test_imputations_add_the_same(nuisances, imputed):
    """The rule holds within imputations; what differs between them is added as it was."""
    rng = np.random.default_rng(3)
    rows = np.arange(0, 200, 4)
    moves = 0.4 * rng.normal(size=(6, len(rows), 2))

    def cross_fit(of):
        return CrossFit(of, imputed(of, rows, moves))

    average = cross_fit(nuisances)
    whole = average.effects(estimate)
    # A cross-fit estimates by Rubin's rules, and averages over its imputations.
    pooled = pooled_effects(estimate, nuisances, average.imputations)
    np.testing.assert_array_equal(whole.covariance, pooled.covariance)
    np.testing.assert_allclose(average.mean.mu[rows], nuisances.mu[rows] + moves.mean(axis=0))

    singles = [cross_fit(disturbed(nuisances, rng)).effects(estimate) for _ in range(2)]
    found = effects_over_repetitions(whole, singles)
    within = by_hand(
        whole.estimates, [replace(s, covariance=s.covariance - s.between) for s in singles]
    )
    np.testing.assert_allclose(found.covariance, within + whole.between, rtol=1e-12)
    fewest = min(estimate(one).freedom.min() for one in average.imputations.each(nuisances))
    assert whole.n_counted == int(fewest) + 1 < 200
    fraction, freedom = missing_information(
        np.diag(within), np.diag(whole.between), 6, whole.n_counted
    )
    np.testing.assert_allclose(found.missing_information, fraction, rtol=1e-12)
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-12)


def test_equal_repetitions_change_nothing(draw_nuisances, imputed):
    """What the imputations differ by counts once, however many repetitions have them."""
    nuisances = draw_nuisances(200, np.random.default_rng(1), weighted=True)[1]
    weights = nuisances.weights.copy()
    weights[:20] = 0
    nuisances = replace(nuisances, weights=weights)
    rows = np.arange(0, 200, 4)
    moves = 0.4 * np.random.default_rng(4).normal(size=(3, len(rows), 2))
    whole = CrossFit(nuisances, imputed(nuisances, rows, moves)).effects(estimate)
    found = effects_over_repetitions(whole, [whole] * 5)
    assert whole.n_counted < 180
    for name in ("covariance", "missing_information", "freedom"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9)


def test_one_imputation_has_no_freedom_to_lose():
    with np.errstate(all="raise"):
        fraction, freedom = missing_information(np.array([2.0]), np.array([0.0]), 1, 101)
    assert fraction[0] == 0.0
    assert freedom[0] == pytest.approx(100 * 101 / 103)
