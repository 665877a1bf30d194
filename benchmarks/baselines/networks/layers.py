"""Building blocks of the networks: perceptrons, two heads, and the likelihood of an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

Initialiser = Callable[[Tensor], object]


def scaled_normal(scale: float) -> Initialiser:
    """Normal weights with standard deviation ``scale / √inputs``."""

    def initialise(weight: Tensor) -> None:
        nn.init.normal_(weight, std=scale / math.sqrt(weight.shape[1]))

    return initialise


def linear(inputs: int, outputs: int, initialise: Initialiser) -> nn.Linear:
    """Linear layer with these initial weights and without initial offsets."""
    layer = nn.Linear(inputs, outputs)
    initialise(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def hidden(
    sizes: Sequence[int], initialise: Initialiser, activation: type[nn.Module] = nn.ELU
) -> nn.Sequential:
    """Layers from ``sizes[0]`` inputs to ``sizes[-1]`` outputs, each followed by its activation."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [linear(inputs, outputs, initialise), activation()]
    return nn.Sequential(*layers)


def perceptron(
    sizes: Sequence[int], initialise: Initialiser, activation: type[nn.Module] = nn.ELU
) -> nn.Sequential:
    """The same with a last layer that has no activation."""
    layers = hidden(sizes[:-1], initialise, activation)
    return layers.append(linear(sizes[-2], sizes[-1], initialise))


class TwoHeads(nn.Module):
    """One network per treatment on the same inputs; gives (n, 2), control first.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, and hidden layers of either head.
    initialise : callable
        Draws the weights.
    activation : type
        Activation of the hidden layers.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        initialise: Initialiser,
        activation: type[nn.Module] = nn.ELU,
    ) -> None:
        super().__init__()
        self.control = perceptron([*sizes, 1], initialise, activation)
        self.treated = perceptron([*sizes, 1], initialise, activation)

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs of both heads, (n, 2)."""
        return torch.cat([self.control(inputs), self.treated(inputs)], dim=1)


def factual(both: Tensor, treat: Tensor) -> Tensor:
    """Of two values per row, (n, 2), the one of its own treatment, (n,)."""
    return torch.where(treat > 0, both[:, 1], both[:, 0])


def row_losses(predicted: Tensor, y: Tensor, binary: bool) -> Tensor:
    """Squared errors, or cross entropies of log-odds where the outcome is binary, (n,)."""
    if binary:
        return binary_cross_entropy_with_logits(predicted, y, reduction="none")
    return (y - predicted).square()


def means_of(predicted: Tensor, binary: bool) -> Tensor:
    """Means of the outcome: the predictions, or the probabilities of log-odds."""
    return torch.sigmoid(predicted) if binary else predicted


def half_squares(modules: Sequence[nn.Module]) -> Tensor:
    """Half the sum of the squared weights of the linear layers, offsets left out."""
    weights = [
        layer.weight
        for module in modules
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    return torch.stack([weight.square().sum() for weight in weights]).sum() / 2
