"""What every network shares: scales, held-out rows, early stopping, and the mean over rows.

Covariates and continuous outcomes are standardised. A fifth of each arm is held out: training
stops when the loss of these rows no longer falls, and the weights of their lowest loss are kept.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from common import Estimate, FloatArray, Variables
from numpy.typing import ArrayLike
from torch import Tensor, nn

HELD_OUT_SHARE = 0.2


@contextmanager
def session(threads: int, seed: int) -> Iterator[None]:
    """In the body, so many threads and this seed; what PyTorch had before comes back."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """Centres and spreads of the rows that were learnt from.

    Parameters
    ----------
    x_centre, x_spread : (p,) float64
        Means and standard deviations of the covariates; the spread of a constant one is 1.
    y_centre, y_spread : float
        The same of the outcome; 0 and 1 where it is binary.
    binary : bool
        Whether the outcome is 0 or 1.
    """

    x_centre: FloatArray
    x_spread: FloatArray
    y_centre: float
    y_spread: float
    binary: bool

    @classmethod
    def of(cls, rows: Variables) -> Scales:
        """Scales of these rows."""
        X, y = np.asarray(rows.X, np.float64), rows.y
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError("a covariate or outcome is not finite; impute or drop such rows")
        spread = X.std(axis=0)
        centre, scale = (0.0, 1.0) if rows.binary else (float(y.mean()), float(y.std()) or 1.0)
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0), centre, scale, rows.binary)

    def inputs(self, X: ArrayLike) -> Tensor:
        """Standardised covariates, (n, p) float32."""
        return _tensor((np.asarray(X, np.float64) - self.x_centre) / self.x_spread)

    def outcomes(self, y: FloatArray) -> Tensor:
        """Standardised outcomes, (n,) float32; binary ones as they are."""
        return _tensor((y - self.y_centre) / self.y_spread)

    def original(self, means: Tensor) -> FloatArray:
        """Means of the outcome on the data's own scale, of the same shape, float64."""
        on_data_scale: FloatArray = self.y_centre + self.y_spread * means.double().numpy()
        return on_data_scale


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows as tensors.

    Parameters
    ----------
    X : (n, p) float32
        Standardised covariates.
    treat : (n,) float32
        Treatments, 0 or 1.
    y : (n,) float32
        Standardised or binary outcomes.
    """

    X: Tensor
    treat: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Tensor) -> Sample:
        return Sample(self.X[index], self.treat[index], self.y[index])


def split_rows(rows: Variables, scales: Scales, seed: int) -> tuple[Sample, Sample]:
    """Rows to train on and rows to hold out, a fifth of each arm drawn at random."""
    treat = rows.treat
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(treat), bool)
    for arm in (0, 1):
        members = np.flatnonzero(treat == arm)
        if len(members) < 2:
            raise ValueError(
                f"arm {arm} has {len(members)} rows; a network needs at least one to train on "
                "and one to hold out"
            )
        count = max(1, round(HELD_OUT_SHARE * len(members)))
        held_out[rng.choice(members, count, replace=False)] = True
    every = Sample(scales.inputs(rows.X), _tensor(treat), scales.outcomes(rows.y))
    return every[torch.from_numpy(~held_out)], every[torch.from_numpy(held_out)]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a network is trained.

    Parameters
    ----------
    batch : int
        Rows of a step, at least; an epoch is cut into pieces of nearly equal size.
    steps_per_check : int or None
        Steps between two looks at the held-out rows; None for one epoch.
    checks : int
        Looks at most.
    patience : int
        Looks without a gain after which training stops.
    decay : float
        Factor of the learning rate at each look.
    halve_after : int or None
        Looks without a gain in the training loss after which the learning rate is halved.
    """

    batch: int
    checks: int
    patience: int
    steps_per_check: int | None = None
    decay: float = 1.0
    halve_after: int | None = None


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Sample], Tensor],
    rows: Sample,
    held_out: Sample,
    schedule: Schedule,
) -> list[float]:
    """Minimise a loss until it no longer falls on held-out rows, and keep the best weights.

    Parameters
    ----------
    model : nn.Module
        Network whose weights are saved and restored.
    optimizer : Optimizer
        Optimiser of its weights.
    loss : callable
        ``loss(rows)`` gives a scalar, of a batch and of the held-out rows.
    rows, held_out : Sample
        Rows to train on and rows to look at.
    schedule : Schedule
        Sizes and limits.

    Returns
    -------
    list of float
        Losses of the held-out rows, the first before any step.
    """
    stream = batches(len(rows), schedule.batch)
    steps = schedule.steps_per_check or pieces_of(len(rows), schedule.batch)
    losses = [_value(loss, held_out)]
    best, weights, waited = losses[0], copy.deepcopy(model.state_dict()), 0
    lowest_training, waited_training = math.inf, 0
    for _ in range(schedule.checks):
        total = 0.0
        for _ in range(steps):
            optimizer.zero_grad()
            value = loss(rows[next(stream)])
            torch.autograd.backward(value)
            optimizer.step()
            total += float(value.detach())
        losses.append(_value(loss, held_out))
        if losses[-1] < best:
            best, weights, waited = losses[-1], copy.deepcopy(model.state_dict()), 0
        else:
            waited += 1
        # Not "total >= lowest": a loss that is no number should count as no gain.
        waited_training = 0 if total < lowest_training else waited_training + 1
        lowest_training = min(lowest_training, total)
        if waited >= schedule.patience:
            break
        factor = schedule.decay
        if schedule.halve_after is not None and waited_training >= schedule.halve_after:
            factor, waited_training = factor / 2, 0
        for group in optimizer.param_groups:
            group["lr"] *= factor
    model.load_state_dict(weights)
    return losses


def pieces_of(n_rows: int, batch: int) -> int:
    """Batches of an epoch."""
    return max(1, n_rows // batch)


def batches(n_rows: int, batch: int) -> Iterator[Tensor]:
    """Rows' numbers in random order, epoch after epoch, in batches of nearly equal size."""
    while True:
        yield from torch.randperm(n_rows).tensor_split(pieces_of(n_rows, batch))


@dataclass(frozen=True, slots=True, eq=False)
class PotentialMeans:
    """A trained network that predicts the mean outcome of a row under either treatment.

    Parameters
    ----------
    scales : Scales
        Scales of the training rows.
    means : callable
        ``means(X)`` gives (m, 2) means, of standardised or binary outcomes, for standardised
        covariates (m, p).
    """

    scales: Scales
    means: Callable[[Tensor], Tensor]

    def on(self, rows: Variables) -> Estimate:
        """Mean over the rows of the difference between the two means; no interval."""
        cate = self.effects(rows)
        return Estimate(float(cate.mean()), math.nan, math.nan, math.nan, cate)

    def effects(self, rows: Variables) -> FloatArray:
        """Effect of each row, (m,)."""
        with torch.inference_mode():
            means = self.scales.original(self.means(self.scales.inputs(rows.X)))
        difference: FloatArray = means[:, 1] - means[:, 0]
        return difference


def _tensor(values: ArrayLike) -> Tensor:
    """The same values in float32."""
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))


def _value(loss: Callable[[Sample], Tensor], rows: Sample) -> float:
    """Loss of these rows, without gradients."""
    with torch.inference_mode():
        return float(loss(rows))
