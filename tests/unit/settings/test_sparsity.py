"""The automatic constants of the mixture prior make its annealing a test of the weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cstonet.settings.options import PriorOptions
from cstonet.settings.sparsity import automatic_prior, critical_value

AUTOMATIC = PriorOptions(inclusion="auto", spike_start="auto", spike_end="auto")
SIZES = [(720, 1764), (8640, 1764), (1440, 17_000), (200, 60), (1_000_000, 320_000)]


def escapes(estimate, error, prior):
    """Whether a weight exceeds the threshold at some width of the spike, by a fine grid of it."""
    spike = np.geomspace(prior.spike_start, prior.spike_end, 2001)
    log_ratio = math.log((1 - prior.inclusion) / prior.inclusion)
    threshold = np.sqrt(2 * spike * (log_ratio + 0.5 * np.log(prior.slab_variance / spike)))
    return bool(np.any(estimate / (1 + error**2 / spike) > threshold))


@pytest.mark.parametrize(("rows", "weights"), SIZES)
def test_annealing_tests_weights_at_the_critical_value(rows, weights):
    prior = automatic_prior(AUTOMATIC, rows=rows, weights=weights)
    error = 1 / math.sqrt(rows)
    bar = critical_value(rows, weights)
    # log(σ1²/σ0²) is taken at σ0 = s, and the best moment is a little off it.
    assert escapes(1.05 * bar * error, error, prior)
    assert not escapes(0.9 * bar * error, error, prior)


def test_more_weights_and_more_rows_ask_for_more():
    assert critical_value(1000, 20_000) > critical_value(1000, 2000) > math.sqrt(2 * math.log(2000))
    assert critical_value(8000, 2000) > critical_value(1000, 2000)
    # Yet the smallest effect that is kept falls with the sample.
    assert critical_value(8000, 2000) / math.sqrt(8000) < critical_value(1000, 2000) / math.sqrt(
        1000
    )


@pytest.mark.parametrize("rows", [1, 5, 30, 300, 100_000])
@pytest.mark.parametrize("slab", [0.1, 1.0])
def test_any_sample_has_a_prior(rows, slab):
    wanted = PriorOptions(
        inclusion="auto", slab_variance=slab, spike_start="auto", spike_end="auto"
    )
    prior = automatic_prior(wanted, rows=rows, weights=500)
    assert 0 < prior.inclusion < 1
    assert 0 < prior.spike_end <= prior.spike_start < slab


def test_numbers_stay():
    given = PriorOptions(inclusion=0.2, spike_start=1e-3, spike_end=1e-5)
    assert automatic_prior(given, rows=100, weights=100) == given
    narrow = PriorOptions(inclusion="auto", spike_start=1e-6, spike_end="auto")
    assert automatic_prior(narrow, rows=100, weights=100).spike_end == 1e-6
