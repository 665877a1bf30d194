"""Small data with mediators, and a quick fit of them that many tests ask."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit


def draw_mediators(n: int, seed: int, *, on_outcome: float = 0.8) -> pd.DataFrame:
    """One confounder; a gaussian and a binary mediator, of which only the first may do anything."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    treat = rng.binomial(1, expit(0.5 * x[:, 0]))
    m = 0.7 * treat + 0.5 * x[:, 0] + rng.normal(size=n)
    b = rng.random(n) < expit(0.5 * treat + 0.5 * (m - 0.7 * treat) - 0.2)
    y = 0.5 * treat + on_outcome * m + 0.7 * x[:, 0] + rng.normal(size=n)
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3"])
    return frame.assign(treat=treat, m=m, b=np.where(b, "yes", "no"), y=y)


@pytest.fixture(scope="session")
def draw():
    return draw_mediators


@pytest.fixture(scope="session")
def mediated(draw):
    return draw(240, seed=1)


@pytest.fixture(scope="session")
def fit_briefly(fit_quickly, quick_options):
    """Fits that train for a moment: their arithmetic is that of any other."""
    return partial(fit_quickly, options=quick_options(starts=1))


@pytest.fixture(scope="session")
def fitted(mediated, fit_briefly):
    return fit_briefly("y ~ treat | . | m + b", mediated)
