"""Residuals times directions, against the NumPy pass and its derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import twins

from cstonet import _core
from cstonet.network.forward import ForwardPass
from cstonet.network.products import Kind, Products
from cstonet.network.spec import Block, NetworkSpec

N, P = 1500, 9  # more rows than one block of 1024 takes


@dataclass(frozen=True)
class Network:
    """What a pass asks of a network."""

    spec: NetworkSpec
    inputs: np.ndarray
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]


def latent(size: int) -> Block:
    return Block("gaussian", size, visible=False, feeds=True)


def network(activation: str, layer: int, levels: int, outcomes: int) -> Network:
    """Three hidden layers; the treatment stands in one of them."""
    treatment = Block("categorical" if levels > 2 else "bernoulli", levels - 1, True, True)
    hidden = [(latent(4),), (latent(5),), (latent(3),)]
    hidden[layer] = (*hidden[layer], treatment)
    last = tuple(Block("gaussian", 1, visible=True, feeds=False) for _ in range(outcomes))
    spec = NetworkSpec(3, activation, (*hidden, last))
    rng = np.random.default_rng(layer)
    sources = (3, *spec.units[:-1])
    weights = tuple(
        rng.normal(scale=0.6, size=shape).astype(np.float32)
        for shape in zip(sources, spec.units, strict=True)
    )
    biases = tuple(rng.normal(scale=0.3, size=u).astype(np.float32) for u in spec.units)
    return Network(spec, np.array([1, 4, 8]), weights, biases)


@pytest.fixture(scope="module")
def data() -> _core.Dataset:
    x = np.random.default_rng(5).normal(size=(N, P))
    return _core.Dataset(x, np.zeros(P), np.ones(P), 4.0, 0)


def treatment_of(rows: int, levels: int) -> np.ndarray:
    codes = np.arange(rows) % levels
    return (codes[:, None] == np.arange(1, levels)).astype(np.float32)


def slopes_of(net: Network, treatment: np.ndarray) -> Products:
    """All slopes of all predictors, of residual one."""
    count = (treatment.shape[1] + net.spec.units[-1]) * net.spec.units[0]
    number = np.arange(count)
    one = np.ones((len(treatment), 1), dtype=np.float32)
    table = np.column_stack([np.zeros_like(number), np.full_like(number, Kind.SLOPE), number])
    return Products(one, one[:, :0], treatment, net, table, np.ones(count, dtype=np.float32))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize(("levels", "outcomes"), [(2, 1), (3, 2)])
def test_slopes_are_those_of_the_numpy_pass(
    data: _core.Dataset, activation: str, layer: int, levels: int, outcomes: int, level: str
) -> None:
    net = network(activation, layer, levels, outcomes)
    rows = np.random.default_rng(0).permutation(N)[:1100]
    treatment = treatment_of(len(rows), levels)
    expected = ForwardPass(net, data, rows).first_layer_slopes(treatment.astype(float))
    actual = _core.product_values(slopes_of(net, treatment), data, rows, 1)
    both = np.hstack([*expected.treatment, *expected.outcome])
    # A unit on the edge of a relu may fall to either side of it.
    steady = np.abs(both - actual).max(axis=1) < 0.01 if activation == "relu" else slice(None)
    assert np.mean(steady) > 0.99 if activation == "relu" else True
    # Four layers of sums of up to seven terms, and the activation's own error of a few roundings,
    # each passed on by weights that add up to a few.
    twins.assert_close(actual[steady], both[steady], roundings=300, scale=np.abs(both).max() + 1)


def test_columns_are_residuals_times_their_factors(data: _core.Dataset) -> None:
    net, rows = network("tanh", 1, 2, 1), np.arange(0, N, 2)
    rng = np.random.default_rng(3)
    residuals = rng.normal(size=(len(rows), 2)).astype(np.float32)
    given = rng.normal(size=(len(rows), 2)).astype(np.float32)
    treatment = treatment_of(len(rows), 2)
    table = np.array(
        [
            (0, Kind.ONE, 0),
            (1, Kind.GIVEN, 1),
            (0, Kind.MEMBER, 8),
            (1, Kind.MEMBER, 2),
            (1, Kind.SLOPE, net.spec.units[0] + 2),  # the outcome's, in the third unit
        ]
    )
    scale = np.array([1, 2, 1, 1, 0.5], dtype=np.float32)
    products = Products(residuals, given, treatment, net, table, scale)
    x = data.gather(rows, np.arange(P)).astype(float)
    slope = ForwardPass(net, data, rows).first_layer_slopes(treatment.astype(float)).outcome[0]
    factors = np.column_stack(
        [np.ones(len(rows)), 2 * given[:, 1], x[:, 8], x[:, 2], 0.5 * slope[:, 2]]
    )
    expected = residuals[:, [0, 1, 0, 1, 1]] * factors
    actual = _core.product_values(products, data, rows, 3)
    twins.assert_close(actual, expected, roundings=300, scale=np.abs(expected).max())
    assert actual.tobytes() == _core.product_values(products, data, rows, 1).tobytes()
    # Moments are those of the float32 columns, in double.
    mean, variance = _core.product_moments(products, data, rows, 3)
    np.testing.assert_allclose(mean, actual.astype(float).mean(axis=0), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(variance, actual.astype(float).var(axis=0), rtol=1e-11)
    # The scores are those of the columns.
    numbers = Products(
        actual,
        given[:, :0],
        given[:, :0],
        None,
        np.column_stack([np.arange(5), np.zeros(5, int), np.zeros(5, int)]),
        np.ones(5, dtype=np.float32),
    )
    sums = data.score_sums(rows, products, np.ones(P), None, 1)
    assert sums.tobytes() == data.score_sums(rows, numbers, np.ones(P), None, 1).tobytes()


def test_moments_of_a_constant_column_far_from_zero_have_no_variance(data: _core.Dataset) -> None:
    one = np.full((N, 1), 1000.1, dtype=np.float32)
    table = np.array([(0, Kind.ONE, 0)])
    products = Products(one, one[:, :0], one[:, :0], None, table, np.ones(1, dtype=np.float32))
    mean, variance = _core.product_moments(products, data, np.arange(N), 2)
    assert mean[0] == pytest.approx(np.float32(1000.1))
    assert np.sqrt(variance[0]) < 1e-6 * mean[0]


def test_columns_say_which_covariates_they_are_made_of() -> None:
    products = slopes_of(network("tanh", 1, 2, 1), treatment_of(N, 2))
    table = np.vstack([products.table, [(0, Kind.MEMBER, 6)]])
    products = replace(products, table=table, scale=np.ones(len(table), dtype=np.float32))
    assert products.covariates.tolist() == [1, 4, 6, 8]
    assert products.only([len(table) - 1]).covariates.tolist() == [6]


def test_means_under_the_treatment_received_are_those_of_its_level(
    data: _core.Dataset, level: str
) -> None:
    net = network("tanh", 1, 3, 2)
    rows, treatment = np.arange(N), treatment_of(N, 3)
    arguments = net.spec, list(net.weights), list(net.biases), net.inputs, data, rows
    received = _core.predict_received(*arguments, treatment, 2)
    levels = np.array([[0, 0], [1, 0], [0, 1]], dtype=np.float32)
    clamp = np.pad(levels, ((0, 0), (0, 2)))
    every = _core.predict(*arguments, clamp, 1)
    assert received.tobytes() == every[np.arange(N) % 3, np.arange(N)].tobytes()


@pytest.mark.parametrize(
    "row",
    [(1, Kind.ONE, 0), (0, Kind.GIVEN, 0), (0, Kind.SLOPE, 0), (0, Kind.MEMBER, P), (0, 7, 0)],
)
def test_what_a_direction_names_must_be_there(
    data: _core.Dataset, row: tuple[int, int, int]
) -> None:
    one = np.ones((N, 1), dtype=np.float32)
    products = Products(
        one, one[:, :0], one[:, :0], None, np.array([row]), np.ones(1, dtype=np.float32)
    )
    with pytest.raises(ValueError, match="direction"):
        _core.product_values(products, data, np.arange(N), 1)
