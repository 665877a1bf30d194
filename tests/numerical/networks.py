"""Networks and data the tests share: every kind of block, widths on both sides of the padding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cstonet_seams
import numpy as np
from numpy.typing import NDArray
from twins import WITH_VARIANCE
from twins_network import Chain, feeding_units, place_blocks
from twins_random import Purpose

from cstonet.network.spec import Block, NetworkSpec
from cstonet.settings.options import SamplerOptions

STREAM, ITERATION = (11, 2, 1, 0), 5


def latent(size: int) -> Block:
    return Block("gaussian", size, visible=False, feeds=True)


def observed(family: Any, size: int, *, feeds: bool = False, weight: float = 1.0) -> Block:
    return Block(family, size, visible=True, feeds=feeds, weight=weight)


NETWORKS = {
    # The package's own: a binary treatment in the second layer.
    "binary treatment": NetworkSpec(
        7,
        "tanh",
        (
            (latent(5),),
            (latent(3), observed("bernoulli", 1, feeds=True)),
            (latent(4),),
            (observed("gaussian", 1),),
        ),
    ),
    # Three treatment levels, its likelihood weighted; a tempered outcome; more units than one
    # register holds.
    "categorical treatment": NetworkSpec(
        21,
        "sigmoid",
        (
            (latent(17), observed("categorical", 2, feeds=True, weight=3.0)),
            (latent(6),),
            (observed("bernoulli", 1, weight=4.0),),
        ),
    ),
    # Counts, whose dispersion is measured.
    "counts": NetworkSpec(
        5,
        "tanh",
        (
            (latent(4), observed("bernoulli", 1, feeds=True)),
            (latent(3),),
            (observed("poisson", 1),),
        ),
    ),
    # A dose: a gaussian unit that feeds forward as it is, beside a gaussian outcome.
    "continuous treatment": NetworkSpec(
        6,
        "tanh",
        (
            (latent(5),),
            (latent(3), observed("gaussian", 1, feeds=True)),
            (latent(4),),
            (observed("gaussian", 1),),
        ),
    ),
    # Missingness indicators that feed nothing, a gaussian mediator that does, two outcomes.
    "non-feeding block": NetworkSpec(
        4,
        "relu",
        (
            (latent(6), observed("bernoulli", 1, feeds=True)),
            (latent(5), observed("gaussian", 2, feeds=True), observed("bernoulli", 3)),
            (observed("gaussian", 2), observed("categorical", 3)),
        ),
    ),
}


@dataclass(frozen=True)
class Case:
    """A network with parameters and a minibatch, all float32."""

    spec: NetworkSpec
    weights: list[NDArray[np.float32]]
    biases: list[NDArray[np.float32]]
    x: NDArray[np.float32]
    visible: NDArray[np.float32]
    row_weight: NDArray[np.float32]
    variances: list[float]
    offset: NDArray[np.float32] | None = None

    @property
    def hidden(self) -> int:
        return len(self.spec.layers) - 1

    def kernel(
        self, options: SamplerOptions, step: list[float], iteration: int = ITERATION
    ) -> cstonet_seams.SweepResult:
        return cstonet_seams.sweep(
            self.spec,
            options,
            self.weights,
            self.biases,
            self.x,
            self.visible,
            self.row_weight,
            self.variances,
            step,
            STREAM,
            iteration,
            self.offset,
        )

    def twin(self, latent_variance: Any, *, pull: bool = True) -> Chain:
        return Chain(
            self.spec,
            self.weights,
            self.biases,
            self.x,
            self.visible,
            latent_variance=latent_variance,
            visible_variance=self.variances,
            pull=pull,
            offset=self.offset,
        )

    def unweighted(self) -> Case:
        return replace(self, row_weight=np.ones_like(self.row_weight))


def make_case(name: str, *, rows: int = 23, seed: int = 0, offset: bool = False) -> Case:
    """With an offset, the predictors of all visible units move, of each row by another distance."""
    spec = NETWORKS[name]
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for i, units in enumerate(spec.units):
        inputs = feeding_units(spec, i - 1)
        weights.append((rng.normal(size=(inputs, units)) / np.sqrt(inputs)).astype(np.float32))
        biases.append((0.3 * rng.normal(size=units)).astype(np.float32))
    columns, variances = [], []
    for row in place_blocks(spec):
        for block in (p.block for p in row if p.block.visible):
            if block.family == "gaussian":
                columns.append(rng.normal(size=(rows, block.size)))
            elif block.family == "bernoulli":
                columns.append(rng.integers(0, 2, size=(rows, block.size)))
            elif block.family == "poisson":
                columns.append(rng.poisson(2.0, size=(rows, block.size)) / 2)
            else:
                codes = rng.integers(0, block.size + 1, size=rows)
                columns.append(np.eye(block.size + 1)[codes][:, 1:])
            variances.append(0.4 if block.family in WITH_VARIANCE else 1.0)
    visible = np.hstack(columns).astype(np.float32)
    return Case(
        spec=spec,
        weights=weights,
        biases=biases,
        x=rng.normal(size=(rows, spec.inputs)).astype(np.float32),
        visible=visible,
        row_weight=rng.uniform(0.5, 2, size=rows).astype(np.float32),
        variances=variances,
        offset=rng.normal(size=visible.shape).astype(np.float32) if offset else None,
    )


def kernel_noise(
    sweep: int, layer: int, rows: int, units: int, iteration: int = ITERATION
) -> NDArray[Any]:
    """The normals of a layer and sweep: rows are padded to whole registers of 16 floats."""
    padded = -(-units // 16) * 16
    stream = sweep << 16 | layer
    draws = cstonet_seams.normals(STREAM, Purpose.LATENT, iteration, stream, rows * padded)
    return draws.reshape(rows, padded)[:, :units].astype(float)


def antithetic_noise(sweep: int, layer: int, rows: int, units: int) -> NDArray[Any]:
    """The normals of coupled chains: the second half of the rows mirrors the first."""
    drawn = kernel_noise(sweep, layer, (rows + 1) // 2, units)
    return np.vstack([drawn, -drawn[: rows // 2]])
