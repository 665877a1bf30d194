"""What a fit may be told: every option with its default, its meaning and its range.

Options are frozen dataclasses that check themselves. ``"auto"`` means that the value is set from
the data when the plan is made (:mod:`cstonet.settings.plan`); a plan holds numbers only. Those that
the kernel reads are in :mod:`cstonet.settings.training_options`, and can be had from here, too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from cstonet.errors import OptionError
from cstonet.estimators.targets import Target
from cstonet.estimators.variance import VarianceKind
from cstonet.settings.checks import (
    as_whole,
    check_bounds,
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_units,
    fail,
)
from cstonet.settings.training_options import (
    Auto,
    Decay,
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
    ridge,
)
from cstonet.shown import shown
from cstonet.suggestions import did_you_mean

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

Activation: TypeAlias = Literal["tanh", "sigmoid", "relu"]
VarianceChoice: TypeAlias = Literal[Auto, VarianceKind]
# Columns with the columns that each depends on.
Neighbours: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

LARGEST_SEED = 2**63 - 1


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
    refit_updates
        The same for a working network that goes on from another one, on nearly the same support.
    rows
        Rows that working networks learn from, if there are more. Scores see every row.
    outcome_margin, treatment_margin
        The score of a covariate that neither model holds must exceed sqrt(2 log m) by this much,
        m being the number of scores it was the largest of. A covariate that only the treatment
        depends on costs precision and removes no bias, so more is asked of it. ``"auto"``: -0.4 if
        a fold trains on fewer than 1500 rows, where much is missed, else 0.1.
    rounds
        Most rounds of growing.
    adjust
        Covariates of the final networks: ``"union"`` gives both models those found for either,
        ``"own"`` each model its own. ``"linear"`` keeps those found for the treatment alone out of
        the weights, unless a lenient test says that they may matter to the outcome; the outcome
        model has all, and the estimator's slopes remove what they do linearly.
        ``"auto"``: linear for a treatment with levels and complete covariates without mediators,
        else union.
    """

    training: TrainingOptions = field(default_factory=lambda: ridge(slab_variance=0.1, rate=2e-2))
    hidden: tuple[int, ...] = (16, 8, 4)
    updates: int = 1600
    refit_updates: int = 600
    rows: int = 20_000
    outcome_margin: float | Auto = "auto"
    treatment_margin: float = 0.5
    rounds: int = 25
    adjust: Literal[Auto, "union", "own", "linear"] = "auto"

    def __post_init__(self) -> None:
        check_kind(self, "training", TrainingOptions)
        check_units(self, "hidden")
        check_integer(self, "updates", 1, 10_000_000)
        check_integer(self, "refit_updates", 1, 10_000_000)
        check_integer(self, "rows", 1, 2**62)
        check_number(self, "outcome_margin", -3, 10, auto=True)
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
    outcome_temperature
        σ²_{h+1} of a binary or categorical outcome (paper section 2): networks train with its
        likelihood to the power 1/σ²_{h+1}; 1 in a proper model. Gaussian outcomes have a variance
        instead, and predictions, log-likelihoods and BIC are those of temperature one.
    treatment_units
        First-layer units reserved for the treatment model when the structure is searched for.
    search
        Search for the covariates first; None trains one network on all of them and prunes it.
    screen
        Sure independence screening: in every fold only so many covariates take part in the search,
        or enter the network if there is none: a few that explain most, one after the other, and
        those with the largest scores for what these leave. None: all do.
    backbone
        Whether covariates reach treatment and outcome also directly, by units of identity
        activation whose weights have penalties chosen on held-out rows; the hidden units learn what
        is left. ``"auto"``: after a search, where the treatment has levels and the covariates are
        complete, without mediators.
    updates
        Parameter updates of a stage whose epochs are ``"auto"``, on up to 10 000 training rows;
        with more, they grow with the fourth root of the rows.
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
        Share of the training rows held out to measure the noise. ``"auto"``: a tenth, but not more
        than 2000 rows.
    keep
        Covariates that all models hold in every fold, whatever the data say, and that enter the
        weights: ``["age", "sex"]``, terms of the formula such as ``"C(region)"`` with all their
        columns, or a part of it, ``"age + C(region)"``. Without a search they pass any screening
        (``screen``), but pruning may take them out, so that it needs one of the two.
    estimand
        The effect that leads the table of a treatment with levels: in everyone (``"ATE"``), among
        those who received the treatment (``"ATT"``), among those who did not (``"ATC"``), or among
        those who could have received either (``"ATO"``, overlap weights).
    clip
        The least propensity: one number for all levels, which keeps propensities within
        [clip, 1 - clip], or one for each level. ``"auto"``: 0.02 times the level's share of the
        units, so that no weight is more than fifty times the arm's mean weight; 0.01 for doses and
        mediations.
    variance
        ``"influence"``, which is ``"auto"``: variance of the influence function; ``"paper"``: V̂_τ
        of the paper's appendix, for potential-outcome means only, which relies on a right outcome
        model.
    outlier_limit
        Standardised covariates are held within ± this.
    pack_bytes
        Covariates are packed into a float32 copy up to this size, and read in place above it, with
        the same answer. ``"auto"``: 64 MB, or 512 MB where there are at most 20 000 rows, all of
        which are read again and again. More than 64 MB are packed only if they take less than a
        quarter of the memory that is left.
    imputations
        Imputations of missing covariates that the effects are averaged over.
    candidates
        Completions of a row with gaps that the networks choose from.
    neighbours
        For columns with gaps, the columns that they depend on given all others, such as
        ``{"x1": ["x2", "x3"]}``, or ``"x1: x2, x3; x4: x5"`` on the command line; those of columns
        not named are estimated.
    """

    # Averages of networks want less shrinkage than the search's single ones.
    training: TrainingOptions = field(default_factory=lambda: ridge(slab_variance=0.15, rate=2e-2))
    hidden: tuple[int, ...] | Auto = "auto"
    treatment_layer: int | Auto = "auto"
    activation: Activation = "tanh"
    treatment_weight: float = 1.0
    outcome_temperature: float = 1.0
    treatment_units: int | Auto = "auto"
    search: SearchOptions | None = field(default_factory=SearchOptions)
    screen: int | None = None
    backbone: bool | Auto = "auto"
    updates: int = 4000
    starts: int = 2
    ensemble: int = 2
    folds: int = 5
    repeats: int = 2
    validation_fraction: float | Auto = "auto"
    keep: str | Sequence[str] | None = None
    estimand: Target = "ATE"
    clip: float | tuple[float, ...] | Auto = "auto"
    variance: VarianceChoice = "auto"
    outlier_limit: float = 6.0
    pack_bytes: int | Auto = "auto"
    imputations: int = 20
    candidates: int = 50
    neighbours: Mapping[str, Sequence[str]] | Neighbours | None = None

    def __post_init__(self) -> None:
        check_kind(self, "training", TrainingOptions)
        self._check_hidden()
        check_choice(self, "activation")
        for name in ("treatment_weight", "outcome_temperature"):
            check_number(self, name, 0, math.inf, open_low=True, open_high=True)
        check_integer(self, "treatment_units", 1, 10_000, auto=True)
        check_kind(self, "search", SearchOptions, optional=True)
        if self.screen is not None:
            check_integer(self, "screen", 1, 10_000_000)
        check_flag(self, "backbone", auto=True)
        check_integer(self, "updates", 1, 10_000_000)
        check_integer(self, "starts", 1, 10_000)
        check_integer(self, "ensemble", 1, 10_000)
        check_number(self, "outlier_limit", 1, 1e6)
        check_integer(self, "folds", 1, 1000)
        check_integer(self, "repeats", 1, 1000)
        check_number(self, "validation_fraction", 0, 0.5, auto=True)
        self._check_keep()
        check_choice(self, "estimand")
        check_bounds(self, "clip", 0, 0.5)
        check_choice(self, "variance")
        check_integer(self, "pack_bytes", 0, 2**62, auto=True)
        check_integer(self, "imputations", 2, 10_000)
        check_integer(self, "candidates", 2, 100_000)
        self._check_neighbours()

    def _check_keep(self) -> None:
        """Turn names into a value that cannot change; whether they exist, the data say."""
        given = self.keep
        if given is None:
            return
        try:
            entries: tuple[object, ...] = (given,) if isinstance(given, str) else tuple(given)
        except Exception:  # nothing that can be listed
            entries = (given,)
        if not all(isinstance(e, str) and e.strip() for e in entries):
            fail(self, "keep", given, 'a list of names such as ["age", "sex"]')
        object.__setattr__(self, "keep", entries or None)

    def _check_neighbours(self) -> None:
        """Turn a mapping of names into a value that cannot change."""
        given = self.neighbours
        if given is None:
            return
        pairs = list(given.items()) if isinstance(given, Mapping) else given
        try:
            listed = isinstance(pairs, list | tuple)
            fixed = tuple((str(name), tuple(map(str, others))) for name, others in pairs)
            texts = any(isinstance(others, str) for _, others in pairs)
        except Exception:  # no pairs, or nothing that can be listed
            listed = False
        if not listed or texts:
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
                hint = did_you_mean(name, known)
                raise OptionError(
                    f"Unknown option {name!r}.{hint} The options of a fit are: {', '.join(known)}."
                )
        return dataclasses.replace(self, **changes)


def check_seed(seed: object) -> int:
    """Return the seed as an int, or raise OptionError."""
    value = as_whole(seed)
    if value is None or not 0 <= value <= LARGEST_SEED:
        raise OptionError(
            f"seed must be a whole number from 0 to {LARGEST_SEED}; got {shown(seed)}."
        )
    return value
