"""What tests of several analyses need: quick fits, a record around fakes, a network by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.results import FitRecord
from cstonet.search.selection import STABLE, Selection

SUPPORTS = 12  # of the fits that records tell of


@pytest.fixture(scope="session")
def options(quick_options):
    """Networks that learn most of what there is to know of a few hundred rows."""
    return quick_options(epochs=40, hidden=(8, 6), starts=1)


@pytest.fixture(scope="session")
def fit_quickly(options):
    """Fits of a formula and a frame, with the same seed in one thread."""

    def fit(formula, data, **changes):
        return cs.fit(formula, data, **({"options": options, "seed": 1, "n_jobs": 1} | changes))

    return fit


@pytest.fixture
def record_of(make_plan):
    """The record of a fit that found covariates in so many of 12 supports, model by model."""

    def record(simulation, network_label, strength=0.2, **counts):
        names = [f"x{j + 1}" for j in range(len(counts["outcome"]))]
        table = pd.DataFrame(
            {
                "strength": strength,
                **{model: np.array(count) >= STABLE * SUPPORTS for model, count in counts.items()},
                **{f"{model}_count": count for model, count in counts.items()},
                **{
                    f"{model}_strength": 0.5 * np.array(strength) * (np.array(count) > 0)
                    for model, count in counts.items()
                },
            },
            index=names,
        )
        return FitRecord(
            design=cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design,
            plan=make_plan(network_label=network_label),
            networks=SimpleNamespace(n_nonzero=41, n_weights=123),
            selection=Selection(table, SUPPORTS),
            notes=(),
            runtime=1.0,
        )

    return record
