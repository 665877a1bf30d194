"""Parameter update (paper Algorithm A1, step 2) over several steps."""

from __future__ import annotations

from typing import Any

import cstonet_seams
import numpy as np
import pytest
import twins
from networks import Case, make_case

from cstonet.settings.options import OptimizerOptions

STEPS, BATCH_WEIGHT = 6, 31.5
PRIOR = (1e-3, 1e-3, 0.5)
RULES = {
    "plain": OptimizerOptions(rule="momentum", momentum=0.0),
    "momentum": OptimizerOptions(rule="momentum", momentum=0.9),
    "clipped": OptimizerOptions(rule="momentum", momentum=0.9, clip_norm=0.02),
    "adam": OptimizerOptions(rule="adam", momentum=0.9, second_decay=0.99, epsilon=1e-8),
    "clipped adam": OptimizerOptions(rule="adam", momentum=0.5, second_decay=0.9, clip_norm=0.02),
}


def draw_gradients(case: Case, seed: int = 3) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Per step and layer: gradients of weights and biases, of very different size per layer."""
    rng = np.random.default_rng(seed)
    return [
        [
            (
                (10.0**i * rng.normal(size=w.shape)).astype(np.float32),
                (10.0**i * rng.normal(size=b.shape)).astype(np.float32),
            )
            for i, (w, b) in enumerate(zip(case.weights, case.biases, strict=True))
        ]
        for _ in range(STEPS)
    ]


def run_both(
    rule: str, *, prior_weight: float = 0.0, penalize_bias: bool = False
) -> tuple[Case, tuple[Any, Any], twins.Optimizer]:
    case = make_case("binary treatment")
    gradients = draw_gradients(case)
    rate = [1e-2, 2e-3, 5e-3, 1e-4]
    layer_variance = [1.0, 0.5, 0.1, 0.01]
    actual = cstonet_seams.update(
        case.spec,
        RULES[rule],
        case.weights,
        case.biases,
        [[w for w, _ in step] for step in gradients],
        [[b for _, b in step] for step in gradients],
        BATCH_WEIGHT,
        rate,
        layer_variance,
        PRIOR,
        prior_weight,
        penalize_bias,
    )
    twin = twins.Optimizer(RULES[rule], case.weights, case.biases)
    for step in gradients:
        twin.step(
            step,
            batch_weight=BATCH_WEIGHT,
            rate=rate,
            layer_variance=layer_variance,
            prior=PRIOR,
            prior_weight=prior_weight,
            penalize_bias=penalize_bias,
        )
    return case, actual, twin


@pytest.mark.parametrize("penalty", ["none", "weights", "weights and biases"])
@pytest.mark.parametrize("rule", RULES)
def test_update_matches_its_twin(rule: str, penalty: str, level: str) -> None:
    case, (weights, biases), twin = run_both(
        rule,
        prior_weight=0.0 if penalty == "none" else 0.05,
        penalize_bias=penalty == "weights and biases",
    )
    for before, after, expected in zip(
        case.weights + case.biases, weights + biases, twin.weights + twin.biases, strict=True
    ):
        moved = np.max(np.abs(expected - before))
        assert moved > 1e-5
        # Each step rounds θ once, and its move some 20 times (the prior's exponent, of size 15,
        # counts as its size).
        scale = STEPS * (np.abs(before).max() + 40 * moved)
        twins.assert_close(after, expected, roundings=1, scale=scale)


def test_clipping_bounds_the_norm_of_a_layers_step() -> None:
    case, (weights, biases), _ = run_both("clipped")
    _, (free_weights, _), _ = run_both("momentum")
    assert not np.allclose(weights[3], free_weights[3])
    # Norm of clip/σ² per step; momentum 0.9 sums to at most 1 / (1 - 0.9) of it.
    for i, (rate, variance) in enumerate(
        zip([1e-2, 2e-3, 5e-3, 1e-4], [1.0, 0.5, 0.1, 0.01], strict=True)
    ):
        move = np.hypot(
            np.linalg.norm(weights[i] - case.weights[i]), np.linalg.norm(biases[i] - case.biases[i])
        )
        assert move <= STEPS * rate * 0.02 / variance / (1 - 0.9)


def test_small_gradients_are_not_clipped() -> None:
    case = make_case("binary treatment")
    tiny = [[(1e-4 * w, 1e-4 * b) for w, b in step] for step in draw_gradients(case)]
    shared = (
        BATCH_WEIGHT, [1.0] * 4, [1.0] * 4, PRIOR, 0.0, False,
    )  # fmt: skip
    steps = ([[w for w, _ in s] for s in tiny], [[b for _, b in s] for s in tiny])
    clipped, free = (
        cstonet_seams.update(case.spec, RULES[rule], case.weights, case.biases, *steps, *shared)[0]
        for rule in ("clipped", "momentum")
    )
    for a, b in zip(clipped, free, strict=True):
        assert np.array_equal(a, b)


def test_the_prior_pulls_weights_to_zero_and_spares_biases() -> None:
    case = make_case("binary treatment")
    zero = [[np.zeros_like(w) for w in case.weights]], [[np.zeros_like(b) for b in case.biases]]
    shared = (1.0, [1e-4] * 4, [1.0] * 4, PRIOR, 0.01)
    for penalize_bias in (False, True):
        weights, biases = cstonet_seams.update(
            case.spec, RULES["plain"], case.weights, case.biases, *zero, *shared, penalize_bias
        )
        for before, after in zip(case.weights, weights, strict=True):
            assert np.all(np.abs(after) < np.abs(before))
        for before, after in zip(case.biases, biases, strict=True):
            assert np.all((np.abs(after) < np.abs(before)) == penalize_bias)
