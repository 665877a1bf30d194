"""Counts: quick fits of arms, in units of the counts, with gaps, and what is said about them."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet.reporting.ratios import Ratio

# An interval of this level misses once in 16 000 fits.
ALPHA = 6e-5


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.counts(n=500, p=8, seed=2, overdispersion=0.3)


@pytest.fixture(scope="module")
def fitted(simulation, fit_quickly):
    return fit_quickly(simulation.formula, simulation.data, family="poisson")


def test_effects_are_in_units_of_counts(simulation, fitted):
    effect = fitted.effect("ATE", alpha=ALPHA)
    assert effect.lower < simulation.ate < effect.upper
    assert effect.se < 0.3
    ratio = fitted.effect("RR", alpha=ALPHA)
    assert isinstance(ratio, Ratio)
    assert ratio.lower < simulation.ratio < ratio.upper
    assert ratio.estimate == fitted.effect("ratio").estimate


def test_predictions_are_means_above_zero(simulation, fitted):
    mu = fitted.potential_outcomes()
    assert (mu > 0).to_numpy().all()
    truth = np.concatenate([simulation.mu0, simulation.mu1])
    found = np.concatenate([mu[0], mu[1]])
    assert np.corrcoef(np.log(truth), np.log(found))[0, 1] > 0.8
    assert fitted.predict().mean() == pytest.approx(simulation.data["y"].mean(), rel=0.1)


def test_other_units_of_the_same_amounts_scale_the_effects(simulation, fitted, fit_quickly):
    """Amounts need not be whole, and what they are counted in changes nothing but the units."""
    halves = simulation.data.assign(y=simulation.data["y"] / 2)
    other = fit_quickly(simulation.formula, halves, family="poisson")
    np.testing.assert_allclose(2 * other.params, fitted.params, rtol=1e-5)
    assert other.effect("RR").estimate == pytest.approx(fitted.effect("RR").estimate, rel=1e-5)


def test_counts_with_gaps(simulation, fit_quickly):
    data = simulation.data.copy()
    data.loc[::5, "x1"] = np.nan
    imputed = fit_quickly(simulation.formula, data, family="poisson", missing="mar")
    effect = imputed.effect("ATE", alpha=ALPHA)
    assert effect.lower < simulation.ate < effect.upper
    assert (imputed.potential_outcomes(data.head(7)) > 0).to_numpy().all()


def test_what_is_said_about_counts(simulation, fitted, fit_quickly):
    text = fitted.summary().as_text()
    assert "y (poisson)" in text
    assert "quasi-Poisson" in fitted.methods()
    inferred = fit_quickly(simulation.formula, simulation.data)
    assert inferred.design.family == "gaussian"
    note = inferred.summary().as_text().replace("\n    ", " ")
    assert 'Family "gaussian" inferred' in note
    assert 'family="poisson"' in note
    shifted = fit_quickly(simulation.formula, simulation.data.assign(y=simulation.data["y"] + 0.5))
    assert 'family="poisson"' not in shifted.summary().as_text()


def test_benchmarks_of_sensitivity_are_log_linear(fitted):
    table = fitted.sensitivity().benchmarks
    gains = table["r2_outcome"]
    assert gains.between(0, 1).all()
    assert gains.loc[["x1", "x3"]].min() > 0.02
