"""One fold: its covariates searched for, its networks trained from every start."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import _core
from cstonet.crossfit.fold import Fold
from cstonet.crossfit.workforce import SEARCH_UNITS, TRAIN_UNITS, Monitor
from cstonet.errors import NumericalError
from cstonet.imputation.fold_imputer import FoldImputer
from cstonet.imputation.gap_data import GapData
from cstonet.network.backbone import Backbone, fit_backbone
from cstonet.network.divergence import divergence_advice
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Model, Structure, Wiring
from cstonet.network.trained import TrainedNetwork, TrainedStart
from cstonet.network.training import StartResult, train_starts
from cstonet.network.training_data import Split, TrainingData, Workplace
from cstonet.search.inclusion import Inclusion, pruned_inclusion
from cstonet.search.scope import Adjustment, SearchScope
from cstonet.search.screening import screen_rows
from cstonet.search.search import Move, StructureSearch
from cstonet.search.working import WorkingNetworks
from cstonet.settings.options import TrainingOptions
from cstonet.settings.plan import Plan


@dataclass(frozen=True, slots=True)
class FoldJob:
    """What is to be searched for and trained in a fold.

    Attributes
    ----------
    data
        Covariates, visible units and row weights.
    plan
        What will be done, in numbers.
    network, working
        The final networks, and those of the search; None without one.
    training
        How the final networks are trained.
    scope
        What the search may do.
    gaps
        What is missing in the covariates; None if nothing is.
    network_id
        Which of the fit's networks these are.
    """

    data: TrainingData
    plan: Plan
    network: NetworkSpec
    working: NetworkSpec | None
    training: TrainingOptions
    scope: SearchScope
    gaps: GapData | None = None
    network_id: int = 0

    def on(self, split: Split) -> FoldTask:
        """The job on the rows of a fold."""
        return FoldTask(self, split)


@dataclass(frozen=True, slots=True)
class FoldTask:
    """The job on the rows of a fold, as a task that any process can do."""

    job: FoldJob
    split: Split

    @property
    def shared(self) -> tuple[object, ...]:
        """What the folds of a fit have in common, where they have it."""
        data = self.job.data
        return data.covariates, data.visible, data.weights, self.job.gaps

    @property
    def key(self) -> str:
        """Network and fold."""
        return f"network-{self.job.network_id}-fold-{self.split.index + 1:03d}"

    def take_back(self, kept: Any) -> Fold:
        """The fold that was kept, on the rows that the folds of this fit share."""
        if not isinstance(kept, Fold) or kept.split.index != self.split.index:
            raise ValueError(f"it is not {self.key}")
        kept.check(self.job.data.covariates.columns)
        return dataclasses.replace(kept, split=self.split)

    def __call__(self, threads: int, monitor: Monitor) -> Fold:
        """Search and train; the monitor is told about it."""
        return _run_fold(self.job, self.split, threads, monitor, self.key)


def _run_fold(job: FoldJob, split: Split, threads: int, monitor: Monitor, key: str) -> Fold:
    """Search (if planned) and train the starts of one fold."""
    plan, place = job.plan, Workplace(split, job.plan.seed, job.network_id, threads, monitor.check)
    imputer = None if job.gaps is None else FoldImputer.fit(job.data, job.gaps, place)
    adjustment, wiring, moves, search = _wire(job, place, monitor, imputer)
    pool = None if imputer is None else imputer.draw(wiring.inputs)
    data = job.data if imputer is None else imputer.data
    candidates = None if pool is None else pool.candidates
    trained = _train_all(job, place, wiring, data, candidates, monitor, key)
    starts = tuple(start.network for start in trained if start.network is not None)
    where = f"fold {split.index + 1}"
    named: list[tuple[str, TrainedStart | StartResult]] = [
        (f"{where}, start {k}", start) for k, start in enumerate(trained, start=1)
    ]
    chosen = _best(starts, _texts((name, start.failure) for name, start in named), plan.ensemble)
    if imputer is not None and pool is not None:
        imputer.update(pool, starts, last=True)
    backbone, beside, learned = _backbone(job, place, adjustment, wiring)
    named += [(f"{where}, beside the linear parts", start) for start in learned]
    inclusion = _inclusion(
        job, adjustment.found, search, [trained[net.start] for net in chosen], len(wiring.inputs)
    )
    searching = () if search is None else search.rescues
    return Fold(
        split=split,
        adjustment=adjustment,
        networks=chosen,
        starts=starts,
        failures=_texts((name, start.failure) for name, start in named),
        trace=_trace_frame(job.network, split.index, trained),
        moves=moves,
        backbone=backbone,
        beside=beside,
        imputation=None if imputer is None else imputer.model,
        inclusion=inclusion,
        rescues=_texts(
            [(f"{where}, structure search", rescue) for rescue in searching]
            + [(name, start.rescue) for name, start in named]
        ),
    )


def _texts(named: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What there is to say of networks, by their names."""
    return tuple(f"{name}: {text}" for name, text in named if text)


def _train_all(
    job: FoldJob,
    place: Workplace,
    wiring: Wiring,
    data: TrainingData,
    candidates: _core.Candidates | None,
    monitor: Monitor,
    key: str,
) -> list[TrainedStart]:
    """Train the networks of a fold from every start: side by side where it has threads for that.

    Starts that were kept before an interruption are not trained again.
    """
    starts, fold = job.plan.starts, place.split.index
    epochs = sum(int(stage.epochs) for stage in job.training.stages)
    keys = [f"{key}-start-{k + 1}" for k in range(starts)]

    def train(numbers: Sequence[int]) -> dict[int, TrainedStart]:
        def advance(done: int) -> None:
            share = (epochs * numbers[0] + done) / max(epochs * starts, 1)
            monitor.advance(fold, SEARCH_UNITS + int(TRAIN_UNITS * share))

        began = time.perf_counter()
        results = train_starts(
            place, wiring, job.training, data, numbers, candidates=candidates, progress=advance
        )
        trained = {
            k: TrainedStart.of(fold, k, wiring, result)
            for k, result in zip(numbers, results, strict=True)
        }
        for k, start in trained.items():
            monitor.keep(keys[k], start, time.perf_counter() - began)
        return trained

    def take_back(kept: Any) -> TrainedStart:
        if not isinstance(kept, TrainedStart):
            raise TypeError("it is no start")
        if kept.network is not None:
            kept.network.check(data.covariates.columns)
        return kept

    done = {k: kept for k in range(starts) if (kept := monitor.recall(keys[k], take_back))}
    waiting = [k for k in range(starts) if k not in done]
    if place.threads > 1:
        done |= train(waiting) if waiting else {}
    else:
        for trained in monitor.spread([partial(train, [k]) for k in waiting]):
            done |= trained
    return [done[k] for k in range(starts)]


def _backbone(
    job: FoldJob, place: Workplace, adjustment: Adjustment, wiring: Wiring
) -> tuple[Backbone | None, tuple[TrainedNetwork, ...], tuple[StartResult, ...]]:
    """Linear parts, if planned, and a network that learns what they leave, unless it diverges.

    Also what came of its training.
    """
    if not job.plan.backbone or adjustment.used is None:
        return None, (), ()
    found = adjustment.used if adjustment.found is None else adjustment.found
    linear = fit_backbone(job.data, place, adjustment.used, found)
    start = job.plan.starts  # a number of its own
    (learned,) = train_starts(
        place, wiring, job.training, job.data, [start], trace=False, offset=linear.offset
    )
    if learned.failure:
        return linear.backbone, (), (learned,)
    network = TrainedNetwork.from_task(place.split.index, start, wiring, learned.result)
    return linear.backbone, (network,), (learned,)


def _wire(
    job: FoldJob, place: Workplace, monitor: Monitor, imputer: FoldImputer | None
) -> tuple[Adjustment, Wiring, tuple[Move, ...], StructureSearch | None]:
    """Find the covariates of a fold, decide how they are adjusted for, and wire the networks.

    Also what was done for it, and the search that may be asked more.
    """
    plan = job.plan
    data = job.data if imputer is None else imputer.data
    refitting = plan.refitting
    if plan.search is None or plan.search_network is None or job.working is None or not refitting:
        inputs, moves = _screen(data, place, plan.screen, job.scope.always)
        return Adjustment(), Wiring.dense(job.network, inputs), moves, None
    working = WorkingNetworks(
        data,
        dataclasses.replace(place, stop=monitor.searching(place.split.index)),
        job.working,
        plan.search.training,
        refitting,
        rows=plan.search.rows,
        treatment_units=plan.search_network.treatment_units,
        imputer=imputer,
    )
    search = StructureSearch(working, plan.search, screen=plan.screen, scope=job.scope)
    found = used = search.run()
    linear: tuple[int, ...] = ()
    if plan.unites_supports:
        used = job.scope.united(found)
    elif plan.adjusts_linearly:
        used = found.weighing(search.doubtful(found))
        linear = found.of_treatment_alone
    wiring = Wiring.sparse(job.network, used, plan.network.treatment_units)
    return Adjustment(found, used, linear), wiring, tuple(search.moves), search


def _inclusion(
    job: FoldJob,
    found: Structure | None,
    search: StructureSearch | None,
    results: list[TrainedStart],
    inputs: int,
) -> Inclusion | None:
    """What the search, or the pruning of the chosen networks, says about every covariate.

    Nothing where the search has a scope of its own, beside covariates that are kept, and nothing
    where covariates are imputed: scores of imputed values are too sure of themselves, and every
    refit would impute them anew.
    """
    if dataclasses.replace(job.scope, always=()) != SearchScope() or job.gaps is not None:
        return None
    if search is None or found is None:
        return pruned_inclusion(results, inputs)
    try:
        return search.inclusion(found)
    except NumericalError:  # of a network that only these need: the fit goes on without them
        return None


def _screen(
    data: TrainingData, place: Workplace, size: int | None, kept: tuple[int, ...]
) -> tuple[NDArray[np.int64] | None, tuple[Move, ...]]:
    """Covariates that enter the networks of a fold without a search, ascending; None: all.

    Those that are kept are among them, whatever their scores; others have the seats that are left.
    """
    if size is None or size >= data.covariates.columns:
        return None, ()
    screened = screen_rows(data, place, size)
    models: tuple[Model, ...] = ("outcome", "treatment")
    moves = tuple(
        Move(place.split.index, 0, "screen", model, c.covariate, c.score, c.threshold)
        for model in models
        for c in screened.chosen_for(model)
    )
    others = [j for j in screened.chosen.tolist() if j not in kept]
    return np.sort([*kept, *others][: max(size, len(kept))]), moves


def _best(
    starts: tuple[TrainedNetwork, ...], failures: tuple[str, ...], ensemble: int
) -> tuple[TrainedNetwork, ...]:
    """The starts of smallest BIC."""
    if not starts:
        raise NumericalError(
            f"Every start of a fold diverged ({failures[0]}). The training options do not suit "
            'these data: use preset="calibrated", or change them. '
            + divergence_advice(failures[0], "FitOptions.training")
        )
    return tuple(sorted(starts, key=lambda net: (net.bic, net.start))[:ensemble])


def _trace_frame(network: NetworkSpec, fold: int, results: list[TrainedStart]) -> pd.DataFrame:
    columns = _core.trace_columns(network)
    # A start that broke down in its first epoch has no rows, and then no columns either.
    traces = [result.trace.reshape(-1, len(columns)) for result in results]
    rows = [np.column_stack([np.full(len(t), start), t]) for start, t in enumerate(traces)]
    trace = pd.DataFrame(np.concatenate(rows), columns=["start", *columns])
    if not network.continuous:
        trace = trace.drop(columns="treatment_variance")
    trace.insert(0, "fold", fold)
    whole = ["start", "stage", "epoch", "nonzero"]
    trace[whole] = trace[whole].astype(np.int64)
    return trace
