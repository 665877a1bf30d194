"""The best linear projection against least squares of the scores, and its errors against draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.errors import NumericalError
from cstonet.estimators import estimate_target
from cstonet.estimators.projections import coefficient_weights, estimate_projection
from cstonet.estimators.pseudo_outcomes import effect_scores

N, CLIP = 300, 0.02
NAMES = ("Intercept", "x1", "x2")


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def drawn(request, draw_nuisances):
    return draw_nuisances(N, np.random.default_rng(5), weighted=request.param)


def project(nuisances, terms):
    names = NAMES[: terms.shape[1]]
    return estimate_projection(nuisances, terms, (1, 0), clip=CLIP, names=names)


def with_constant(X: np.ndarray, columns: int = 2) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X[:, :columns]])


def test_without_slopes_it_is_least_squares_with_hc3_errors(drawn):
    X, nuisances = drawn
    terms, w = with_constant(X), nuisances.unit_weights
    scores = effect_scores(nuisances, (1, 0), CLIP)
    bread = np.linalg.inv(terms.T @ (w[:, None] * terms))
    beta = bread @ terms.T @ (w * scores)
    leverage = w * np.einsum("ij,jk,ik->i", terms, bread, terms)
    error = w * (scores - terms @ beta) / (1 - leverage)
    meat = (terms * error[:, None]).T @ (terms * error[:, None])
    found = project(nuisances, terms)
    np.testing.assert_allclose(found.estimates, beta, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, bread @ meat @ bread, rtol=1e-10)


def test_estimates_are_least_squares_of_the_scores_with_slopes_too(drawn):
    X, nuisances = drawn
    held = replace(nuisances, linear=X + 0.3 * X**2, found=np.array([0]), ridge=0.1)
    terms, w = with_constant(X), nuisances.unit_weights
    scores = effect_scores(held, (1, 0), CLIP)
    root = np.sqrt(w)
    beta = np.linalg.lstsq(terms * root[:, None], scores * root, rcond=None)[0]
    np.testing.assert_allclose(project(held, terms).estimates, beta, rtol=1e-9)


def test_values_are_combinations_of_the_coefficients(drawn):
    X, nuisances = drawn
    held = replace(nuisances, linear=X + 0.3 * X**2, found=np.array([0]), ridge=0.1)
    terms = with_constant(X)
    at = np.array([[1.0, 0.5, -1.0], [1.0, 2.0, 0.0]])
    values = estimate_projection(held, terms, (1, 0), clip=CLIP, names=("a", "b"), at=at)
    slopes = project(held, terms)
    np.testing.assert_allclose(values.estimates, at @ slopes.estimates, rtol=1e-10)
    np.testing.assert_allclose(values.covariance, at @ slopes.covariance @ at.T, rtol=1e-9)
    np.testing.assert_allclose(values.influence, slopes.influence @ at.T, atol=1e-10)
    # The identity gives the coefficients themselves, with their degrees of freedom.
    same = estimate_projection(held, terms, (1, 0), clip=CLIP, names=NAMES, at=np.eye(3))
    np.testing.assert_allclose(same.freedom, slopes.freedom)


@pytest.mark.parametrize("ridge", [None, 0.0, 0.2])
def test_a_constant_alone_is_the_average_effect(drawn, ridge):
    X, nuisances = drawn
    if ridge is not None:
        nuisances = replace(nuisances, linear=X, found=np.array([0]), ridge=ridge)
    found = project(nuisances, np.ones((N, 1)))
    ate = estimate_target(nuisances, "ATE", (1, 0), clip=CLIP, name="ATE")
    np.testing.assert_allclose(found.estimates, ate.estimates, rtol=1e-12)
    np.testing.assert_allclose(found.influence, ate.influence, rtol=1e-9, atol=1e-11)
    # HC3 divides by one minus the leverage, which is the share of the unit's weight.
    factor = 1 / (1 - nuisances.unit_weights.max() / N)
    assert 1 <= found.standard_errors[0] / ate.standard_errors[0] <= factor * (1 + 1e-12)


def test_influence_values_average_to_zero(drawn):
    X, nuisances = drawn
    held = replace(nuisances, linear=X + 0.3 * X**2, found=np.array([0]), ridge=0.1)
    np.testing.assert_allclose(
        project(held, with_constant(X)).influence.mean(axis=0), 0, atol=1e-12
    )


def test_clusters_are_summed(drawn):
    X, nuisances = drawn
    clusters = np.arange(N) % 50
    terms = with_constant(X)
    plain = project(nuisances, terms)
    found = project(replace(nuisances, clusters=clusters), terms)
    leverage = np.sum(coefficient_weights(nuisances, terms) * terms, axis=1) / N
    values = plain.influence / (1 - leverage)[:, None]
    sums = np.stack([np.bincount(clusters, column) for column in values.T], axis=1)
    np.testing.assert_allclose(found.covariance, 50 / 49 * sums.T @ sums / N**2, rtol=1e-10)


def test_terms_that_depend_on_each_other_are_refused(drawn):
    X, nuisances = drawn
    with pytest.raises(NumericalError, match="depend on each other"):
        project(nuisances, np.column_stack([np.ones(N), X[:, 0], 2 * X[:, 0] - 1]))


def test_errors_are_those_of_repeated_draws(draw_nuisances):
    """τ = 2 + x1 is linear: coefficients 2, 1, 0; studentised they have mean square one.

    A mean of 3 x 150 squares, each with variance about 2, those of a draw nearly independent.
    """
    squares = []
    for seed in range(150):
        X, nuisances = draw_nuisances(N, np.random.default_rng([9, seed]))
        found = project(replace(nuisances, linear=X, ridge=0.1), with_constant(X))
        squares.append(((found.estimates - [2, 1, 0]) / found.standard_errors) ** 2)
    assert abs(np.mean(squares) - 1) < 4 * np.sqrt(2.5 / 450)
