"""Logs of ratios and of odds ratios: the delta method against derivatives by differences."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import NotAvailableError
from cstonet.estimators import estimate_effects
from cstonet.estimators.ratios import log_ratio

PAIR = (2, 1)  # of (ATE, POM[0], POM[1])


def of_means(means, odds):
    b, a = means[2], means[1]
    return np.log(b / (1 - b) / (a / (1 - a))) if odds else np.log(b / a)


def gradient_by_differences(means, odds, step=1e-6):
    steps = step * np.eye(len(means))
    values = [(of_means(means + h, odds) - of_means(means - h, odds)) / (2 * step) for h in steps]
    return np.array(values)


@pytest.fixture
def effects(draw_nuisances):
    _, nuisances = draw_nuisances(400, np.random.default_rng(2), family="binomial")
    return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="paper")


@pytest.mark.parametrize("odds", [False, True])
def test_delta_method_is_that_of_derivatives_by_differences(effects, odds):
    log = log_ratio(effects, PAIR, name="it", odds=odds)
    gradient = gradient_by_differences(effects.estimates, odds)
    assert log.names == ("it",)
    assert log.estimates.item() == pytest.approx(of_means(effects.estimates, odds), rel=1e-12)
    # Central differences are off by the third derivative times step²/6, about 1e-11 here, and by
    # rounding over the step, about 1e-10.
    variance = gradient @ effects.covariance @ gradient
    assert log.covariance.item() == pytest.approx(variance, rel=1e-7)
    np.testing.assert_allclose(log.influence[:, 0], effects.influence @ gradient, rtol=1e-6)
    assert log.freedom is None or log.freedom.item() == effects.freedom[1:].min()


@pytest.mark.parametrize("odds", [False, True])
def test_what_extrapolation_hides_goes_through_the_gradient(effects, odds):
    bias = np.array([0.03, 0.01, 0.02])
    log = log_ratio(dataclasses.replace(effects, bias=bias), PAIR, name="it", odds=odds)
    expected = np.abs(gradient_by_differences(effects.estimates, odds)) @ bias
    assert log.bias.item() == pytest.approx(expected, rel=1e-7)


def test_oracle_finds_the_ratios_of_the_population():
    simulation = cs.datasets.simulation2(n=50_000, p=5, seed=4, outcome="binomial")
    effects = simulation._oracle()
    assert simulation.mean0 == 0.5
    assert 1.2 < simulation.ratio < simulation.odds_ratio
    for odds, truth in ((False, simulation.ratio), (True, simulation.odds_ratio)):
        log = log_ratio(effects, PAIR, name="it", odds=odds)
        error = log.standard_errors.item()
        assert error < 0.03
        assert abs(log.estimates.item() - np.log(truth)) < 4 * error


@pytest.mark.parametrize(
    ("means", "odds", "bounds"),
    [
        ((0.0, 0.5), False, "above 0.*POM.0. is estimated as 0"),
        ((0.5, -0.1), False, "above 0.*POM.1. is estimated as -0.1"),
        ((0.5, 1.0), True, "between 0 and 1.*POM.1. is estimated as 1"),
    ],
)
def test_means_without_a_log(effects, means, odds, bounds):
    estimates = np.array([means[1] - means[0], *means])
    with pytest.raises(NotAvailableError, match=bounds):
        log_ratio(dataclasses.replace(effects, estimates=estimates), PAIR, name="RR", odds=odds)


def test_means_above_one_have_a_ratio_but_no_odds(effects):
    above = dataclasses.replace(effects, estimates=np.array([0.6, 0.5, 1.1]))
    assert np.exp(log_ratio(above, PAIR, name="RR", odds=False).estimates) == pytest.approx(2.2)
