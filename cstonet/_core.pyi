"""Types of the compiled kernel. Internal: arguments are checked by the Python layer."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.network.products import Explained, Products
from cstonet.network.spec import NetworkSpec
from cstonet.settings.options import TrainingOptions

class Diverged(RuntimeError): ...

class TaskResult:
    @property
    def weights(self) -> list[NDArray[np.float32]]: ...
    @property
    def masks(self) -> list[NDArray[np.float32]]: ...
    @property
    def biases(self) -> list[NDArray[np.float32]]: ...
    @property
    def inputs(self) -> NDArray[np.int64]: ...
    @property
    def variances(self) -> NDArray[np.float64]: ...
    @property
    def log_likelihood(self) -> NDArray[np.float64]: ...
    @property
    def bic(self) -> float: ...
    @property
    def rows(self) -> float: ...
    @property
    def nonzero(self) -> int: ...
    @property
    def reaches(self) -> list[list[bool]]: ...
    @property
    def slab_paths(self) -> list[NDArray[np.float64]]: ...
    @property
    def trace(self) -> NDArray[np.float64]: ...
    @property
    def failure(self) -> str: ...

class Dataset:
    def __init__(
        self,
        x: NDArray[np.floating],
        center: NDArray[np.float64],
        inverse_scale: NDArray[np.float64],
        limit: float,
        pack_bytes: int,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def is_packed(self) -> bool: ...
    def gather(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.float32]: ...
    @staticmethod
    def compressed(
        values: NDArray[np.floating],
        row_index: NDArray[np.integer],
        first_entry: NDArray[np.integer],
        rows: int,
        center: NDArray[np.float64],
        inverse_scale: NDArray[np.float64],
        limit: float,
    ) -> Dataset: ...
    def square_sums(
        self,
        rows: NDArray[np.int64],
        threads: int,
        progress: Callable[[int], object] | None = None,
    ) -> NDArray[np.float64]: ...
    def score_sums(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Callable[[int], object] | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float64]: ...
    def score_statistics(
        self,
        rows: NDArray[np.int64],
        products: Products,
        mean_squares: NDArray[np.float64] | None,
        covariates: NDArray[np.int64] | None,
        threads: int,
        progress: Callable[[int], object] | None = None,
        explained: Explained | None = None,
    ) -> NDArray[np.float32]: ...
    def trained_on(self, inputs: NDArray[np.int64]) -> Dataset: ...

class Gaps:
    def __init__(
        self, first: NDArray[np.int64], column: NDArray[np.int64], columns: int
    ) -> None: ...

class Candidates:
    def __init__(
        self,
        first: NDArray[np.int64],
        column: NDArray[np.int64],
        columns: int,
        values: NDArray[np.float32],
        log_weight: NDArray[np.float32],
    ) -> None: ...

def product_moments(
    products: Products, data: Dataset, rows: NDArray[np.int64], threads: int
) -> NDArray[np.float64]: ...
def product_values(
    products: Products, data: Dataset, rows: NDArray[np.int64], threads: int
) -> NDArray[np.float32]: ...
def completed(data: Dataset, gaps: Gaps, values: NDArray[np.float32]) -> Dataset: ...
def candidate_log_likelihood(
    network: NetworkSpec,
    weights: list[NDArray[np.float32]],
    biases: list[NDArray[np.float32]],
    inputs: NDArray[np.int64],
    data: Dataset,
    candidates: Candidates,
    visible: NDArray[np.float32],
    variances: Sequence[float],
    threads: int,
    offset: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]: ...
def train(
    network: NetworkSpec,
    options: TrainingOptions,
    data: Dataset,
    inputs: NDArray[np.int64],
    visible: NDArray[np.float32],
    row_weight: NDArray[np.float32],
    tasks: list[tuple[int, int, NDArray[np.int64], NDArray[np.int64]]],
    seed: int,
    threads: int,
    progress: Callable[[int], object] | None = None,
    structure: list[NDArray[np.float32]] | None = None,
    candidates: Candidates | None = None,
    previous: TaskResult | None = None,
    carried: NDArray[np.int64] = ...,
    trace: bool = True,
    network_id: int = 0,
    offset: NDArray[np.float32] | None = None,
) -> list[TaskResult]: ...
def trace_columns(network: NetworkSpec) -> list[str]: ...
def predict(
    network: NetworkSpec,
    weights: list[NDArray[np.float32]],
    biases: list[NDArray[np.float32]],
    inputs: NDArray[np.int64],
    data: Dataset,
    rows: NDArray[np.int64],
    clamp: NDArray[np.float32],
    threads: int,
    offset: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]: ...
def predict_received(
    network: NetworkSpec,
    weights: list[NDArray[np.float32]],
    biases: list[NDArray[np.float32]],
    inputs: NDArray[np.int64],
    data: Dataset,
    rows: NDArray[np.int64],
    received: NDArray[np.float32],
    threads: int,
    offset: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]: ...
def levels() -> list[str]: ...
def level() -> str: ...
def use_level(name: str) -> None: ...
