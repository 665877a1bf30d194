from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest
import twins
from scipy import stats

FAMILIES = ["gaussian", "bernoulli", "categorical", "poisson"]


def draw(family: str, n: int, size: int, *, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """(y, η), both (n, size) float32."""
    rng = np.random.default_rng(5)
    eta = rng.normal(scale=spread, size=(n, size)).astype(np.float32)
    if family == "gaussian":
        y = rng.normal(size=(n, size))
    elif family == "bernoulli":
        y = rng.integers(0, 2, size=(n, size))
    elif family == "poisson":
        y = rng.poisson(np.exp(np.minimum(eta, 5))) / 1.7  # in units of a mean
    else:
        y = np.eye(size + 1)[rng.integers(0, size + 1, size=n)][:, 1:]
    return y.astype(np.float32), eta


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("variance", [1.0, 0.07])
@pytest.mark.parametrize("family", FAMILIES)
def test_residual_matches_its_twin(family: str, variance: float, size: int) -> None:
    y, eta = draw(family, 200, size)
    scale = 1 / variance if family in twins.WITH_VARIANCE else 1.0
    # The mean and the difference are rounded once each, relative to terms of the sizes below.
    terms = scale * (np.abs(y) + np.abs(twins.mean(family, eta.astype(float))))
    expected = twins.residual(family, variance, y.astype(float), eta.astype(float))
    actual = cstonet_seams.residual(family, variance, y, eta)
    twins.assert_close(actual, expected, roundings=2, scale=terms)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_log_density_matches_its_twin(family: str, size: int) -> None:
    y, eta = draw(family, 200, size)
    expected = twins.log_density(family, 0.3, y.astype(float), eta.astype(float))
    # Both are float64.
    np.testing.assert_allclose(cstonet_seams.log_density(family, 0.3, y, eta), expected, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_residual_is_the_slope_of_the_log_density(family: str) -> None:
    size, h = 3, np.float32(2.0**-7)
    y, eta = draw(family, 200, size)
    # On a grid of 2^-12 the steps η ± h are exact.
    eta = (np.round(eta * 4096) / 4096).astype(np.float32)
    slope = np.empty(y.shape)
    for j in range(size):
        step = h * np.eye(size, dtype=np.float32)[j]
        up, down = (cstonet_seams.log_density(family, 0.3, y, eta + s * step) for s in (1, -1))
        slope[:, j] = (up - down) / (2 * h)
    # Third derivatives of both log-normalizers are at most 0.1 (cumulants of 0/1 variables), of
    # the gaussian zero, of counts those of e^η; float64 cancellation is below 1e-12.
    third, size_of_terms = 0.1, 1 + np.abs(eta)
    if family == "poisson":
        third, size_of_terms = np.exp(eta + h) / 0.3, y + np.exp(eta)
    tolerance = h**2 / 6 * third + 4 * twins.U * size_of_terms / 0.3
    assert np.all(np.abs(cstonet_seams.residual(family, 0.3, y, eta) - slope) <= tolerance)


def test_two_categories_are_a_bernoulli() -> None:
    y, eta = draw("bernoulli", 300, 1, spread=10)
    bernoulli, categorical = (
        cstonet_seams.log_density(f, 1.0, y, eta) for f in ("bernoulli", "categorical")
    )
    np.testing.assert_allclose(bernoulli, categorical, rtol=1e-12, atol=1e-15)
    bernoulli, categorical = (
        cstonet_seams.residual(f, 1.0, y, eta) for f in ("bernoulli", "categorical")
    )
    twins.assert_close(categorical, bernoulli, roundings=2, scale=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_extreme_predictors_stay_finite(family: str) -> None:
    eta = np.array([[-1e4], [-100], [100], [1e4]], dtype=np.float32)
    for value in (0.0, 1.0):
        y = np.full_like(eta, value)
        assert np.all(np.isfinite(cstonet_seams.residual(family, 1.0, y, eta)))
        assert np.all(np.isfinite(cstonet_seams.log_density(family, 1.0, y, eta)))


def test_counts_of_dispersion_one_have_the_slopes_of_poisson_log_likelihoods() -> None:
    y = np.array([[0.0], [1.0], [2.0], [5.0], [12.0]], dtype=np.float32)
    at, other = np.float32(0.5), np.float32(1.25)
    gains = [
        cstonet_seams.log_density("poisson", 1.0, y, np.full_like(y, eta)) for eta in (at, other)
    ]
    laws = [stats.poisson.logpmf(y[:, 0], np.exp(float(eta))) for eta in (at, other)]
    np.testing.assert_allclose(gains[1] - gains[0], laws[1] - laws[0], rtol=1e-12, atol=1e-13)


def test_probabilities_sum_to_one_over_the_outcomes() -> None:
    eta = np.array([[0.3, -2.0, 1.0]], dtype=np.float32)
    outcomes = np.vstack([np.zeros(3), np.eye(3)]).astype(np.float32)
    logs = [cstonet_seams.log_density("categorical", 1.0, y[None], eta)[0] for y in outcomes]
    assert np.exp(logs).sum() == pytest.approx(1, rel=1e-14)
