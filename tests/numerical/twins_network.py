"""The chain of regressions in plain NumPy: Algorithm A1's sweep, back-propagation, paths.

A network is duck-typed: `inputs`, `activation`, and `layers` of blocks with `family`, `size`,
`visible`, `feeds`, `weight`. Latent variables are the Y_i of the paper themselves: float64 can
afford the differences Y_i - Z_i that float32 cannot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from twins import ACTIVATIONS, log_density, residual

Array = NDArray[Any]
Noise = Callable[[int, int, int, int], Array]


class Placed(NamedTuple):
    """A block, its first unit in the layer and its first column among the visible data."""

    block: Any
    unit: int
    column: int

    @property
    def units(self) -> slice:
        return slice(self.unit, self.unit + self.block.size)

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + self.block.size)


def place_blocks(spec: Any) -> list[list[Placed]]:
    placed, column = [], 0
    for layer in spec.layers:
        row, unit = [], 0
        for block in layer:
            row.append(Placed(block, unit, column if block.visible else -1))
            unit += block.size
            column += block.size if block.visible else 0
        placed.append(row)
    return placed


def latent_units(spec: Any, i: int) -> int:
    return sum(b.size for b in spec.layers[i] if not b.visible)


def feeding_units(spec: Any, i: int) -> int:
    return spec.inputs if i < 0 else sum(b.size for b in spec.layers[i] if b.feeds)


class Chain:
    """A network with parameters, data and the current values of its latent variables."""

    def __init__(
        self,
        spec: Any,
        weights: list[Array],
        biases: list[Array],
        x: Array,
        visible: Array,
        *,
        latent_variance: Any = None,
        visible_variance: Any = None,
        pull: bool = True,
        offset: Array | None = None,
    ) -> None:
        self.spec, self.blocks = spec, place_blocks(spec)
        self.pull = pull  # do visible units pull? Not those of a shadow chain
        self.offset = None if offset is None else np.asarray(offset, dtype=float)
        self.w = [np.asarray(w, dtype=float) for w in weights]
        self.b = [np.asarray(b, dtype=float) for b in biases]
        self.x, self.visible = np.asarray(x, dtype=float), np.asarray(visible, dtype=float)
        self.depth = len(spec.layers)
        self.psi = ACTIVATIONS[spec.activation]
        self.latent_variance = latent_variance
        variances = iter(visible_variance if visible_variance is not None else ())
        # Every visible block has an entry, used where the family has a variance.
        self.variance = {
            (i, p.unit): next(variances, 1.0)
            for i, row in enumerate(self.blocks)
            for p in row
            if p.block.visible
        }
        # Y_i at the values of the noise-free network (paper eq. 2).
        self.y: list[Array] = []
        for i in range(self.depth - 1):
            self.y.append(self.predictor(i)[:, : latent_units(spec, i)])
        self.z = [y.copy() for y in self.y]

    def output(self, i: int) -> Array:
        """What layer i passes on: x, or ψ(Y_i) and the values of visible blocks that feed."""
        if i < 0:
            return self.x
        parts = [self.psi.value(self.y[i])]
        parts += [
            self.visible[:, p.columns] for p in self.blocks[i] if p.block.visible and p.block.feeds
        ]
        return np.hstack(parts)

    def predictor(self, i: int) -> Array:
        """b_i + w_i ψ(Y_{i-1}), and the offsets of visible units."""
        eta = self.b[i] + self.output(i - 1) @ self.w[i]
        for p in self.blocks[i]:
            if p.block.visible and self.offset is not None:
                eta[:, p.units] += self.offset[:, p.columns]
        return eta

    def residual(self, i: int) -> Array:
        """d log π(Y_i | Y_{i-1}) / d predictor, all units of the layer."""
        eta = self.predictor(i)
        out = np.empty_like(eta)
        for p in self.blocks[i]:
            if p.block.visible and not self.pull:
                out[:, p.units] = 0
            elif p.block.visible:
                out[:, p.units] = p.block.weight * residual(
                    p.block.family,
                    self.variance[i, p.unit],
                    self.visible[:, p.columns],
                    eta[:, p.units],
                )
            else:
                out[:, p.units] = (self.y[i] - eta[:, p.units]) / self.latent_variance[i]
        return out

    def log_likelihood(self, row_weight: Array | None = None) -> Array:
        """log π(Y_i | Y_{i-1}) of each layer, shape (layers,)."""
        weight = np.ones(len(self.x)) if row_weight is None else row_weight
        totals = np.zeros(self.depth)
        for i, row in enumerate(self.blocks):
            eta = self.predictor(i)
            for p in row:
                if p.block.visible:
                    values, variance = self.visible[:, p.columns], self.variance[i, p.unit]
                else:
                    values, variance = self.y[i], self.latent_variance[i]
                terms = log_density(p.block.family, variance, values, eta[:, p.units])
                totals[i] += p.block.weight * weight @ terms
        return totals

    def visible_log_likelihood(self, row_weight: Array) -> Array:
        """Of each visible block of the noise-free network, without the blocks' weights."""
        return np.array(
            [
                row_weight
                @ log_density(
                    p.block.family,
                    self.variance[i, p.unit],
                    self.visible[:, p.columns],
                    self.predictor(i)[:, p.units],
                )
                for i, row in enumerate(self.blocks)
                for p in row
                if p.block.visible
            ]
        )

    def row_log_likelihood(self) -> Array:
        """Of all visible units of each row under the noise-free network, (rows,)."""
        total = np.zeros(len(self.x))
        for i, row in enumerate(self.blocks):
            eta = self.predictor(i)
            for p in row:
                if p.block.visible:
                    total += log_density(
                        p.block.family,
                        self.variance[i, p.unit],
                        self.visible[:, p.columns],
                        eta[:, p.units],
                    )
        return total

    def sweep(self, sampler: Any, step: Any, noise: Noise) -> None:
        """SGHMC from layer h to layer 1, t_MC times, velocities zero at the start."""
        friction, scale = sampler.friction, np.sqrt(2 * sampler.friction * sampler.temperature)
        velocity = [np.zeros_like(y) for y in self.y]
        for sweep in range(sampler.sweeps):
            for i in reversed(range(self.depth - 1)):
                units = latent_units(self.spec, i)
                own = -(self.y[i] - self.predictor(i)[:, :units]) / self.latent_variance[i]
                above = self.residual(i + 1) @ self.w[i + 1][:units].T
                gradient = own + self.psi.slope(self.y[i]) * above
                e = noise(sweep, i, len(self.x), len(self.b[i]))[:, :units]
                velocity[i] = (1 - friction) * velocity[i] + step[i] * gradient + scale * e
                self.y[i] = self.y[i] + step[i] * velocity[i]

    def gradients(self, row_weight: Array) -> list[tuple[Array, Array]]:
        """∇ of Σ_s log π(Y_i | Y_{i-1}) in (w_i', b_i)."""
        out = []
        for i in range(self.depth):
            r = row_weight[:, None] * self.residual(i)
            out.append((self.output(i - 1).T @ r, r.sum(axis=0)))
        return out

    def gradient_scales(self, row_weight: Array) -> list[tuple[Array, Array]]:
        """Sums of the absolute terms of `gradients`: what float32 sums err in proportion to."""
        out = []
        for i in range(self.depth):
            r = row_weight[:, None] * np.abs(self.residual(i))
            out.append((np.abs(self.output(i - 1)).T @ r, r.sum(axis=0)))
        return out

    def back_propagate(self) -> list[tuple[Array, Array]]:
        """Gradients of the visible log-likelihood of the noise-free network by the chain rule."""
        assert all(np.array_equal(y, z) for y, z in zip(self.y, self.z, strict=True))
        out: list[tuple[Array, Array]] = []
        delta_above: Array | None = None
        for i in reversed(range(self.depth)):
            delta = np.zeros((len(self.x), len(self.b[i])))
            eta = self.predictor(i)
            for p in self.blocks[i]:
                if p.block.visible:
                    delta[:, p.units] = p.block.weight * residual(
                        p.block.family,
                        self.variance[i, p.unit],
                        self.visible[:, p.columns],
                        eta[:, p.units],
                    )
            if delta_above is not None:
                units = latent_units(self.spec, i)
                slope = self.psi.slope(self.z[i])
                delta[:, :units] = slope * (delta_above @ self.w[i + 1][:units].T)
            out.insert(0, (self.output(i - 1).T @ delta, delta.sum(axis=0)))
            delta_above = delta
        return out


# --- pruning and paths by brute force ---------------------------------------------------------


def _routes(spec: Any, first: int, last: int) -> Iterator[tuple[int, ...]]:
    """All choices of one latent unit in each of the layers first..last-1."""
    return itertools.product(*(range(latent_units(spec, i)) for i in range(first, last)))


def _open(large: list[Array], first: int, units: tuple[int, ...]) -> bool:
    """Is every weight large along `units`, the first of which stands in layer first-1?"""
    return all(large[first + k][a, b] for k, (a, b) in enumerate(itertools.pairwise(units)))


def pruned_masks(spec: Any, weights: list[Array], threshold: float) -> list[Array]:
    """A weight stays if it is large and its unit is visible or leads to a visible unit."""
    large = [np.abs(w) > threshold for w in weights]
    return [m & alive for m, alive in zip(large, _living_units(spec, large), strict=True)]


def pruned_bias_masks(
    spec: Any, weights: list[Array], biases: list[Array], threshold: float
) -> list[Array]:
    """The same for the biases of units."""
    living = _living_units(spec, [np.abs(w) > threshold for w in weights])
    return [(np.abs(b) > threshold) & alive for b, alive in zip(biases, living, strict=True)]


def _living_units(spec: Any, large: list[Array]) -> list[Array]:
    """Per layer: which units are visible or lead to a visible unit."""
    living = [np.ones(units, dtype=bool) for units in spec.units]
    visible = [
        (i, unit)
        for i, row in enumerate(place_blocks(spec))
        for p in row
        if p.block.visible
        for unit in range(p.units.start, p.units.stop)
    ]
    for i in range(len(spec.layers) - 1):
        for unit in range(latent_units(spec, i)):
            living[i][unit] = any(
                _open(large, i + 1, (unit, *route, target))
                for layer, target in visible
                if layer > i
                for route in _routes(spec, i + 1, layer)
            )
    return living


def reaches(spec: Any, masks: list[Array]) -> list[list[bool]]:
    """[visible block][input]: is there a path of kept weights through latent units?"""
    return _over_paths(spec, lambda path: _open(masks, 0, path), any)


def most_probable_paths(spec: Any, probabilities: list[Array]) -> list[list[float]]:
    """[visible block][input]: the largest product of probabilities over paths through latents."""

    def product(path: tuple[int, ...]) -> float:
        steps = enumerate(itertools.pairwise(path))
        return math.prod(float(probabilities[k][a, b]) for k, (a, b) in steps)

    return _over_paths(spec, product, max)


def _over_paths(spec: Any, value: Any, combine: Any) -> Any:
    """[visible block][input]: the values of all paths through latent units, combined."""
    return [
        [
            combine(
                value((source, *route, target))
                for route in _routes(spec, 0, i)
                for target in range(p.units.start, p.units.stop)
            )
            for source in range(spec.inputs)
        ]
        for i, row in enumerate(place_blocks(spec))
        for p in row
        if p.block.visible
    ]
