"""A simulation with three arms, a quick fit of it, and results like others but for some parts."""

from __future__ import annotations

import pytest

import cstonet as cs
from cstonet.analyses.arms.estimation import ArmsNuisances
from cstonet.analyses.arms.results import ArmsResults
from cstonet.analyses.results import FitRecord
from cstonet.estimators import CrossFit, estimate_effects
from cstonet.estimators.support import Overlap
from cstonet.search.selection import Selection


@pytest.fixture(scope="session")
def simulation():
    return cs.datasets.three_arms(n=600, p=8, seed=3)


@pytest.fixture(scope="session")
def fitted(simulation, fit_quickly):
    return fit_quickly(simulation.formula, simulation.data)


@pytest.fixture(scope="session")
def rebuilt():
    """The results of a fit with another design, other effects or other nuisances."""

    def rebuild(results, effects, nuisances, design=None):
        record = FitRecord(
            design=results.design if design is None else design,
            plan=results.plan,
            networks=results.networks,
            selection=Selection(results.selection, results.n_supports),
            notes=(),
            runtime=1.0,
        )
        return ArmsResults(
            record,
            effects,
            ArmsNuisances(nuisances, (), Overlap.of(nuisances.mean.propensity, nuisances.mean)),
        )

    return rebuild


@pytest.fixture
def with_truth(simulation, fitted, rebuilt):
    """Results whose nuisances are the true ones, so that numbers do not depend on a training."""
    nuisances = simulation.nuisances()

    def results(variance):
        effects = estimate_effects(
            nuisances, levels=simulation.levels, clip=0.02, variance=variance, kind="multilevel"
        )
        return rebuilt(fitted, effects, CrossFit(nuisances))

    return results


@pytest.fixture
def exact(with_truth):
    return with_truth("influence")
