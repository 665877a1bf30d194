"""Algorithm A1 from the first draw to the BIC in plain NumPy, on all covariates throughout."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import twins
import twins_random
from numpy.typing import NDArray
from twins_network import Chain, feeding_units, place_blocks, pruned_bias_masks, pruned_masks
from twins_random import Purpose

Array = NDArray[Any]
SMALLEST_VARIANCE = 1e-8


def initial_parameters(spec: Any, options: Any, key: Any) -> tuple[list[Array], list[Array]]:
    """N(0, 1/inputs) or uniform on ±1/√inputs; biases of hidden layers of the given scale."""
    weights, biases = [], []
    for i, units in enumerate(spec.units):
        inputs = feeding_units(spec, i - 1)
        counter, n = (i, 0, Purpose.WEIGHTS), (inputs + 1) * units
        if options.initializer == "uniform":
            draws = 2 * twins_random.uniforms(key, counter, n) - 1
        else:
            draws = twins_random.normals(key, counter, n)
        draws = draws.reshape(inputs + 1, units)
        weights.append(draws[:-1] / np.sqrt(inputs))
        last = i == len(spec.layers) - 1
        biases.append(np.zeros(units) if last else options.initial_bias * draws[-1])
    return weights, biases


@dataclass
class Moving:
    """Candidates of the missing entries, and where each row with gaps stands among them.

    `row`, `column` name the entries, of shape (e,); `values` is (e, K), `log_weight` (g, K) with
    one row per row with gaps, ascending.
    """

    row: Array
    column: Array
    values: Array
    log_weight: Array

    def __post_init__(self) -> None:
        self.rows = np.unique(self.row)
        # Of every step: the share of its proposals, other than to stay, that was accepted.
        self.acceptance: list[float] = []
        self.current = np.zeros(len(self.rows), dtype=int)

    def put(self, x: Array, rows: Array, draw: Array) -> Array:
        """Covariates with these rows at these candidates."""
        x = x.copy()
        for row, k in zip(rows, draw, strict=True):
            entries = self.row == row
            x[row, self.column[entries]] = self.values[entries, k]
        return x


@dataclass
class Training:
    """One (fold, start). `normals(iteration, sweep, layer, rows, units)` supplies the noise."""

    spec: Any
    options: Any
    x: Array
    visible: Array
    row_weight: Array
    key: tuple[int, int]
    fit_rows: Array
    validation_rows: Array
    normals: Any
    structure: list[Array] | None = None
    moving: Moving | None = None
    previous: Training | None = None
    offset: Array | None = None
    trace: list[list[float]] = field(default_factory=list)

    def run(self) -> None:
        o = self.options
        weights, biases = initial_parameters(self.spec, o, self.key)
        self.masks = self.structure or [np.ones_like(w) for w in weights]
        self.bias_masks = [np.ones_like(b) for b in biases]
        if self.moving is not None:
            self.x = self.moving.put(self.x, self.moving.rows, self.moving.current)
        self.theta = twins.Optimizer(
            o.optimizer, [w * m for w, m in zip(weights, self.masks, strict=True)], biases
        )
        self.blocks = [p for row in place_blocks(self.spec) for p in row if p.block.visible]
        outcomes = sum(block.visible for block in self.spec.layers[-1])
        self.variances = [1.0] * (len(self.blocks) - outcomes) + [o.initial_variance] * outcomes
        if self.previous is not None:
            self.resume(self.previous)
        self.order, self.iteration = self.fit_rows, 0
        parts = max(1, math.floor(len(self.order) / o.epoch_rows + 0.5))
        self.part = -(-len(self.order) // parts)
        self.waiting = self.order[:0]
        for number, stage in enumerate(o.stages):
            for epoch in range(stage.epochs):
                self.run_epoch(number, stage, epoch)
            if stage.prune:
                self.prune(stage)
        self.finish()

    def resume(self, previous: Training) -> None:
        """Go on from the parameters, moments and variances of another network."""
        theirs, ours = previous.theta, self.theta
        for name in ("theta", "first", "second"):
            layers = [
                [w * mask, b.copy()]
                for (w, b), mask in zip(getattr(theirs, name), self.masks, strict=True)
            ]
            setattr(ours, name, layers)
        ours.steps = theirs.steps
        if self.options.estimate_variance:
            self.variances = list(previous.variances)

    def chain(
        self, rows: Array, x: Array | None = None, variances: Any = None, *, pull: bool = True
    ) -> Chain:
        return Chain(
            self.spec,
            self.theta.weights,
            self.theta.biases,
            (self.x if x is None else x)[rows],
            self.visible[rows],
            latent_variance=self.options.sampler.variance,
            visible_variance=self.variances if variances is None else variances,
            pull=pull,
            offset=None if self.offset is None else self.offset[rows],
        )

    def swept(self, rows: Array, step: Any) -> tuple[Chain, list[tuple[Array, Array]]]:
        """The chain after its sweeps, and the gradient it yields, less its shadow's if coupled."""
        sampler, weight = self.options.sampler, self.row_weight[rows]
        coupled = sampler.coupled and sampler.temperature > 0

        def noise(sweep: int, layer: int, count: int, units: int) -> Array:
            drawn = (count + 1) // 2 if coupled else count
            normal = self.normals(self.iteration, sweep, layer, drawn, units)
            return np.vstack([normal, -normal[: count - drawn]])

        chains = [self.chain(rows)] + ([self.chain(rows, pull=False)] if coupled else [])
        for chain in chains:
            chain.sweep(sampler, step, noise)
        gradient = chains[0].gradients(weight)
        for shadow in chains[1:]:
            pairs = zip(gradient, shadow.gradients(weight), strict=True)
            gradient = [(w - w0, b - b0) for (w, b), (w0, b0) in pairs]
        return chains[0], gradient

    def move(self, moving: Moving, batch: Array, variances: list[float]) -> None:
        """One Metropolis-Hastings step of the batch's rows with gaps, in the order of the batch."""
        rows = batch[np.isin(batch, moving.rows)]
        if len(rows) == 0:
            return
        slot = np.searchsorted(moving.rows, rows)
        counter = (self.iteration, 0, Purpose.CANDIDATES)
        u = twins_random.uniforms(self.key, counter, 2 * len(rows))
        proposed = (u[0::2] * moving.values.shape[1]).astype(int)
        there = moving.put(self.x, rows, proposed)
        gain = (
            self.chain(rows, there, variances).row_log_likelihood()
            - self.chain(rows, self.x, variances).row_log_likelihood()
            + moving.log_weight[slot, proposed]
            - moving.log_weight[slot, moving.current[slot]]
        )
        taken = np.log(u[1::2]) < gain
        elsewhere = proposed != moving.current[slot]
        moving.acceptance.append(float(np.mean(taken[elsewhere])))
        moving.current[slot[taken]] = proposed[taken]
        self.x = moving.put(self.x, rows[taken], proposed[taken])

    def run_epoch(self, number: int, stage: Any, epoch: int) -> None:
        o, n = self.options, len(self.order)
        p = o.prior
        spike = twins.spike_at(p.spike_start, p.spike_end, p.anneal_share, stage.epochs, epoch)
        # The slab alone is a mixture whose components are both the slab.
        narrow = p.slab_variance if stage.prior == "slab" else spike
        step = twins.decayed(stage.step, stage.step_decay, stage.step_exponent, epoch, stage.epochs)
        rate = twins.decayed(stage.rate, stage.rate_decay, stage.rate_exponent, epoch, stage.epochs)
        likelihood = np.zeros(len(self.spec.layers))
        moving_variances = self.moving_variances()
        if len(self.waiting) == 0:
            self.waiting = self.order = twins_random.shuffle(self.key, self.iteration, self.order)
        visits, self.waiting = self.waiting[: self.part], self.waiting[self.part :]
        for first in range(0, len(visits), o.batch_size):
            rows = visits[first : first + o.batch_size]
            chain, gradient = self.swept(rows, step)
            if self.moving is not None:
                self.move(self.moving, rows, moving_variances)
            likelihood += chain.log_likelihood()
            outcome = self.blocks[-1].block
            spread = self.variances[-1]
            if outcome.family not in twins.WITH_VARIANCE:
                spread = 1 / outcome.weight
            self.theta.step(
                gradient,
                batch_weight=self.row_weight[rows].sum(),
                rate=rate,
                layer_variance=[*o.sampler.variance, spread],
                prior=(p.inclusion, narrow, p.slab_variance),
                prior_weight=0.0 if stage.prior == "none" else 1 / n,
                penalize_bias=p.penalize_bias,
                masks=self.masks,
                bias_masks=self.bias_masks,
            )
            self.iteration += 1
        record = [number, epoch, spike if stage.prior == "mixture" else 0.0, self.nonzero]
        self.trace.append([*record, *likelihood / len(visits), *self.measure_validation()])

    @property
    def nonzero(self) -> int:
        return int(sum(np.sum(m != 0) for m in self.masks))

    @property
    def counted(self) -> int:
        """Parameters that the BIC counts: biases where the prior acts on them."""
        biases = sum(np.sum(m != 0) for m in self.bias_masks)
        return self.nonzero + int(biases if self.options.prior.penalize_bias else 0)

    def moving_variances(self) -> list[float]:
        """Variances that candidates are weighed with: measured, where training does not."""
        if self.moving is None or self.options.estimate_variance:
            return self.variances
        return self.measured(self.fit_rows)

    def mean_squares(self, rows: Array) -> list[float | None]:
        """Weighted mean squared error of each visible block that has a variance."""
        chain, out = self.chain(rows), []
        for i, row in enumerate(chain.blocks):
            for p in row:
                if not p.block.visible:
                    continue
                if p.block.family not in twins.WITH_VARIANCE:
                    out.append(None)
                    continue
                y, eta = chain.visible[:, p.columns], chain.predictor(i)[:, p.units]
                squares = twins.squared_error(p.block.family, y, eta).mean(axis=1)
                out.append(np.average(squares, weights=self.row_weight[rows]))
        return out

    def measure_validation(self) -> list[float]:
        rows = self.validation_rows
        if len(rows) == 0:
            return [v for variance in self.variances for v in (np.nan, variance)]
        weight = self.row_weight[rows]
        terms = self.chain(rows).visible_log_likelihood(weight) / weight.sum()
        if self.options.estimate_variance:
            self.update_variances(rows)
        return [v for pair in zip(terms, self.variances, strict=True) for v in pair]

    def update_variances(self, rows: Array) -> None:
        self.variances = self.measured(rows)

    def measured(self, rows: Array) -> list[float]:
        return [
            old if new is None else max(new, SMALLEST_VARIANCE)
            for old, new in zip(self.variances, self.mean_squares(rows), strict=True)
        ]

    def prune(self, stage: Any) -> None:
        p = self.options.prior
        spike = twins.spike_at(
            p.spike_start, p.spike_end, p.anneal_share, stage.epochs, stage.epochs
        )
        log_ratio = np.log((1 - p.inclusion) / p.inclusion * np.sqrt(p.slab_variance / spike))
        threshold = np.sqrt(2 * log_ratio / (1 / spike - 1 / p.slab_variance))
        if p.penalize_bias:
            kept = pruned_bias_masks(self.spec, self.theta.weights, self.theta.biases, threshold)
            self.bias_masks = [m * k for m, k in zip(self.bias_masks, kept, strict=True)]
        kept = pruned_masks(self.spec, self.theta.weights, threshold)
        self.masks = [m * k for m, k in zip(self.masks, kept, strict=True)]
        for layer, *masks in zip(self.theta.theta, self.masks, self.bias_masks, strict=True):
            layer[:] = [part * mask for part, mask in zip(layer, masks, strict=True)]

    def finish(self) -> None:
        rows = np.concatenate([self.fit_rows, self.validation_rows])
        if not self.options.estimate_variance or len(self.validation_rows) == 0:
            self.update_variances(rows)
        weight = self.row_weight[rows]
        self.log_likelihood = self.chain(rows).visible_log_likelihood(weight)
        self.bic = twins.bic(self.log_likelihood.sum(), self.counted, weight.sum())
