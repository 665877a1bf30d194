"""No function of the kernel reads beyond what it is given.

Every function of the extension and of the seams has a row here: a call that works. Each array and
list of it is then cut, lengthened, emptied and given another dimension, and numbers of rows and
covariates are put where nothing is. Whatever does not fit must be a ValueError that begins with the
name of an argument. `make sanitize` runs this table with the kernel under AddressSanitizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from types import ModuleType
from typing import Any

import cstonet_seams
import numpy as np
import pytest
from networks import latent, observed

from cstonet import _core
from cstonet.network.products import Explained, Kind, Products
from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import (
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
)

N, P, DRAWS = 20, 6, 3
SPEC = NetworkSpec(
    P,
    "tanh",
    ((latent(4),), (latent(2), observed("bernoulli", 1, feeds=True)), (observed("gaussian", 1),)),
)
RNG = np.random.default_rng(0)
STAGE = StageOptions(2, rate=(0.01,) * 3, step=(0.01,) * 2)
SAMPLER = SamplerOptions(variance=(0.01, 0.01))
OPTIONS = TrainingOptions(
    stages=(STAGE,), batch_size=8, epoch_rows=N, sampler=SAMPLER, prior=PriorOptions()
)
STREAM = (1, 2, 3, 4)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def forced(options: Any, **changes: Any) -> Any:
    """The options with values that they would refuse."""
    changed = copy(options)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed


X = RNG.normal(size=(N, P))
ROWS, INPUTS = np.arange(N), np.arange(P)
VISIBLE = np.column_stack([ROWS % 2, RNG.normal(size=N)]).astype(np.float32)
WEIGHTS = [floats(P, 4), floats(4, 3), floats(3, 1)]
BIASES = [floats(4), floats(3), floats(1)]
NET = {"network": SPEC, "weights": WEIGHTS, "biases": BIASES}
FIRST = np.concatenate([[0], np.cumsum(ROWS < 3)])  # the first three rows have a gap each
COLUMN = np.array([0, 2, 5])
DENSE = {"x": X, "center": np.zeros(P), "inverse_scale": np.ones(P), "limit": 5.0, "pack_bytes": 0}
SPARSE = {
    "values": np.ones(3), "row_index": np.array([0, 4, 7]), "first_entry": np.array([0, 1, 3]),
    "rows": N, "center": np.zeros(2), "inverse_scale": np.ones(2), "limit": 5.0,
}  # fmt: skip
DATA = _core.Dataset(**DENSE)
CANDIDATES = {
    "first": FIRST, "column": COLUMN, "columns": P, "values": floats(3, DRAWS),
    "log_weight": floats(3, DRAWS),
}  # fmt: skip
TASK = (0, 0, ROWS[:15], ROWS[15:])
TRAIN = {
    "network": SPEC, "options": OPTIONS, "data": DATA, "inputs": INPUTS, "visible": VISIBLE,
    "row_weight": np.ones(N, dtype=np.float32), "tasks": [TASK], "seed": 1, "threads": 1,
    "structure": [np.ones_like(w) for w in WEIGHTS], "offset": floats(N, 2),
    "candidates": _core.Candidates(**CANDIDATES),
}  # fmt: skip


@dataclass(frozen=True)
class SlopeNetwork:
    spec: NetworkSpec
    inputs: np.ndarray
    weights: list[np.ndarray]
    biases: list[np.ndarray]


PRODUCTS = Products(
    residuals=floats(N, 1),
    given=floats(N, 2),
    treatment=VISIBLE[:, :1].copy(),
    network=SlopeNetwork(SPEC, INPUTS, WEIGHTS, BIASES),
    table=np.array([[0, Kind.ONE, 0], [0, Kind.GIVEN, 1], [0, Kind.SLOPE, 2], [0, Kind.MEMBER, 1]]),
    scale=np.ones(4, dtype=np.float32),
)
SCORES = {
    "rows": ROWS, "products": PRODUCTS, "mean_squares": np.ones(P), "covariates": INPUTS[:4],
    "threads": 1, "explained": Explained(np.array([5]), floats(2, 4)),
}  # fmt: skip
SEAM_NET = (SPEC, WEIGHTS, BIASES)


@dataclass(frozen=True)
class Call:
    """A call that works.

    Attributes
    ----------
    function
        What is called.
    arguments
        By name. The seams take theirs by place, in this order.
    free
        Those that may be longer, shorter or empty.
    by_name
        Whether they are passed by name.
    more
        Further arguments that must be refused, each with the name in the message.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    free: frozenset[str] = frozenset()
    by_name: bool = True
    more: tuple[tuple[dict[str, Any], str], ...] = ()

    def __call__(self, **changes: Any) -> Any:
        arguments = self.arguments | changes
        return self.function(**arguments) if self.by_name else self.function(*arguments.values())


def seam(function: str, *, free: tuple[str, ...] = (), more: Any = (), **arguments: Any) -> Call:
    return Call(getattr(cstonet_seams, function), arguments, frozenset(free), False, tuple(more))


def kernel(function: Any, arguments: dict[str, Any], *free: str, more: Any = ()) -> Call:
    return Call(function, arguments, frozenset(free), True, tuple(more))


MIXTURE = {"inclusion": 0.1, "spike": 0.01, "slab": 1.0}
CALLS = {
    "_core.Dataset": kernel(_core.Dataset, DENSE),
    "_core.Dataset.compressed": kernel(
        _core.Dataset.compressed, SPARSE,
        more=[({"rows": -1}, "rows"), ({"rows": 4}, "row_index")],
    ),
    "_core.Dataset.gather": kernel(
        DATA.gather, {"rows": ROWS, "columns": INPUTS}, "rows", "columns"
    ),
    "_core.Dataset.square_sums": kernel(DATA.square_sums, {"rows": ROWS, "threads": 1}, "rows"),
    "_core.Dataset.score_sums": kernel(DATA.score_sums, SCORES),
    "_core.Dataset.score_statistics": kernel(DATA.score_statistics, SCORES),
    "_core.Dataset.trained_on": kernel(DATA.trained_on, {"inputs": INPUTS}, "inputs"),
    "_core.Gaps": kernel(_core.Gaps, {"first": FIRST, "column": COLUMN, "columns": P}),
    "_core.Candidates": kernel(_core.Candidates, CANDIDATES),
    "_core.completed": kernel(
        _core.completed,
        {"data": DATA, "gaps": _core.Gaps(FIRST, COLUMN, P), "values": floats(3)},
        more=[
            ({"gaps": _core.Gaps(FIRST[:-1], COLUMN, P)}, "gaps"),
            ({"gaps": _core.Gaps(FIRST, COLUMN + 5, P + 5)}, "gaps"),
        ],
    ),
    "_core.candidate_log_likelihood": kernel(
        _core.candidate_log_likelihood,
        NET | {
            "inputs": INPUTS, "data": DATA, "candidates": _core.Candidates(**CANDIDATES),
            "visible": VISIBLE, "variances": [1.0, 0.5], "threads": 1, "offset": floats(N, 2),
        },
        more=[
            (
                {"candidates": _core.Candidates(
                    **CANDIDATES | {"column": COLUMN + 5, "columns": P + 5}
                )},
                "candidates",
            ),
        ],
    ),
    "_core.product_moments": kernel(
        _core.product_moments, {"products": PRODUCTS, "data": DATA, "rows": ROWS, "threads": 1}
    ),
    "_core.product_values": kernel(
        _core.product_values, {"products": PRODUCTS, "data": DATA, "rows": ROWS, "threads": 1}
    ),
    "_core.train": kernel(
        _core.train, TRAIN,
        more=[
            ({"tasks": [(0, 0, ROWS)]}, "tasks"),
            ({"tasks": [(0, 0, ROWS[:0], ROWS)]}, "tasks"),
            ({"tasks": [(0, 0, ROWS + 1, ROWS)]}, "tasks"),
            ({"tasks": [(0, 0, ROWS, ROWS - 1)]}, "tasks"),
            ({"tasks": [(0, 0, ROWS[:, None], ROWS)]}, "tasks"),
            ({"options": forced(OPTIONS, batch_size=0)}, "options"),
            ({"options": forced(OPTIONS, epoch_rows=0)}, "options"),
            ({"options": replace(OPTIONS, sampler=SamplerOptions(variance=(1.0,)))}, "options"),
            ({"options": replace(OPTIONS, stages=(replace(STAGE, rate=(1.0,)),))}, "options"),
            ({"options": replace(OPTIONS, stages=(replace(STAGE, step=(1.0,)),))}, "options"),
        ],
    ),
    "_core.trace_columns": kernel(_core.trace_columns, {"network": SPEC}),
    "_core.predict": kernel(
        _core.predict,
        NET | {
            "inputs": INPUTS, "data": DATA, "rows": ROWS, "clamp": floats(2, 2), "threads": 1,
            "offset": floats(2, N, 2),
        },
    ),
    "_core.predict_received": kernel(
        _core.predict_received,
        NET | {
            "inputs": INPUTS, "data": DATA, "rows": ROWS, "received": floats(N, 2), "threads": 1,
            "offset": floats(N, 2),
        },
    ),
    "_core.levels": kernel(_core.levels, {}),
    "_core.level": kernel(_core.level, {}),
    "_core.use_level": Call(
        _core.use_level, {"name": _core.level()}, by_name=False,
        more=(({"name": "v9"}, "use_level"),),
    ),
    "seams.prior_gradient": seam("prior_gradient", w=floats(5), **MIXTURE, free=("w",)),
    "seams.prior_threshold": seam("prior_threshold", **MIXTURE),
    "seams.prior_log_density": seam("prior_log_density", w=0.5, **MIXTURE),
    "seams.slab_probability": seam("slab_probability", w=0.5, **MIXTURE),
    "seams.residual": seam(
        "residual", family="categorical", variance=1.0, y=floats(5, 3), eta=floats(5, 3)
    ),
    "seams.log_density": seam(
        "log_density", family="poisson", variance=1.0, y=floats(5, 1) ** 2, eta=floats(5, 1)
    ),
    "seams.sweep": seam(
        "sweep", network=SPEC, sampler_options=SAMPLER, weights=WEIGHTS, biases=BIASES,
        x=X.astype(np.float32), visible=VISIBLE, row_weight=floats(N) ** 2, variances=[1.0, 0.5],
        step=[0.01, 0.01], stream=STREAM, iteration=1, offset=floats(N, 2),
        more=[({"sampler_options": replace(SAMPLER, variance=(0.1,))}, "sampler_options")],
    ),
    "seams.move_candidates": seam(
        "move_candidates", network=SPEC, weights=WEIGHTS, biases=BIASES, x=X.astype(np.float32),
        first=FIRST, column=COLUMN, values=floats(3, DRAWS), log_weight=floats(3, DRAWS),
        visible=VISIBLE, variances=[1.0, 0.5], stream=STREAM, steps=4,
    ),
    "seams.update": seam(
        "update", network=SPEC, optimizer_options=OptimizerOptions(), weights=WEIGHTS,
        biases=BIASES, weight_gradients=[WEIGHTS, WEIGHTS], bias_gradients=[BIASES, BIASES],
        batch_weight=8.0, rate=[0.01] * 3, layer_variance=[1.0] * 3, prior=(0.1, 0.01, 1.0),
        prior_weight=0.1, penalize_bias=True,
    ),
    "seams.prune_and_trace": seam(
        "prune_and_trace", network=SPEC, weights=WEIGHTS, biases=BIASES, threshold=0.1
    ),
    "seams.prune_biases": seam(
        "prune_biases", network=SPEC, weights=WEIGHTS, biases=BIASES, threshold=0.1
    ),
    "seams.most_probable_paths": seam(
        "most_probable_paths", network=SPEC, weights=WEIGHTS, biases=BIASES, **MIXTURE
    ),
    "seams.normals": seam(
        "normals", stream=STREAM, purpose=1, a=0, b=0, n=21, more=[({"n": -1}, "n")]
    ),
    "seams.random_bits": seam(
        "random_bits", key=(1, 2), counter=(3, 4, 5), n=21, more=[({"n": -1}, "n")]
    ),
    "seams.activation": seam("activation", kind="tanh", z=floats(21), d=floats(21)),
    "seams.multiply": seam("multiply", a=floats(5, 3), b=floats(3, 4), transpose=False),
    "seams.bic": seam("bic", log_likelihood=-3.0, nonzero=4, n=20.0),
    "seams.rates_at": seam("rates_at", stage=STAGE, epoch=1),
    "seams.steps_at": seam("steps_at", stage=STAGE, epoch=1),
    "seams.spike_at": seam("spike_at", prior=PriorOptions(), stage=STAGE, epoch=1),
    "seams.option_fields": seam("option_fields"),
    "seams.option_words": seam("option_words"),
    "seams.read_options": seam("read_options", options=OPTIONS),
    "seams.kernel_seconds": seam(
        "kernel_seconds", name="adam", rows=3, inputs=2, units=5, calls=1,
        more=[({"rows": 0}, "rows"), ({"units": -1}, "rows"), ({"name": "none"}, "no kernel")],
    ),
    "seams.peak_flops": seam("peak_flops"),
    "seams.copy_bandwidth": seam("copy_bandwidth", floats=64, more=[({"floats": 0}, "floats")]),
    "seams.levels": seam("levels"),
    "seams.level": seam("level"),
    "seams.use_level": seam(
        "use_level", name=cstonet_seams.level(), more=[({"name": ""}, "use_level")]
    ),
}  # fmt: skip


def functions_of(module: ModuleType, prefix: str) -> Iterator[str]:
    """Names of all that can be called: functions, methods, and classes that can be made."""
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        if not isinstance(value, type):
            if callable(value):
                yield f"{prefix}.{name}"
        elif not issubclass(value, Exception):
            if "__init__" in vars(value):
                yield f"{prefix}.{name}"
            for method, attribute in vars(value).items():
                if not method.startswith("_") and not isinstance(attribute, property):
                    yield f"{prefix}.{name}.{method}"


def test_every_function_has_a_row() -> None:
    import _cstonet_seams  # the extension itself; its wrapper has names of its own

    expected = {*functions_of(_core, "_core"), *functions_of(_cstonet_seams, "seams")}
    made_elsewhere = {"_core.TaskResult", "seams.SweepResult"}
    assert set(CALLS) == expected - made_elsewhere


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_work(name: str) -> None:
    CALLS[name]()


def resized(value: np.ndarray | list[Any]) -> Iterator[tuple[str, Any]]:
    """The array or list in every other size; arrays also with a dimension more."""
    yield "shorter", value[:-1]
    if isinstance(value, list):
        yield "longer", [*value, value[-1]]
        yield "empty", []
        for k, item in enumerate(value):
            if isinstance(item, np.ndarray | list):
                for how, other in resized(item):
                    yield f"{how} entry {k}", [*value[:k], other, *value[k + 1 :]]
        return
    yield "longer", np.concatenate([value, value[-1:]])
    yield "empty", value[:0]
    yield "deeper", value[None]
    yield "a number", np.array(value.flat[0])
    for axis in range(1, value.ndim):
        yield f"less of axis {axis}", value.take(range(value.shape[axis] - 1), axis=axis)
        yield f"more of axis {axis}", np.concatenate([value, value.take([0], axis=axis)], axis=axis)
        yield f"none of axis {axis}", value.take([], axis=axis)


def misdirected(value: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Numbers of rows, covariates and so on, with one of them where nothing is."""
    for how, number in (("below", -2), ("beyond", 10**6), ("far beyond", 2**62)):
        for place in {0, value.size // 2, value.size - 1}:
            changed = value.copy()
            changed.reshape(-1)[place] = number
            yield f"{how} at {place}", changed


def changed_arrays(value: Any, name: str, free: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """What must be refused in place of an argument."""
    if isinstance(value, np.ndarray) or (isinstance(value, list) and name != "tasks"):
        for how, other in resized(value):
            if not (name in free and how in {"shorter", "longer", "empty"}):
                yield f"{name} {how}", other
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        for how, other in misdirected(value):
            yield f"{name} {how}", other
    if isinstance(value, Products | Explained | SlopeNetwork):
        for field in fields(value):
            for what, other in changed_arrays(getattr(value, field.name), field.name, free):
                yield what, replace(value, **{field.name: other})


def names_in(value: Any, name: str) -> Iterator[str]:
    yield name
    if is_dataclass(value) and not isinstance(value, TrainingOptions):
        for field in fields(value):
            yield from names_in(getattr(value, field.name), field.name)


def refusal(call: Call, changes: dict[str, Any]) -> str | None:
    """What is said of arguments that are refused; None: they are not."""
    try:
        call(**changes)
    except ValueError as error:
        return str(error)
    return None


# What makes sense in another size, too.
PRODUCTS_FITTING = ("residuals more of axis 1", "given more of axis 1", "treatment .* of axis 1")
FITTING = {
    "_core.Dataset": ("x (shorter|longer|empty)",),
    "_core.Dataset.score_sums": PRODUCTS_FITTING,
    "_core.Dataset.score_statistics": PRODUCTS_FITTING,
    "_core.Dataset.trained_on": ("inputs",),  # only those of other partitions look at it
    "_core.Gaps": ("first (shorter|longer)",),  # of as many rows
    "_core.Candidates": ("first (shorter|longer)",),
    "_core.predict_received": ("received (less|none) of axis 1",),
    "_core.product_moments": PRODUCTS_FITTING,
    "_core.product_values": PRODUCTS_FITTING,
    "seams.prior_gradient": ("w",),
    "seams.multiply": ("a (shorter|longer|empty)", "b .* of axis 1"),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_do_not_fit_are_refused_by_name(name: str) -> None:
    call = CALLS[name]
    names = {part for key, value in call.arguments.items() for part in names_in(value, key)}
    fitting = "|".join(FITTING.get(name, ("nothing",)))
    wrong = []
    for argument, value in call.arguments.items():
        for what, other in changed_arrays(value, argument, call.free):
            if re.match(fitting, what):
                continue
            said = refusal(call, {argument: other})
            if said is None or said.split()[0].rstrip(":,").split(".")[0] not in names:
                wrong.append(f"{what}: {said}")
    assert not wrong
    for changes, message in call.more:
        with pytest.raises(ValueError, match=f"^{message}"):
            call(**changes)


@pytest.mark.parametrize("threads", [-(2**70), -1, 0, 2**31, 2**70, np.int64(3)])
def test_any_number_of_threads_will_do(threads: Any) -> None:
    called = 0
    for call in CALLS.values():
        if "threads" not in call.arguments:
            continue
        expected, actual = call(), call(threads=threads)
        if isinstance(expected, np.ndarray):
            assert actual.tobytes() == expected.tobytes()
        else:
            assert actual[0].weights[0].tobytes() == expected[0].weights[0].tobytes()
        called += 1
    assert called >= 9


@pytest.mark.parametrize("threads", [1.5, "2", None])
def test_what_is_no_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(TypeError):
        CALLS["_core.train"](threads=threads)
