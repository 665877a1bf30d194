"""Networks at given doses: against the kernel, and the slope against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import twins
from networks import Case, make_case

from cstonet import _core
from cstonet.network.forward import DosePrediction, ForwardPass
from cstonet.network.spec import NetworkSpec
from cstonet.network.trained import TrainedNetwork

ROWS = 23


def trained(case: Case) -> TrainedNetwork:
    q = case.spec.inputs
    return TrainedNetwork(
        fold=0,
        start=0,
        spec=case.spec,
        inputs=np.arange(q),
        weights=tuple(case.weights),
        masks=tuple(np.ones_like(w) for w in case.weights),
        biases=tuple(case.biases),
        variance=0.4,
        log_likelihood=np.zeros(2),
        bic=0.0,
        reaches_treatment=np.ones(q, dtype=bool),
        reaches_outcome=np.ones(q, dtype=bool),
    )


def dataset(x: np.ndarray) -> _core.Dataset:
    p = x.shape[1]
    return _core.Dataset(x, np.zeros(p), np.ones(p), np.inf, 2**30)


def evaluate(
    net: TrainedNetwork,
    data: _core.Dataset,
    rows: np.ndarray,
    dose: np.ndarray,
    offset: DosePrediction | None = None,
) -> DosePrediction:
    return ForwardPass(net, data, rows).at_doses(dose, offset)


def curve(dose: np.ndarray) -> DosePrediction:
    """An offset of every unit at its doses."""
    return DosePrediction(mu=0.3 * dose**2, slope=0.6 * dose, mean=0.1 + dose[:, 0])


@pytest.fixture(params=["gaussian", "bernoulli", "poisson"])
def network(
    request: pytest.FixtureRequest, small_network: Callable[..., NetworkSpec]
) -> tuple[TrainedNetwork, _core.Dataset]:
    case = make_case("continuous treatment", rows=ROWS)
    net = trained(case)
    if request.param != "gaussian":
        spec = small_network(6, (5, 4, 4), 2, outcome=request.param, continuous=True)
        assert spec.units == case.spec.units
        net = replace(net, spec=spec)
    return net, dataset(case.x)


def test_means_are_those_of_the_kernel(network: tuple[TrainedNetwork, _core.Dataset]) -> None:
    net, data = network
    doses, rows = np.array([-1.5, 0.0, 0.7]), np.array([4, 0, 22])
    at = evaluate(net, data, rows, np.broadcast_to(doses, (3, 3)))
    clamp = np.column_stack([doses, np.zeros(3)]).astype(np.float32)
    means = _core.predict(
        net.spec, list(net.weights), list(net.biases), net.inputs, data, rows, clamp, 1
    )
    twins.assert_close(means[:, :, 1].T, at.mu, roundings=64, scale=1 + np.abs(at.mu))
    twins.assert_close(means[0, :, 0], at.mean, roundings=64, scale=1 + np.abs(at.mean))


def test_means_with_offsets_are_those_of_the_kernel(
    network: tuple[TrainedNetwork, _core.Dataset],
) -> None:
    net, data = network
    doses, rows = np.array([-1.5, 0.0, 0.7]), np.array([4, 0, 22])
    dose = np.broadcast_to(doses, (3, 3))
    linear = curve(dose)
    at = evaluate(net, data, rows, dose, linear)
    clamp = np.column_stack([doses, np.zeros(3)]).astype(np.float32)
    offset = np.stack([np.broadcast_to(linear.mean, (3, 3)), linear.mu.T], axis=2)
    means = _core.predict(
        net.spec, list(net.weights), list(net.biases), net.inputs, data, rows, clamp, 1,
        offset.astype(np.float32),
    )  # fmt: skip
    twins.assert_close(means[:, :, 1].T, at.mu, roundings=64, scale=1 + np.abs(at.mu))
    twins.assert_close(means[0, :, 0], at.mean, roundings=64, scale=1 + np.abs(at.mean))


@pytest.mark.parametrize("offset", [lambda dose: None, curve], ids=["", "offset"])
def test_slope_is_the_derivative(
    network: tuple[TrainedNetwork, _core.Dataset],
    offset: Callable[[np.ndarray], DosePrediction | None],
) -> None:
    net, data = network
    rows, step = np.arange(ROWS), 1e-4
    dose = np.random.default_rng(0).normal(size=(ROWS, 4))
    up, down = (evaluate(net, data, rows, d, offset(d)).mu for d in (dose + step, dose - step))
    # Central differences err by step² times a third derivative, and by rounding / step.
    np.testing.assert_allclose(
        evaluate(net, data, rows, dose, offset(dose)).slope, (up - down) / (2 * step), atol=1e-7
    )


def test_rows_do_not_depend_on_each_other(
    network: tuple[TrainedNetwork, _core.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    net, data = network
    rows, dose = np.arange(ROWS), np.random.default_rng(0).normal(size=(ROWS, 4))
    whole = evaluate(net, data, rows, dose)
    monkeypatch.setattr("cstonet.network.forward._AT_ONCE", 40)
    parts = evaluate(net, data, rows, dose)
    np.testing.assert_allclose(parts.mu, whole.mu, rtol=1e-12)
    np.testing.assert_allclose(parts.slope, whole.slope, rtol=1e-12)
