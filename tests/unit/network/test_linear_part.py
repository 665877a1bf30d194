"""Penalised regressions against closed forms, gradients, and what held-out rows may know."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network.linear_part import Regression, Terms, regress

N, PARTS, FREE = 300, 5, 1e-6


def setting(link: str, strong: float = 1.0) -> tuple[Terms, np.ndarray, np.ndarray, np.ndarray]:
    """Two groups: three terms that matter, and three that do not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, 6))
    eta = 0.5 + strong * x[:, :3].sum(axis=1)
    y = eta + rng.normal(size=N)
    if link == "logit":
        y = (rng.random(N) < expit(eta)).astype(float)
    terms = Terms(np.column_stack([np.ones(N), x]), np.array([-1, 0, 0, 0, 1, 1, 1]))
    return terms, y, rng.uniform(0.5, 2, N), np.arange(N) % PARTS


def fitted(link: str, y: np.ndarray | None = None) -> Regression:
    terms, own, weights, parts = setting(link)
    return regress([terms] * (PARTS + 1), own if y is None else y, weights, parts, link)


def penalty(found: Regression, terms: Terms, weights: np.ndarray) -> np.ndarray:
    return weights.sum() * np.array([*found.penalties, FREE])[terms.group]


def test_ridge_has_its_closed_form():
    terms, y, weights, parts = setting("identity")
    found = fitted("identity")
    for rows, held in [(slice(None), None), *((parts != k, parts == k) for k in range(PARTS))]:
        each = penalty(found, terms, weights[rows])
        kept = np.isfinite(each)
        x, w = terms.values[rows][:, kept], weights[rows]
        b = np.linalg.solve((x.T * w) @ x + np.diag(each[kept]), (x.T * w) @ y[rows])
        if held is None:
            np.testing.assert_allclose(found.coefficients[kept], b, rtol=1e-9)
        else:
            np.testing.assert_allclose(found.held_out[held], terms.values[held][:, kept] @ b)


def test_logistic_ridge_is_at_its_optimum():
    terms, y, weights, _ = setting("logit")
    found = fitted("logit")
    variance = weights @ (y - weights @ y / weights.sum()) ** 2 / weights.sum()
    each = variance * penalty(found, terms, weights)
    kept = np.isfinite(each)

    def loss(b):
        eta = terms.values[:, kept] @ b
        return weights @ (np.logaddexp(0, eta) - y * eta) + 0.5 * each[kept] @ b**2

    b, step = found.coefficients[kept], 1e-4
    slopes = [(loss(b + step * e) - loss(b - step * e)) / (2 * step) for e in np.eye(len(b))]
    # Newton's last gain is below 1e-8 of a loss of some hundred, with curvatures of about 60.
    np.testing.assert_allclose(slopes, 0, atol=0.05)


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_held_out_predictions_do_not_know_the_row(link):
    _, y, _, parts = setting(link)
    before = fitted(link)
    changed = y.copy()
    changed[7] = 1 - y[7] if link == "logit" else y[7] + 0.5
    after = fitted(link, changed)
    assert after.penalties == before.penalties
    own = parts == parts[7]
    np.testing.assert_array_equal(after.held_out[own], before.held_out[own])
    assert (after.held_out[~own] != before.held_out[~own]).all()


@pytest.mark.parametrize("link", ["identity", "logit"])
def test_noise_is_penalised_and_what_matters_is_not(link):
    strong, noise = fitted(link).penalties
    assert strong <= 0.1
    assert noise >= 10 * strong
