"""What a treatment with more than two levels asks of the networks: a categorical block."""

from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest

import cstonet as cs
from cstonet.network.forward import ForwardPass
from cstonet.network.scaling import column_scaling
from cstonet.network.structure import Structure
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.search.scope import Adjustment


def test_network_is_widened_by_the_further_units(small_network):
    binary, four = (small_network(9, (5, 4), 2, levels=k) for k in (2, 4))
    assert (binary.units, four.units) == ((5, 4, 1), (5, 6, 1))
    assert [block.family for block in four.layers[1]] == ["gaussian", "categorical"]
    assert (binary.treatment_width, four.treatment_width, four.treatment_layer) == (1, 3, 1)
    assert binary.layers[1][0] == four.layers[1][0]


def test_plan_tells_the_widths():
    rng = np.random.default_rng(0)
    y, X = rng.normal(size=60), rng.normal(size=(60, 9))
    labels = [
        cs.CausalStoNet(y, np.resize(np.arange(levels), 60), X)
        .plan(hidden=(5, 4), treatment_layer=2)
        .network_label
        for levels in (2, 4)
    ]
    assert labels == ["9-5-4-1", "9-5-6-1"]


@pytest.mark.parametrize(("hidden", "layer"), [((4, 3), 1), ((4, 3), 2), ((6, 5, 4), 3)])
def test_structure_reaches_every_unit_of_the_block(hidden, layer, small_network):
    structure = Structure(treatment=(7, 2), outcome=(4, 2))
    network = small_network(3, hidden, layer, levels=4)
    masks = structure.masks(network, 2)
    biases = [np.zeros(mask.shape[1], np.float32) for mask in masks]
    _, reaches = cstonet_seams.prune_and_trace(network, masks, biases, 0.5)
    found = [set(structure.inputs[np.array(reaches[block])]) for block in (TREATMENT, OUTCOME)]
    assert found == [{2, 7}, {2, 4}]


@pytest.fixture(scope="module")
def net(small_network) -> TrainedNetwork:
    """A network of three levels with known, random weights; the second level lacks x1."""
    spec = small_network(3, (4, 3, 2), 2, levels=3)
    rng = np.random.default_rng(1)
    shapes = list(zip((3, *spec.units), spec.units, strict=False))
    weights = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    weights[0][0, 1:] = 0  # x1 only feeds unit 1 ...
    weights[1][0, -1] = 0  # ... which does not feed the last level
    return TrainedNetwork(
        fold=0,
        start=0,
        spec=spec,
        inputs=np.arange(3),
        weights=tuple(weights),
        masks=tuple((w != 0).astype(np.float32) for w in weights),
        biases=tuple(rng.normal(size=shape[1]).astype(np.float32) for shape in shapes),
        variance=1.0,
        log_likelihood=np.zeros(2),
        bic=0.0,
        reaches_treatment=np.ones(3, bool),
        reaches_outcome=np.ones(3, bool),
    )


def test_means_are_softmax_and_clamped_outcomes(net, plain_predictors):
    x = np.random.default_rng(2).normal(size=(9, 3))
    scaling = column_scaling(x, 1e6)
    mu, probability = net.means(scaling.dataset(x, 0), np.arange(9), 1)
    z = scaling.dataset(x, 0).gather(np.arange(9), np.arange(3)).astype(float)
    eta = plain_predictors(net, z, np.zeros((9, 2)))[1][:, -2:]
    expected = np.exp(eta) / (1 + np.exp(eta).sum(axis=1, keepdims=True))
    # float32 arithmetic on numbers of order one.
    np.testing.assert_allclose(probability, expected, rtol=2e-5)
    for level, dummies in enumerate([(0, 0), (1, 0), (0, 1)]):
        outcome = plain_predictors(net, z, dummies)[-1][:, 0]
        np.testing.assert_allclose(mu[:, level], outcome, rtol=2e-5, atol=2e-6)


def test_slopes_are_derivatives_for_every_level(net, plain_predictors):
    rows, step = np.arange(6), 1e-6
    data = column_scaling(x := np.random.default_rng(3).normal(size=(6, 3)), 1e6).dataset(x, 0)
    z = data.gather(rows, np.arange(3)).astype(float)
    treatment = np.eye(3)[[0, 1, 2, 0, 1, 2]][:, 1:]
    slopes = ForwardPass(net, data, rows).first_layer_slopes(treatment)
    for unit in range(4):
        shift = step * np.eye(4)[unit]
        up, down = (plain_predictors(net, z, treatment, sign * shift) for sign in (1, -1))
        numeric = [(a - b) / (2 * step) for a, b in zip(up, down, strict=True)]
        # Central differences: rounding 1e-16 / step, curvature step².
        np.testing.assert_allclose(slopes.outcome[0][:, unit], numeric[-1][:, 0], atol=1e-8)
        for level in range(2):
            np.testing.assert_allclose(
                slopes.treatment[level][:, unit], numeric[1][:, level - 2], atol=1e-8
            )


def test_paths_to_single_levels(net):
    found = Adjustment().selects_levels(net)
    np.testing.assert_array_equal(found, [[True, False], [True] * 2, [True] * 2])
    strengths = net.level_strengths()
    np.testing.assert_allclose(strengths.sum(axis=0), 1)
    assert strengths[0, 1] == 0 < strengths[0, 0]
    flow = abs(net.weights[0].astype(float)) @ abs(net.weights[1].astype(float))[:, -2:]
    np.testing.assert_allclose(net.path_strength(TREATMENT), flow.sum(axis=1) / flow.sum())
