"""A small simulation with doses, fitted quickly, that many tests ask."""

from __future__ import annotations

import pytest

import cstonet as cs


@pytest.fixture(scope="session")
def simulation():
    return cs.datasets.dose_curve(n=500, p=8, seed=3)


@pytest.fixture(scope="session")
def fitted(simulation, fit_quickly):
    return fit_quickly(simulation.formula, simulation.data)
