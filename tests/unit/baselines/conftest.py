"""Rows for the baselines: as few fields as they read, and designs with known mean effects."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

ROOT = Path(__file__).parents[3]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import loaders  # noqa: E402
from common import Problem  # noqa: E402

# The effect of the problem for networks; of a binary outcome, on its log-odds.
EFFECT = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Outcomes and treatments (n,), covariates (n, p), and whether outcomes are 0 or 1."""

    y: np.ndarray
    treat: np.ndarray
    X: np.ndarray
    binary: bool = False


def confounded_rows(seed: int, n: int, p: int, binary: bool = False) -> Rows:
    """The first covariate raises treatment and outcome, the second the outcome; p ≥ 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    treat = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.int64)
    y = treat + 2 * X[:, 0] + X[:, 1] + rng.normal(size=n)
    return Rows((y > 0).astype(float) if binary else y, treat, X, binary)


def effect_of_confounded(binary: bool) -> float:
    """1, or the mean over x of Φ(1 + 2x₁ + x₂) - Φ(2x₁ + x₂), which is Φ(1/√6) - 1/2."""
    return 0.5 * math.erf(1 / math.sqrt(6) / math.sqrt(2)) if binary else 1.0


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


@pytest.fixture(scope="session")
def rows_of() -> type[Rows]:
    return Rows


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Rows]:
    return confounded_rows


@pytest.fixture(scope="session")
def effect_of() -> Callable[[bool], float]:
    return effect_of_confounded


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data, which may be absent."""
    return Path(os.environ.get("CSTONET_DATA", ROOT.parent / "shared" / "data"))
