"""A problem on which a confounded effect is easy to find."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import loaders
from common import Problem

EFFECT = 2.0


def draw_linear_problem(n: int = 600, seed: int = 1, binary: bool = False) -> Problem:
    """Five covariates, a confounded treatment, a constant effect (on log-odds if binary)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    propensity = expit(X[:, 0] + 0.5 * X[:, 1])
    treat = (rng.random(n) < propensity).astype(np.int64)
    base = X @ np.array([1.5, 1.0, 1.0, 0.0, 0.0])
    oracle = None
    if binary:
        risks = expit(base[:, None] / 2 + np.array([0.0, EFFECT]))
        y = (rng.random(n) < risks[np.arange(n), treat]).astype(np.float64)
        truth = float((risks[:, 1] - risks[:, 0]).mean())
    else:
        y = base + EFFECT * treat + rng.normal(size=n)
        truth = EFFECT
        # The noise has variance 1: this is the error of AIPW with the true nuisances, given X.
        oracle = (truth, float(np.sqrt(np.mean(1 / (propensity * (1 - propensity))) / n)))
    data = loaders.frame_of(y, treat, pd.DataFrame(X, columns=[f"x{j}" for j in range(5)]))
    return Problem(data, sample_ate=truth, oracle=oracle)


@pytest.fixture(scope="session")
def linear_problem() -> Callable[..., Problem]:
    return draw_linear_problem
