"""How one network is trained: the options that the kernel reads.

These dataclasses mirror the structs of ``csrc/core/options.hpp`` field by field. ``"auto"`` means
that the plan sets the value from the data (:mod:`cstonet.settings.plan`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cstonet.settings.checks import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_positive_tuple,
    fail,
)

Auto: TypeAlias = Literal["auto"]
Decay: TypeAlias = Literal["none", "polynomial", "cosine"]


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """Imputation of the latent variables by SGHMC (paper Algorithm A1, step 1).

    Parameters
    ----------
    sweeps
        Sweeps from layer h to layer 1 per minibatch (t_MC).
    friction
        α = ε η, the share of the velocity lost per step.
    temperature
        1 samples the latent variables' posterior, 0 follows its gradient.
    coupled
        Subtract from the parameters' gradient that of a shadow chain, which has the same random
        numbers and feels no observation? This removes the sampling noise and leaves the signal.
    variance
        σ_i² of the latent layers, i = 1..h.
    """

    sweeps: int = 1
    friction: float = 1.0
    temperature: float = 1.0
    coupled: bool = True
    variance: tuple[float, ...] | Auto = "auto"

    def __post_init__(self) -> None:
        check_integer(self, "sweeps", 1, 1000)
        check_number(self, "friction", 0, 1, open_low=True)
        check_number(self, "temperature", 0, math.inf, open_high=True)
        check_flag(self, "coupled")
        check_positive_tuple(self, "variance")


@dataclass(frozen=True, slots=True)
class PriorOptions:
    """The mixture-Gaussian prior λ N(0, σ1²) + (1-λ) N(0, σ0²) on the weights (paper eq. 7).

    Parameters
    ----------
    inclusion
        λ_n, the prior probability of a weight being in the slab; ``"auto"`` makes the annealing a
        test whose critical value grows with the rows and the weights
        (:mod:`cstonet.settings.sparsity`).
    slab_variance
        σ²_{1,n}.
    spike_start, spike_end
        σ²_{0,n} at the start and at the end of the annealing; equal: no annealing. ``"auto"``:
        30/n and 0.1/n on n training rows.
    anneal_share
        Share of a stage's epochs over which the spike narrows.
    penalize_bias
        Does the prior act on biases too? Then they are pruned with the weights, and those left
        count in the BIC.
    """

    inclusion: float | Auto = 1e-6
    slab_variance: float = 1.0
    spike_start: float | Auto = 1e-2
    spike_end: float | Auto = 1e-4
    anneal_share: float = 0.6
    penalize_bias: bool = False

    def __post_init__(self) -> None:
        check_number(self, "inclusion", 0, 1, open_low=True, open_high=True, auto=True)
        check_number(self, "slab_variance", 0, math.inf, open_low=True, open_high=True)
        for name in ("spike_start", "spike_end"):
            check_number(
                self, name, 0, self.slab_variance, open_low=True, open_high=True, auto=True
            )
        check_number(self, "anneal_share", 0, 1)
        check_flag(self, "penalize_bias")


@dataclass(frozen=True, slots=True)
class OptimizerOptions:
    """Parameter update (paper Algorithm A1, step 2).

    Parameters
    ----------
    rule
        ``"adam"`` scales each parameter by the root of its gradient's second moment;
        ``"momentum"`` is stochastic approximation with momentum.
    momentum
        Decay of the first moment; 0 is the update as printed in the paper.
    second_decay, epsilon
        Adam's decay of the second moment, and what is added to its root.
    clip_norm
        Largest norm of a layer's gradient in units of 1/σ_i²; 0 does not clip.
    """

    rule: Literal["adam", "momentum"] = "adam"
    momentum: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    clip_norm: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self, "rule")
        check_number(self, "momentum", 0, 1, open_high=True)
        check_number(self, "second_decay", 0, 1, open_high=True)
        check_number(self, "epsilon", 0, 1, open_low=True)
        check_number(self, "clip_norm", 0, math.inf, open_high=True)


@dataclass(frozen=True, slots=True)
class StageOptions:
    """One stage of training: pretrain, train or refine.

    Parameters
    ----------
    epochs
        Passes over the training rows.
    prior
        ``"mixture"`` is the spike-and-slab prior, ``"slab"`` its slab alone (a ridge penalty).
    prune
        Prune at the prior's threshold when the stage ends?
    rate
        γ_i of the layers, i = 1..h+1, or one for all; ``"auto"`` is 1e-2.
    step
        ε_i of the latent layers, i = 1..h; ``"auto"`` is σ_i.
    rate_decay, rate_exponent
        ``"polynomial"``: γ / (1 + γ k^exponent) at epoch k; ``"cosine"``: to zero.
    step_decay, step_exponent
        The same for ε.
    """

    epochs: int | Auto
    prior: Literal["none", "slab", "mixture"] = "none"
    prune: bool = False
    rate: tuple[float, ...] | float | Auto = "auto"
    step: tuple[float, ...] | Auto = "auto"
    rate_decay: Decay = "none"
    rate_exponent: float = 1.0
    step_decay: Literal["none", "polynomial"] = "none"
    step_exponent: float = 1.0

    def __post_init__(self) -> None:
        check_integer(self, "epochs", 0, 1_000_000, auto=True)
        check_choice(self, "prior")
        check_flag(self, "prune")
        if isinstance(self.rate, (int, float)):
            check_number(self, "rate", 0, math.inf, open_low=True, open_high=True)
        else:
            check_positive_tuple(self, "rate")
        check_positive_tuple(self, "step")
        check_choice(self, "rate_decay")
        check_choice(self, "step_decay")
        for name in ("rate_exponent", "step_exponent"):
            check_number(self, name, 0, 10)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How one network is trained.

    Parameters
    ----------
    batch_size
        Rows per minibatch |S_k|.
    epoch_rows
        Rows visited in an epoch, after which the noise is measured anew; all rows are cut into
        equal parts of nearly this size. ``"auto"``: all, or 64 minibatches where the epochs of
        every stage are automatic.
    initializer
        ``"normal"`` N(0, 1/inputs) or ``"uniform"`` on ±1/√inputs.
    initial_bias
        Scale of the initial biases of the hidden layers.
    estimate_variance
        Estimate the variance of gaussian outcomes from held-out rows every epoch? If not, rows with
        missing covariates move with one measured on the training rows.
    initial_variance
        That variance at the start (the outcome is standardised); a dose's is one.
    sampler, prior, optimizer, stages
        See the classes.
    """

    stages: tuple[StageOptions, ...]
    batch_size: int | Auto = "auto"
    epoch_rows: int | Auto = "auto"
    initializer: Literal["normal", "uniform"] = "normal"
    initial_bias: float = 0.3
    estimate_variance: bool = True
    initial_variance: float = 1.0
    sampler: SamplerOptions = field(default_factory=SamplerOptions)
    prior: PriorOptions = field(default_factory=PriorOptions)
    optimizer: OptimizerOptions = field(default_factory=OptimizerOptions)

    def __post_init__(self) -> None:
        check_integer(self, "batch_size", 1, 1_000_000, auto=True)
        check_integer(self, "epoch_rows", 1, 2**62, auto=True)
        check_choice(self, "initializer")
        check_number(self, "initial_bias", 0, 10)
        check_flag(self, "estimate_variance")
        check_number(self, "initial_variance", 0, math.inf, open_low=True, open_high=True)
        listed = isinstance(self.stages, (tuple, list)) and len(self.stages) > 0
        if not listed or not all(isinstance(s, StageOptions) for s in self.stages):
            fail(self, "stages", self.stages, "a non-empty tuple of StageOptions")
        object.__setattr__(self, "stages", tuple(self.stages))
        check_kind(self, "sampler", SamplerOptions)
        check_kind(self, "prior", PriorOptions)
        check_kind(self, "optimizer", OptimizerOptions)


def ridge(slab_variance: float, rate: float | Auto = "auto") -> TrainingOptions:
    """Training with the slab of the prior alone, one stage with a rate that falls to zero.

    Latent variables are sampled at temperature one with steps σ_i; coupled chains take the sampling
    noise out of the gradient. Parameters are scaled one by one, so that no rate depends on
    anybody's units.
    """
    return TrainingOptions(
        stages=(StageOptions(epochs="auto", prior="slab", rate=rate, rate_decay="cosine"),),
        prior=PriorOptions(slab_variance=slab_variance, spike_start=1e-4, spike_end=1e-4),
    )
