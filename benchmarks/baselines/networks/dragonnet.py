"""DragonNet with targeted regularisation: a propensity head shapes the representation.

Shi, Blei and Veitch (2019), "Adapting neural networks for the estimation of treatment effects".
Sizes, rates and losses, sums over a batch, are those of the authors' code for IHDP: Adam until the
held-out rows no longer gain, then stochastic gradient descent in small steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from common import Estimate, Variables
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy

from baselines.networks.layers import (
    TwoHeads,
    factual,
    half_squares,
    hidden,
    linear,
    means_of,
    row_losses,
)
from baselines.networks.training import (
    PotentialMeans,
    Sample,
    Scales,
    Schedule,
    session,
    split_rows,
    train,
)

REPRESENTATION = (200, 200, 200)
HEADS = (100, 100)
INITIAL_SPREAD = 0.05
WEIGHT_DECAY = 0.01
TARGETED_WEIGHT = 1.0

ADAM_RATE = 1e-3
ADAM_SCHEDULE = Schedule(batch=64, checks=100, patience=2, halve_after=5)
DESCENT_RATE = 1e-5
DESCENT_MOMENTUM = 0.9
DESCENT_SCHEDULE = Schedule(batch=64, checks=300, patience=40, halve_after=5)

# Propensities are drawn towards a half by this much, in the loss of the treatment and in weights.
_TREATMENT_MARGIN = 0.001
_WEIGHT_MARGIN = 0.01


class DragonNet(nn.Module):
    """Representation, two heads for the outcome, one for the treatment, and ε.

    Parameters
    ----------
    inputs : int
        Covariates.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layers = hidden(
            [inputs, *REPRESENTATION], partial(nn.init.normal_, std=INITIAL_SPREAD)
        )
        width = REPRESENTATION[-1]
        self.heads = TwoHeads([width, *HEADS], nn.init.xavier_uniform_)
        self.treatment = linear(width, 1, nn.init.xavier_uniform_)
        self.epsilon = nn.Parameter(torch.randn(()) * INITIAL_SPREAD)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions under either treatment, (n, 2), and propensities, (n,)."""
        represented = self.layers(X)
        propensity = torch.sigmoid(self.treatment(represented)).squeeze(1)
        return self.heads(represented), propensity


def learn_dragonnet(rows: Variables, threads: int, seed: int) -> TargetedMeans:
    """DragonNet, trained with targeted regularisation."""
    scales = Scales.of(rows)
    with session(threads, seed):
        training, held_out = split_rows(rows, scales, seed)
        network = DragonNet(training.X.shape[1])
        train_in_two_stages(
            network, partial(objective, network, binary=scales.binary), training, held_out
        )
    plain = PotentialMeans(scales, lambda X: means_of(network(X)[0], scales.binary))
    targeted = PotentialMeans(scales, partial(targeted_means, network, binary=scales.binary))
    return TargetedMeans(plain, targeted)


def train_in_two_stages(
    network: nn.Module, loss: Callable[[Sample], Tensor], training: Sample, held_out: Sample
) -> None:
    """Adam, then Nesterov's descent from its best weights."""
    adam = torch.optim.Adam(network.parameters(), lr=ADAM_RATE)
    train(network, adam, loss, training, held_out, ADAM_SCHEDULE)
    descent = torch.optim.SGD(
        network.parameters(), lr=DESCENT_RATE, momentum=DESCENT_MOMENTUM, nesterov=True
    )
    train(network, descent, loss, training, held_out, DESCENT_SCHEDULE)


def objective(network: DragonNet, rows: Sample, *, binary: bool) -> Tensor:
    """Losses of outcome, treatment and targeted outcome, summed over the rows, and weight decay."""
    both, propensity = network(rows.X)
    predicted = factual(both, rows.treat)
    total = row_losses(predicted, rows.y, binary).sum()
    total = total + treatment_loss(propensity, rows.treat)
    total = total + TARGETED_WEIGHT * targeted_loss(
        predicted, propensity, network.epsilon, rows, binary=binary
    )
    return total + 2 * WEIGHT_DECAY * half_squares([network.heads])


def treatment_loss(propensity: Tensor, treat: Tensor) -> Tensor:
    """Cross entropy of the treatment, summed over the rows."""
    probability = shrunken(propensity, _TREATMENT_MARGIN)
    return binary_cross_entropy(probability, treat, reduction="sum")


def targeted_loss(
    predicted: Tensor, propensity: Tensor, epsilon: Tensor, rows: Sample, *, binary: bool
) -> Tensor:
    """Loss of predictions that are shifted by ε h, summed over the rows.

    Where ε minimises it, Σ h (y - the shifted mean) = 0: the score equation of the mean effect.

    Parameters
    ----------
    predicted : (n,)
        Predictions under the row's own treatment; log-odds where the outcome is binary.
    propensity : (n,)
        Probabilities of treatment.
    epsilon : scalar
        Size of the shift.
    rows : Sample
        Treatments and outcomes.
    binary : bool
        Whether the outcome is 0 or 1.
    """
    h = clever_covariate(rows.treat, propensity)
    return row_losses(predicted + epsilon * h, rows.y, binary).sum()


def clever_covariate(treat: Tensor, propensity: Tensor) -> Tensor:
    """Values of h = t / g - (1 - t) / (1 - g), (n,), with propensities kept off 0 and 1."""
    g = shrunken(propensity, _WEIGHT_MARGIN)
    return treat / g - (1 - treat) / (1 - g)


def shrunken(propensity: Tensor, margin: float) -> Tensor:
    """Propensities in [margin, 1 + margin] / (1 + 2 margin)."""
    return (propensity + margin) / (1 + 2 * margin)


def targeted_means(network: DragonNet, X: Tensor, *, binary: bool) -> Tensor:
    """Means under either treatment after the shift, (n, 2)."""
    both, propensity = network(X)
    arms = [torch.full_like(propensity, arm) for arm in (0.0, 1.0)]
    shifts = torch.stack([clever_covariate(arm, propensity) for arm in arms], dim=1)
    return means_of(both + network.epsilon * shifts, binary)


@dataclass(frozen=True, slots=True, eq=False)
class TargetedMeans:
    """DragonNet after training: targeted means for the mean effect, plain ones for the rows'.

    Parameters
    ----------
    plain, targeted : PotentialMeans
        Without and with the shift by ε h.
    """

    plain: PotentialMeans
    targeted: PotentialMeans

    def on(self, rows: Variables) -> Estimate:
        """Mean over the rows of the difference between the targeted means; no interval."""
        ate = float(self.targeted.effects(rows).mean())
        return Estimate(ate, math.nan, math.nan, math.nan, self.plain.effects(rows))
