"""Pruning and paths of kept weights, against an enumeration of all paths."""

from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest
from networks import latent, observed
from twins import slab_probability
from twins_network import (
    feeding_units,
    most_probable_paths,
    pruned_bias_masks,
    pruned_masks,
    reaches,
)

from cstonet.network.spec import NetworkSpec

NETWORK = NetworkSpec(
    4,
    "tanh",
    (
        (latent(3),),
        (latent(2), observed("bernoulli", 1, feeds=True), observed("bernoulli", 2)),
        (latent(3),),
        (observed("gaussian", 1),),
    ),
)


def draw_weights(seed: int, spec: NetworkSpec = NETWORK) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-1, 1, size=(feeding_units(spec, i - 1), units)).astype(np.float32)
        for i, units in enumerate(spec.units)
    ]


def zero_biases(spec: NetworkSpec = NETWORK) -> list[np.ndarray]:
    return [np.zeros(units, dtype=np.float32) for units in spec.units]


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("seed", range(20))
def test_random_networks_agree_with_brute_force(seed: int, threshold: float) -> None:
    weights = draw_weights(seed)
    masks, paths = cstonet_seams.prune_and_trace(NETWORK, weights, zero_biases(), threshold)
    expected = pruned_masks(NETWORK, weights, threshold)
    for actual, mask in zip(masks, expected, strict=True):
        assert np.array_equal(actual != 0, mask)
    assert paths == reaches(NETWORK, expected)


@pytest.mark.parametrize("threshold", [0.3, 0.6])
@pytest.mark.parametrize("seed", range(5))
def test_biases_are_pruned_as_by_brute_force(seed: int, threshold: float) -> None:
    weights, rng = draw_weights(seed), np.random.default_rng(100 + seed)
    biases = [rng.uniform(-1, 1, size=len(b)).astype(np.float32) for b in zero_biases()]
    masks = pruned_bias_masks(NETWORK, weights, biases, threshold)
    pruned = cstonet_seams.prune_biases(NETWORK, weights, biases, threshold)
    for actual, bias, mask in zip(pruned, biases, masks, strict=True):
        assert np.array_equal(actual, bias * mask)
    assert 0 < sum(mask.sum() for mask in masks) < sum(len(b) for b in biases)


def test_the_random_networks_are_neither_full_nor_empty() -> None:
    """So that the comparison above meets open paths, blocked paths and units without a way out."""
    open_paths, dead = [], 0
    for seed in range(20):
        weights = draw_weights(seed)
        masks, paths = cstonet_seams.prune_and_trace(NETWORK, weights, zero_biases(), 0.8)
        open_paths += [reached for block in paths for reached in block]
        dead += sum(
            np.sum((np.abs(w) > 0.8) & (m == 0)) for w, m in zip(weights, masks, strict=True)
        )
    assert 0.1 < np.mean(open_paths) < 0.9
    assert dead > 10


def test_a_weight_at_the_threshold_is_pruned() -> None:
    weights = [np.full_like(w, 0.5) for w in draw_weights(0)]
    masks, _ = cstonet_seams.prune_and_trace(NETWORK, weights, zero_biases(), 0.5)
    assert not any(np.any(m) for m in masks)
    masks, _ = cstonet_seams.prune_and_trace(NETWORK, weights, zero_biases(), 0.499)
    assert all(np.all(m == 1) for m in masks)


def test_paths_do_not_run_through_the_treatment() -> None:
    """x -> treatment -> outcome: x belongs to the treatment's model, not to the outcome's."""
    spec = NetworkSpec(
        2,
        "tanh",
        (
            (latent(1),),
            (latent(1), observed("bernoulli", 1, feeds=True)),
            (observed("gaussian", 1),),
        ),
    )
    ones = np.ones
    weights = [ones((2, 1)), np.array([[0.0, 1.0]]), np.array([[0.0], [1.0]])]
    weights = [w.astype(np.float32) for w in weights]
    weights[0][1] = 0
    _, (treatment, outcome) = cstonet_seams.prune_and_trace(spec, weights, zero_biases(spec), 0.5)
    assert treatment == [True, False]
    assert outcome == [False, False]


# (λ, σ0², σ1²) with thresholds of 0.42, 0.62 and 0: weights of size one lie on both sides.
PRIORS = [(1e-3, 1e-2, 1.0), (1e-6, 1.7e-2, 0.5), (0.9, 0.5, 1.0)]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("seed", range(10))
def test_most_probable_paths_agree_with_brute_force(seed: int, prior: tuple[float, ...]) -> None:
    weights = draw_weights(seed)
    actual = cstonet_seams.most_probable_paths(NETWORK, weights, zero_biases(), *prior)
    expected = most_probable_paths(NETWORK, [slab_probability(w, *prior) for w in weights])
    # Log-odds below 50 in size, rounded a few times in each of four layers.
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_a_path_of_kept_weights_is_one_of_likely_weights() -> None:
    """Every weight on it has a probability above one half, so d of them have above 2^-d."""
    prior, seen = PRIORS[0], 0
    threshold = cstonet_seams.prior_threshold(*prior)
    for seed in range(20):
        weights = draw_weights(seed)
        _, paths = cstonet_seams.prune_and_trace(NETWORK, weights, zero_biases(), threshold)
        best = cstonet_seams.most_probable_paths(NETWORK, weights, zero_biases(), *prior)
        for block, layers in enumerate((2, 2, 4)):
            reached = np.array(paths[block])
            assert np.all(np.array(best[block])[reached] > 0.5**layers)
            assert np.all(np.array(best[block])[~reached] < 0.5)
            seen += np.sum(~reached)
    assert seen > 0
