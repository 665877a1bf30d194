"""Missing covariates in the kernel: completed rows, likelihoods of candidates, moves among them."""

from __future__ import annotations

from dataclasses import replace

import cstonet_seams
import numpy as np
import pytest
from networks import NETWORKS, STREAM, Case, make_case
from twins import assert_close
from twins_random import Purpose, stream_key, uniforms

from cstonet import _core
from cstonet.network.products import main_effects

DRAWS = 9


def row_log_likelihood(case: Case) -> np.ndarray:
    """Log-density of all visible units of each row under the noise-free network, (rows,)."""
    return case.twin(np.ones(case.hidden)).row_log_likelihood()


class Gappy:
    """A case in which some entries are missing, with candidates for them."""

    def __init__(self, name: str, seed: int = 0, *, offset: bool = False) -> None:
        self.case = make_case(name, seed=seed, offset=offset)
        rng = np.random.default_rng(seed + 1)
        missing = rng.random(self.case.x.shape) < 0.15
        missing[0], missing[1, :2] = False, True  # rows without and with several gaps
        self.row, self.column = np.nonzero(missing)
        counts = missing.sum(axis=1)
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.rows = np.flatnonzero(counts)
        self.values = rng.normal(size=(len(self.row), DRAWS)).astype(np.float32)
        self.log_weight = rng.normal(size=(len(self.rows), DRAWS)).astype(np.float32)
        self.candidates = _core.Candidates(
            self.first,
            self.column,
            self.case.spec.inputs,
            self.values,
            self.log_weight,
        )

    def completed(self, draw: np.ndarray) -> Case:
        """The case with each row at one of its candidates; `draw` has one per row with gaps."""
        x = self.case.x.copy()
        slot = np.searchsorted(self.rows, self.row)
        x[self.row, self.column] = self.values[np.arange(len(self.row)), draw[slot]]
        return replace(self.case, x=x)

    def log_likelihoods(self) -> np.ndarray:
        """At every candidate, (rows with gaps, draws)."""
        each = [
            row_log_likelihood(self.completed(np.full(len(self.rows), k)))[self.rows]
            for k in range(DRAWS)
        ]
        return np.column_stack(each)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_likelihoods_of_candidates(name, offset):
    gappy = Gappy(name, offset=offset)
    case, p = gappy.case, gappy.case.spec.inputs
    data = _core.Dataset(case.x, np.zeros(p), np.ones(p), 1e6, 2**20)
    kernel = _core.candidate_log_likelihood(
        case.spec,
        case.weights,
        case.biases,
        np.arange(p),
        data,
        gappy.candidates,
        case.visible,
        case.variances,
        2,
        case.offset,
    )
    # Sums over inputs and units of three layers, then a square over the variance.
    assert_close(kernel, gappy.log_likelihoods(), roundings=200)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("steps", [1, 7])
def test_moves_are_metropolis_hastings(name, steps):
    gappy = Gappy(name, seed=3)
    case = gappy.case
    kernel = cstonet_seams.move_candidates(
        case.spec,
        case.weights,
        case.biases,
        case.x,
        gappy.first,
        gappy.column,
        gappy.values,
        gappy.log_weight,
        case.visible,
        case.variances,
        STREAM,
        steps,
    )
    target = gappy.log_likelihoods() + gappy.log_weight
    current = np.zeros(len(gappy.rows), dtype=int)
    everyone = np.arange(len(current))
    for step in range(steps):
        u = uniforms(stream_key(*STREAM), (step, 0, Purpose.CANDIDATES), 2 * len(current))
        proposed = (u[0::2] * DRAWS).astype(int)
        gain = target[everyone, proposed] - target[everyone, current]
        # No uniform is closer to its threshold than rounding could decide.
        assert np.abs(np.log(u[1::2]) - gain)[proposed != current].min(initial=1) > 1e-4
        current = np.where(np.log(u[1::2]) < gain, proposed, current)
    np.testing.assert_array_equal(kernel, current)


@pytest.mark.parametrize("pack_bytes", [0, 2**20])
@pytest.mark.parametrize("order", ["C", "F"])
def test_completed_rows(pack_bytes, order):
    rng = np.random.default_rng(2)
    x = np.asarray(rng.normal(size=(30, 20)), order=order)
    missing = rng.random(x.shape) < 0.2
    row, column = np.nonzero(missing)
    first = np.concatenate([[0], np.cumsum(missing.sum(axis=1))])
    values = rng.normal(size=len(row)).astype(np.float32)
    center, scale = rng.normal(size=20), rng.uniform(0.5, 2, size=20)
    base = _core.Dataset(x, center, scale, 1e6, pack_bytes)
    data = _core.completed(base, _core.Gaps(first, column, 20), values)
    expected = ((x - center) * scale).astype(np.float32)
    expected[row, column] = values
    rows = rng.permutation(30)
    for columns in (np.arange(20), np.array([7, 3, 19])):
        np.testing.assert_array_equal(data.gather(rows, columns), expected[np.ix_(rows, columns)])
    # The scores read the completed covariates too.
    direction = rng.normal(size=(30, 1)).astype(np.float32)
    z = data.score_statistics(np.arange(30), main_effects(direction), None, None, 1)[0, :, 0]
    twin = (expected * direction).sum(0) / np.sqrt((expected**2 * direction**2).sum(0))
    assert_close(z, twin, roundings=100)
