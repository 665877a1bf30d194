"""Algorithm A1's sweep and back-propagation.

At temperature zero, with steps σ_i and a steep ladder σ_1² ≪ σ_2² ≪ …, one sweep gives the
gradients of back-propagation. Layer i moves by σ_i² δ_i, δ_i being what back-propagation sends to
it; the layer above then sees its predictor shifted by at most ‖w‖ σ_i² ‖w‖ ‖δ_{i+1}‖.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import twins
from networks import NETWORKS, Case, make_case

from cstonet.settings.options import SamplerOptions


def ladder(ratio: float, top: float, layers: int) -> tuple[float, ...]:
    return tuple(top * ratio ** (layers - 1 - i) for i in range(layers))


def one_cold_sweep(case: Case, variance: tuple[float, ...]) -> Any:
    options = SamplerOptions(sweeps=1, friction=1.0, temperature=0.0, variance=variance)
    return case.kernel(options, [float(np.sqrt(v)) for v in variance])


def largest_error(case: Case, variance: tuple[float, ...]) -> float:
    """Largest relative difference (in norm) of a layer's gradient from back-propagation."""
    result = one_cold_sweep(case, variance)
    return max(
        np.linalg.norm(actual - exact) / np.linalg.norm(exact)
        for i, expected in enumerate(case.twin(variance).back_propagate())
        for actual, exact in zip(
            (result.weight_gradients[i], result.bias_gradients[i]), expected, strict=True
        )
    )


def stiffness(case: Case, i: int, variance: tuple[float, ...]) -> float:
    """Largest derivative of the residuals of layer i with respect to its predictor."""
    visible_variance = iter(case.variances)
    largest = 0.0
    for layer, blocks in enumerate(case.spec.layers):
        for block in blocks:
            own = next(visible_variance) if block.visible else None
            if layer != i:
                continue
            if own is None:
                largest = max(largest, 1 / variance[i])
            elif block.family == "gaussian":
                largest = max(largest, block.weight / own)
            elif block.family == "poisson":  # the predictors of these networks are below 3
                largest = max(largest, block.weight * np.exp(3) / own)
            else:  # the variance of a 0/1 variable, or the covariance matrix of several
                largest = max(largest, block.weight / 2)
    return largest


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("network", NETWORKS)
def test_a_sweep_down_a_steep_ladder_is_back_propagation(network: str, seed: int) -> None:
    # Of a single row, the bias gradients are the δ_i themselves.
    case = make_case(network, rows=1, seed=seed).unweighted()
    variance = ladder(1e-2, 1e-3, case.hidden)
    if case.hidden == 3:
        assert variance == pytest.approx((1e-7, 1e-5, 1e-3))
    result = one_cold_sweep(case, variance)
    for i, (_, delta) in enumerate(case.twin(variance).back_propagate()):
        share = 64 * twins.U  # see test_sweep.py
        if i > 0:
            norm = np.linalg.norm(case.weights[i], 2)
            share += norm**2 * variance[i - 1] * stiffness(case, i, variance)
        # A few per cent between latent layers (‖w‖² times 1e-2), nothing but rounding below.
        assert share < 0.1
        error = np.linalg.norm(result.bias_gradients[i] - delta)
        assert error <= share * np.linalg.norm(delta)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_error_is_proportional_to_the_ratio_of_the_ladder(network: str) -> None:
    case = make_case(network).unweighted()
    errors = [largest_error(case, ladder(r, r, case.hidden)) for r in (1e-3, 1e-4, 1e-5)]
    # First order in the ratio: each step divides the error by ten, until float32 speaks at 1e-6.
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.2)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_flat_or_falling_ladder_is_not_back_propagation(network: str) -> None:
    case = make_case(network).unweighted()
    steep = largest_error(case, ladder(1e-2, 1e-3, case.hidden))
    assert largest_error(case, (1e-3,) * case.hidden) > 10 * steep
    assert largest_error(case, ladder(100, 1e-7, case.hidden)) > 1
