"""Comparisons of random quantities with what they should be on average.

They allow for Z standard errors: one comparison in 150 000 fails by chance, and the seeds are
fixed, so what passes keeps passing.
"""

import math

import numpy as np
import pytest

from cstonet.datasets import Simulation

Z = 4.5


def columns_of(sim: Simulation) -> np.ndarray:
    return sim.data.drop(columns=["y", "treat"]).to_numpy()


def assert_mean(values: np.ndarray, expected: float) -> None:
    """The mean of independent values is `expected`, up to its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) < Z * error, (values.mean(), expected, error)


def assert_covariance(x: np.ndarray, expected: np.ndarray) -> None:
    """Centred Gaussian rows have this covariance; entry ij has variance (σ_ii σ_jj + σ_ij²)/n."""
    variance = np.diag(expected)
    error = np.sqrt((np.outer(variance, variance) + expected**2) / len(x))
    assert np.abs((x.T @ x / len(x) - expected) / error).max() < Z
    assert np.abs(x.mean(axis=0) / np.sqrt(variance / len(x))).max() < Z


@pytest.fixture(scope="session")
def covariates():
    return columns_of


@pytest.fixture(scope="session")
def check_mean():
    return assert_mean


@pytest.fixture(scope="session")
def check_covariance():
    return assert_covariance
