"""CEVAE: covariates are proxies of a latent confounder, found by a variational autoencoder.

Louizos, Shalit, Mooij, Sontag, Zemel and Welling (2017), "Causal effect inference with deep
latent-variable models". Twenty latent variables, three hidden layers of 200 units and outcomes of
unit variance around their mean, as in the authors' code for IHDP.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from common import FloatArray, Variables
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from baselines.networks.layers import (
    TwoHeads,
    factual,
    half_squares,
    hidden,
    means_of,
    perceptron,
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

LATENT = 20
WIDTH = 200
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
DRAWS = 100

# The authors take 4000 steps for IHDP and keep the best of ten looks at the validation rows.
SCHEDULE = Schedule(batch=100, checks=40, patience=5, steps_per_check=100)

# A column that others determine, or with few values, would have an unbounded density.
_SMALLEST_SPREAD = 0.1

_glorot = nn.init.xavier_uniform_


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """How the covariates are distributed given the latent variables.

    Parameters
    ----------
    binary, continuous : (k,) and (p - k,) int64 tensors
        Numbers of the columns with two values, and of the others.
    thresholds : (k,) float32
        Values between the two of each binary column, standardised.
    """

    binary: Tensor
    continuous: Tensor
    thresholds: Tensor

    @classmethod
    def of(cls, X: FloatArray, scales: Scales) -> Columns:
        """Kinds of these columns, (n, p)."""
        low, high = X.min(axis=0), X.max(axis=0)
        two = ((low == X) | (high == X)).all(axis=0) & (low < high)
        middle = scales.inputs(((low + high) / 2)[None, :])[0]
        binary, continuous = (torch.from_numpy(np.flatnonzero(kind)) for kind in (two, ~two))
        return cls(binary, continuous, middle[binary])


class CEVAE(nn.Module):
    """The model p(z) p(x | z) p(t | z) p(y | t, z), and the approximations q of what it implies.

    Parameters
    ----------
    inputs : int
        Covariates.
    columns : Columns
        Their kinds.
    binary : bool
        Whether the outcome is 0 or 1.
    """

    def __init__(self, inputs: int, columns: Columns, binary: bool) -> None:
        super().__init__()
        self.columns, self.binary = columns, binary
        self.decode = hidden([LATENT, WIDTH, WIDTH], _glorot)
        # A layer without outputs draws a warning, so what there is no column for is left out.
        if len(columns.binary) > 0:
            self.binary_columns = perceptron([WIDTH, WIDTH, len(columns.binary)], _glorot)
        if len(columns.continuous) > 0:
            outputs = 2 * len(columns.continuous)
            self.continuous_columns = perceptron([WIDTH, WIDTH, outputs], _glorot)
        self.treatment = perceptron([LATENT, WIDTH, 1], _glorot)
        self.outcome = TwoHeads([LATENT, WIDTH, WIDTH, WIDTH], _glorot)
        self.guess_treatment = perceptron([inputs, LATENT, 1], _glorot)
        self.guess_outcome = nn.Sequential(
            hidden([inputs, WIDTH, WIDTH], _glorot), TwoHeads([WIDTH, WIDTH], _glorot)
        )
        self.encode = hidden([inputs + 1, WIDTH, WIDTH], _glorot)
        self.latent = nn.ModuleList(
            perceptron([WIDTH, WIDTH, 2 * LATENT], _glorot) for _ in range(2)
        )

    def posterior(self, X: Tensor, treat: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of q(z | x, t, y), each (n, 20)."""
        encoded = self.encode(torch.cat([X, y[:, None]], dim=1))
        control, treated = (head(encoded) for head in self.latent)
        mean, spread = torch.where(treat[:, None] > 0, treated, control).chunk(2, dim=1)
        return mean, softplus(spread)

    def log_likelihood(self, z: Tensor, rows: Sample) -> Tensor:
        """Logarithms of p(x | z) p(t | z) p(y | t, z), (n,)."""
        total = self._outcome_log_likelihood(self.outcome(z), rows)
        total = total - _cross_entropies(self.treatment(z).squeeze(1), rows.treat)
        decoded, columns = self.decode(z), self.columns
        if len(columns.binary) > 0:
            is_high = (rows.X[:, columns.binary] > columns.thresholds).float()
            total = total - _cross_entropies(self.binary_columns(decoded), is_high).sum(dim=1)
        if len(columns.continuous) > 0:
            mean, spread = self.continuous_columns(decoded).chunk(2, dim=1)
            spread = softplus(spread) + _SMALLEST_SPREAD
            seen = rows.X[:, columns.continuous]
            total = total + normal_log_density(seen, mean, spread).sum(dim=1)
        return total

    def guess_log_likelihood(self, rows: Sample) -> Tensor:
        """Logarithms of q(t | x) q(y | x, t), (n,), which stand in for t and y of new rows."""
        guessed = self.guess_treatment(rows.X).squeeze(1)
        return -_cross_entropies(guessed, rows.treat) + self._outcome_log_likelihood(
            self.guess_outcome(rows.X), rows
        )

    def _outcome_log_likelihood(self, both: Tensor, rows: Sample) -> Tensor:
        """Log-likelihood of the outcomes, (n,), given predictions (n, 2)."""
        losses = row_losses(factual(both, rows.treat), rows.y, self.binary)
        return -losses if self.binary else -losses / 2  # unit variance, without its constant


def learn_cevae(rows: Variables, threads: int, seed: int) -> PotentialMeans:
    """CEVAE, asked about rows as if their treatments and outcomes were unknown."""
    scales = Scales.of(rows)
    columns = Columns.of(np.asarray(rows.X, np.float64), scales)
    with session(threads, seed):
        training, held_out = split_rows(rows, scales, seed)
        model = CEVAE(training.X.shape[1], columns, scales.binary)
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        train(model, optimizer, partial(objective, model), training, held_out, SCHEDULE)

    def means(X: Tensor) -> Tensor:
        with session(threads, seed):
            return posterior_means(model, X)

    return PotentialMeans(scales, means)


def objective(model: CEVAE, rows: Sample) -> Tensor:
    """Minus the evidence's lower bound and the guesses' log-likelihood, summed, and weight decay.

    Latent variables are drawn from q where gradients are wanted. Held-out rows are judged at its
    mean, as the authors do.
    """
    mean, spread = model.posterior(rows.X, rows.treat, rows.y)
    z = mean + spread * torch.randn_like(mean) if torch.is_grad_enabled() else mean
    bound = model.log_likelihood(z, rows) - kl_from_standard_normal(mean, spread)
    total = bound + model.guess_log_likelihood(rows)
    return WEIGHT_DECAY * half_squares([model]) - total.sum()


def kl_from_standard_normal(mean: Tensor, spread: Tensor) -> Tensor:
    """Kullback-Leibler divergence of N(mean, spread²) from N(0, 1), summed over columns, (n,)."""
    return (mean.square() + spread.square() - 1 - 2 * spread.log()).sum(dim=1) / 2


def normal_log_density(x: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Logarithm of the normal density without the constant -log(2π) / 2, of the same shape."""
    return -((x - mean) / spread).square() / 2 - spread.log()


def posterior_means(model: CEVAE, X: Tensor) -> Tensor:
    """Means under either treatment, (n, 2), over draws of t, y and z that q makes of x alone."""
    probability = torch.sigmoid(model.guess_treatment(X)).squeeze(1)
    guessed = means_of(model.guess_outcome(X), model.binary)
    total = torch.zeros(len(X), 2)
    for _ in range(DRAWS):
        treat = torch.bernoulli(probability)
        centre = factual(guessed, treat)
        y = torch.bernoulli(centre) if model.binary else centre + torch.randn_like(centre)
        mean, spread = model.posterior(X, treat, y)
        z = mean + spread * torch.randn_like(mean)
        total += means_of(model.outcome(z), model.binary)
    return total / DRAWS


def _cross_entropies(log_odds: Tensor, values: Tensor) -> Tensor:
    """Cross entropies of values in {0, 1}, of the same shape."""
    return binary_cross_entropy_with_logits(log_odds, values, reduction="none")
