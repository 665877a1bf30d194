"""Doses whose nuisances are known, models of them that are wrong, and imputations by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import Imputations
from cstonet.estimators.dose_curve import TRIM, dose_support, estimate_curve
from cstonet.estimators.dose_nuisances import DoseNuisances, dose_grid
from cstonet.estimators.residual_density import ResidualDensity


def linear_doses(n: int = 4000, seed: int = 0) -> DoseNuisances:
    """Y = 2 A + 3 x + ε and A = x + e, with the true nuisances: AME 2, curve 2a."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    dose = x + rng.normal(size=n)
    grid = dose_grid(dose)
    return DoseNuisances(
        y=2 * dose + 3 * x + rng.normal(size=n),
        dose=dose,
        mu=2 * dose + 3 * x,
        slope=np.full(n, 2.0),
        mean=x,
        variance=np.ones(n),
        residual_density=ResidualDensity.standard_normal(),
        grid=grid,
        mu_grid=2 * grid[None, :] + 3 * x[:, None],
        weights=None,
        fold=np.zeros(n, np.int64),
    )


def misspecified(nuisances: DoseNuisances, *models: str) -> DoseNuisances:
    """Replace the models of "outcome" or "treatment", or both, by constants."""
    zeros = np.zeros(nuisances.n)
    changes = {
        "outcome": {"mu": zeros, "slope": zeros, "mu_grid": np.zeros_like(nuisances.mu_grid)},
        "treatment": {"mean": zeros + 0.3, "variance": zeros + 1.5},
    }
    for model in models:
        nuisances = replace(nuisances, **changes[model])
    return nuisances


def curve_on_its_support(nuisances, doses, **options):
    support = dose_support(nuisances, TRIM)
    return estimate_curve(nuisances, doses, support=support, clip=0.0, **options)


def moved_by_imputations(nuisances, rows, moves):
    """Imputations that move the regressions of these rows: (M, g, 2)."""
    return Imputations(
        rows,
        nuisances.mu[rows] + moves,
        np.broadcast_to(nuisances.propensity[rows], moves.shape),
        np.zeros((0, len(moves)), np.float32),
    )


@pytest.fixture(scope="session")
def linear():
    return linear_doses


@pytest.fixture(scope="session")
def misspecify():
    return misspecified


@pytest.fixture(scope="session")
def curve_of():
    return curve_on_its_support


@pytest.fixture(scope="session")
def imputed():
    return moved_by_imputations
