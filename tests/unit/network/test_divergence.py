"""Networks that diverge: told, trained again with smaller steps, given up in the end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cstonet.network.divergence import SMALLER_STEPS, breakdown, with_smaller_steps
from cstonet.network.scaling import column_scaling
from cstonet.network.structure import Wiring
from cstonet.network.trained import OUTCOME
from cstonet.network.training import StartResult, train_starts
from cstonet.network.training_data import Deal, Split, TrainingData, Workplace
from cstonet.settings.training_plan import resolve_training

N, HELD_OUT = 200, 40
ROWS = np.arange(N)


@pytest.fixture
def data() -> TrainingData:
    rng = np.random.default_rng(5)
    x, treatment = rng.normal(size=(N, 3)), rng.integers(0, 2, N)
    y = x[:, 0] + treatment + rng.normal(size=N)
    return TrainingData(
        column_scaling(x, 1e6).dataset(x, 0),
        np.column_stack([treatment, (y - y.mean()) / y.std()]).astype(np.float32),
        np.ones(N, dtype=np.float32),
        ("gaussian",),
    )


@pytest.fixture
def train(data, small_network, quick_options):
    """Train starts with one rate for all layers, by momentum, which no rate is too large for."""
    labels = (np.arange(N) < HELD_OUT).astype(np.uint8)
    split = Split(0, 0, 1, Deal(labels, folds=2))
    options = resolve_training(
        quick_options(epochs=3).training, depth=2, rows=N, updates=30, weights=50
    )
    options = replace(options, optimizer=replace(options.optimizer, rule="momentum"))

    def run(rate: float, starts: range, *, part: float = 1.0, threads: int = 1):
        stages = (replace(options.stages[0], rate=(rate,) * 3),)
        return train_starts(
            Workplace(split, 7, 0, threads),
            Wiring.dense(small_network(3, (4, 4), 1)),
            with_smaller_steps(replace(options, stages=stages), part),
            data,
            starts,
        )

    return run


def bits(start: StartResult) -> bytes:
    return b"".join(w.tobytes() for w in (*start.result.weights, *start.result.biases))


@pytest.mark.parametrize(("rate", "attempts"), [(4.0, 1), (30.0, 2)])
def test_what_diverges_is_trained_again_with_smaller_steps(train, rate, attempts):
    (start,) = train(rate, range(1))
    (planned,) = train(rate, range(1), part=SMALLER_STEPS[attempts - 1])
    assert len(start.broke_down) == attempts
    assert not planned.broke_down
    assert bits(start) == bits(planned)
    assert start.failure == ""
    assert start.rescue.startswith(start.broke_down[0])
    assert start.rescue.endswith(("1/4 of the steps", "1/4 and 1/16 of the steps")[attempts - 1])
    assert start.result.variances[OUTCOME] < 10


def test_a_start_is_given_up_after_the_smallest_steps(train):
    (start,) = train(1e6, range(1))
    assert len(start.broke_down) == 1 + len(SMALLER_STEPS)
    assert start.rescue == ""
    assert start.failure.startswith("stage 1, epoch ")
    assert start.failure.endswith("; tried again with 1/4 and 1/16 of the steps")


def test_starts_end_as_each_would_alone_whatever_the_threads(train):
    alone = [train(10.0, range(k, k + 1))[0] for k in range(4)]
    assert {len(start.broke_down) for start in alone} == {1, 2}
    for threads in (1, 3):
        together = train(10.0, range(4), threads=threads)
        assert [s.broke_down for s in together] == [s.broke_down for s in alone]
        assert list(map(bits, together)) == list(map(bits, alone))


def test_what_does_not_diverge_is_trained_once(train):
    assert [start.broke_down for start in train(1e-2, range(3))] == [()] * 3
    assert [start.failure + start.rescue for start in train(1e-2, range(3))] == [""] * 3


def trained(**said) -> SimpleNamespace:
    usual = {
        "failure": "",
        "variances": np.array([1.0, 0.7]),
        "log_likelihood": np.array([-120.0, -240.0]),
        "rows": float(N),
        "bic": 900.0,
    }
    return SimpleNamespace(**(usual | said))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, ""),
        ({"failure": "stage 1"}, "stage 1"),
        ({"bic": np.inf}, "its likelihood is not a finite number"),
        ({"bic": np.nan}, "its likelihood is not a finite number"),
        ({"bic": np.nan, "log_likelihood": np.array([])}, ""),
        ({"variances": np.array([1.0, 99.0])}, ""),
        ({"variances": np.array([1.0, 3e6])}, "its errors are 3.0e+06 times those of a constant"),
        ({"variances": np.array([1.0, np.nan])}, "its errors are nan times those of a constant"),
        ({"log_likelihood": np.array([-99.0 * N, -1.0])}, ""),
        (
            {"log_likelihood": np.array([-1e5 * N, -1.0])},
            "its errors are 1.0e+05 times those of a constant",
        ),
    ],
    ids=str,
)
def test_networks_far_worse_than_a_constant_have_diverged(data, small_network, said, text):
    assert breakdown(trained(**said), small_network(3, (4, 4), 1), data, ROWS) == text


def test_errors_count_by_what_a_constant_leaves_in_the_same_rows(data, small_network):
    """Where a heavy tail has some of its largest values, everything has large errors."""
    spec, visible = small_network(3, (4, 4), 1), data.visible.copy()
    visible[:3, 1] = 200.0
    tail = replace(data, visible=visible)
    poor = trained(variances=np.array([1.0, 700.0]))
    assert np.var(visible[:HELD_OUT, 1]) > 7.0
    assert breakdown(poor, spec, tail, ROWS[:HELD_OUT]) == ""
    assert breakdown(poor, spec, tail, ROWS[HELD_OUT:]) != ""
