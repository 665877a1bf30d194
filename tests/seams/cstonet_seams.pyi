"""Types of the seams; `make test-cpp` builds them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import (
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
)

Stream = tuple[int, int, int, int]  # seed, fold, start, network
Arrays = list[NDArray[np.float32]]

class SweepResult:
    @property
    def weight_gradients(self) -> list[NDArray[np.float32]]: ...
    @property
    def bias_gradients(self) -> list[NDArray[np.float32]]: ...
    @property
    def displacements(self) -> list[NDArray[np.float32]]: ...
    @property
    def outputs(self) -> list[NDArray[np.float32]]: ...
    @property
    def log_likelihood(self) -> NDArray[np.float64]: ...

def prior_gradient(
    w: NDArray[np.float32], inclusion: float, spike: float, slab: float
) -> NDArray[np.float32]: ...
def prior_threshold(inclusion: float, spike: float, slab: float) -> float: ...
def prior_log_density(w: float, inclusion: float, spike: float, slab: float) -> float: ...
def slab_probability(w: float, inclusion: float, spike: float, slab: float) -> float: ...
def residual(
    family: str, variance: float, y: NDArray[np.float32], eta: NDArray[np.float32]
) -> NDArray[np.float32]: ...
def log_density(
    family: str, variance: float, y: NDArray[np.float32], eta: NDArray[np.float32]
) -> NDArray[np.float64]: ...
def sweep(
    network: NetworkSpec,
    sampler_options: SamplerOptions,
    weights: Arrays,
    biases: Arrays,
    x: NDArray[np.float32],
    visible: NDArray[np.float32],
    row_weight: NDArray[np.float32],
    variances: Sequence[float],
    step: Sequence[float],
    stream: Stream,
    iteration: int,
    offset: NDArray[np.float32] | None,
) -> SweepResult: ...
def move_candidates(
    network: NetworkSpec,
    weights: Arrays,
    biases: Arrays,
    x: NDArray[np.float32],
    first: NDArray[np.int64],
    column: NDArray[np.int64],
    values: NDArray[np.float32],
    log_weight: NDArray[np.float32],
    visible: NDArray[np.float32],
    variances: Sequence[float],
    stream: Stream,
    steps: int,
) -> list[int]: ...
def update(
    network: NetworkSpec,
    optimizer_options: OptimizerOptions,
    weights: Arrays,
    biases: Arrays,
    weight_gradients: list[Arrays],
    bias_gradients: list[Arrays],
    batch_weight: float,
    rate: Sequence[float],
    layer_variance: Sequence[float],
    prior: tuple[float, float, float],
    prior_weight: float,
    penalize_bias: bool,
) -> tuple[Arrays, Arrays]: ...
def normals(stream: Stream, purpose: int, a: int, b: int, n: int) -> NDArray[np.float32]: ...
def random_bits(
    key: tuple[int, int], counter: tuple[int, int, int], n: int
) -> NDArray[np.uint32]: ...
def activation(
    kind: str, z: NDArray[np.float32], d: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
def multiply(
    a: NDArray[np.float32], b: NDArray[np.float32], transpose: bool
) -> NDArray[np.float32]: ...
def prune_and_trace(
    network: NetworkSpec, weights: Arrays, biases: Arrays, threshold: float
) -> tuple[Arrays, list[list[bool]]]: ...
def prune_biases(
    network: NetworkSpec, weights: Arrays, biases: Arrays, threshold: float
) -> Arrays: ...
def most_probable_paths(
    network: NetworkSpec,
    weights: Arrays,
    biases: Arrays,
    inclusion: float,
    spike: float,
    slab: float,
) -> list[list[float]]: ...
def bic(log_likelihood: float, nonzero: int, n: float) -> float: ...
def rates_at(stage: StageOptions, epoch: int) -> list[float]: ...
def steps_at(stage: StageOptions, epoch: int) -> list[float]: ...
def spike_at(prior: PriorOptions, stage: StageOptions, epoch: int) -> float: ...
def option_fields() -> dict[str, list[str]]: ...
def option_words() -> dict[str, list[str]]: ...
def read_options(options: TrainingOptions) -> None: ...
def kernel_seconds(name: str, rows: int, inputs: int, units: int, calls: int) -> float: ...
def peak_flops() -> float: ...
def copy_bandwidth(floats: int) -> float: ...
def levels() -> list[str]: ...
def level() -> str: ...
def use_level(name: str) -> None: ...
