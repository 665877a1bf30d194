"""Scores off a model's own directions: against Rao's test in NumPy, and under the null."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network.covariates import FoldCovariates
from cstonet.network.scaling import column_scaling
from cstonet.search.predictors import Scored
from cstonet.search.projection import OwnDirections, projected_scores
from cstonet.search.scores import Largest, ScoreTests


def correlated(rng, rows, columns):
    """Covariates with correlation 0.5 between each two."""
    common = rng.standard_normal((rows, 1))
    return (common + rng.standard_normal((rows, columns))) / np.sqrt(2)


def standardised(x):
    """Covariates on all rows, and their values as the kernel has them."""
    covariates = FoldCovariates(
        column_scaling(x, limit=20.0).dataset(x, pack_bytes=2**20), np.arange(len(x))
    )
    values = covariates.covariates.gather(covariates.rows, np.arange(x.shape[1]))
    return covariates, values.astype(np.float64)


def rao(residual, feature, own, information):
    """Σ r f̃ / sqrt(Σ r² f̃²), with f̃ the residual of a weighted regression of f on T."""
    root = np.sqrt(information)[:, None]
    slopes = np.linalg.lstsq(root * own, root[:, 0] * feature, rcond=None)[0]
    left = feature - own @ slopes
    return np.sum(residual * left) / np.sqrt(np.sum((residual * left) ** 2))


def logistic(own, treated):
    """Maximum likelihood of a logistic regression: probabilities."""
    slopes = np.zeros(own.shape[1])
    for _ in range(30):
        p = expit(own @ slopes)
        step = np.linalg.solve(own.T @ (own * (p * (1 - p))[:, None]), own.T @ (treated - p))
        slopes += step
    return expit(own @ slopes)


@pytest.mark.parametrize("modified", [False, True])
def test_scores_are_those_of_a_regression_on_the_models_directions(modified):
    """Whatever the residuals, those of an unfinished fit included. Sums are of single precision."""
    rng = np.random.default_rng(1)
    rows, inside = 700, (4, 1, 6)
    covariates, x = standardised(correlated(rng, rows, 9))
    treatment = (rng.random((rows, 1)) < expit(x[:, :1])).astype(np.float32)
    information = rng.uniform(0.05, 0.25, rows)
    residual = rng.standard_normal(rows) * np.exp(0.3 * x[:, 4]) + 0.3 * x[:, 1] + 0.1
    directions = [np.ones(rows)]
    if modified:
        directions.append(treatment[:, 0] - expit(x[:, 0]))
    directions = np.column_stack(directions).astype(np.float32)
    factors = np.column_stack([np.ones(rows), x[:, list(inside)], treatment])
    own = np.hstack([d[:, None] * factors for d in directions.T])
    outside = np.array([0, 2, 3, 5, 7, 8])
    expected = [
        [rao(residual, d * x[:, j], own, information) for d in directions.T] for j in outside
    ]
    z = projected_scores(
        covariates, outside, residual, directions, OwnDirections(information, inside, treatment)
    )
    np.testing.assert_allclose(z, expected, atol=2e-4)


def test_what_the_model_has_already_scores_nothing():
    rng = np.random.default_rng(2)
    x = correlated(rng, 400, 3)
    x = np.column_stack([x, x[:, 0], np.where(np.arange(400) < 0, 1.0, 0.0)])
    covariates, _ = standardised(x)
    own = OwnDirections(np.ones(400), (0, 1))
    z = projected_scores(
        covariates, np.arange(5), rng.standard_normal(400), np.ones((400, 1), np.float32), own
    )
    np.testing.assert_array_equal(z[[0, 1, 3, 4], 0], 0)  # inside, a copy, constant
    assert z[2, 0] != 0


def test_directions_are_fewer_than_a_tenth_of_the_rows():
    """With 60 rows a constant and five covariates: as if the others were not in the model."""
    rng = np.random.default_rng(3)
    covariates, _ = standardised(correlated(rng, 60, 30))
    residual, one = rng.standard_normal(60), np.ones((60, 1), np.float32)
    z = [
        projected_scores(
            covariates, np.array([29]), residual, one, OwnDirections(np.ones(60), inside)
        )
        for inside in (tuple(range(20)), tuple(range(5)))
    ]
    np.testing.assert_array_equal(z[0], z[1])


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_null_covariates_have_a_mean_square_of_one(family):
    """Under correlation 0.5 with the covariates of a fitted regression.

    200 data sets with a null covariate each: the mean of z² has a standard error of
    sqrt(2 / 200) = 0.1, the tolerance is four of these. As it is, the score has a mean square of
    1 - R² = 7/12, where R² = 5/12 is what five such covariates explain of a sixth.
    """
    rng = np.random.default_rng(4)
    squares, raw = [], []
    for _ in range(200):
        covariates, x = standardised(correlated(rng, 500, 6))
        own = np.column_stack([np.ones(500), x[:, :5]])
        signal = 0.4 * x[:, :5].sum(axis=1)
        if family == "gaussian":
            y = signal + rng.standard_normal(500)
            residual = y - own @ np.linalg.lstsq(own, y, rcond=None)[0]
            information = np.ones(500)
        else:
            y = (rng.random(500) < expit(signal)).astype(np.float64)
            p = logistic(own, y)
            residual, information = y - p, p * (1 - p)
        scored = Scored(residual, own=OwnDirections(information, tuple(range(5))))
        tests = ScoreTests(covariates, [scored])
        squares.append(tests.projected(np.array([5]))[0, 0] ** 2)
        raw.append(tests.statistics(np.array([5]))[0, 0, 0] ** 2)
    error = np.sqrt(2 / 200)
    assert abs(np.mean(squares) - 1) < 4 * error
    assert abs(np.mean(raw) - 7 / 12) < 4 * error * 7 / 12


def test_an_admitted_covariate_is_one_of_the_models_directions():
    """A relative of the admitted covariate scores what that leaves of it, and no less."""
    rng = np.random.default_rng(5)
    covariates, x = standardised(correlated(rng, 2000, 3))
    residual = 0.5 * x[:, 0] + 0.1 * x[:, 1] + rng.standard_normal(2000)
    information = np.ones(2000)
    tests = ScoreTests(covariates, [Scored(residual, own=OwnDirections(information))])
    one = Largest(np.full(3, 0.5), np.full(3, 0.5))
    admitted = tests.admit(one, inside=[], most=2)
    assert [found.covariate for found in admitted] == [0, 1]
    constant = np.ones(2000)
    first = rao(residual, x[:, 0], constant[:, None], information)
    cleared = residual - x[:, 0] * (np.sum(x[:, 0] * residual) / np.sum(x[:, 0] ** 2))
    second = rao(cleared, x[:, 1], np.column_stack([constant, x[:, 0]]), information)
    np.testing.assert_allclose([found.main for found in admitted], [first, second], rtol=1e-4)
