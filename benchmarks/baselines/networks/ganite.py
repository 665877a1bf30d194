"""GANITE: a generator fills in the outcomes that were not seen, another network learns from both.

Yoon, Jordon and van der Schaar (2018), "GANITE: estimation of individualized treatment effects
using generative adversarial nets". As in the authors' published code, the second network learns
from the completed outcomes without a discriminator of its own, and sizes and rates are its
defaults. Continuous outcomes have squared errors in place of cross entropies.
"""

from __future__ import annotations

from functools import partial

import torch
from common import Variables
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from baselines.networks.layers import (
    TwoHeads,
    factual,
    hidden,
    means_of,
    perceptron,
    row_losses,
    scaled_normal,
)
from baselines.networks.training import (
    PotentialMeans,
    Sample,
    Scales,
    Schedule,
    batches,
    session,
    split_rows,
    train,
)

WIDTH = 30
BATCH = 256
LEARNING_RATE = 1e-3
ADVERSARIAL_WEIGHT = 1.0
# The authors' first code takes 10 000 steps, their later package 5000.
ADVERSARIAL_STEPS = 5000
DISCRIMINATOR_STEPS = 2

# As many steps at most; held-out outcomes tell when fewer are enough.
SCHEDULE = Schedule(batch=BATCH, checks=50, patience=10, steps_per_check=100)

_initialise = scaled_normal(2**0.5)


class TwoOutcomes(nn.Module):
    """Two shared layers, and a hidden layer of its own for the outcome under each treatment.

    Parameters
    ----------
    inputs : int
        Inputs.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.shared = hidden([inputs, WIDTH, WIDTH], _initialise, nn.ReLU)
        self.heads = TwoHeads([WIDTH, WIDTH], _initialise, nn.ReLU)

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions under either treatment, (n, 2)."""
        both: Tensor = self.heads(self.shared(inputs))
        return both


def learn_ganite(rows: Variables, threads: int, seed: int) -> PotentialMeans:
    """GANITE: first the generator and its discriminator, then the network for new rows."""
    scales = Scales.of(rows)
    with session(threads, seed):
        training, held_out = split_rows(rows, scales, seed)
        generator = train_generator(training, scales.binary)
        inference = TwoOutcomes(training.X.shape[1])
        loss = partial(inference_loss, inference, generator, binary=scales.binary)
        optimizer = torch.optim.Adam(inference.parameters(), lr=LEARNING_RATE)
        train(inference, optimizer, loss, training, held_out, SCHEDULE)
    return PotentialMeans(scales, lambda X: means_of(inference(X), scales.binary))


def train_generator(rows: Sample, binary: bool) -> TwoOutcomes:
    """Generator of both outcomes from covariates, treatment and the outcome that was seen."""
    inputs = rows.X.shape[1] + 2
    generator = TwoOutcomes(inputs)
    discriminator = perceptron([inputs, WIDTH, WIDTH, 1], _initialise, nn.ReLU)
    generates = torch.optim.Adam(generator.parameters(), lr=LEARNING_RATE)
    discriminates = torch.optim.Adam(discriminator.parameters(), lr=LEARNING_RATE)
    stream = batches(len(rows), BATCH)
    for _ in range(ADVERSARIAL_STEPS):
        for _ in range(DISCRIMINATOR_STEPS):
            batch = rows[next(stream)]
            with torch.no_grad():
                made = generate(generator, batch)
            discriminates.zero_grad()
            told = discriminator_loss(discriminator, means_of(made, binary), batch)
            torch.autograd.backward(told)
            discriminates.step()
        batch = rows[next(stream)]
        made = generate(generator, batch)
        loss = row_losses(factual(made, batch.treat), batch.y, binary).mean()
        fooled = discriminator_loss(discriminator, means_of(made, binary), batch)
        generates.zero_grad()
        torch.autograd.backward(loss - ADVERSARIAL_WEIGHT * fooled)
        generates.step()
    return generator


def generate(generator: TwoOutcomes, rows: Sample) -> Tensor:
    """Both outcomes of the rows, (n, 2); log-odds where they are binary."""
    both: Tensor = generator(torch.cat([rows.X, rows.treat[:, None], rows.y[:, None]], dim=1))
    return both


def completed(means: Tensor, rows: Sample) -> Tensor:
    """Both outcomes, (n, 2): the one that was seen, and the generated mean of the other."""
    seen = torch.stack([1 - rows.treat, rows.treat], dim=1) > 0
    return torch.where(seen, rows.y[:, None], means)


def discriminator_loss(discriminator: nn.Module, means: Tensor, rows: Sample) -> Tensor:
    """Mean cross entropy of the guess which of the two outcomes was seen."""
    guessed = discriminator(torch.cat([rows.X, completed(means, rows)], dim=1)).squeeze(1)
    return binary_cross_entropy_with_logits(guessed, rows.treat)


def inference_loss(
    inference: TwoOutcomes, generator: TwoOutcomes, rows: Sample, *, binary: bool
) -> Tensor:
    """Mean loss of both completed outcomes, one after the other."""
    with torch.no_grad():
        both = completed(means_of(generate(generator, rows), binary), rows)
    return row_losses(inference(rows.X), both, binary).mean(dim=0).sum()
