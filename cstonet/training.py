"""From a design and a plan to trained networks: folds in parallel, each searched and trained."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import _core
from cstonet.design import Design
from cstonet.doses.reading import dose_strata
from cstonet.errors import NumericalError, OptionError
from cstonet.missing.imputation import (
    FoldImputer,
    GapData,
    ImputationModel,
    gap_data,
    observed_scaling,
)
from cstonet.networks import FittedNetworks, TrainedNetwork, level_dummies
from cstonet.plan import Plan
from cstonet.scaling import OutcomeScale, column_scaling
from cstonet.search import Move, StructureSearch
from cstonet.splits import Split, make_splits
from cstonet.structure import SearchScope
from cstonet.working import TrainingData, WorkingNetworks

Progress = Callable[[int, int], object]

# How long the calling thread waits between looks at signals, in seconds.
_POLL = 0.04
# Progress of a fold counts in these units; a search fills its part ever more slowly, because
# nobody knows how many refits it will take.
_SEARCH_UNITS, _TRAIN_UNITS = 50, 50


@dataclass(frozen=True, slots=True)
class FoldJob:
    """What is to be searched for and trained in a fold."""

    data: TrainingData
    plan: Plan
    scope: SearchScope
    gaps: GapData | None = None


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What came of it: every start, why some were given up, how it went."""

    networks: tuple[TrainedNetwork, ...]
    failures: tuple[str, ...]
    trace: pd.DataFrame
    moves: tuple[Move, ...]
    imputation: ImputationModel | None


class _Stopped(Exception):
    """Raised in a worker when the fit was interrupted elsewhere."""


class _Monitor:
    """Progress of the folds, and the sign for them to stop."""

    def __init__(self, folds: int) -> None:
        self.stop = threading.Event()
        self._done = [0] * folds

    def check(self) -> None:
        """Raise in a worker if the fit was interrupted."""
        if self.stop.is_set():
            raise _Stopped

    def advance(self, fold: int, units: int) -> None:
        """Set a fold's progress; it never goes back."""
        self.check()
        self._done[fold] = max(self._done[fold], units)

    @property
    def done(self) -> int:
        """Units done over all folds."""
        return sum(self._done)

    @property
    def total(self) -> int:
        """Units in all."""
        return len(self._done) * (_SEARCH_UNITS + _TRAIN_UNITS)


def thread_count(n_jobs: object) -> int:
    """Number of threads for ``n_jobs``: -1 is every core this process may use."""
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs.__index__() == 0:
        raise OptionError(
            f"n_jobs must be a whole number other than 0 (-1: every core); got {n_jobs!r}."
        )
    wanted = int(n_jobs.__index__())
    if wanted > 0:
        return wanted
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, cores + 1 + wanted)


def train_networks(
    design: Design,
    plan: Plan,
    *,
    threads: int,
    progress: Progress | None = None,
    scope: SearchScope | None = None,
) -> tuple[FittedNetworks, TrainingData]:
    """Train the networks of every fold and choose among their starts by BIC.

    ``scope`` says what the structure search may do, by default everything.

    Returns
    -------
    fitted, data
        The networks, and the data as the kernel reads them.
    """
    strata = design.treatment if design.dose is None else dose_strata(design.dose, design.weights)
    if design.family == "binomial":
        strata = strata * 2 + design.y.astype(np.int64)
    weights = np.ones(len(design.y)) if design.weights is None else design.weights
    splits = make_splits(
        strata,
        folds=plan.folds,
        repeats=plan.repeats,
        validation_fraction=plan.validation_fraction,
        seed=plan.seed,
        trainable=weights > 0,
    )
    x_scaling = column_scaling(design.X, plan.outlier_limit, design.weights)
    if design.gaps is not None:
        x_scaling = observed_scaling(x_scaling, design)
    y_scale = OutcomeScale.of(design.y, design.family, design.weights)
    dose_scale = None
    if design.dose is None:
        treatment = level_dummies(len(design.treatment_levels))[design.treatment]
    else:
        dose_scale = OutcomeScale.of(design.dose, "gaussian", design.weights)
        treatment = dose_scale.standardise(design.dose)
    data = TrainingData(
        covariates=x_scaling.dataset(design.X, plan.pack_bytes),
        visible=np.column_stack([treatment, y_scale.standardise(design.y)]).astype(np.float32),
        weights=weights.astype(np.float32),
        family=design.family,
    )
    gaps = gap_data(design, plan, x_scaling)
    job = FoldJob(data, plan, SearchScope() if scope is None else scope, gaps)
    results = run_folds([job] * len(splits), splits, threads, progress)
    fitted = FittedNetworks(
        plan=plan,
        splits=splits,
        x_scaling=x_scaling,
        y_scale=y_scale,
        threads=threads,
        dose_scale=dose_scale,
        gaps=gaps,
        imputation=tuple(result.imputation for result in results if result.imputation),
        **collect(results, plan, design.covariates),
    )
    return fitted, data


def collect(results: list[FoldResult], plan: Plan, covariates: tuple[str, ...]) -> dict[str, Any]:
    """The fields of :class:`FittedNetworks` that the results of the folds fill."""
    return {
        "networks": tuple(net for result in results for net in result.networks),
        "chosen": tuple(_best_starts(result, plan.ensemble) for result in results),
        "failures": tuple(failure for result in results for failure in result.failures),
        "trace": pd.concat([result.trace for result in results], ignore_index=True),
        "search": _search_frame(covariates, results),
    }


def run_folds(
    jobs: Sequence[FoldJob],
    splits: tuple[Split, ...],
    threads: int,
    progress: Progress | None,
) -> list[FoldResult]:
    """Folds side by side, each on its share of the threads; Ctrl-C stops them all."""
    monitor = _Monitor(len(splits))
    workers = min(threads, len(splits))
    inner = max(1, threads // workers)
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(_run_fold, job, split, fold, inner, monitor)
            for fold, (job, split) in enumerate(zip(jobs, splits, strict=True))
        ]
        try:
            _await(futures, monitor, progress)
        except BaseException:
            monitor.stop.set()
            for future in futures:
                future.cancel()
            raise
    return [future.result() for future in futures]


def _await(futures: list[Future[FoldResult]], monitor: _Monitor, progress: Progress | None) -> None:
    while True:
        done, waiting = wait(futures, timeout=_POLL, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()  # raises what the fold raised
        if progress is not None:
            progress(monitor.done if waiting else monitor.total, monitor.total)
        if not waiting:
            return


def _run_fold(job: FoldJob, split: Split, fold: int, threads: int, monitor: _Monitor) -> FoldResult:
    """Search (if planned) and train the starts of one fold."""
    data, plan, imputer = job.data, job.plan, None
    if job.gaps is not None:
        imputer = FoldImputer(
            data,
            job.gaps,
            split,
            fold=fold,
            seed=plan.seed,
            threads=threads,
            stop=lambda _: monitor.check(),
        )
        data = imputer.data
    inputs, masks = np.arange(data.covariates.columns), None
    moves: tuple[Move, ...] = ()
    network, found = plan.network, None
    linear: tuple[int, ...] = ()
    if plan.search is not None and plan.search_network is not None:
        looks = 0

        def searching(_: int) -> None:
            nonlocal looks
            looks += 1
            monitor.advance(fold, int(_SEARCH_UNITS * (1 - 100 / (100 + looks))))

        working = WorkingNetworks(
            data,
            split,
            plan.search_network,
            plan.search,
            treatment_units=plan.search_treatment_units,
            fold=fold,
            seed=plan.seed,
            threads=threads,
            stop=searching,
            imputer=imputer,
        )
        search = StructureSearch(working, plan.search, screen=plan.screen, scope=job.scope)
        found = search.run()
        if imputer is not None:
            data = imputer.data
        structure = found
        if plan.unites_supports:
            structure = job.scope.united(found)
        elif plan.adjusts_linearly:
            structure = found.weighing(search.doubtful(found))
            linear = found.of_treatment_alone
        moves, inputs = tuple(search.moves), structure.inputs
        network = plan.network.with_inputs(len(inputs))
        masks = structure.masks(network, plan.treatment_units)
    tasks = [(fold, start, split.fit, split.validation) for start in range(plan.starts)]
    epochs = len(tasks) * sum(int(stage.epochs) for stage in plan.training.stages)
    results = _core.train(
        network,
        plan.training,
        data.covariates,
        inputs,
        data.visible,
        data.weights,
        tasks,
        plan.seed,
        threads,
        lambda done: monitor.advance(fold, _SEARCH_UNITS + _TRAIN_UNITS * done // max(epochs, 1)),
        masks,
        None if imputer is None else imputer.candidates(inputs),
    )
    networks = tuple(
        TrainedNetwork.from_task(fold, start, network, result, found, linear)
        for start, result in enumerate(results)
        if not result.failure
    )
    if imputer is not None and networks:
        imputer.update(networks, last=True)
    return FoldResult(
        networks=networks,
        failures=tuple(
            f"fold {fold + 1}, start {start + 1}: {result.failure}"
            for start, result in enumerate(results)
            if result.failure
        ),
        trace=_trace_frame(plan, fold, results),
        moves=moves,
        imputation=None if imputer is None else imputer.model,
    )


def _best_starts(result: FoldResult, ensemble: int) -> tuple[TrainedNetwork, ...]:
    if not result.networks:
        raise NumericalError(
            f"Every start of a fold diverged ({result.failures[0]}). The learning rates do not "
            'suit these data: use preset="calibrated", or smaller rates in '
            "FitOptions.training.stages."
        )
    ranked = sorted(result.networks, key=lambda net: (net.bic, net.start))
    return tuple(ranked[:ensemble])


def _trace_frame(plan: Plan, fold: int, results: list[_core.TaskResult]) -> pd.DataFrame:
    columns = _core.trace_columns(plan.network)
    # A start that broke down in its first epoch has no rows, and then no columns either.
    traces = [result.trace.reshape(-1, len(columns)) for result in results]
    rows = [np.column_stack([np.full(len(t), start), t]) for start, t in enumerate(traces)]
    trace = pd.DataFrame(np.concatenate(rows), columns=["start", *columns])
    if not plan.network.continuous:
        trace = trace.drop(columns="treatment_variance")
    trace.insert(0, "fold", fold)
    whole = ["start", "stage", "epoch", "nonzero"]
    trace[whole] = trace[whole].astype(np.int64)
    return trace


def _search_frame(covariates: tuple[str, ...], results: list[FoldResult]) -> pd.DataFrame:
    columns = [field.name for field in dataclasses.fields(Move)]
    moves = [dataclasses.asdict(move) for result in results for move in result.moves]
    frame = pd.DataFrame(moves, columns=columns)
    frame["covariate"] = [covariates[move["covariate"]] for move in moves]
    return frame


def fold_numbers(
    splits: tuple[Split, ...], folds: int, rows: int, repetition: int = 0
) -> NDArray[np.int64]:
    """Fold of every row in a repetition of the cross-fitting, shape (n,)."""
    fold = np.zeros(rows, dtype=np.int64)
    for number, split in enumerate(splits[repetition * folds : (repetition + 1) * folds]):
        fold[split.test] = number
    return fold
