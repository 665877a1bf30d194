"""Whole training runs: against NumPy, and the same answer however the work is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cstonet_seams
import numpy as np
import pytest
import twins
import twins_random
from networks import latent, observed
from twins_network import Chain
from twins_random import Purpose
from twins_training import Training, initial_parameters

from cstonet import _core
from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import (
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
)

N, P, SEED = 60, 8, 42
SPEC = NetworkSpec(
    P,
    "tanh",
    ((latent(4),), (latent(2), observed("bernoulli", 1, feeds=True)), (observed("gaussian", 1),)),
)
ROWS = np.arange(N)
TASKS = [(f, s, ROWS[f != ROWS % 3], ROWS[f == ROWS % 3]) for f in range(2) for s in range(2)]

RATE, STEP = (0.02, 0.02, 0.02), (0.05, 0.1)
ADAM = TrainingOptions(
    stages=(
        StageOptions(3, prior="slab", rate=RATE, step=STEP),
        StageOptions(6, prior="mixture", prune=True, rate=RATE, step=STEP),
        StageOptions(3, rate=RATE, step=STEP, rate_decay="cosine"),
    ),
    batch_size=16,
    epoch_rows=N,
    sampler=SamplerOptions(sweeps=1, friction=1.0, temperature=0.0, variance=(0.0025, 0.01)),
    prior=PriorOptions(inclusion=0.1, spike_start=0.01, spike_end=1e-3),
)
# As the paper's presets: the prior throughout, on biases too; noise, momentum, clipping, fixed
# variance; pruned twice.
MOMENTUM = TrainingOptions(
    stages=(
        StageOptions(2, prior="mixture", rate=RATE, step=STEP),
        *(
            StageOptions(
                2,
                prior="mixture",
                prune=True,
                rate=RATE,
                step=STEP,
                rate_decay="polynomial",
                step_decay="polynomial",
                step_exponent=0.5,
            )
            for _ in range(2)
        ),
        StageOptions(2, prior="mixture", rate=RATE, step=STEP),
    ),
    batch_size=16,
    epoch_rows=N,
    initializer="uniform",
    estimate_variance=False,
    initial_variance=0.5,
    sampler=SamplerOptions(
        sweeps=2, friction=0.3, temperature=1.0, coupled=False, variance=(0.05, 0.2)
    ),
    prior=PriorOptions(
        inclusion=0.1, spike_start=1e-3, spike_end=1e-3, anneal_share=0, penalize_bias=True
    ),
    optimizer=OptimizerOptions(rule="momentum", momentum=0.8, clip_norm=0.05),
)
ROUNDINGS_PER_STEP = 16
COUPLED = replace(ADAM, sampler=replace(ADAM.sampler, sweeps=2, temperature=1.0, coupled=True))
PARTS = replace(COUPLED, epoch_rows=25)  # of 40 rows, 20 an epoch
RECIPES = {"adam": ADAM, "momentum": MOMENTUM, "coupled": COUPLED, "parts": PARTS}


class Data:
    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.normal(loc=3, scale=2, size=(N, P))
        self.center, self.inverse_scale = self.x.mean(axis=0), 1 / self.x.std(axis=0)
        z = (self.x - self.center) * self.inverse_scale
        a = rng.random(N) < 1 / (1 + np.exp(-2 * z[:, 0]))
        y = z[:, 1] + a + 0.1 * rng.normal(size=N)
        self.visible = np.column_stack([a, (y - y.mean()) / y.std()]).astype(np.float32)
        self.row_weight = rng.uniform(0.5, 1.5, size=N).astype(np.float32)
        self.standard = z.astype(np.float32)

    def dataset(self, x: np.ndarray | None = None, pack_bytes: int = 2**30) -> _core.Dataset:
        x = self.x if x is None else x
        return _core.Dataset(x, self.center, self.inverse_scale, np.inf, pack_bytes)

    def train(self, options: TrainingOptions, **changes: Any) -> list[_core.TaskResult]:
        arguments: dict[str, Any] = {
            "network": SPEC, "options": options, "data": self.dataset(), "inputs": np.arange(P),
            "visible": self.visible, "row_weight": self.row_weight, "tasks": TASKS, "seed": SEED,
            "threads": 1,
        }  # fmt: skip
        return _core.train(**(arguments | changes))

    def twin(self, options: TrainingOptions, task: Any, **changes: Any) -> Training:
        fold, start, fit, validation = task
        stream = (SEED, fold, start, changes.pop("network_id", 0))

        def noise(iteration: int, sweep: int, layer: int, rows: int, units: int) -> np.ndarray:
            padded = -(-units // 16) * 16
            draws = cstonet_seams.normals(
                stream, Purpose.LATENT, iteration, sweep << 16 | layer, rows * padded
            )
            return draws.reshape(rows, padded)[:, :units].astype(float)

        spec, visible = changes.pop("network", SPEC), changes.pop("visible", self.visible)
        twin = Training(
            spec, options, self.standard.astype(float), visible.astype(float),
            self.row_weight.astype(float), twins_random.stream_key(*stream), fit,
            validation, noise, **changes,
        )  # fmt: skip
        twin.run()
        return twin


@pytest.fixture(scope="module")
def data() -> Data:
    return Data()


def on_all_inputs(result: _core.TaskResult, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The first layer with zeros where covariates were dropped."""
    first = np.zeros((P, arrays[0].shape[1]), dtype=np.float32)
    first[result.inputs] = arrays[0]
    return [first, *arrays[1:]]


def assert_same_parameters(a: _core.TaskResult, b: _core.TaskResult) -> None:
    for one, other in zip(a.weights + a.biases, b.weights + b.biases, strict=True):
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def assert_same_bits(a: _core.TaskResult, b: _core.TaskResult) -> None:
    assert_same_parameters(a, b)
    assert a.trace.tobytes() == b.trace.tobytes()
    assert a.log_likelihood.tobytes() == b.log_likelihood.tobytes()
    assert a.bic == b.bic
    assert a.reaches == b.reaches


@pytest.mark.parametrize("network_id", [0, 1])
@pytest.mark.parametrize("initializer", ["normal", "uniform"])
def test_initial_parameters_match_their_twin(data: Data, initializer: str, network_id: int) -> None:
    idle = StageOptions(0, rate=RATE, step=STEP)
    options = replace(ADAM, stages=(idle,), initializer=initializer, initial_bias=0.7)
    for task, result in zip(TASKS, data.train(options, network_id=network_id), strict=True):
        key = twins_random.stream_key(SEED, *task[:2], network_id)
        weights, biases = initial_parameters(SPEC, options, key)
        for actual, expected in zip(result.weights + result.biases, weights + biases, strict=True):
            twins.assert_close(actual, expected, roundings=12, scale=6)


def some_offset(scale: float = 0.5) -> np.ndarray:
    return (scale * np.random.default_rng(4).normal(size=(N, 2))).astype(np.float32)


@pytest.mark.parametrize("offset", [None, some_offset()], ids=["", "offset"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_training_matches_its_twin(data: Data, recipe: str, offset: np.ndarray | None) -> None:
    options = RECIPES[recipe]
    results = data.train(options, offset=offset)
    for task, result in zip(TASKS, results, strict=True):
        twin = data.twin(options, task, offset=offset)
        assert not result.failure
        steps = twin.iteration
        # Pruning must have done something, or masks and dropped covariates go untested.
        assert 0 < result.nonzero < sum(w.size for w in twin.theta.weights)
        assert result.nonzero == twin.nonzero
        for actual, mask in zip(on_all_inputs(result, result.masks), twin.masks, strict=True):
            assert np.array_equal(actual, mask)
        # An update rounds θ (of size 1) once, and moves it by about 0.02 with a gradient good to
        # the 64 roundings of test_sweep.py: two or three roundings of size 1 per step, and
        # what earlier steps did wrong may grow a few times on its way to the end.
        tolerance = {"roundings": ROUNDINGS_PER_STEP * steps, "scale": 1}
        for actual, expected in zip(
            on_all_inputs(result, result.weights) + result.biases,
            twin.theta.weights + twin.theta.biases,
            strict=True,
        ):
            twins.assert_close(actual, expected, **tolerance)
        trace = np.array(twin.trace)
        twins.assert_close(
            result.trace, trace, roundings=ROUNDINGS_PER_STEP * steps, scale=1 + np.abs(trace)
        )
        twins.assert_close(result.variances, twin.variances, **tolerance)
        n = result.rows
        twins.assert_close(result.log_likelihood / n, twin.log_likelihood / n, **tolerance)
        twins.assert_close(result.bic / n, twin.bic / n, **tolerance)
        # Biases are pruned where the prior acts on them, and stay exact zeros.
        for bias, mask in zip(result.biases, twin.bias_masks, strict=True):
            assert np.array_equal(bias != 0, mask != 0)


def test_training_goes_on_from_another_network(data: Data) -> None:
    options = replace(COUPLED, stages=(StageOptions(4, prior="slab", rate=RATE, step=STEP),))
    # Covariates 4 and 5 are dropped, 6 and 7 come in, and 0 loses its weight to one unit.
    after = [0, 1, 2, 3, 6, 7]
    masks = [np.ones((P, 4), np.float32), np.ones((4, 3), np.float32), np.ones((3, 1), np.float32)]
    old, new = masks[0].copy(), masks[0].copy()
    old[[6, 7]], new[[4, 5]], new[0, 1] = 0, 0, 0
    fit, validation = TASKS[0][2:]
    first, then = (0, 0, fit, validation), (0, 1, fit, validation)
    (previous,) = data.train(
        options,
        tasks=[first],
        structure=[old, *masks[1:]],
        trace=False,
    )
    (result,) = data.train(
        options,
        tasks=[then],
        network=SPEC.with_inputs(6),
        inputs=np.array(after),
        structure=[new[after], *masks[1:]],
        previous=previous,
        carried=np.array(after),
    )
    former = data.twin(options, first, structure=[old, *masks[1:]])
    twin = data.twin(options, then, structure=[new, *masks[1:]], previous=former)
    assert twin.theta.steps == 2 * twin.iteration
    tolerance = {"roundings": ROUNDINGS_PER_STEP * twin.theta.steps, "scale": 1}
    for actual, expected in zip(
        on_all_inputs(result, result.weights) + result.biases,
        twin.theta.weights + twin.theta.biases,
        strict=True,
    ):
        twins.assert_close(actual, expected, **tolerance)
    twins.assert_close(result.variances, twin.variances, **tolerance)


def test_a_dose_and_an_outcome_have_variances_of_their_own(data: Data) -> None:
    rng = np.random.default_rng(1)
    dose = (0.8 * data.standard[:, 0] + 0.6 * rng.normal(size=N)).astype(np.float32)
    changed = {
        "network": NetworkSpec(
            P,
            "tanh",
            (
                (latent(4),),
                (latent(2), observed("gaussian", 1, feeds=True)),
                (observed("gaussian", 1),),
            ),
        ),
        "visible": np.column_stack([dose, data.visible[:, 1]]),
    }
    (result,) = data.train(ADAM, tasks=TASKS[:1], **changed)
    twin = data.twin(ADAM, TASKS[0], **changed)
    tolerance = {"roundings": ROUNDINGS_PER_STEP * twin.iteration, "scale": 1}
    for actual, expected in zip(
        on_all_inputs(result, result.weights), twin.theta.weights, strict=True
    ):
        twins.assert_close(actual, expected, **tolerance)
    twins.assert_close(result.variances, twin.variances, **tolerance)
    assert result.variances[0] != result.variances[1]
    assert (np.array(result.variances) != ADAM.initial_variance).all()


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_a_tempered_outcome_matches_its_twin(data: Data, temperature: float) -> None:
    outcome = observed("bernoulli", 1, weight=1 / temperature)
    changed = {
        "network": NetworkSpec(P, "tanh", (*SPEC.layers[:2], (outcome,))),
        "visible": np.column_stack([data.visible[:, 0], data.visible[:, 1] > 0]).astype(np.float32),
    }
    (result,) = data.train(MOMENTUM, tasks=TASKS[:1], **changed)
    twin = data.twin(MOMENTUM, TASKS[0], **changed)
    tolerance = {"roundings": ROUNDINGS_PER_STEP * twin.iteration, "scale": 1 / temperature}
    for actual, expected in zip(
        on_all_inputs(result, result.weights) + result.biases,
        twin.theta.weights + twin.theta.biases,
        strict=True,
    ):
        twins.assert_close(actual, expected, **tolerance)
    # What is reported of it is at temperature one.
    n = result.rows
    twins.assert_close(result.log_likelihood / n, twin.log_likelihood / n, **tolerance)
    twins.assert_close(result.bic / n, twin.bic / n, **tolerance)


def test_training_without_held_out_rows_matches_its_twin(data: Data) -> None:
    task = (0, 0, ROWS, ROWS[:0])
    (result,) = data.train(ADAM, tasks=[task])
    twin = data.twin(ADAM, task)
    for actual, expected in zip(
        on_all_inputs(result, result.weights), twin.theta.weights, strict=True
    ):
        twins.assert_close(actual, expected, roundings=ROUNDINGS_PER_STEP * twin.iteration, scale=1)
    assert np.all(np.isnan(result.trace[:, [-4, -2]]))
    twins.assert_close(
        result.variances, twin.variances, roundings=ROUNDINGS_PER_STEP * twin.iteration, scale=1
    )


def test_a_given_structure_is_kept(data: Data) -> None:
    rng = np.random.default_rng(3)
    shapes = [(P, 4), (4, 3), (3, 1)]
    structure = [(rng.random(s) < 0.6).astype(np.float32) for s in shapes]
    options = replace(ADAM, stages=ADAM.stages[:1])
    (result,) = data.train(options, tasks=TASKS[:1], structure=structure)
    twin = data.twin(options, TASKS[0], structure=structure)
    for actual, expected, allowed in zip(
        result.weights, twin.theta.weights, structure, strict=True
    ):
        assert np.all(actual[allowed == 0] == 0)
        twins.assert_close(actual, expected, roundings=ROUNDINGS_PER_STEP * twin.iteration, scale=1)


@pytest.mark.parametrize("recipe", RECIPES)
def test_offsets_of_zero_change_no_bit_and_others_do(data: Data, recipe: str) -> None:
    plain, zero, moved = (
        data.train(RECIPES[recipe], tasks=TASKS[:1], offset=offset)[0]
        for offset in (None, np.zeros((N, 2), dtype=np.float32), some_offset())
    )
    assert_same_bits(plain, zero)
    assert plain.bic != moved.bic


@pytest.mark.parametrize("recipe", RECIPES)
def test_threads_and_repetition_do_not_change_a_bit(data: Data, recipe: str) -> None:
    once, again, parallel, crowded = (data.train(RECIPES[recipe], threads=t) for t in (1, 1, 2, 7))
    for a, b, c, d in zip(once, again, parallel, crowded, strict=True):
        assert_same_bits(a, b)
        assert_same_bits(a, c)
        assert_same_bits(a, d)
    # Folds and starts do differ, so equality above says something.
    assert len({r.weights[2].tobytes() for r in once}) == len(TASKS)


def test_a_task_does_not_depend_on_its_company(data: Data) -> None:
    together = data.train(MOMENTUM)
    for task, result in zip(TASKS, together, strict=True):
        assert_same_bits(result, data.train(MOMENTUM, tasks=[task])[0])


def test_a_fit_without_its_trace_is_the_same_fit(data: Data) -> None:
    for kept, bare in zip(data.train(ADAM), data.train(ADAM, trace=False), strict=True):
        assert_same_parameters(kept, bare)
        assert kept.variances.tobytes() == bare.variances.tobytes()
        assert len(kept.trace) > 0
        assert len(bare.trace) == 0


def test_the_kind_of_array_does_not_change_a_bit(data: Data) -> None:
    x = data.x.astype(np.float32).astype(np.float64)
    expected = data.train(ADAM, data=data.dataset(x))
    for array in (np.asfortranarray(x), x.astype(np.float32), x[::-1][::-1]):
        for pack_bytes in (0, 2**30):
            results = data.train(ADAM, data=data.dataset(array, pack_bytes))
            for a, b in zip(expected, results, strict=True):
                assert_same_bits(a, b)


@pytest.mark.parametrize("order", ["permuted", "few"])
def test_a_network_may_start_from_some_covariates_in_any_order(data: Data, order: str) -> None:
    """The same as a network on a matrix that holds those columns only, in that order."""
    inputs = np.random.default_rng(1).permutation(P)[: P if order == "permuted" else 3]
    spec = SPEC.with_inputs(len(inputs))
    chosen = _core.Dataset(
        data.x[:, inputs], data.center[inputs], data.inverse_scale[inputs], np.inf, 0
    )
    direct = data.train(ADAM, network=spec, data=chosen, inputs=np.arange(len(inputs)))
    listed = data.train(ADAM, network=spec, inputs=inputs)
    for a, b in zip(direct, listed, strict=True):
        assert_same_bits(a, b)
        assert np.array_equal(inputs[a.inputs], b.inputs)


@pytest.mark.parametrize("threads", [1, 2])
def test_dropped_covariates_change_no_prediction(data: Data, threads: int) -> None:
    results = data.train(ADAM)
    assert any(result.masks[2][2, 0] == 1 for result in results)
    clamp = np.array([[0, 0], [1, 0]], dtype=np.float32)
    rest = (data.dataset(), ROWS, clamp, threads)
    for result in results:
        assert 0 < len(result.inputs) < P
        spec, weights = SPEC.with_inputs(len(result.inputs)), result.weights
        small = _core.predict(spec, weights, result.biases, result.inputs, *rest)
        weights = on_all_inputs(result, weights)
        full = _core.predict(SPEC, weights, result.biases, np.arange(P), *rest)
        assert np.array_equal(small, full)
        for setting, a in enumerate((0, 1)):
            visible = np.column_stack([np.full(N, a), np.zeros(N)])
            chain = Chain(SPEC, weights, result.biases, data.standard, visible)
            p = twins.mean("bernoulli", chain.predictor(1)[:, 2:])
            expected = np.hstack([p, chain.predictor(2)])
            twins.assert_close(full[setting], expected, roundings=64)
        # The outcome depends on the clamped treatment where its weight was kept, the propensity
        # never.
        assert np.array_equal(full[0, :, 0], full[1, :, 0])
        assert np.array_equal(full[0, :, 1], full[1, :, 1]) == (result.masks[2][2, 0] == 0)


def test_everything_may_be_pruned(data: Data) -> None:
    strict = replace(ADAM, prior=PriorOptions(inclusion=1e-6, slab_variance=1e4, spike_start=1e3,
                                              spike_end=1e3))  # fmt: skip
    (result,) = data.train(strict, tasks=TASKS[:1])
    assert result.nonzero == 0
    assert len(result.inputs) == 0
    assert np.isfinite(result.bic)
    prediction = _core.predict(
        SPEC.with_inputs(0), result.weights, result.biases, result.inputs, data.dataset(), ROWS,
        np.zeros((1, 2), dtype=np.float32), 1,
    )  # fmt: skip
    assert np.all(prediction == prediction[:, :1])


def test_a_start_that_diverges_says_where_and_spares_the_others(data: Data) -> None:
    wild = StageOptions(5, rate=(1e30,) * 3, step=STEP)
    options = replace(MOMENTUM, stages=(wild,), optimizer=OptimizerOptions(rule="momentum"))
    for result in data.train(options):
        assert result.failure.startswith("stage 1, epoch ")


class Stop(Exception):
    pass


LONG = replace(ADAM, stages=(StageOptions(1_000_000, rate=RATE, step=STEP),))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_of_the_progress_callback_ends_training(data: Data, threads: int) -> None:
    calls: list[int] = []

    def progress(epochs: int) -> None:
        calls.append(epochs)
        if len(calls) == 3:
            raise Stop

    with pytest.raises(Stop):
        data.train(LONG, threads=threads, progress=progress)
    assert len(calls) == 3
    assert calls == sorted(calls)
    assert 0 < calls[-1] < 1_000_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": [(0, 0, np.array([N]), ROWS[:0])]}, "tasks: row 60 does not exist"),
        ({"tasks": [(0, 0, np.array([-1]), ROWS[:0])]}, "tasks: row -1 does not exist"),
        ({"tasks": [(0, 0, ROWS[:0], ROWS)]}, "no rows"),
        ({"network": SPEC.with_inputs(P + 1)}, "inputs needs an array of 9, not of 8"),
        ({"inputs": np.arange(1, P + 1)}, "inputs: covariate 8 does not exist"),
        ({"visible": np.zeros((N, 3), dtype=np.float32)}, "visible needs an array of 60 x 2"),
        ({"row_weight": np.ones(N - 1, dtype=np.float32)}, "row_weight needs an array of 60"),
        ({"offset": np.ones((N, 1), dtype=np.float32)}, "an array of 60 x 2, not of 60 x 1"),
        ({"offset": np.ones(N, dtype=np.float32)}, "an array of 60 x 2, not of 60"),
        (
            {"options": replace(ADAM, sampler=SamplerOptions(variance=(1.0,)))},
            "sampler.variance needs 2 entries, not 1",
        ),
        ({"options": replace(ADAM, stages=(StageOptions(1, rate=(1.0,), step=STEP),))}, "rate"),
        ({"structure": [np.ones((P, 4), dtype=np.float32)]}, "structure"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    data: Data, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        data.train(changes.pop("options", ADAM), **changes)
