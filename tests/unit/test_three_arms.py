"""The three-arm simulation and its truths; networks with a categorical treatment."""

from __future__ import annotations

import cstonet_seams
import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.errors import OptionError
from cstonet.network import causal_network
from cstonet.networks import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.scaling import column_scaling
from cstonet.structure import Structure

FOUR = 4.0  # standard errors: a correct result is further away with probability 6e-5
# Two fits of the same rows err by at most this many standard errors in total, both being within
# three of the truth except with probability 0.005.
MONTE_CARLO = 3 * 2**0.5


# Simulation ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    return cs.datasets.three_arms(n=100_000, p=5, seed=0)


def test_population_means_are_those_of_a_large_sample(large):
    error = large.mu.std(axis=0) / np.sqrt(len(large.mu))
    assert list(large.means) == list(large.levels) == ["placebo", "low", "high"]
    assert (abs(large.mu.mean(axis=0) - list(large.means.values())) < FOUR * error).all()
    assert large.contrasts == {"ATE[low-placebo]": 1.0, "ATE[high-placebo]": 2.0}


def test_arms_are_drawn_with_the_probabilities_given(large):
    received = large.nuisances().received
    assert (large.data["treat"].cat.codes == large.treatment).all()
    surprise = received - large.propensity
    features = np.column_stack([np.ones(len(surprise)), large.data[["x1", "x3", "x5"]]])
    for arm in range(3):
        products = features * surprise[:, [arm]]
        z = products.sum(axis=0) / np.sqrt((products**2).sum(axis=0))
        assert (abs(z) < FOUR).all()


def test_covariates_have_the_stated_correlations(large):
    correlation = np.corrcoef(large.data[[f"x{j}" for j in range(1, 6)]].T)
    expected = 0.5 ** abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert abs(correlation - expected).max() < FOUR * 1.5 / np.sqrt(len(large.data))


def test_noise_is_what_is_left(large):
    own = np.take_along_axis(large.mu, large.treatment[:, None], axis=1)[:, 0]
    residual = large.data["y"] - own
    assert abs(residual.std() - 1) < FOUR / np.sqrt(2 * len(residual))


def test_oracle_finds_the_contrasts(large):
    oracle = large.oracle()
    truth = [*large.contrasts.values(), *large.means.values()]
    assert oracle.names[:2] == tuple(large.contrasts)
    assert (abs(oracle.estimates - truth) < FOUR * oracle.standard_errors).all()
    sample = np.array(list(large.sample_contrasts.values()))
    assert (abs(sample - [1, 2]) < 0.05).all()
    assert (sample != [1, 2]).all()


def test_same_seed_same_data():
    one, two, other = (cs.datasets.three_arms(n=50, p=7, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one.data, two.data)
    assert not one.data["y"].equals(other.data["y"])
    assert repr(one) == "<three_arms: n=50, p=7, seed=1>"


@pytest.mark.parametrize("bad", [{"p": 4}, {"n": 1}, {"noise": -1.0}, {"seed": -1}])
def test_impossible_simulations(bad):
    with pytest.raises(OptionError):
        cs.datasets.three_arms(**bad)


# Networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hidden", "layer"), [((4, 3), 1), ((4, 3), 2), ((6, 5, 4), 3)])
def test_structure_reaches_every_unit_of_the_block(hidden, layer):
    structure = Structure(treatment=(7, 2), outcome=(4, 2))
    network = causal_network(3, hidden, layer, outcome="gaussian", levels=4)
    masks = structure.masks(network, 2)
    biases = [np.zeros(mask.shape[1], np.float32) for mask in masks]
    _, reaches = cstonet_seams.prune_and_trace(network, masks, biases, 0.5)
    found = [set(structure.inputs[np.array(reaches[block])]) for block in (TREATMENT, OUTCOME)]
    assert found == [{2, 7}, {2, 4}]


@pytest.fixture(scope="module")
def net() -> TrainedNetwork:
    """A network of three levels with known, random weights; the second level lacks x1."""
    spec = causal_network(3, (4, 3, 2), 2, outcome="gaussian", levels=3)
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
        selects_treatment=np.ones(3, bool),
        selects_outcome=np.ones(3, bool),
    )


def plain_predictors(net, x, treatment, shift):
    """All linear predictors in plain float64, the first layer's shifted."""
    values = x
    predictors = []
    for i, (w, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        z = values @ w.astype(float) + b.astype(float) + (shift if i == 0 else 0)
        predictors.append(z)
        values = np.tanh(z)
        if i == net.spec.treatment_layer:
            values[:, -2:] = treatment
    return predictors


def test_means_are_softmax_and_clamped_outcomes(net):
    x = np.random.default_rng(2).normal(size=(9, 3))
    scaling = column_scaling(x, 1e6)
    mu, probability = net.means(scaling.dataset(x, 0), np.arange(9), 1)
    z = scaling.dataset(x, 0).gather(np.arange(9), np.arange(3)).astype(float)
    eta = plain_predictors(net, z, np.zeros((9, 2)), 0)[1][:, -2:]
    expected = np.exp(eta) / (1 + np.exp(eta).sum(axis=1, keepdims=True))
    # float32 arithmetic on numbers of order one.
    np.testing.assert_allclose(probability, expected, rtol=2e-5)
    for level, dummies in enumerate([(0, 0), (1, 0), (0, 1)]):
        outcome = plain_predictors(net, z, dummies, 0)[-1][:, 0]
        np.testing.assert_allclose(mu[:, level], outcome, rtol=2e-5, atol=2e-6)


def test_slopes_are_derivatives_for_every_level(net):
    rows, step = np.arange(6), 1e-6
    data = column_scaling(x := np.random.default_rng(3).normal(size=(6, 3)), 1e6).dataset(x, 0)
    z = data.gather(rows, np.arange(3)).astype(float)
    treatment = np.eye(3)[[0, 1, 2, 0, 1, 2]][:, 1:]
    slopes = net.first_layer_slopes(data, rows, treatment)
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
    np.testing.assert_array_equal(net.selects_levels(), [[True, False], [True] * 2, [True] * 2])
    strengths = net.level_strengths()
    np.testing.assert_allclose(strengths.sum(axis=0), 1)
    assert strengths[0, 1] == 0 < strengths[0, 0]
    flow = abs(net.weights[0].astype(float)) @ abs(net.weights[1].astype(float))[:, -2:]
    np.testing.assert_allclose(net.path_strength(TREATMENT), flow.sum(axis=1) / flow.sum())
