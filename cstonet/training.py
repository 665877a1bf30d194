"""From a design and a plan to trained networks, one per fold and start, and their predictions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import _core
from cstonet.design import Design
from cstonet.errors import NumericalError, OptionError
from cstonet.network import NetworkSpec
from cstonet.plan import Plan
from cstonet.scaling import OutcomeScale, Scaling, column_scaling
from cstonet.splits import Split, make_splits

# Position of the visible blocks in layer order: the treatment's layer precedes the outcome's.
TREATMENT, OUTCOME = 0, 1

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """One network: the parameters θ̂ of a (fold, start) and what training said about them.

    Attributes
    ----------
    spec
        Layers, on the connected covariates only.
    inputs : (q,)
        Indices of the connected covariates.
    weights, masks, biases
        Per layer: (inputs, units), (inputs, units), (units,).
    variance
        Estimated outcome variance in network units (1 for binary outcomes).
    log_likelihood : (2,)
        Of treatment and outcome, over the fold's training rows.
    bic
        The criterion among starts.
    selects_treatment, selects_outcome : (q,)
        Does a path of kept weights lead from the covariate to the unit?
    """

    fold: int
    start: int
    spec: NetworkSpec
    inputs: NDArray[np.int64]
    weights: tuple[NDArray[np.float32], ...]
    masks: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    variance: float
    log_likelihood: NDArray[np.float64]
    bic: float
    selects_treatment: NDArray[np.bool_]
    selects_outcome: NDArray[np.bool_]

    @property
    def nonzero(self) -> int:
        """Kept weights |γ̂|."""
        return int(sum(np.count_nonzero(m) for m in self.masks))

    def path_strength(self, block: int) -> NDArray[np.float64]:
        """Share of each connected covariate in the total weight of paths to a block, shape (q,).

        A path weighs the product of its absolute weights; the inputs are standardised, so paths
        of different covariates compare. Paths end at visible units.
        """
        flow = np.abs(self.weights[0]).astype(np.float64)
        for layer, above in zip(self.spec.layers[:-1], self.weights[1:], strict=True):
            if block == TREATMENT and any(b.visible for b in layer):
                break
            latent = sum(b.size for b in layer if not b.visible)
            flow = flow[:, :latent] @ np.abs(above[:latent])
        # The block is the layer's last unit.
        total = flow[:, -1]
        return total / total.sum() if total.sum() > 0 else total


@dataclass(frozen=True, slots=True)
class Prediction:
    """Nuisances at given rows: μ̂_a(x), shape (m, levels), and p̂_a(x), shape (m, levels)."""

    mu: NDArray[np.float64]
    propensity: NDArray[np.float64]


@dataclass(frozen=True)
class FittedNetworks:
    """All networks of a fit, the chosen one of each fold, and how to predict with them."""

    plan: Plan
    splits: tuple[Split, ...]
    networks: tuple[TrainedNetwork, ...]
    chosen: tuple[TrainedNetwork, ...]
    failures: tuple[str, ...]
    x_scaling: Scaling
    y_scale: OutcomeScale
    raw_trace: pd.DataFrame
    threads: int

    @property
    def n_nonzero(self) -> int:
        """Kept weights, averaged over the folds' chosen networks."""
        return round(float(np.mean([net.nonzero for net in self.chosen])))

    @property
    def n_weights(self) -> int:
        """Weights before pruning."""
        widths = self.plan.network.units
        sources = (self.plan.network.inputs, *widths[:-1])
        return sum(a * b for a, b in zip(sources, widths, strict=True))

    @property
    def trace(self) -> pd.DataFrame:
        """One row per fold, start and epoch."""
        return self.raw_trace

    @cached_property
    def bic(self) -> pd.DataFrame:
        """BIC of every (fold, start), and which one was chosen."""
        chosen = {(net.fold, net.start) for net in self.chosen}
        return pd.DataFrame(
            [
                {
                    "fold": net.fold,
                    "start": net.start,
                    "bic": net.bic,
                    "nonzero": net.nonzero,
                    "chosen": (net.fold, net.start) in chosen,
                }
                for net in self.networks
            ]
        )

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Nuisances at new rows, shape (m, p), averaged over the folds' chosen networks."""
        rows = np.arange(X.shape[0])
        parts = [self._predict_one(net, X, rows) for net in self.chosen]
        return Prediction(
            mu=np.mean([part.mu for part in parts], axis=0),
            propensity=np.mean([part.propensity for part in parts], axis=0),
        )

    def predict_out_of_fold(self, X: NDArray[np.floating]) -> Prediction:
        """Nuisances at the training rows, each from the network that did not train on it."""
        n = X.shape[0]
        mu, propensity = np.empty((n, 2)), np.empty((n, 2))
        for split, net in zip(self.splits, self.chosen, strict=True):
            part = self._predict_one(net, X, split.test)
            mu[split.test], propensity[split.test] = part.mu, part.propensity
        return Prediction(mu, propensity)

    def _predict_one(
        self, net: TrainedNetwork, X: NDArray[np.floating], rows: NDArray[np.int64]
    ) -> Prediction:
        clamp = np.array([[0, 0], [1, 0]], dtype=np.float32)  # treatment level; outcome unused
        means = _core.predict(
            net.spec, list(net.weights), list(net.biases), net.inputs, X,
            self.x_scaling.center, self.x_scaling.inverse_scale, rows, clamp, self.threads,
        ).astype(np.float64)
        treated = means[0, :, TREATMENT]
        return Prediction(
            mu=self.y_scale.restore(means[:, :, OUTCOME].T),
            propensity=np.column_stack([1 - treated, treated]),
        )


def thread_count(n_jobs: object) -> int:
    """Number of threads for ``n_jobs``: -1 is every core this process may use."""
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs.__index__()) == 0:
        raise OptionError(f"n_jobs must be a whole number other than 0 (-1: all cores); got {n_jobs!r}.")
    wanted = int(n_jobs.__index__())
    if wanted > 0:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + wanted)


def train_networks(
    design: Design, plan: Plan, *, threads: int, progress: Progress | None = None
) -> FittedNetworks:
    """Train every (fold, start) and choose the best start of each fold by BIC."""
    strata = design.treatment
    if design.family == "binomial":
        strata = strata * 2 + design.y.astype(np.int64)
    splits = make_splits(strata, plan.folds, plan.validation_fraction, plan.seed)
    x_scaling = column_scaling(design.X)
    y_scale = OutcomeScale.of(design.y, design.family)
    visible = np.column_stack([design.treatment, y_scale.standardise(design.y)]).astype(np.float32)
    weights = np.ones(len(design.y)) if design.weights is None else design.weights
    tasks = [
        (fold, start, split.fit, split.validation)
        for fold, split in enumerate(splits)
        for start in range(plan.starts)
    ]
    total = len(tasks) * sum(stage.epochs for stage in plan.training.stages)
    report = None if progress is None else (lambda done: progress(done, total))
    results = _core.train(
        plan.network, plan.training, design.X, x_scaling.center, x_scaling.inverse_scale,
        visible, weights.astype(np.float32), tasks, plan.seed, threads, plan.pack_bytes, report,
    )
    if progress is not None:
        progress(total, total)
    networks = tuple(
        _trained(plan, fold, start, result)
        for (fold, start, _, _), result in zip(tasks, results, strict=True)
        if not result.failure
    )
    failures = tuple(
        f"fold {fold + 1}, start {start + 1}: {result.failure}"
        for (fold, start, _, _), result in zip(tasks, results, strict=True)
        if result.failure
    )
    return FittedNetworks(
        plan=plan,
        splits=splits,
        networks=networks,
        chosen=_best_starts(networks, plan.folds, failures),
        failures=failures,
        x_scaling=x_scaling,
        y_scale=y_scale,
        raw_trace=_trace_frame(plan, tasks, results),
        threads=threads,
    )


def _trained(plan: Plan, fold: int, start: int, result: _core.TaskResult) -> TrainedNetwork:
    return TrainedNetwork(
        fold=fold,
        start=start,
        spec=plan.network.with_inputs(len(result.inputs)),
        inputs=result.inputs,
        weights=tuple(result.weights),
        masks=tuple(result.masks),
        biases=tuple(result.biases),
        variance=float(result.variances[OUTCOME]),
        log_likelihood=result.log_likelihood,
        bic=result.bic,
        selects_treatment=np.array(result.reaches[TREATMENT], dtype=bool),
        selects_outcome=np.array(result.reaches[OUTCOME], dtype=bool),
    )


def _best_starts(
    networks: tuple[TrainedNetwork, ...], folds: int, failures: tuple[str, ...]
) -> tuple[TrainedNetwork, ...]:
    chosen = []
    for fold in range(folds):
        candidates = [net for net in networks if net.fold == fold]
        if not candidates:
            raise NumericalError(
                f"Every start of fold {fold + 1} diverged ({failures[0]}). The learning rates do "
                'not suit these data: use preset="calibrated", or smaller rates in '
                "FitOptions.training.stages."
            )
        chosen.append(min(candidates, key=lambda net: (net.bic, net.start)))
    return tuple(chosen)


def _trace_frame(
    plan: Plan,
    tasks: list[tuple[int, int, NDArray[np.int64], NDArray[np.int64]]],
    results: list[_core.TaskResult],
) -> pd.DataFrame:
    columns = ["stage", "epoch", "spike_variance", "nonzero"]
    columns += [f"log_likelihood_{i + 1}" for i in range(len(plan.network.layers))]
    for name in ("treatment", "outcome"):
        columns += [f"held_out_{name}", f"{name}_variance"]
    frames = []
    for (fold, start, _, _), result in zip(tasks, results, strict=True):
        if len(result.trace) == 0:
            continue
        frame = pd.DataFrame(result.trace, columns=columns).drop(columns="treatment_variance")
        frame.insert(0, "start", start)
        frame.insert(0, "fold", fold)
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=["fold", "start", *columns])
    trace = pd.concat(frames, ignore_index=True)
    whole = ["stage", "epoch", "nonzero"]
    trace[whole] = trace[whole].astype(np.int64)
    return trace
