"""Rows for the baselines: as few fields as they read, and designs with known mean effects."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))


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
