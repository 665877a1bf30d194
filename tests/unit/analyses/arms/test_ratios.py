"""Ratios as effects of a fit: by name, in parts, of several levels, and where there are none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from cstonet.errors import NotAvailableError
from cstonet.estimators import estimate_effects
from cstonet.estimators.support import hidden_bias_of_mean
from cstonet.reporting.ratios import NumberNeeded, Ratio

NAMES = ("RR", "OR", "NNT", "ratio")


@pytest.fixture
def binary(make_results):
    return make_results(family="binomial", variance="influence")


def by_hand(means, covariance, odds):
    """Log of the ratio of means (m0, m1), and its standard error."""
    m0, m1 = means
    if odds:
        log = np.log(m1 / (1 - m1) * (1 - m0) / m0)
        gradient = np.array([-1 / (m0 * (1 - m0)), 1 / (m1 * (1 - m1))])
    else:
        log, gradient = np.log(m1 / m0), np.array([-1 / m0, 1 / m1])
    return log, np.sqrt(gradient @ covariance @ gradient)


@pytest.mark.parametrize("name", ["RR", "OR", "ratio"])
def test_ratios_are_those_of_the_means(binary, name):
    means = binary.params[["POM[0]", "POM[1]"]].to_numpy()
    covariance = binary.cov_params().to_numpy()[1:, 1:]
    log, error = by_hand(means, covariance, name == "OR")
    effect = binary.effect(name, alpha=0.1)
    assert isinstance(effect, Ratio)
    assert effect.name == name
    assert effect.estimate == pytest.approx(np.exp(log), rel=1e-12)
    assert effect.se == pytest.approx(np.exp(log) * error, rel=1e-12)
    half = stats.t.isf(0.05, binary.effects.freedom[1:].min()) * error
    limits = np.exp([log - half, log + half])
    assert [effect.lower, effect.upper] == pytest.approx(limits.tolist(), rel=1e-9)
    assert effect.pvalue < 0.05


def test_number_needed_to_treat_is_that_of_the_difference(binary):
    effect, difference = binary.effect("NNT"), binary.effect("ATE")
    assert isinstance(effect, NumberNeeded)
    assert effect.name == "NNT"
    assert effect.estimate == 1 / difference.estimate
    assert (effect.lower, effect.upper) == (1 / difference.upper, 1 / difference.lower)
    assert effect.pvalue == difference.pvalue


@pytest.mark.parametrize("name", NAMES)
def test_among_everyone_is_in_everyone(binary, name):
    one, other = binary.effect(name), binary.effect(name, where=np.ones(binary.nobs, bool))
    assert dataclasses.astuple(one)[1:] == pytest.approx(dataclasses.astuple(other)[1:], rel=1e-12)


def test_among_some_units_the_means_are_theirs(binary):
    mask = binary.design.X[:, 0] > 0
    effects = estimate_effects(
        binary.nuisances.among(mask), levels=(0, 1), clip=0.01, variance="influence"
    )
    log, error = by_hand(effects.estimates[1:], effects.covariance[1:, 1:], odds=False)
    effect = binary.effect("RR", where="x1 > 0")
    assert effect.estimate == pytest.approx(np.exp(log), rel=1e-12)
    assert effect.se == pytest.approx(np.exp(log) * error, rel=1e-12)
    assert effect.estimate != pytest.approx(binary.effect("RR").estimate, rel=1e-3)


def test_among_some_units_extrapolation_counts(binary):
    mask = binary.design.X[:, 0] > 0
    binary._cross_fits.overlap.probabilities[:100] = [0.001, 0.999]
    part, some = binary._cross_fits.overlap.among(mask), binary.nuisances.among(mask)
    biases = [hidden_bias_of_mean(part, some, arm, 1 - arm) for arm in (0, 1)]
    effects = estimate_effects(some, levels=(0, 1), clip=0.01, variance="influence")
    log, error = by_hand(effects.estimates[1:], effects.covariance[1:, 1:], odds=False)
    half = stats.t.isf(0.025, effects.freedom[1:].min()) * error
    half += sum(biases / effects.estimates[1:])
    effect = binary.effect("RR", where=mask)
    assert biases[0] > 0
    assert np.log(effect.upper) == pytest.approx(log + half, rel=1e-9)
    assert np.log(effect.lower) == pytest.approx(log - half, rel=1e-9)


def test_any_two_levels(exact):
    means = exact.params.to_numpy()[2:]  # placebo, low, high
    effect = exact.effect("ratio[high-low]")
    assert effect.estimate == pytest.approx(means[2] / means[1], rel=1e-12)
    inverse = exact.effect("ratio[low-high]")
    assert inverse.estimate * effect.estimate == pytest.approx(1)
    assert inverse.pvalue == pytest.approx(effect.pvalue)
    with pytest.raises(NotAvailableError, match=r"no effect 'ratio'; it has ratio\[high-low\]"):
        exact.effect("ratio")
    with pytest.raises(NotAvailableError, match=r"no effect 'RR\[high-none\]'"):
        exact.effect("RR[high-none]")


@pytest.mark.parametrize("name", ["RR", "OR", "NNT"])
def test_ratios_of_risks_are_for_binary_outcomes(make_results, name):
    with pytest.raises(NotAvailableError, match=f"{name} is for outcomes.*effect..ratio"):
        make_results().effect(name)


def test_means_below_zero_have_no_ratio(make_results):
    with pytest.raises(NotAvailableError, match="needs means above 0"):
        make_results(scale=-1.0).effect("ratio")
