"""A small simulated frame, options to fit it in a moment, and a fit of it."""

from __future__ import annotations

from collections.abc import Callable

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
