"""Coupled chains: the gradient of a shadow that sees no data, subtracted (decision record 0043)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import twins
from networks import NETWORKS, Case, antithetic_noise, make_case
from numpy.typing import NDArray
from twins_network import Chain

from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import SamplerOptions

# As for the plain sweep (test_sweep.py), twice over: the chain and its shadow.
ROUNDINGS = 2 * 4 * 16

SCHEDULES = {
    "one sweep": {"sweeps": 1, "friction": 1.0, "temperature": 1.0},
    "three sweeps": {"sweeps": 3, "friction": 0.3, "temperature": 1.0},
    "tempered": {"sweeps": 2, "friction": 0.1, "temperature": 0.25},
    # Displacements beyond 0.6, where activations need exponentials.
    "hot": {"sweeps": 2, "friction": 1.0, "temperature": 100.0},
}
VARIANCE, STEP = (0.05, 0.2, 0.01), (0.05, 0.11, 0.03)


def settings(case: Case, schedule: str) -> tuple[SamplerOptions, list[float]]:
    options = SamplerOptions(variance=VARIANCE[: case.hidden], **SCHEDULES[schedule])
    return options, list(STEP[: case.hidden])


def swept_pair(case: Case, options: SamplerOptions, step: list[float]) -> tuple[Chain, Chain]:
    """The chain and its shadow by the definition: the same normals, with and without pull."""
    pair = case.twin(options.variance), case.twin(options.variance, pull=False)
    for twin in pair:
        twin.sweep(options, step, antithetic_noise)
    return pair


def gradient_differences(
    chain: Chain, shadow: Chain, weight: NDArray[np.float32]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    pairs = zip(chain.gradients(weight), shadow.gradients(weight), strict=True)
    return [(a[0] - b[0], a[1] - b[1]) for a, b in pairs]


def scales(chain: Chain, shadow: Chain, weight: NDArray[np.float32]) -> list[tuple[float, float]]:
    """Sums of the absolute terms of the differences, of which the kernel's errors are parts."""
    out = []
    for i in range(chain.depth):
        difference = np.abs(chain.residual(i) - shadow.residual(i)) * weight[:, None]
        rest = np.abs(shadow.residual(i)) * weight[:, None]
        change = np.abs(chain.output(i - 1) - shadow.output(i - 1))
        terms = np.abs(chain.output(i - 1)).T @ difference + change.T @ rest
        # Differences descend from those above by products with the shadow's residuals.
        out.append((terms.max(), difference.sum(axis=0).max() + terms.max()))
    return out


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("network", NETWORKS)
def test_coupled_sweep_matches_its_twin(
    network: str, schedule: str, offset: bool, level: str
) -> None:
    case = make_case(network, offset=offset)
    options, step = settings(case, schedule)
    actual = case.kernel(options, step)
    chain, shadow = swept_pair(case, options, step)
    for i in range(case.hidden):
        units = chain.y[i].shape[1]
        moved = chain.y[i] - chain.z[i]
        twins.assert_close(actual.displacements[i][:, :units], moved, roundings=ROUNDINGS)
        assert np.all(actual.displacements[i][:, units:] == 0)
        feeding = chain.output(i).shape[1]
        outputs = actual.outputs[i][:, :feeding]
        scale = 1 + abs(chain.output(i))
        twins.assert_close(outputs, chain.output(i), roundings=ROUNDINGS, scale=scale)
    allowed = scales(chain, shadow, case.row_weight)
    for i, (weight, bias) in enumerate(gradient_differences(chain, shadow, case.row_weight)):
        w, b = actual.weight_gradients[i], actual.bias_gradients[i]
        twins.assert_close(w, weight, roundings=ROUNDINGS, scale=allowed[i][0])
        twins.assert_close(b, bias, roundings=ROUNDINGS, scale=allowed[i][1])


@pytest.mark.parametrize("network", NETWORKS)
def test_without_noise_coupling_changes_no_bit(network: str) -> None:
    case = make_case(network)
    options, step = settings(case, "three sweeps")
    cold = replace(options, temperature=0.0)
    a, b = case.kernel(cold, step), case.kernel(replace(cold, coupled=False), step)
    for name in ("weight_gradients", "bias_gradients", "displacements", "outputs"):
        for x, y in zip(getattr(a, name), getattr(b, name), strict=True):
            assert np.array_equal(x, y)
    assert np.array_equal(a.log_likelihood, b.log_likelihood)


# The default's own ladder and steps.
LADDER = (1e-9, 1e-7, 1e-5)


def ladder_settings(case: Case, **choices: float | bool) -> tuple[SamplerOptions, list[float]]:
    variance = LADDER[-case.hidden :]
    options = SamplerOptions(variance=variance, **choices)  # type: ignore[arg-type]
    return options, [float(np.sqrt(v)) for v in variance]


@pytest.mark.parametrize("network", NETWORKS)
def test_one_sweep_is_exact_in_the_first_layer(network: str) -> None:
    """In one sweep no difference of the chains depends on the noise until the sweep is over."""
    case = make_case(network)
    warm, step = ladder_settings(case, temperature=1.0)
    cold, _ = ladder_settings(case, temperature=0.0)
    a, b = case.kernel(warm, step), case.kernel(cold, step)
    scale = np.abs(b.bias_gradients[0]).max() + np.abs(b.weight_gradients[0]).max()
    units = case.twin(warm.variance).y[0].shape[1]  # visible units have no part in the coupling
    twins.assert_close(
        a.weight_gradients[0][:, :units],
        b.weight_gradients[0][:, :units].astype(float),
        roundings=ROUNDINGS,
        scale=scale,
    )


def with_activation(case: Case, activation: str) -> Case:
    spec: NetworkSpec = replace(case.spec, activation=activation)  # type: ignore[arg-type]
    return replace(case, spec=spec)


def gradient_draws(
    case: Case, options: SamplerOptions, step: list[float], count: int
) -> list[NDArray[np.float64]]:
    """Gradients of every layer under different noise, each (draws, entries)."""
    layers: list[list[NDArray[np.float64]]] = [[] for _ in range(case.hidden + 1)]
    for k in range(count):
        result = case.kernel(options, step, iteration=100 + k)
        for i, (w, b) in enumerate(
            zip(result.weight_gradients, result.bias_gradients, strict=True)
        ):
            layers[i].append(np.concatenate([w.ravel(), b]).astype(float))
    return [np.array(draws) for draws in layers]


@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("network", NETWORKS)
def test_coupling_keeps_the_mean_and_takes_the_noise(
    network: str, activation: str, sweeps: int
) -> None:
    case = with_activation(make_case(network, rows=12), activation)
    options, step = ladder_settings(case, temperature=1.0, sweeps=sweeps)
    count = 300
    plain = gradient_draws(case, replace(options, coupled=False), step, count)
    coupled = gradient_draws(case, options, step, count)
    cold = gradient_draws(case, replace(options, temperature=0.0), step, 1)
    scores = []
    for i in range(case.hidden + 1):
        noise = plain[i].var(axis=0, ddof=1) + coupled[i].var(axis=0, ddof=1)
        difference = plain[i].mean(axis=0) - coupled[i].mean(axis=0)
        free = noise > 1e-12 * np.square(plain[i]).mean(axis=0)  # others do not depend on noise
        scores.append(difference[free] / np.sqrt(noise[free] / count))
        if i < case.hidden:
            assert coupled[i].var(axis=0).sum() <= 0.01 * plain[i].var(axis=0).sum()
        # The plain mean is too noisy to tell a gradient from none. Without noise it is the same up
        # to the ladder's ratio of 1e-2, times weights of a few units.
        error = 5 * coupled[i].std(axis=0, ddof=1) / np.sqrt(count)
        off = np.abs(coupled[i].mean(axis=0) - cold[i][0])
        assert np.all(off <= error + 0.05 * np.abs(cold[i][0]).max())
    z = np.concatenate(scores)
    # Standard normal if the means agree: the largest of a few hundred stays below 5 but once in
    # some thousand, and their mean square is one with error sqrt(2 / entries), correlated.
    assert np.max(np.abs(z)) < 5
    assert np.mean(np.square(z)) < 2
    total = [sum(draws.var(axis=0).sum() for draws in layers) for layers in (plain, coupled)]
    assert total[1] <= 0.01 * total[0]


def test_the_noise_that_is_left_is_that_of_the_ladder() -> None:
    """A flat ladder leaves far more: what a move below changes above is no longer small."""
    case = make_case("binary treatment", rows=12)
    steep, _ = ladder_settings(case, temperature=1.0)
    flat = replace(steep, variance=(1e-3,) * 3)
    relative = []
    for options in (steep, flat):
        steps = [float(np.sqrt(v)) for v in np.asarray(options.variance, dtype=float)]
        draws = gradient_draws(case, options, steps, 100)[1]
        relative.append(draws.var(axis=0).sum() / np.square(draws.mean(axis=0)).sum())
    assert relative[1] > 10 * relative[0]
