"""What is known of visible units from elsewhere, added to their predictors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network.scaling import column_scaling
from cstonet.network.structure import Wiring
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.network.training import train_starts
from cstonet.network.training_data import Deal, Split, TrainingData, Workplace
from cstonet.settings.training_plan import resolve_training

N, HELD_OUT = 200, 40
# Float32 arithmetic on numbers of order one, as elsewhere in these tests.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


class Setting:
    """A treatment and an outcome that follow their offsets, and more besides."""

    def __init__(self, small_network, quick_options, outcome="gaussian", levels=2) -> None:
        rng = np.random.default_rng(5)
        x = rng.normal(size=(N, 3))
        codes = rng.integers(0, levels, N)
        dummies = np.eye(levels)[codes][:, 1:]
        self.offset = np.column_stack([x[:, :1] + 0 * dummies, 1.5 * x[:, 1]]).astype(np.float32)
        eta = self.offset[:, -1] + 0.5 * np.sin(2 * x[:, 2]) + 0.3 * codes
        noise = rng.random(N)
        y = noise < expit(eta) if outcome == "bernoulli" else eta + noise - 0.5
        self.spec = small_network(3, (4, 4), 1, levels=levels, outcome=outcome)
        self.data = TrainingData(
            column_scaling(x, 1e6).dataset(x, 0),
            np.column_stack([dummies, y]).astype(np.float32),
            rng.uniform(0.5, 1.5, N).astype(np.float32),
            ("binomial" if outcome == "bernoulli" else "gaussian",),
        )
        labels = (np.arange(N) < HELD_OUT).astype(np.uint8)
        self.place = Workplace(Split(0, 0, 1, Deal(labels, folds=2)), 7, 0, 1)
        self.options = resolve_training(
            quick_options(epochs=3).training, depth=2, rows=N, updates=30, weights=50
        )

    def train(self, offset, data=None) -> TrainedNetwork:
        data, wiring = data or self.data, Wiring.dense(self.spec)
        (start,) = train_starts(self.place, wiring, self.options, data, [0], offset=offset)
        assert not start.broke_down
        return TrainedNetwork.from_task(0, 0, wiring, start.result)


@pytest.fixture(params=[("gaussian", 2), ("bernoulli", 2), ("bernoulli", 3)], ids=str)
def setting(request, small_network, quick_options) -> Setting:
    return Setting(small_network, quick_options, *request.param)


def log_odds(probability: np.ndarray) -> np.ndarray:
    """Of each of some levels against the one that is left out; the levels are the last axis."""
    return np.log(probability / (1 - probability.sum(axis=-1, keepdims=True)))


def logits(mu: np.ndarray) -> np.ndarray:
    return log_odds(mu[..., None])[..., 0]


def test_predictions_add_offsets_on_the_scale_of_the_predictor(setting) -> None:
    net, covariates, rows = setting.train(None), setting.data.covariates, np.arange(3, 30)
    own = net.spec.treatment_width
    rng = np.random.default_rng(0)
    offset = rng.normal(size=(own + 1, len(rows), own + 1)).astype(np.float32)
    offset[:, :, :own] = offset[:1, :, :own]  # the treatment's does not depend on its level
    plain, moved = (net.means(covariates, rows, 1, o) for o in (None, offset))
    link = (lambda mu: mu) if setting.spec.layers[-1][0].family == "gaussian" else logits
    np.testing.assert_allclose(link(moved[0]), link(plain[0]) + offset[:, :, -1].T, **CLOSE)
    np.testing.assert_allclose(log_odds(moved[1]), log_odds(plain[1]) + offset[0, :, :own], **CLOSE)
    outcomes, _ = net.visible_means(covariates, rows, 1, offset)
    np.testing.assert_array_equal(outcomes[:, :, 0], moved[0])
    for level in range(own + 1):
        received = np.tile(np.eye(own + 1)[level, 1:], (len(rows), 1)).astype(np.float32)
        means = net.means_received(covariates, rows, received, 1, offset[level])
        np.testing.assert_array_equal(means, np.column_stack([moved[1], moved[0][:, level]]))


def test_training_and_prediction_see_the_same_offsets(setting) -> None:
    # Any order in memory will do.
    net = setting.train(np.asfortranarray(setting.offset))
    data, rows = setting.data, np.arange(HELD_OUT, N)
    own, weights = net.spec.treatment_width, data.weights[rows]
    received, y = data.visible[rows, :own], data.visible[rows, -1].astype(float)
    for offset, agrees in ((setting.offset[rows], True), (None, False)):
        means = net.means_received(data.covariates, rows, received, 1, offset)
        p, mu = means[:, :own], means[:, -1]
        levels = np.column_stack([1 - p.sum(axis=1), p])
        observed = np.column_stack([1 - received.sum(axis=1), received])
        likelihood = {TREATMENT: weights @ np.log((levels * observed).sum(axis=1))}
        if setting.spec.layers[-1][0].family == "bernoulli":
            likelihood[OUTCOME] = weights @ np.log(np.where(y == 1, mu, 1 - mu))
        else:
            error = np.log(2 * np.pi * net.variance) + (y - mu) ** 2 / net.variance
            likelihood[OUTCOME] = -0.5 * weights @ error
        for block, expected in likelihood.items():
            # A relative error of 2e-5 in each of 160 terms of order one; without: another model.
            apart = abs(net.log_likelihood[block] - expected)
            assert (apart < 160 * 2e-5) if agrees else (apart > 1)


def test_an_offset_of_a_gaussian_outcome_is_taken_from_it(small_network, quick_options) -> None:
    setting = Setting(small_network, quick_options)
    offset = setting.offset * np.array([0, 1], dtype=np.float32)
    rest = TrainingData(
        setting.data.covariates,
        setting.data.visible - offset,
        setting.data.weights,
        setting.data.families,
    )
    rows = np.arange(N)
    known, left, plain = (
        net.means(setting.data.covariates, rows, 1)[0]
        for net in (setting.train(offset), setting.train(None, rest), setting.train(None))
    )
    # Some 30 updates, each good to some 16 roundings of numbers of order one (tests/numerical).
    np.testing.assert_allclose(known, left, atol=30 * 16 * 2.0**-24)
    assert np.abs(known - plain).max() > 0.1


def test_offsets_of_another_shape_are_refused(setting) -> None:
    net, rows = setting.train(None), np.arange(5)
    units = net.spec.treatment_width + 1
    flat = np.zeros((5, units), dtype=np.float32)
    with pytest.raises(ValueError, match=f"an array of {units} x 5 x {units}, not of 5 x {units}"):
        net.means(setting.data.covariates, rows, 1, flat)
    with pytest.raises(ValueError, match=f"an array of 5 x {units}, not of 4 x {units}"):
        net.means_received(setting.data.covariates, rows, flat[:, 1:], 1, flat[:4])
    with pytest.raises(ValueError, match=f"an array of {N} x {units}, not of 5 x {units}"):
        setting.train(flat)
