"""What mediation asks of the networks: several outcomes, and searches with a scope."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet import _core
from cstonet.network.forward import ForwardPass
from cstonet.network.scaling import column_scaling
from cstonet.network.structure import Structure, Wiring
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.search.scope import Adjustment, SearchScope
from cstonet.settings.training_plan import resolve_training

ROWS = 600


@pytest.fixture(scope="module")
def trained(quick_options, small_network):
    """A network with a precise gaussian, a noisy gaussian and a binary outcome."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, 2))
    a = rng.binomial(1, 0.5, ROWS)
    clear = 0.9 * x[:, 0] + 0.3 * rng.normal(size=ROWS)
    vague = 0.4 * a + rng.normal(size=ROWS)
    binary = rng.random(ROWS) < expit(2 * x[:, 1])
    spec = small_network(2, (6, 4), 1).with_outcomes(("gaussian", "gaussian", "bernoulli"))
    options = quick_options("search", epochs=60).training
    training = resolve_training(options, depth=2, rows=500, updates=600, weights=100)
    data = column_scaling(x, 6.0).dataset(x, 0)
    visible = np.ascontiguousarray(np.column_stack([a, clear, vague, binary]), dtype=np.float32)
    result = _core.train(
        spec,
        training,
        data,
        np.arange(2),
        visible,
        np.ones(ROWS, np.float32),
        [(0, 0, np.arange(500), np.arange(500, ROWS))],
        1,
        1,
    )[0]
    assert not result.failure
    return TrainedNetwork.from_task(0, 0, Wiring.dense(spec), result), data, result


def test_shape_of_a_network_with_several_outcomes(small_network):
    one = small_network(5, (8, 6, 4), 2)
    three = one.with_outcomes(("gaussian", "bernoulli", "gaussian"))
    assert three.units == (16, 14, 12, 3)
    assert [block.family for block in three.layers[-1]] == ["gaussian", "bernoulli", "gaussian"]
    assert three.treatment_width == 1
    assert one.with_outcomes(("gaussian",)) == one
    tempered = one.with_outcomes(("gaussian", "bernoulli"), temperature=0.5)
    assert [block.weight for block in tempered.layers[-1]] == [1, 2]


def test_every_gaussian_outcome_has_its_own_variance(trained):
    _, _, result = trained
    _, clear, vague, _ = result.variances
    # From 100 held-out rows: the relative standard error of a variance is √(2/100) = 0.14, and
    # fitting adds some per cent.
    assert clear == pytest.approx(0.09, rel=4 * 0.14)
    assert vague == pytest.approx(1.0, rel=4 * 0.14)


def test_means_of_several_outcomes(trained, plain_predictors):
    net, data, _ = trained
    rows = np.arange(7)
    outcomes, probability = net.visible_means(data, rows, 1)
    assert outcomes.shape == (7, 2, 3)
    assert probability.shape == (7, 1)
    assert ((outcomes[:, :, 2] > 0) & (outcomes[:, :, 2] < 1)).all()
    x = data.gather(rows, net.inputs).astype(float)
    for level in (0, 1):
        predictor = plain_predictors(net, x, level)[-1]
        expected = np.column_stack([predictor[:, :2], expit(predictor[:, 2])])
        # float32 arithmetic on numbers of order one.
        np.testing.assert_allclose(outcomes[:, level], expected, rtol=2e-5, atol=2e-6)


def test_slopes_are_derivatives_for_every_outcome(trained, plain_predictors):
    net, data, _ = trained
    rows, step = np.arange(5), 1e-6
    treatment = np.array([[0.0], [1.0], [0.0], [1.0], [1.0]])
    x = data.gather(rows, net.inputs).astype(float)
    slopes = ForwardPass(net, data, rows).first_layer_slopes(treatment).outcome
    assert len(slopes) == 3
    units = net.weights[0].shape[1]
    for unit in range(units - 1):  # the last is the treatment's
        shift = step * np.eye(units)[unit]
        up, down = (plain_predictors(net, x, treatment, sign * shift)[-1] for sign in (1, -1))
        numeric = (up - down) / (2 * step)
        for outcome in range(3):
            # Central differences: rounding 1e-16 / step, curvature step².
            np.testing.assert_allclose(slopes[outcome][:, unit], numeric[:, outcome], atol=1e-8)


def test_a_covariate_of_any_outcome_is_selected(trained):
    net, _, result = trained
    assert Adjustment().selects(net, OUTCOME).tolist() == [True, True]
    assert len(result.reaches) == 4
    limited = Adjustment(found=Structure(treatment=(), outcome=(1,)))
    assert limited.selects(net, OUTCOME).tolist() == [False, True]
    assert not limited.selects(net, TREATMENT).any()


# Scope -------------------------------------------------------------------------------------------


def test_united_supports_respect_the_scope():
    found = Structure(treatment=(1,), outcome=(2, 7))
    assert SearchScope().united(found) == Structure((2, 7, 1), (2, 7, 1))
    barred = SearchScope(barred=(7,)).united(found)
    assert barred == Structure((2, 1), (2, 7, 1))
    alone = SearchScope(models=("outcome",), adjust=(4, 2)).united(Structure((), (2,)))
    assert alone == Structure((), (2, 4))


@pytest.fixture(scope="module")
def instrument(fit_quickly, quick_options):
    """m follows the treatment closely and the outcome not at all: tempting for the wrong model."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 4))
    treat = rng.binomial(1, expit(x[:, 0]))
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3", "x4"]).assign(
        treat=treat, m=2 * treat + rng.normal(size=300), y=treat + x[:, 1] + rng.normal(size=300)
    )
    return fit_quickly("y ~ treat | . | m", frame, options=quick_options(epochs=40, starts=1))


def test_mediators_never_explain_the_treatment(instrument):
    for fold in instrument.networks.outcome.folds:
        for net in fold.networks:
            # In these networks the treatment is the last unit of the first layer.
            assert net.spec.treatment_layer == 0
            mediator = list(net.inputs).index(4)
            assert net.masks[0][mediator, -1] == 0
            assert net.masks[0][mediator, :-1].any()


def test_held_mediators_are_never_dropped(instrument):
    search = instrument.networks.search
    assert not search.query("covariate == 'm' and move == 'prune'").shape[0]
    assert (instrument.mediators["outcome_frequency"] == 1).all()


def test_mediator_networks_do_not_model_the_treatment(instrument):
    for fold in instrument.networks.mediator.folds:
        for net in fold.networks:
            assert not fold.adjustment.selects(net, TREATMENT).any()


def test_joint_search_of_several_outcomes(quick_options):
    """Each mediator depends on another covariate; the shared support holds both."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 8))
    treat = rng.binomial(1, 0.5, 400)
    m = np.column_stack([x[:, 2], x[:, 5]]) + treat[:, None] + 0.7 * rng.normal(size=(400, 2))
    y = m.sum(axis=1) + rng.normal(size=400)
    options = quick_options("search", epochs=40, starts=1)
    model = cs.CausalStoNet(y, treat, x, mediators=m)
    res = model.fit(options=replace(options, folds=2), seed=1, n_jobs=1)
    assert set(res.selection.index[res.selection["mediator"]]) == {"x3", "x6"}
