"""The network as blocks of units: what each layer models, what is observed, what feeds forward."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cstonet.data.variables import BlockFamily
from cstonet.settings.options import Activation
from cstonet.settings.plan import Architecture

# Latent units that each hidden layer gains per outcome after the first.
_UNITS_PER_OUTCOME = 4


@dataclass(frozen=True, slots=True)
class Block:
    """Units of one family within a layer.

    Parameters
    ----------
    family
        Distribution of the units given the layer below. A categorical block of K levels has K-1
        units.
    size
        Number of units.
    visible
        Observed, else latent and imputed.
    feeds
        Is it an input of the next layer?
    weight
        Factor on its log-likelihood while training.
    """

    family: BlockFamily
    size: int
    visible: bool
    feeds: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """A chain of regressions. The last layer is the outcome's.

    Within a layer the latent block comes first, then visible blocks that feed forward, then those
    that do not: the inputs of the next layer are the first units.
    """

    inputs: int
    activation: Activation
    layers: tuple[tuple[Block, ...], ...]

    @property
    def units(self) -> tuple[int, ...]:
        """Units per layer."""
        return tuple(sum(block.size for block in layer) for layer in self.layers)

    @property
    def n_weights(self) -> int:
        """Weights if every unit were connected to all of the layer below."""
        sources = (self.inputs, *self.units[:-1])
        return sum(a * b for a, b in zip(sources, self.units, strict=True))

    @property
    def treatment_layer(self) -> int:
        """Index of the treatment's layer: the first with a visible block."""
        return next(i for i, layer in enumerate(self.layers) if any(b.visible for b in layer))

    @property
    def treatment_width(self) -> int:
        """Units of the treatment, the last of their layer: one less than its levels, or a dose."""
        return next(b.size for b in self.layers[self.treatment_layer] if b.visible)

    @property
    def continuous(self) -> bool:
        """Whether the treatment is a dose, rather than one of several levels."""
        layer = self.layers[self.treatment_layer]
        return next(b.family for b in layer if b.visible) == "gaussian"

    def with_inputs(self, inputs: int) -> NetworkSpec:
        """The same layers on another number of covariates."""
        return NetworkSpec(inputs, self.activation, self.layers)

    def with_outcomes(
        self, families: tuple[BlockFamily, ...], temperature: float = 1.0
    ) -> NetworkSpec:
        """The same network for several outcomes, each a block with a variance of its own.

        Every hidden layer gains latent units for the outcomes after the first, so that each has
        some to itself. Outcomes without a variance share a temperature.
        """
        more = _UNITS_PER_OUTCOME * (len(families) - 1)
        hidden = tuple(
            tuple(
                block if block.visible else replace(block, size=block.size + more)
                for block in layer
            )
            for layer in self.layers[:-1]
        )
        outcomes = tuple(_outcome(family, temperature) for family in families)
        return NetworkSpec(self.inputs, self.activation, (*hidden, outcomes))


def causal_network(plan: Architecture) -> NetworkSpec:
    """The Causal-StoNet of a plan (paper Fig. 1).

    One unit of the treatment's hidden layer is the visible treatment. A treatment of L > 2 levels
    is a categorical block of L-1 units, the first level being zero in all of them; the layer is
    widened by the L-2 further units, so that the latent units do not depend on L. A continuous
    treatment is a gaussian unit.
    """
    visible = Block(
        plan.treatment, plan.visible_units, visible=True, feeds=True, weight=plan.treatment_weight
    )
    layers: list[tuple[Block, ...]] = []
    for number, width in enumerate(plan.hidden, start=1):
        if number == plan.treatment_layer:
            layers.append((Block("gaussian", width - 1, visible=False, feeds=True), visible))
        else:
            layers.append((Block("gaussian", width, visible=False, feeds=True),))
    layers.append((_outcome(plan.outcome, plan.outcome_temperature),))
    return NetworkSpec(plan.inputs, plan.activation, tuple(layers))


def _outcome(family: BlockFamily, temperature: float) -> Block:
    """The unit of an outcome; the temperature is that of families without a variance."""
    weight = 1.0 if family in ("gaussian", "poisson") else 1 / temperature
    return Block(family, 1, visible=True, feeds=False, weight=weight)
