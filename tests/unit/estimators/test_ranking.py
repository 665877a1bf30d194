"""TOC and AUTOC against their definitions, and influence values against derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators.pseudo_outcomes import effect_scores
from cstonet.estimators.ranking import Places, autoc_influence, estimate_toc

N = 60


@pytest.fixture
def ranked() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, predictions with ties, weights of mean one (one of them zero), three folds."""
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.2, 2.0, N)
    weights[7] = 0.0
    predictions = rng.integers(0, 9, N).astype(float)
    return rng.normal(size=N), predictions, weights / weights.mean(), rng.integers(0, 3, N)


def test_area_is_the_integral_of_the_curve(ranked):
    scores, predictions, weights, fold = ranked
    places = Places.of(predictions, weights, fold)
    own = fold == 1
    everyone = np.average(scores[own], weights=weights[own])

    def toc(share: float) -> float:
        first = (weights * places.among_first(share))[own]
        return np.average(scores[own], weights=first) - everyone

    points = (np.arange(4000) + 0.5) / 4000
    area = np.mean([toc(share) for share in points])
    got = np.average((places.log_weights() * scores)[own], weights=weights[own])
    # The midpoint rule errs by about the square of its step, times the bends of the curve.
    assert got == pytest.approx(area, abs=1e-4)


def test_first_units_have_their_share_of_every_fold(ranked):
    _, predictions, weights, fold = ranked
    places = Places.of(predictions, weights, fold)
    for share in (0.1, 0.33, 0.8, 1.0):
        inside = places.among_first(share)
        for k in range(3):
            own = fold == k
            expected = share * weights[own].sum()
            assert (weights * inside)[own].sum() == pytest.approx(expected, rel=1e-12)
            # Nobody is in who is ranked below somebody left out.
            assert predictions[own][inside[own] > 0].min() >= predictions[own][inside[own] < 1].max(
                initial=-np.inf
            )


def test_influence_is_the_derivative_in_the_weights(ranked):
    scores, predictions, weights, fold = ranked

    def autoc(counted: np.ndarray) -> float:
        places = Places.of(predictions, counted, fold)
        return float(np.average(places.log_weights() * scores, weights=counted))

    got = autoc_influence(scores, weights, Places.of(predictions, weights, fold))
    step, expected = 1e-5, np.empty(N)
    for i in range(N):
        nudge = np.zeros(N)
        nudge[i] = step * weights[i]
        expected[i] = N * (autoc(weights + nudge) - autoc(weights - nudge)) / (2 * step)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert got.sum() == pytest.approx(0.0, abs=1e-10)


def test_estimates_are_those_of_the_scores(draw_nuisances):
    _, nuisances = draw_nuisances(300, np.random.default_rng(4), weighted=True)
    effects = estimate_toc(nuisances, (1, 0), clip=0.01, shares=(0.25, 1.0))
    scores, weights = effect_scores(nuisances, (1, 0), 0.01), nuisances.unit_weights
    places = Places.of(nuisances.mu[:, 1] - nuisances.mu[:, 0], weights, nuisances.fold)
    first = weights * places.among_first(0.25)
    expected = np.average(scores, weights=first) - np.average(scores, weights=weights)
    assert effects.names == ("AUTOC", "TOC[0.25]", "TOC[1]")
    assert effects.estimates[1] == pytest.approx(expected, rel=1e-12)
    assert effects.estimates[2] == pytest.approx(0.0, abs=1e-12)
    variances = np.mean(effects.influence**2, axis=0) / 300
    np.testing.assert_allclose(np.diag(effects.covariance), variances, rtol=1e-12)


def test_area_of_a_known_ranking(draw_nuisances):
    """With τ(x) = 2 + x standard normal around 2, the AUTOC is E[x · -log(1 - Φ(x))]."""
    _, nuisances = draw_nuisances(40_000, np.random.default_rng(5))
    effects = estimate_toc(nuisances, (1, 0), clip=0.01, shares=())
    u = (np.arange(200_000) + 0.5) / 200_000
    from scipy.special import ndtri

    truth = float(np.mean(-ndtri(u) * -np.log(u)))
    assert abs(effects.estimates[0] - truth) < 3 * effects.standard_errors[0]
    assert effects.standard_errors[0] < 0.05


def test_nothing_varies(draw_nuisances):
    _, nuisances = draw_nuisances(50, np.random.default_rng(6))
    flat = replace(nuisances, mu=np.tile([1.0, 2.0], (50, 1)))
    effects = estimate_toc(flat, (1, 0), clip=0.01, shares=(0.2, 0.5))
    np.testing.assert_allclose(effects.estimates, 0.0, atol=1e-12)
    assert np.isfinite(effects.covariance).all()


def test_few_clusters_have_few_degrees_of_freedom(draw_nuisances):
    _, nuisances = draw_nuisances(120, np.random.default_rng(5))
    few = replace(nuisances, clusters=np.arange(120) % 12)
    freedom = estimate_toc(few, (1, 0), clip=0.01, shares=(0.1, 1.0)).freedom
    np.testing.assert_allclose(freedom[[0, 2]], 11)
    # The first tenth has units of some of the clusters.
    assert 1 <= freedom[1] < 11
    assert estimate_toc(nuisances, (1, 0), clip=0.01, shares=(1.0,)).freedom is None
