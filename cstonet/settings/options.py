"""Every option: its default, its meaning and its range, in one place.

Options are frozen dataclasses that check themselves. ``"auto"`` means that the value is set from
the data when the plan is made (:mod:`cstonet.settings.plan`); a plan holds numbers only. The
dataclasses up to :class:`TrainingOptions` mirror the structs of ``csrc/core/options.hpp`` field
by field.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from cstonet.errors import OptionError
from cstonet.estimators.variance import VarianceKind
from cstonet.settings.checks import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_positive_tuple,
    check_units,
    fail,
)

__all__ = [
    "LARGEST_SEED",
    "Activation",
    "Auto",
    "Decay",
    "FitOptions",
    "Neighbours",
    "OptimizerOptions",
    "PriorOptions",
    "SamplerOptions",
    "SearchOptions",
    "StageOptions",
    "TrainingOptions",
    "VarianceChoice",
    "VarianceKind",
    "check_seed",
]

Auto: TypeAlias = Literal["auto"]
Activation: TypeAlias = Literal["tanh", "sigmoid", "relu"]
Decay: TypeAlias = Literal["none", "polynomial", "cosine"]
VarianceChoice: TypeAlias = Literal[Auto, VarianceKind]
# Columns with the columns that each depends on.
Neighbours: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

LARGEST_SEED = 2**63 - 1


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
    variance
        σ_i² of the latent layers, i = 1..h.
    """

    sweeps: int = 1
    friction: float = 1.0
    temperature: float = 0.0
    variance: tuple[float, ...] | Auto = "auto"

    def __post_init__(self) -> None:
        check_integer(self, "sweeps", 1, 1000)
        check_number(self, "friction", 0, 1, open_low=True)
        check_number(self, "temperature", 0, math.inf, open_high=True)
        check_positive_tuple(self, "variance")


@dataclass(frozen=True, slots=True)
class PriorOptions:
    """The mixture-Gaussian prior λ N(0, σ1²) + (1-λ) N(0, σ0²) on the weights (paper eq. 7).

    Parameters
    ----------
    inclusion
        λ_n, the prior probability of a weight being in the slab.
    slab_variance
        σ²_{1,n}.
    spike_start, spike_end
        σ²_{0,n} at the start and at the end of the annealing; equal: no annealing.
    anneal_share
        Share of a stage's epochs over which the spike narrows.
    penalize_bias
        Does the prior act on biases too?
    """

    inclusion: float = 1e-6
    slab_variance: float = 1.0
    spike_start: float = 1e-2
    spike_end: float = 1e-4
    anneal_share: float = 0.6
    penalize_bias: bool = False

    def __post_init__(self) -> None:
        check_number(self, "inclusion", 0, 1, open_low=True, open_high=True)
        check_number(self, "slab_variance", 0, math.inf, open_low=True, open_high=True)
        for name in ("spike_start", "spike_end"):
            check_number(self, name, 0, self.slab_variance, open_low=True, open_high=True)
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
        γ_i of the layers, i = 1..h+1; ``"auto"`` is 1e-2 for every layer.
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
    rate: tuple[float, ...] | Auto = "auto"
    step: tuple[float, ...] | Auto = "auto"
    rate_decay: Decay = "none"
    rate_exponent: float = 1.0
    step_decay: Literal["none", "polynomial"] = "none"
    step_exponent: float = 1.0

    def __post_init__(self) -> None:
        check_integer(self, "epochs", 0, 1_000_000, auto=True)
        check_choice(self, "prior")
        check_flag(self, "prune")
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
    initializer
        ``"normal"`` N(0, 1/inputs) or ``"uniform"`` on ±1/√inputs.
    initial_bias
        Scale of the initial biases of the hidden layers.
    estimate_variance
        Estimate the variance of gaussian outcomes from held-out rows every epoch?
    initial_variance
        That variance at the start (the outcome is standardised).
    sampler, prior, optimizer, stages
        See the classes.
    """

    stages: tuple[StageOptions, ...]
    batch_size: int | Auto = "auto"
    initializer: Literal["normal", "uniform"] = "normal"
    initial_bias: float = 0.3
    estimate_variance: bool = True
    initial_variance: float = 1.0
    sampler: SamplerOptions = field(default_factory=SamplerOptions)
    prior: PriorOptions = field(default_factory=PriorOptions)
    optimizer: OptimizerOptions = field(default_factory=OptimizerOptions)

    def __post_init__(self) -> None:
        check_integer(self, "batch_size", 1, 1_000_000, auto=True)
        check_choice(self, "initializer")
        check_number(self, "initial_bias", 0, 10)
        check_flag(self, "estimate_variance")
        check_number(self, "initial_variance", 0, math.inf, open_low=True, open_high=True)
        if not self.stages or not all(isinstance(s, StageOptions) for s in self.stages):
            fail(self, "stages", self.stages, "a non-empty tuple of StageOptions")
        check_kind(self, "sampler", SamplerOptions)
        check_kind(self, "prior", PriorOptions)
        check_kind(self, "optimizer", OptimizerOptions)


def ridge(slab_variance: float) -> TrainingOptions:
    """Training with the slab of the prior alone, one stage with a rate that falls to zero.

    Latent moves are at temperature zero with steps σ_i, where the sweep's gradient is exact; the
    parameters are scaled one by one, so that no rate depends on anybody's units.
    """
    return TrainingOptions(
        stages=(StageOptions(epochs="auto", prior="slab", rate_decay="cosine"),),
        prior=PriorOptions(slab_variance=slab_variance, spike_start=1e-4, spike_end=1e-4),
    )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Search for the covariates of each model, from the empty support outwards.

    The search alternates refits on the current support with two moves: grow, by score tests of the
    weights that are not in the network, and prune, by the same test of those that are.

    Parameters
    ----------
    training
        How the working networks are trained.
    hidden
        Units of the working networks.
    updates
        Parameter updates of a stage whose epochs are ``"auto"``.
    outcome_margin, treatment_margin
        The score of a covariate that neither model holds must exceed sqrt(2 log m) by this much,
        m being the number of scores it was the largest of. A covariate that only the treatment
        depends on costs precision and removes no bias, so more is asked of it.
    rounds
        Most rounds of growing.
    adjust
        Covariates of the final networks: ``"union"`` gives both models those found for either,
        ``"own"`` each model its own. ``"linear"`` keeps those found for the treatment alone out of
        the weights, unless a lenient test says that they may matter to the outcome; the outcome
        model has all, and the estimator removes what they do linearly and alike in all arms.
        ``"auto"``: linear for a treatment with levels and complete covariates without mediators,
        else union.
    """

    training: TrainingOptions = field(default_factory=lambda: ridge(slab_variance=0.1))
    hidden: tuple[int, ...] = (16, 8, 4)
    updates: int = 2400
    outcome_margin: float = 0.1
    treatment_margin: float = 1.0
    rounds: int = 25
    adjust: Literal[Auto, "union", "own", "linear"] = "auto"

    def __post_init__(self) -> None:
        check_kind(self, "training", TrainingOptions)
        check_units(self, "hidden")
        check_integer(self, "updates", 1, 10_000_000)
        check_number(self, "outcome_margin", -3, 10)
        check_number(self, "treatment_margin", -3, 10)
        check_integer(self, "rounds", 1, 1000)
        check_choice(self, "adjust")


@dataclass(frozen=True, slots=True)
class FitOptions:
    """Everything a fit may be told. Presets are values of this class.

    The defaults are the preset ``"calibrated"``: a search for the covariates, then networks on
    those found, trained with a ridge from the slab and with noise measured on held-out rows.

    Parameters
    ----------
    training
        How each network is trained.
    hidden
        Units of the hidden layers; the treatment counts as one in its layer, whatever its levels.
    treatment_layer
        Hidden layer that holds the treatment, counted from 1.
    activation
        ψ of the latent units.
    treatment_weight
        Factor on the treatment's log-likelihood while training; 1 in a proper model.
    treatment_units
        First-layer units reserved for the treatment model when the structure is searched for.
    search
        Search for the covariates first; None trains one network on all of them and prunes it.
    screen
        Sure independence screening: in every fold only so many covariates, those with the largest
        marginal scores, take part in the search; None: all do.
    updates
        Parameter updates of a stage whose epochs are ``"auto"``.
    starts
        Random starts per fold.
    ensemble
        How many starts of smallest BIC are averaged (at most all); 1 uses the best alone.
    folds
        Folds of the cross-fitting; 1 trains and estimates on the same rows.
    repeats
        Repetitions of the whole cross-fitting with other folds and starts, averaged. Standard
        errors are those of one repetition, plus what they differ by.
    validation_fraction
        Share of the training rows held out to measure the noise.
    clip
        Propensities are clipped to [clip, 1 - clip].
    variance
        ``"paper"``: V̂_τ of the paper's appendix; ``"influence"``: variance of the influence
        function, the only one for doses and mediations; ``"auto"``: the first where there is one.
    outlier_limit
        Standardised covariates are held within ± this.
    pack_bytes
        Covariates are packed into a float32 copy up to this size, and read in place above it.
    imputations
        Imputations of missing covariates that the effects are averaged over.
    candidates
        Completions of a row with gaps that the networks choose from.
    neighbours
        For columns with gaps, the columns that they depend on given all others, such as
        ``{"x1": ["x2", "x3"]}``; those of columns not named are estimated.
    """

    # Averages of networks want less shrinkage than the search's single ones.
    training: TrainingOptions = field(default_factory=lambda: ridge(slab_variance=0.2))
    hidden: tuple[int, ...] | Auto = "auto"
    treatment_layer: int | Auto = "auto"
    activation: Activation = "tanh"
    treatment_weight: float = 1.0
    treatment_units: int | Auto = "auto"
    search: SearchOptions | None = field(default_factory=SearchOptions)
    screen: int | None = None
    updates: int = 4000
    starts: int = 2
    ensemble: int = 2
    folds: int = 5
    repeats: int = 2
    validation_fraction: float = 0.1
    clip: float = 0.01
    variance: VarianceChoice = "auto"
    outlier_limit: float = 6.0
    pack_bytes: int = 4 * 2**30
    imputations: int = 20
    candidates: int = 50
    neighbours: Mapping[str, Sequence[str]] | Neighbours | None = None

    def __post_init__(self) -> None:
        check_kind(self, "training", TrainingOptions)
        self._check_hidden()
        check_choice(self, "activation")
        check_number(self, "treatment_weight", 0, math.inf, open_low=True, open_high=True)
        check_integer(self, "treatment_units", 1, 10_000, auto=True)
        check_kind(self, "search", SearchOptions, optional=True)
        if self.screen is not None:
            check_integer(self, "screen", 1, 10_000_000)
            if self.search is None:
                fail(self, "screen", self.screen, "None, because without a search nothing screens")
        check_integer(self, "updates", 1, 10_000_000)
        check_integer(self, "starts", 1, 10_000)
        check_integer(self, "ensemble", 1, 10_000)
        check_number(self, "outlier_limit", 1, 1e6)
        check_integer(self, "folds", 1, 1000)
        check_integer(self, "repeats", 1, 1000)
        check_number(self, "validation_fraction", 0, 0.5)
        check_number(self, "clip", 0, 0.5, open_high=True)
        check_choice(self, "variance")
        check_integer(self, "pack_bytes", 0, 2**62)
        check_integer(self, "imputations", 2, 10_000)
        check_integer(self, "candidates", 2, 100_000)
        self._check_neighbours()

    def _check_neighbours(self) -> None:
        """Turn a mapping of names into a value that cannot change."""
        given = self.neighbours
        if given is None:
            return
        pairs = given.items() if isinstance(given, Mapping) else given
        try:
            fixed = tuple((str(name), tuple(map(str, others))) for name, others in pairs)
        except (TypeError, ValueError):
            fixed = ()
        texts = any(isinstance(others, str) for _, others in pairs) if fixed else True
        if texts and given:
            fail(self, "neighbours", given, 'a mapping such as {"x1": ["x2", "x3"]}')
        object.__setattr__(self, "neighbours", fixed)

    def _check_hidden(self) -> None:
        if isinstance(self.hidden, str) and self.hidden == "auto":
            check_integer(self, "treatment_layer", 1, 100, auto=True)
            return
        check_units(self, "hidden")
        check_integer(self, "treatment_layer", 1, len(self.hidden), auto=True)

    def replace(self, **changes: Any) -> FitOptions:
        """A copy with some options changed; an unknown name says what was probably meant."""
        known = [f.name for f in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise OptionError(
                    f"Unknown option {name!r}.{hint} The options of a fit are: {', '.join(known)}."
                )
        return dataclasses.replace(self, **changes)


def check_seed(seed: object) -> int:
    """Return the seed as an int, or raise OptionError."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise OptionError(f"seed must be a whole number from 0 to {LARGEST_SEED}; got {seed!r}.")
    value = int(seed.__index__())
    if not 0 <= value <= LARGEST_SEED:
        raise OptionError(f"seed must be a whole number from 0 to {LARGEST_SEED}; got {seed!r}.")
    return value
