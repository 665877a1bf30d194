"""A small simulated frame, options to fit it in a moment, and a fit of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.settings.options import FitOptions


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return cs.datasets.simulation2(n=160, p=5, seed=2).data.drop(columns="x5")


@pytest.fixture(scope="module")
def options(quick_options: Callable[..., FitOptions]) -> FitOptions:
    return quick_options()


@pytest.fixture(scope="module")
def fitted(frame: pd.DataFrame, options: FitOptions) -> cs.CausalResults:
    return cs.fit("y ~ treat | .", frame, options=options, seed=3)


def predictors_in_plain_numpy(net, x, treatment, shift=0.0):
    """Linear predictors of every layer in float64, the first layer's shifted."""
    values, predictors, own = x, [], net.spec.treatment_width
    for i, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        z = values @ w.astype(float) + b.astype(float) + (shift if i == 0 else 0.0)
        predictors.append(z)
        values = np.tanh(z)
        if i == net.spec.treatment_layer:
            values[:, -own:] = treatment
    return predictors


@pytest.fixture(scope="session")
def plain_predictors():
    return predictors_in_plain_numpy
