"""DONUT: outcomes that are orthogonal to the treatment, given the covariates.

Hatt and Feuerriegel (2021), "Estimating average treatment effects via orthogonal regularization".
TARNet's layers for the outcome, a logistic regression for the treatment, and weight 1 of both the
treatment's loss and the orthogonality. Sizes and training are those of DragonNet here.
"""

from __future__ import annotations

from functools import partial

import torch
from common import Variables
from torch import Tensor, nn

from baselines.networks.dragonnet import (
    HEADS,
    INITIAL_SPREAD,
    REPRESENTATION,
    WEIGHT_DECAY,
    shrunken,
    train_in_two_stages,
    treatment_loss,
)
from baselines.networks.layers import (
    TwoHeads,
    factual,
    half_squares,
    hidden,
    linear,
    means_of,
    row_losses,
)
from baselines.networks.training import PotentialMeans, Sample, Scales, session, split_rows

ORTHOGONAL_WEIGHT = 1.0
_PROPENSITY_MARGIN = 0.01


class Donut(nn.Module):
    """Representation and two heads, a logistic regression of the treatment, and ε.

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
        self.heads = TwoHeads([REPRESENTATION[-1], *HEADS], nn.init.xavier_uniform_)
        self.treatment = linear(inputs, 1, nn.init.xavier_uniform_)
        self.epsilon = nn.Parameter(torch.randn(()) * INITIAL_SPREAD)

    def forward(self, X: Tensor) -> Tensor:
        """Predictions under either treatment, (n, 2)."""
        both: Tensor = self.heads(self.layers(X))
        return both

    def propensity(self, X: Tensor) -> Tensor:
        """Probabilities of treatment, (n,)."""
        return torch.sigmoid(self.treatment(X)).squeeze(1)


def learn_donut(rows: Variables, threads: int, seed: int) -> PotentialMeans:
    """DONUT, trained as DragonNet is."""
    scales = Scales.of(rows)
    with session(threads, seed):
        training, held_out = split_rows(rows, scales, seed)
        network = Donut(training.X.shape[1])
        train_in_two_stages(
            network, partial(objective, network, binary=scales.binary), training, held_out
        )
    return PotentialMeans(scales, lambda X: means_of(network(X), scales.binary))


def objective(network: Donut, rows: Sample, *, binary: bool) -> Tensor:
    """Losses of outcome, treatment and orthogonality, summed over the rows, and weight decay."""
    both, propensity = network(rows.X), network.propensity(rows.X)
    total = row_losses(factual(both, rows.treat), rows.y, binary).sum()
    total = total + treatment_loss(propensity, rows.treat)
    orthogonal = orthogonal_loss(means_of(both, binary), propensity, network.epsilon, rows)
    return total + ORTHOGONAL_WEIGHT * orthogonal + 2 * WEIGHT_DECAY * half_squares([network.heads])


def orthogonal_loss(both: Tensor, propensity: Tensor, epsilon: Tensor, rows: Sample) -> Tensor:
    """Squared distance of the outcomes without treatment from shifted means, summed over the rows.

    What a row's outcome would be without treatment is taken to be y - ψ t, with ψ the mean effect
    among these rows. The mean without treatment is shifted by ε (t - g). Where ε minimises the
    distance, what remains of the outcomes is orthogonal to t - g.

    Parameters
    ----------
    both : (n, 2)
        Means under either treatment.
    propensity : (n,)
        Probabilities of treatment.
    epsilon : scalar
        Size of the shift.
    rows : Sample
        Treatments and outcomes.
    """
    effect = (both[:, 1] - both[:, 0]).mean()
    untreated = rows.y - effect * rows.treat
    shifted = both[:, 0] + epsilon * (rows.treat - shrunken(propensity, _PROPENSITY_MARGIN))
    return (untreated - shifted).square().sum()
