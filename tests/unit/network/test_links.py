"""Links: inverse to each other, with the derivatives they claim."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.network.links import link_of, losses, mean_of, predictor_of, slope_of

LINKS = ["identity", "logit", "log"]
ETA = np.linspace(-3, 3, 25)
STEP = 1e-5
# Central differences err by STEP²/6 times a third derivative of at most 20, and by rounding over
# the step.
TOLERANCE = 1e-9


def slope(values):
    return (values(ETA + STEP) - values(ETA - STEP)) / (2 * STEP)


@pytest.mark.parametrize("link", LINKS)
def test_predictors_are_the_inverse_of_means(link):
    np.testing.assert_allclose(predictor_of(link, mean_of(link, ETA)), ETA, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("link", LINKS)
def test_slopes_are_derivatives(link):
    expected = slope(lambda eta: mean_of(link, eta))
    np.testing.assert_allclose(slope_of(link, mean_of(link, ETA)), expected, atol=TOLERANCE)
    outcome = 0.7
    expected = slope(lambda eta: losses(link, eta, np.full_like(eta, outcome)))
    np.testing.assert_allclose(mean_of(link, ETA) - outcome, expected, atol=TOLERANCE)


@pytest.mark.parametrize("link", ["logit", "log"])
def test_extremes_are_finite(link):
    far = np.array([-1e4, 1e4])
    assert np.isfinite(mean_of(link, far)).all()
    assert np.isfinite(predictor_of(link, np.array([0.0, 1.0]))).all()
    assert np.isfinite(losses(link, far, np.array([1.0, 0.0]))).all()


def test_links_of_families():
    families = ("gaussian", "bernoulli", "poisson")
    assert [link_of(family) for family in families] == LINKS
