"""Nuisances of a continuous treatment: their checks, their densities, the table of the outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cstonet as cs
from cstonet.errors import NumericalError
from cstonet.estimators.dose_nuisances import dose_grid, stabilised_weights


def test_shapes_and_values_are_checked(linear):
    nuisances = linear(50)
    with pytest.raises(ValueError, match="mean has shape"):
        replace(nuisances, mean=np.zeros(3))
    with pytest.raises(ValueError, match="variance must be positive"):
        replace(nuisances, variance=np.zeros(50))
    with pytest.raises(NumericalError, match=r"outcome model .* 1 of 50 units"):
        replace(nuisances, slope=np.where(np.arange(50) == 3, np.nan, 1.0))
    with pytest.raises(NumericalError, match="treatment model"):
        replace(nuisances, mean=np.full(50, np.inf))


def test_grid_spans_the_doses_and_keeps_its_knots_apart():
    rng = np.random.default_rng(0)
    for dose in (rng.normal(size=500), rng.lognormal(sigma=2, size=500), np.arange(500) // 100):
        grid = dose_grid(dose.astype(float))
        assert grid[0] == dose.min()
        assert grid[-1] == dose.max()
        assert np.diff(grid).min() >= np.ptp(dose) / 500


def test_table_interpolates_the_outcome_model():
    """A cubic spline of spacing h errs by at most 5/384 h⁴ max|f⁗|."""
    simulation = cs.datasets.dose_curve(n=500, p=5, seed=1)
    nuisances = simulation.nuisances()
    own = np.array([nuisances.mu_at(nuisances.dose[[i]])[i, 0] for i in range(0, 500, 25)])
    # In units of z, 2 tanh has a fourth derivative below 9.
    spacing = np.diff(nuisances.grid).max() / 2
    # At the ends the not-a-knot spline errs a few times more than within.
    np.testing.assert_allclose(own, nuisances.mu[::25], atol=4 * 5 / 384 * spacing**4 * 9)


def test_average_density_is_the_mean_of_densities(linear):
    nuisances = linear(300)
    errors = nuisances.dose[:, None] - nuisances.mean[None, :]
    np.testing.assert_allclose(
        nuisances.average_density(), stats.norm.pdf(errors).mean(axis=1), rtol=1e-4
    )
    np.testing.assert_allclose(nuisances.density(), stats.norm.pdf(nuisances.surprise), rtol=1e-12)


@pytest.mark.parametrize("spread", [0.5, 1.5, 2.5])
def test_average_density_of_skewed_doses(spread, linear):
    """Without covariates all units have the same density, hence weights of one."""
    dose = np.exp(spread * np.random.default_rng(3).normal(size=600))
    nuisances = replace(
        linear(600), dose=dose, mean=np.full(600, dose.mean()), variance=np.full(600, dose.var())
    )
    np.testing.assert_allclose(nuisances.average_density(), nuisances.density(), rtol=1e-3)


def test_bound_on_the_densities(linear):
    nuisances = linear(500)
    free = stabilised_weights(nuisances, 0.0)
    assert free.n_bounded == 0
    bounded = stabilised_weights(nuisances, 0.2)
    assert bounded.n_bounded == int((free.values > 5).sum()) > 0
    np.testing.assert_allclose(bounded.values, np.minimum(free.values, 5.0))
    far = replace(nuisances, mean=nuisances.dose - 60.0)
    with pytest.raises(NumericalError, match="density is zero; set clip above 0"):
        stabilised_weights(far, 0.0)
