"""Rubin's rules, by hand."""

import numpy as np

from cstonet.estimators import estimate_effects, missing_information, pooled_effects


def test_by_hand():
    """Three imputations with variance 2 within and estimates 1, 2, 3: T = 2 + 4/3."""
    within, between = np.array([2.0]), np.array([4 / 3])
    fraction, freedom = missing_information(within, between, 3, 1001)
    share = (4 / 3) / (10 / 3)
    old = 2 / share**2
    observed = 1001 / 1003 * 1000 * (1 - share)
    expected = 1 / (1 / old + 1 / observed)
    np.testing.assert_allclose(freedom, expected)
    np.testing.assert_allclose(fraction, share)


def test_equal_imputations_change_nothing(draw_nuisances, imputed):
    _, nuisances = draw_nuisances(200, np.random.default_rng(0))
    rows = np.arange(0, 200, 5)
    same = imputed(nuisances, rows, np.zeros((3, len(rows), 2)))

    def estimate(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="influence")

    plain, pooled = estimate(nuisances), pooled_effects(estimate, nuisances, same)
    np.testing.assert_allclose(pooled.estimates, plain.estimates, rtol=1e-12)
    np.testing.assert_allclose(pooled.covariance, plain.covariance, rtol=1e-12)
    np.testing.assert_allclose(pooled.missing_information, 0, atol=1e-12)
