"""Weights of linear parts and networks: on the simplex, where the likelihood is largest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network.mixture import OutcomeLink, log_odds, mixed_probabilities, treatment_weights

N = 2000


def on_the_simplex(weights) -> bool:
    return min(weights) >= 0 and abs(sum(weights) - 1) < 1e-12


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("truth", [0, 1, 2])
def test_the_treatments_own_predictor_has_the_weight(levels, truth):
    rng = np.random.default_rng(truth)
    odds = 1.5 * rng.normal(size=(3, N, levels - 1))
    pure = tuple(float(k == truth) for k in range(3))
    p = mixed_probabilities(odds, pure)
    codes = (rng.random((N, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = treatment_weights(odds, codes, np.ones(N))
    assert on_the_simplex(found)
    # The information on a weight is about N/4 · 1.5²: five standard errors are below 0.2.
    assert found[truth] > 0.8


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("truth", [0, 1, 2])
def test_the_outcomes_own_predictor_has_the_weight(binary, truth):
    rng = np.random.default_rng(truth)
    eta = 1.5 * rng.normal(size=(3, N))
    y = eta[truth] + rng.normal(size=N)
    if binary:
        y = (rng.random(N) < expit(eta[truth])).astype(float)
    found = OutcomeLink(binary).weights(eta, y, np.ones(N))
    assert on_the_simplex(found)
    assert found[truth] > 0.8


@pytest.mark.parametrize("binary", [False, True])
def test_no_neighbour_on_the_simplex_is_more_likely(binary):
    rng = np.random.default_rng(7)
    eta, counts = rng.normal(size=(3, N)), rng.uniform(0.5, 2, N)
    mean = np.array([0.5, 0.3, 0.2]) @ eta
    y = (rng.random(N) < expit(mean)).astype(float) if binary else mean + rng.normal(size=N)
    found = np.array(OutcomeLink(binary).weights(eta, y, counts))

    def loss(w):
        at = w @ eta
        each = np.logaddexp(0, at) - y * at if binary else 0.5 * (at - y) ** 2
        return counts @ each / counts.sum()

    assert found.min() > 0.05  # an inner optimum, so that every direction is free
    for direction in ([1, -1, 0], [0, 1, -1], [1, 0, -1]):
        step = 1e-3 * np.array(direction)
        # The gradient along the simplex is zero up to the root of the solver's tolerance.
        assert abs(loss(found + step) - loss(found - step)) / 2e-3 < 1e-3
        assert min(loss(found + step), loss(found - step)) > loss(found) - 1e-8


def test_log_odds_and_probabilities_belong_together():
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    again = mixed_probabilities(np.stack([log_odds(p)] * 3), (0.2, 0.3, 0.5))
    np.testing.assert_allclose(again, p, rtol=1e-4, atol=1e-6)
    means = np.array([[0.2, 0.7]])
    link = OutcomeLink(True)
    np.testing.assert_allclose(link.mixed(link.predictor(means)[None], (1.0,)), means, rtol=1e-12)
