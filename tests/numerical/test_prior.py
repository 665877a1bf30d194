from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest
import twins
from scipy.integrate import trapezoid
from scipy.optimize import brentq

# (λ, σ0², σ1²): the default at both ends of its annealing, the paper's, and one without sparsity.
PRIORS = [
    (1e-6, 1e-2, 1.0),
    (1e-6, 1e-4, 1.0),
    (1e-6, 1e-5, 1e-2),
    (1e-6, 3e-3, 0.3),
    (0.5, 0.1, 1),
]


def weights_around(prior: tuple[float, float, float]) -> np.ndarray:
    """Both components' ranges and, densely, the crossing between them; exact zero included."""
    _, spike, slab = prior
    threshold = cstonet_seams.prior_threshold(*prior)
    positive = np.concatenate(
        [
            np.geomspace(1e-6, 4 * np.sqrt(slab), 200),
            np.linspace(0.7 * threshold, 1.5 * threshold, 200),
            np.sqrt(spike) * np.linspace(0, 3, 20),
        ]
    )
    return np.concatenate([-positive, positive]).astype(np.float32)


@pytest.mark.parametrize("prior", PRIORS)
def test_gradient_matches_its_twin(prior: tuple[float, float, float], level: str) -> None:
    w = weights_around(prior)
    _, spike, slab = prior
    log_spike, log_slab = twins.prior_parts(w, *prior)
    p = twins.expit(log_slab - log_spike)
    # The posterior log-odds are a sum of terms of this size, rounded three times; the slab's
    # probability moves by p (1 - p) times that error. All else is a few relative roundings.
    odds_terms = np.abs(np.log(prior[0])) + 10 + 0.5 * w.astype(float) ** 2 / spike
    pull = p / slab + (1 - p) / spike
    scale = np.abs(w) * (pull + p * (1 - p) * odds_terms / spike)
    actual = cstonet_seams.prior_gradient(w, *prior)
    twins.assert_close(actual, twins.prior_gradient(w, *prior), roundings=8, scale=scale)


@pytest.mark.parametrize("prior", PRIORS)
def test_gradient_is_the_slope_of_the_log_density(prior: tuple[float, float, float]) -> None:
    _, spike, _ = prior
    h = 1e-4 * np.sqrt(spike)
    for w in weights_around(prior)[::7].astype(float):
        up, down = (cstonet_seams.prior_log_density(w + s * h, *prior) for s in (1, -1))
        # Truncation: h²/6 times a third derivative of at most about w³/σ0⁶ where the components
        # meet; cancellation: the rounding of a log-density over h.
        truncation = h**2 * (1 + np.abs(w) / np.sqrt(spike)) ** 3 / spike**1.5
        tolerance = truncation + 1e-15 * (100 + abs(up)) / h
        assert abs((up - down) / (2 * h) - twins.prior_gradient(w, *prior)) <= tolerance


@pytest.mark.parametrize("prior", PRIORS)
def test_log_density_matches_its_twin_and_integrates_to_one(
    prior: tuple[float, float, float],
) -> None:
    _, spike, slab = prior
    w = weights_around(prior).astype(float)
    actual = [cstonet_seams.prior_log_density(v, *prior) for v in w]
    np.testing.assert_allclose(actual, twins.prior_log_density(w, *prior), rtol=1e-13)
    total = 0.0
    for low, high, n in ((0, 12 * spike**0.5, 4001), (12 * spike**0.5, 12 * slab**0.5, 4001)):
        grid = np.linspace(low, high, n)
        total += 2 * trapezoid(
            [np.exp(cstonet_seams.prior_log_density(v, *prior)) for v in grid], grid
        )
    # Trapezoid steps of 0.003 standard deviations; what lies beyond is below 1e-12.
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
def test_threshold_is_where_spike_and_slab_explain_a_weight_equally(
    prior: tuple[float, float, float],
) -> None:
    threshold = cstonet_seams.prior_threshold(*prior)

    def slab_advantage(w: float) -> float:
        log_spike, log_slab = twins.prior_parts(w, *prior)
        return float(log_slab - log_spike)

    root = brentq(slab_advantage, 0, 10 * np.sqrt(prior[2]), xtol=1e-15, rtol=1e-14)
    assert threshold == pytest.approx(root, rel=1e-12)
    assert slab_advantage(0.99 * threshold) < 0 < slab_advantage(1.01 * threshold)


def test_threshold_of_the_papers_first_simulation() -> None:
    assert cstonet_seams.prior_threshold(1e-6, 1e-5, 1e-2) == pytest.approx(0.0186, abs=5e-5)


def test_nothing_is_pruned_where_the_slab_wins_everywhere() -> None:
    assert cstonet_seams.prior_threshold(0.99, 0.5, 1.0) == 0.0


@pytest.mark.parametrize("prior", PRIORS)
def test_probability_of_the_slab_matches_its_twin(prior: tuple[float, float, float]) -> None:
    w = weights_around(prior).astype(float)
    actual = [cstonet_seams.slab_probability(x, *prior) for x in w]
    # The log-odds are sums of terms of up to this size in float64, rounded a few times each.
    size = 30 + 0.5 * w.max() ** 2 / prior[1]
    expected = twins.slab_probability(w, *prior)
    np.testing.assert_allclose(actual, expected, rtol=8 * size * np.finfo(float).eps)
    threshold = cstonet_seams.prior_threshold(*prior)
    if threshold > 0:
        assert cstonet_seams.slab_probability(threshold, *prior) == pytest.approx(0.5, abs=1e-9)
