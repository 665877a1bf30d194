"""A small simulation with doses, fitted quickly, that many tests ask."""

from __future__ import annotations

import pytest

import cstonet as cs


@pytest.fixture(scope="session")
def simulation():
    return cs.datasets.dose_curve(n=500, p=8, seed=3)


@pytest.fixture(scope="session")
def options(quick_options):
    return quick_options(epochs=40, hidden=(8, 6), starts=1)


@pytest.fixture(scope="session")
def fitted(simulation, options):
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    return model.fit(options=options, seed=1, n_jobs=1)
