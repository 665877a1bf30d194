"""TARNet and CFRNet: one representation, a head per treatment, and arms that look alike.

Shalit, Johansson and Sontag (2017), "Estimating individual treatment effect: generalization
bounds and algorithms". Sizes and rates are those of the authors' configuration for IHDP: three
layers of 200 units, scaled to unit length, and three of 100 units per head. The weight of the
distance between the arms is the one with the least loss of held-out outcomes; TARNet has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from common import Variables
from torch import Tensor, nn

from baselines.networks.layers import (
    TwoHeads,
    factual,
    half_squares,
    hidden,
    means_of,
    row_losses,
    scaled_normal,
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

Distance = Callable[[Tensor, Tensor], Tensor]

REPRESENTATION = (200, 200, 200)
HEADS = (100, 100, 100)
WEIGHT_DECAY = 1e-4
LEARNING_RATE = 1e-3
INITIAL_SCALE = 0.1

# The authors choose the weight of the distance among the powers of √10; these are some of them.
# Where the arms differ much, a weight of 1 leaves a representation that tells nobody apart.
IMBALANCE_WEIGHTS = (0.01, 0.1, 1.0)

# The authors take 3000 steps, multiply the rate by 0.97 every hundred and keep the iteration of
# the best validation rows. Training for 500 steps without a gain is given up here.
SCHEDULE = Schedule(batch=100, checks=60, patience=10, steps_per_check=50, decay=0.97**0.5)

# Distances below this have no usable gradient of the square root.
_SMALLEST_SQUARE = 1e-10


class CFRNet(nn.Module):
    """Representation of unit length and two heads.

    Parameters
    ----------
    inputs : int
        Covariates.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        initialise = scaled_normal(INITIAL_SCALE)
        self.layers = hidden([inputs, *REPRESENTATION], initialise)
        self.heads = TwoHeads([REPRESENTATION[-1], *HEADS], initialise)

    def represent(self, X: Tensor) -> Tensor:
        """Representations of the rows, (n, 200), each of length 1."""
        return nn.functional.normalize(self.layers(X), dim=1)

    def forward(self, X: Tensor) -> Tensor:
        """Predictions under either treatment, (n, 2)."""
        both: Tensor = self.heads(self.represent(X))
        return both


def learn_cfrnet(
    rows: Variables, threads: int, seed: int, *, distance: Distance | None
) -> PotentialMeans:
    """CFRNet with this distance between the arms; TARNet without one."""
    scales = Scales.of(rows)
    weights = (0.0,) if distance is None else IMBALANCE_WEIGHTS
    training, held_out = split_rows(rows, scales, seed)
    outcome = OutcomeLoss(float(training.treat.mean()), scales.binary)
    candidates: list[tuple[float, CFRNet]] = []
    for weight in weights:
        with session(threads, seed):
            network = CFRNet(training.X.shape[1])
            loss = partial(objective, network, outcome=outcome, distance=distance, weight=weight)
            optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
            train(network, optimizer, loss, training, held_out, SCHEDULE)
            with torch.inference_mode():
                candidates.append((float(outcome(network(held_out.X), held_out)), network))
    _, best = min(candidates, key=lambda candidate: candidate[0])
    return PotentialMeans(scales, lambda X: means_of(best(X), scales.binary))


@dataclass(frozen=True, slots=True)
class OutcomeLoss:
    """Mean loss of the outcomes under the rows' own treatments, both arms weighted alike.

    Parameters
    ----------
    share : float
        Share of treated rows.
    binary : bool
        Whether the outcome is 0 or 1.
    """

    share: float
    binary: bool

    def __call__(self, both: Tensor, rows: Sample) -> Tensor:
        """Loss of predictions (n, 2)."""
        weights = rows.treat / (2 * self.share) + (1 - rows.treat) / (2 * (1 - self.share))
        return (weights * row_losses(factual(both, rows.treat), rows.y, self.binary)).mean()


def objective(
    network: CFRNet,
    rows: Sample,
    *,
    outcome: OutcomeLoss,
    distance: Distance | None,
    weight: float,
) -> Tensor:
    """Loss of the outcomes, weighted distance between the arms, and decay of the heads' weights.

    Parameters
    ----------
    network : CFRNet
        The network.
    rows : Sample
        Rows.
    outcome : OutcomeLoss
        Loss of the outcomes.
    distance : callable or None
        ``distance(a, b)`` between representations (m, k) and (n, k).
    weight : float
        Weight of the distance.
    """
    represented = network.represent(rows.X)
    total = outcome(network.heads(represented), rows)
    total = total + WEIGHT_DECAY * half_squares([network.heads])
    treated, control = represented[rows.treat > 0], represented[rows.treat <= 0]
    # A batch may miss a rare arm.
    if distance is None or len(treated) == 0 or len(control) == 0:
        return total
    return total + weight * distance(treated, control)


def squared_linear_mmd(a: Tensor, b: Tensor) -> Tensor:
    """Squared maximum mean discrepancy with the linear kernel: that of the means.

    Parameters
    ----------
    a, b : (m, k) and (n, k)
        Two samples.
    """
    return (a.mean(dim=0) - b.mean(dim=0)).square().sum()


def sinkhorn(a: Tensor, b: Tensor, sharpness: float = 10.0, iterations: int = 10) -> Tensor:
    """Cost of the entropic transport plan between two samples, Euclidean distance as cost.

    Parameters
    ----------
    a, b : (m, k) and (n, k)
        Two samples, each with equal weights.
    sharpness : float
        Mean cost over the weight of the entropy.
    iterations : int
        Sinkhorn's alternations; gradients flow through them, as in the authors' settings.

    Returns
    -------
    scalar Tensor
        Above the least cost of transport by at most log(min(m, n)) mean costs / `sharpness`, once
        the iterations have converged.
    """
    squares = (
        a.square().sum(dim=1)[:, None] + b.square().sum(dim=1)[None, :] - 2 * a @ b.T
    ).clamp_min(_SMALLEST_SQUARE)
    cost = squares.sqrt()
    # In logarithms, since a sharp kernel underflows.
    kernel = -cost * (sharpness / cost.mean()).detach()
    m, n = cost.shape
    log_row = -torch.log(torch.tensor(float(m)))
    log_column = -torch.log(torch.tensor(float(n)))
    column = torch.zeros(n)
    for _ in range(iterations):
        row = log_row - torch.logsumexp(kernel + column[None, :], dim=1)
        column = log_column - torch.logsumexp(kernel + row[:, None], dim=0)
    plan = torch.exp(kernel + row[:, None] + column[None, :])
    return (plan * cost).sum()
