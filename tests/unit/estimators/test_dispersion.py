"""The variance of a dose given covariates."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.estimators.dispersion import fit_dispersion

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5


def test_constant_variance_is_one_number():
    rng = np.random.default_rng(0)
    residual, z = 2 * rng.normal(size=1000), rng.normal(size=(1000, 3))
    fitted = fit_dispersion(residual, z, np.ones(1000), np.zeros(1000, np.int64))
    assert not fitted.heteroscedastic
    np.testing.assert_allclose(fitted.values, np.mean(residual**2))


def test_constant_variance_is_rarely_rejected():
    """Also where the residuals have heavy tails: the test is studentised."""
    rng = np.random.default_rng(1)
    fold = np.zeros(500, np.int64)
    rejected = [
        fit_dispersion(
            rng.standard_t(6, size=500), rng.normal(size=(500, 3)), np.ones(500), fold
        ).heteroscedastic
        for _ in range(100)
    ]
    assert np.mean(rejected) < 0.01 + FOUR * np.sqrt(0.01 * 0.99 / 100)


@pytest.mark.parametrize("folds", [1, 3])
def test_variance_that_depends_on_a_covariate_is_found(folds):
    rng = np.random.default_rng(2)
    n, k = 3000, 3
    z = rng.normal(loc=5, scale=3, size=(n, k))
    log_variance = 0.2 * (z[:, 0] - 5)
    residual = np.exp(0.5 * log_variance) * rng.normal(size=n)
    fitted = fit_dispersion(residual, z, np.ones(n), np.arange(n) % folds)
    assert fitted.heteroscedastic
    error = np.log(fitted.values) - log_variance
    # Each coefficient of a log-linear variance has variance 2/n.
    trained_on = n if folds == 1 else n * (1 - 1 / folds)
    assert np.sqrt(np.mean(error**2)) < FOUR * np.sqrt(2 * (k + 1) / trained_on)


def test_variance_does_not_run_away():
    """One wild residual, a constant feature, two features that are one."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(400, 1))
    residual = np.exp(3 * z[:, 0]) * rng.normal(size=400)
    residual[0] = 1e6
    features = np.column_stack([z, z, np.ones(400)])
    fitted = fit_dispersion(residual, features, np.ones(400), np.arange(400) % 2)
    assert np.isfinite(fitted.values).all()
    average = np.mean(residual**2)
    assert (fitted.values >= average / 20.001).all()
    assert (fitted.values <= average * 20.001).all()
