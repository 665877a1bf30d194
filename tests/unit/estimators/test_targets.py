"""ATT, ATC and ATO against plain formulas and closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.estimators import (
    TARGETS,
    Nuisances,
    clip_propensity,
    estimate_effects,
    estimate_target,
)

# Sums of some hundred terms of order one, in another order.
TWIN = {"rtol": 1e-12, "atol": 1e-13}
CLIP = 0.02


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def binary(request, draw_nuisances):
    _, drawn = draw_nuisances(200, np.random.default_rng(3), weighted=request.param)
    return replace(drawn, mu=drawn.mu + 0.3 * drawn.mu**2)


@pytest.fixture
def three():
    exact = cs.datasets.three_arms(n=300, p=5, seed=1).nuisances()
    return replace(exact, mu=exact.mu + 0.2 * exact.mu**2)


def estimate(nuisances, target, contrast=(1, 0), clip=CLIP):
    effects = estimate_target(nuisances, target, contrast, clip=clip, name=target)
    return effects.estimates[0], effects.standard_errors[0], effects.influence[:, 0]


def test_ate_is_that_of_the_table(binary):
    value, error, influence = estimate(binary, "ATE")
    table = estimate_effects(binary, levels=(0, 1), clip=CLIP, variance="influence")
    np.testing.assert_allclose(value, table.estimates[0], **TWIN)
    np.testing.assert_allclose(error, table.standard_errors[0], **TWIN)
    np.testing.assert_allclose(influence, table.influence[:, 0], **TWIN)


def test_att_and_atc_are_the_usual_doubly_robust_ones(binary):
    w, A, y, mu = binary.unit_weights, binary.treatment, binary.y, binary.mu
    e = clip_propensity(binary.propensity, CLIP).values[:, 1]
    att = np.sum(w * (A - (1 - A) * e / (1 - e)) * (y - mu[:, 0])) / np.sum(w * A)
    atc = np.sum(w * (A * (1 - e) / e - (1 - A)) * (y - mu[:, 1])) / np.sum(w * (1 - A))
    np.testing.assert_allclose(estimate(binary, "ATT")[0], att, **TWIN)
    np.testing.assert_allclose(estimate(binary, "ATC")[0], atc, **TWIN)


def test_ato_follows_from_the_general_influence_function(binary):
    """h(e) = e(1-e): weighted effect, residuals, and h'(e)(A - e) for the estimated propensity."""
    w, A, y, mu = binary.unit_weights, binary.treatment, binary.y, binary.mu
    e = clip_propensity(binary.propensity, CLIP).values[:, 1]
    h, slope, tau = e * (1 - e), 1 - 2 * e, mu[:, 1] - mu[:, 0]
    residual = A * (1 - e) * (y - mu[:, 1]) - (1 - A) * e * (y - mu[:, 0])
    g = h + slope * (A - e)
    value = np.sum(w * (g * tau + residual)) / np.sum(w * g)
    influence = w * (g * (tau - value) + residual) / np.mean(w * g)
    got, error, got_influence = estimate(binary, "ATO")
    np.testing.assert_allclose(got, value, **TWIN)
    np.testing.assert_allclose(got_influence, influence, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(error, np.sqrt(np.mean(influence**2) / len(y)), **TWIN)


@pytest.mark.parametrize("target", TARGETS)
def test_influence_averages_to_zero_and_levels_may_be_swapped(three, target):
    swapped = {"ATT": "ATC", "ATC": "ATT"}.get(target, target)
    value, error, influence = estimate(three, target, (2, 1))
    other = estimate(three, swapped, (1, 2))
    assert abs(influence.mean()) < 1e-13
    np.testing.assert_allclose([other[0], other[1]], [-value, error], **TWIN)


def test_an_arm_that_nobody_receives_changes_nothing(binary):
    """Three levels, the third impossible: pairs of the others are the binary effects."""
    empty = np.zeros((binary.n, 1))
    wide = replace(
        binary,
        mu=np.hstack([binary.mu, empty]),
        propensity=np.hstack([binary.propensity, empty]),
    )
    for target in TARGETS:
        np.testing.assert_allclose(
            estimate(wide, target, clip=0.0)[:2], estimate(binary, target, clip=0.0)[:2], **TWIN
        )


# Truths: linear effects of gaussian covariates ----------------------------------------------------

REPLICATIONS, ROWS = 200, 400


def draw_linear(rng):
    """P(A=1|x) = Φ(x), τ(x) = 1 + 2x, x standard normal, with the true nuisances.

    E[x | A = 1] = 2 E[x Φ(x)] = 2 E[φ(x)] = 1/√π, so ATT = 1 + 2/√π and ATC = 1 - 2/√π; by
    symmetry ATO = 1.
    """
    from scipy.special import ndtr

    x = rng.normal(size=ROWS)
    p = np.clip(ndtr(x), 1e-3, 1 - 1e-3)
    A = rng.binomial(1, ndtr(x))
    mu = np.column_stack([x, 1 + 3 * x])
    return Nuisances(
        y=mu[np.arange(ROWS), A] + rng.normal(size=ROWS),
        treatment=A.astype(np.int64),
        mu=mu,
        propensity=np.column_stack([1 - p, p]),
        weights=None,
        fold=np.zeros(ROWS, np.int64),
    )


@pytest.mark.parametrize(
    ("target", "truth"), [("ATT", 1 + 2 / np.pi**0.5), ("ATC", 1 - 2 / np.pi**0.5), ("ATO", 1.0)]
)
def test_closed_forms_are_met_with_valid_errors(target, truth):
    rng = np.random.default_rng(12)
    draws = [estimate(draw_linear(rng), target, clip=0.0)[:2] for _ in range(REPLICATIONS)]
    values, errors = np.array(draws).T
    spread = values.std(ddof=1)
    assert abs(values.mean() - truth) < 4 * spread / np.sqrt(REPLICATIONS)
    # A standard deviation from R draws has a relative error of 1/√(2R); heavy tails of ATT and ATC
    # add to that, hence five of them.
    assert abs(np.sqrt(np.mean(errors**2)) / spread - 1) < 5 / np.sqrt(2 * REPLICATIONS)


@pytest.mark.parametrize("target", ["ATT", "ATC"])
@pytest.mark.parametrize("wrong", ["outcome", "treatment"])
def test_double_robustness(target, wrong):
    rng = np.random.default_rng(5)
    truth = 1 + (1 if target == "ATT" else -1) * 2 / np.pi**0.5
    values = []
    for _ in range(REPLICATIONS):
        drawn = draw_linear(rng)
        if wrong == "outcome":
            drawn = replace(drawn, mu=np.zeros_like(drawn.mu))
        else:
            drawn = replace(drawn, propensity=np.full_like(drawn.propensity, 0.5))
        values.append(estimate(drawn, target, clip=0.0)[0])
    assert abs(np.mean(values) - truth) < 4 * np.std(values, ddof=1) / np.sqrt(REPLICATIONS)
