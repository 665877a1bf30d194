"""Rows with gaps while a network trains as the paper's presets do, with a fixed variance."""

from __future__ import annotations

from dataclasses import replace

import cstonet_seams
import numpy as np
import pytest
import twins
import twins_random
from twins_random import Purpose
from twins_training import Moving, Training

from cstonet import _core
from cstonet.datasets import simulation2
from cstonet.network.spec import causal_network
from cstonet.settings.plan import Problem, make_plan
from cstonet.settings.presets import preset

N, P, DRAWS, SEED = 150, 6, 10, 3
STREAM = (SEED, 0, 0, 0)
ROWS = np.arange(N)


class Gappy:
    """The paper's second simulation with a fifth of x1 and x4 missing, and candidates for them."""

    def __init__(self) -> None:
        sim = simulation2(n=N, p=P, seed=1)
        x = sim.data.drop(columns=["y", "treat"]).to_numpy()
        y = sim.data["y"].to_numpy()
        self.x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
        a = sim.data["treat"].to_numpy()
        self.visible = np.column_stack([a, (y - y.mean()) / y.std()]).astype(np.float32)
        rng = np.random.default_rng(2)
        missing = np.zeros((N, P), dtype=bool)
        missing[:, [0, 3]] = rng.random((N, 2)) < 0.2
        self.row, self.column = np.nonzero(missing)
        self.first = np.concatenate([[0], np.cumsum(missing.sum(axis=1))])
        self.values = rng.normal(size=(len(self.row), DRAWS)).astype(np.float32)
        self.log_weight = np.zeros((len(np.unique(self.row)), DRAWS), dtype=np.float32)

    def options(self, **changes):
        """Those of the preset, for few epochs of pretraining and of training; and its network."""
        options = preset("paper")
        problem = Problem(N, P, "bernoulli", "gaussian", visible_units=1)
        plan = make_plan(problem, options, preset="paper", seed=SEED)
        epochs = zip(plan.training.stages, (10, 30), strict=False)
        stages = tuple(replace(stage, epochs=e, prune=False) for stage, e in epochs)
        training = replace(plan.training, stages=stages, batch_size=50, **changes)
        return causal_network(plan.network), training

    def train(self, **changes) -> _core.TaskResult:
        network, training = self.options(**changes)
        candidates = _core.Candidates(self.first, self.column, P, self.values, self.log_weight)
        data = _core.Dataset(self.x, np.zeros(P), np.ones(P), np.inf, 0)
        weights, task = np.ones(N, dtype=np.float32), (0, 0, ROWS, ROWS[:0])
        return _core.train(
            network, training, data, np.arange(P), self.visible, weights, [task], SEED, 1,
            candidates=candidates,
        )[0]  # fmt: skip

    def twin(self, **changes) -> Training:
        network, training = self.options(**changes)

        def noise(iteration: int, sweep: int, layer: int, rows: int, units: int) -> np.ndarray:
            padded = -(-units // 16) * 16
            draws = cstonet_seams.normals(
                STREAM, Purpose.LATENT, iteration, sweep << 16 | layer, rows * padded
            )
            return draws.reshape(rows, padded)[:, :units].astype(float)

        twin = Training(
            network, training, self.x.astype(float), self.visible.astype(float), np.ones(N),
            twins_random.stream_key(*STREAM), ROWS, ROWS[:0], noise,
            moving=Moving(self.row, self.column, self.values.astype(float), self.log_weight),
        )  # fmt: skip
        twin.run()
        return twin


@pytest.fixture(scope="module")
def gappy() -> Gappy:
    return Gappy()


def test_rows_move_with_the_variance_that_the_data_show(gappy):
    result, twin = gappy.train(), gappy.twin()
    assert not result.failure
    # Were a single move another one, the network would have seen other rows since.
    steps = twin.iteration
    for actual, expected in zip(
        result.weights + result.biases, twin.theta.weights + twin.theta.biases, strict=True
    ):
        twins.assert_close(actual, expected, roundings=16 * steps, scale=1)
    twins.assert_close(
        result.log_likelihood / N, twin.log_likelihood / N, roundings=16 * steps, scale=1
    )
    # With the 1e-9 of training a row would only move uphill, and soon not at all.
    late = twin.moving.acceptance[steps // 2 :]
    assert 0.2 < np.mean(late) < 1
