"""Scores of an effect against the formula written down plainly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import Nuisances, estimate_effects
from cstonet.estimators.pseudo_outcomes import effect_scores

CLIP = 0.05
N = 160
# Sums of some hundred terms of order one, and a regression of condition number about ten.
TWIN = {"rtol": 1e-10, "atol": 1e-11}


@pytest.fixture(params=[2, 3], ids=["two arms", "three arms"])
def nuisances(request) -> Nuisances:
    rng = np.random.default_rng(11)
    levels = request.param
    odds = np.exp(rng.normal(0.0, 1.2, (N, levels)))
    propensity = odds / odds.sum(axis=1, keepdims=True)
    treatment = np.array([rng.choice(levels, p=p) for p in propensity])
    mu = rng.normal(0.0, 1.0, (N, levels)) + np.arange(levels)
    return Nuisances(
        y=mu[np.arange(N), treatment] + rng.normal(0.0, 0.5, N),
        treatment=treatment,
        mu=mu + 0.1 * mu**2,
        propensity=propensity,
        weights=None,
        fold=np.zeros(N, dtype=np.int64),
    )


def with_slopes(nuisances: Nuisances, ridge: float, weighted: bool) -> Nuisances:
    rng = np.random.default_rng(12)
    linear = rng.normal(2.0, [0.5, 1.0, 30.0], (N, 3))
    return replace(
        nuisances,
        y=nuisances.y + linear @ [0.8, -0.6, 0.02],
        linear=linear,
        found=np.array([2]),
        ridge=ridge,
        weights=rng.uniform(0.5, 2.0, N) if weighted else None,
    )


def clipped(propensity: np.ndarray) -> np.ndarray:
    """Clip by the definition: what low levels receive comes from the others in proportion."""
    values = propensity.copy()
    for row in values:
        low = row < CLIP
        while low.any() and (row[low] < CLIP).any():
            rest = row[~low].sum()
            row[~low] *= (1 - CLIP * low.sum()) / rest
            row[low] = CLIP
            low = row <= CLIP
    return values


def plain_scores(nuisances: Nuisances, mu: np.ndarray, b: int, a: int) -> np.ndarray:
    p, treatment, y = clipped(nuisances.propensity), nuisances.treatment, nuisances.y
    gamma = [mu[:, k] + (treatment == k) * (y - mu[:, k]) / p[:, k] for k in (b, a)]
    return gamma[0] - gamma[1]


@pytest.mark.parametrize("contrast", [(1, 0), (0, 1)])
def test_scores_are_the_formula(nuisances, contrast):
    got = effect_scores(nuisances, contrast, CLIP)
    np.testing.assert_allclose(got, plain_scores(nuisances, nuisances.mu, *contrast), **TWIN)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_slopes_join_the_outcome_model(nuisances, ridge, weighted):
    """A weighted ridge regression of the residuals on arms, two common and one own slope."""
    made = with_slopes(nuisances, ridge, weighted)
    levels, A, w = made.n_levels, made.treatment, made.unit_weights
    center = np.average(made.linear, axis=0, weights=w)
    spread = np.sqrt(np.average((made.linear - center) ** 2, axis=0, weights=w))
    z = (made.linear - center) / spread

    def terms(arm: np.ndarray) -> np.ndarray:
        own = [(arm == k) * z[:, 2] for k in range(levels)]
        return np.column_stack([*[arm == k for k in range(levels)], z[:, :2], *own])

    D, received = terms(A), np.arange(N)
    weight = w / clipped(made.propensity)[received, A]
    penalty = np.diag([0.0] * levels + [ridge * weight.sum()] * (2 + levels))
    residual = made.y - made.mu[received, A]
    found = np.linalg.solve(D.T @ (weight[:, None] * D) + penalty, D.T @ (weight * residual))
    mu = np.column_stack([made.mu[:, k] + terms(np.full(N, k)) @ found for k in range(levels)])
    got = effect_scores(made, (levels - 1, 0), CLIP)
    np.testing.assert_allclose(got, plain_scores(made, mu, levels - 1, 0), **TWIN)
    assert np.abs(got - effect_scores(replace(made, linear=None), (levels - 1, 0), CLIP)).max() > 1


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_mean_is_the_average_effect(nuisances, weighted):
    made = with_slopes(nuisances, 0.4, weighted)
    levels = tuple(range(made.n_levels))
    table = estimate_effects(made, levels=levels, clip=CLIP, variance="paper", kind="multilevel")
    for k in levels[1:]:
        mean = np.average(effect_scores(made, (k, 0), CLIP), weights=made.weights)
        np.testing.assert_allclose(mean, table.estimates[k - 1], **TWIN)
