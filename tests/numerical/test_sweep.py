"""Backward sampling (paper Algorithm A1, step 1) and the gradients it yields."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import twins
from networks import NETWORKS, Case, kernel_noise, make_case
from twins_network import Chain

from cstonet.settings.options import SamplerOptions

# An entry of the state ends a chain of some 250 roundings: per layer a sum of up to 21 products, an
# activation (6), the move (8), the residual (3), up and down two or three layers, up to three
# sweeps. Rounding errors have either sign: the root of their number times four standard deviations.
# (A wrong formula is of relative size 1, i.e. 2^24 roundings.)
ROUNDINGS = 4 * 16

SCHEDULES = {
    "one sweep": {"sweeps": 1, "friction": 1.0, "temperature": 1.0},
    "three sweeps": {"sweeps": 3, "friction": 0.3, "temperature": 1.0},
    "tempered": {"sweeps": 2, "friction": 0.1, "temperature": 0.25},
    "no noise": {"sweeps": 3, "friction": 0.5, "temperature": 0.0},
}


def settings(case: Case, schedule: str) -> tuple[SamplerOptions, list[float]]:
    """Different variances and steps in every layer, so that none can stand in for another."""
    variance = tuple([0.05, 0.2, 0.01][: case.hidden])
    options = SamplerOptions(variance=variance, coupled=False, **SCHEDULES[schedule])
    return options, [0.05, 0.11, 0.03][: case.hidden]


def swept_twin(case: Case, options: SamplerOptions, step: list[float]) -> Chain:
    twin = case.twin(options.variance)
    twin.sweep(options, step, kernel_noise)
    return twin


def at_latents_of(case: Case, options: SamplerOptions, result: Any) -> Chain:
    """The twin with the latent variables the kernel arrived at."""
    twin = case.twin(options.variance)
    for i, d in enumerate(result.displacements):
        twin.y[i] = twin.z[i] + d[:, : twin.z[i].shape[1]].astype(float)
    return twin


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("network", NETWORKS)
def test_sweep_matches_its_twin(network: str, schedule: str, offset: bool, level: str) -> None:
    case = make_case(network, offset=offset)
    options, step = settings(case, schedule)
    actual, twin = case.kernel(options, step), swept_twin(case, options, step)
    for i in range(case.hidden):
        units = twin.y[i].shape[1]
        moved = twin.y[i] - twin.z[i]
        assert np.any(moved != 0)
        twins.assert_close(actual.displacements[i][:, :units], moved, roundings=ROUNDINGS)
        # Visible units stay where they are observed.
        assert np.all(actual.displacements[i][:, units:] == 0)
        feeding = twin.output(i).shape[1]
        outputs = actual.outputs[i][:, :feeding]
        twins.assert_close(
            outputs, twin.output(i), roundings=ROUNDINGS, scale=1 + abs(twin.output(i))
        )
        assert np.array_equal(outputs[:, units:], twin.output(i)[:, units:])
    scales = twin.gradient_scales(case.row_weight)
    for i, (weight, bias) in enumerate(twin.gradients(case.row_weight)):
        w, b = actual.weight_gradients[i], actual.bias_gradients[i]
        twins.assert_close(w, weight, roundings=ROUNDINGS, scale=scales[i][0].max())
        twins.assert_close(b, bias, roundings=ROUNDINGS, scale=scales[i][1].max())


def test_noise_is_what_moves_the_warm_sweep() -> None:
    """The comparisons above would be empty if the noise were negligible."""
    case = make_case("binary treatment")
    options, step = settings(case, "one sweep")
    cold, _ = settings(case, "no noise")
    warm = case.kernel(options, step).displacements
    still = case.kernel(cold, step).displacements
    assert np.abs(warm[0]).max() > 2 * np.abs(still[0]).max()


@pytest.mark.parametrize("network", NETWORKS)
def test_row_weights_multiply_gradients_and_nothing_else(network: str) -> None:
    case = make_case(network)
    options, step = settings(case, "one sweep")
    weighted, plain = (c.kernel(options, step) for c in (case, case.unweighted()))
    for a, b in zip(weighted.displacements, plain.displacements, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(weighted.log_likelihood, plain.log_likelihood)
    assert not np.allclose(weighted.weight_gradients[0], plain.weight_gradients[0], rtol=1e-2)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("network", NETWORKS)
def test_layer_log_likelihood_at_the_kernels_own_latents(network: str, offset: bool) -> None:
    case = make_case(network, offset=offset)
    options, step = settings(case, "three sweeps")
    result = case.kernel(options, step)
    twin = at_latents_of(case, options, result)
    expected = twin.log_likelihood()
    # A term changes by its residual times the error of its predictor, and predictors are sums of
    # terms of size up to about 2.
    sizes = [np.sum(np.abs(twin.residual(i)) + 1) * 2 for i in range(twin.depth)]
    twins.assert_close(result.log_likelihood, expected, roundings=ROUNDINGS, scale=np.array(sizes))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_are_slopes_of_the_joint_log_density_at_fixed_latents(
    network: str, offset: bool
) -> None:
    case = make_case(network, offset=offset)
    options, step = settings(case, "one sweep")
    result = case.kernel(options, step)
    twin = at_latents_of(case, options, result)
    row_weight = case.row_weight.astype(float)
    scales = twin.gradient_scales(row_weight)
    rng = np.random.default_rng(1)
    h = 1e-5  # truncation h² and float64 cancellation 1e-16/h are both below 1e-9
    for i in range(twin.depth):
        for theta, gradient, scale in (
            (twin.w[i], result.weight_gradients[i], scales[i][0]),
            (twin.b[i], result.bias_gradients[i], scales[i][1]),
        ):
            for flat in rng.choice(theta.size, size=min(12, theta.size), replace=False):
                at = np.unravel_index(flat, theta.shape)
                values = []
                for sign in (1, -1):
                    theta[at] += sign * h
                    values.append(twin.log_likelihood(row_weight).sum())
                    theta[at] -= sign * h
                slope = (values[0] - values[1]) / (2 * h)
                allowed = ROUNDINGS * twins.U * scale.max() + 1e-8 * (1 + abs(slope))
                assert abs(gradient[at] - slope) <= allowed


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_innovations_keep_their_accuracy_at_tiny_variances(temperature: float) -> None:
    """At σ² = 1e-9 the difference Y - Z is below the resolution of Y in float32."""
    case = make_case("binary treatment").unweighted()
    variance = (1e-9,) * case.hidden
    step = [float(np.sqrt(v)) for v in variance]
    options = SamplerOptions(
        sweeps=2, friction=0.5, temperature=temperature, coupled=False, variance=variance
    )
    result, twin = case.kernel(options, step), swept_twin(case, options, step)
    gradients, scales = twin.gradients(case.row_weight), twin.gradient_scales(case.row_weight)
    for i in range(case.hidden):
        expected, actual = gradients[i][1], result.bias_gradients[i]
        # Above float32's share, the float64 twin's own cancellation: 2^-53/σ² per row.
        twin_error = 8 * len(case.x) * 2.0**-53 / 1e-9
        allowed = ROUNDINGS * twins.U * scales[i][1].max() + twin_error
        error = np.max(np.abs(actual - expected))
        assert error <= allowed

        # The same innovation from float32 values of Y and its predictor is far off.
        units = twin.y[i].shape[1]
        y, eta = (v.astype(np.float32) for v in (twin.y[i], twin.predictor(i)[:, :units]))
        naive = ((y - eta).astype(float) / 1e-9).sum(axis=0)
        assert np.max(np.abs(naive - expected[:units])) > 20 * error
