"""The plan of a fit: every ``"auto"`` resolved to a number, before anything is trained.

A plan is a value: two fits with equal plans on equal data give equal results. It is stored with
the results and can be written as JSON.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from cstonet.data.variables import BlockFamily
from cstonet.errors import OptionError
from cstonet.estimators.nuisances import Clip
from cstonet.estimators.targets import Target
from cstonet.settings.availability import check_estimand, kept
from cstonet.settings.estimator_plan import (
    SLOPE_RIDGE,
    adjustment,
    backbone_of,
    clip_of,
    influence_only,
)
from cstonet.settings.options import (
    Activation,
    FitOptions,
    Neighbours,
    SearchOptions,
    TrainingOptions,
    VarianceKind,
)
from cstonet.settings.training_plan import resolve_training

# Rows held out to measure the noise: 2000 give its variance to 3 %.
VALIDATION_SHARE, MOST_VALIDATION_ROWS = 0.1, 2000
# Training rows from which on the final networks have more units.
ROWS_FOR_WIDER = 1000, 20_000
# Training rows that FitOptions.updates is meant for.
ROWS_PER_UPDATES = 10_000
# Training rows from which on a search finds what there is: then fewer false covariates count more.
MANY_ROWS = 1500
MARGIN_OF_FEW_ROWS, MARGIN_OF_MANY_ROWS = -0.4, 0.1
# Up to so many rows, a copy of the covariates may take more bytes.
ROWS_READ_AGAIN = 20_000
PACKED_FEW_ROWS, PACKED_MANY_ROWS = 512 * 2**20, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Problem:
    """What a plan has to know of the data and of the analysis.

    Attributes
    ----------
    rows, inputs
        Number of rows n, and of the columns that the network reads.
    treatment, outcome
        Families of the two.
    visible_units
        Units of the treatment: one less than its levels, or one for a dose.
    whole_treatment_model
        What the analysis has that needs the whole p(A|x), such as "missing covariates"; None if
        covariates found for the treatment alone may stay out of the weights.
    no_means
        What the analysis has that makes its effects no differences of potential-outcome means,
        such as "mediators"; None if they are.
    shares
        Of the arms among all rows, if propensities are bounded in relation to them.
    """

    rows: int
    inputs: int
    treatment: BlockFamily
    outcome: BlockFamily
    visible_units: int
    whole_treatment_model: str | None = None
    no_means: str | None = None
    shares: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Architecture:
    """Widths and visible families of a network, and where in it the treatment stands.

    Attributes
    ----------
    inputs
        Covariates.
    hidden
        Units of the hidden layers; the treatment counts as one in its layer.
    treatment_layer
        Hidden layer that holds the treatment, from 1.
    treatment, outcome
        Families of the two.
    visible_units
        Units of the treatment there.
    treatment_units
        Units of the treatment model below its layer, where the structure is searched for.
    activation
        ψ of the latent units.
    treatment_weight
        Factor on the treatment's log-likelihood while training.
    outcome_temperature
        The likelihood of an outcome without a variance has the inverse as its exponent meanwhile.
    """

    inputs: int
    hidden: tuple[int, ...]
    treatment_layer: int
    treatment: BlockFamily
    outcome: BlockFamily
    visible_units: int
    treatment_units: int
    activation: Activation
    treatment_weight: float
    outcome_temperature: float

    @property
    def widths(self) -> tuple[int, ...]:
        """Layer widths from covariates to outcome."""
        more = [0] * len(self.hidden)
        more[self.treatment_layer - 1] = self.visible_units - 1
        hidden = [width + extra for width, extra in zip(self.hidden, more, strict=True)]
        return (self.inputs, *hidden, 1)

    @property
    def label(self) -> str:
        """The widths, as in ``"100-8-6-5-1"``."""
        return "-".join(map(str, self.widths))

    def weights(self, inputs: int) -> int:
        """Weights of the unpruned network on so many of the covariates."""
        return sum(a * b for a, b in pairwise((inputs, *self.widths[1:])))


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, in numbers.

    Attributes
    ----------
    preset
        Name of the preset the options came from.
    network
        The final networks, on all covariates that may enter them.
    training
        Training options without ``"auto"``.
    search, search_network
        The same for the working networks of the structure search; None without one.
    refitting
        Training options of working networks that go on from another one.
    backbone
        Whether there are linear parts of treatment and outcome.
    keep
        Names of the covariates that all models hold.
    slope_ridge
        How firmly the estimator's slopes are held, see :mod:`cstonet.estimators.linear_terms`.
    screen, starts, ensemble, folds, repeats, seed, validation_fraction, estimand, clip, variance,
    outlier_limit, pack_bytes, imputations, candidates, neighbours
        See :class:`cstonet.settings.options.FitOptions`.
    """

    preset: str
    network: Architecture
    training: TrainingOptions
    search: SearchOptions | None
    search_network: Architecture | None
    refitting: TrainingOptions | None
    backbone: bool
    screen: int | None
    starts: int
    ensemble: int
    folds: int
    repeats: int
    seed: int
    validation_fraction: float
    keep: tuple[str, ...]
    estimand: Target
    clip: Clip
    slope_ridge: float
    variance: VarianceKind
    outlier_limit: float
    pack_bytes: int
    imputations: int
    candidates: int
    neighbours: Neighbours | None

    @property
    def network_label(self) -> str:
        """Layer widths from covariates to outcome."""
        return self.network.label

    @property
    def unites_supports(self) -> bool:
        """Whether both models adjust for the covariates found for either."""
        return self.search is not None and self.search.adjust == "union"

    @property
    def adjusts_linearly(self) -> bool:
        """Whether covariates found for the treatment alone may stay out of the weights."""
        return self.search is not None and self.search.adjust == "linear"

    @property
    def single_clip(self) -> float:
        """The bound of analyses that have one for all levels or doses."""
        if isinstance(self.clip, tuple):
            raise ValueError("every level has a bound of its own")
        return self.clip

    @property
    def clip_by_share(self) -> bool:
        """Whether least propensities follow the arms' shares."""
        return isinstance(self.clip, tuple)

    @property
    def adjusts_by_slopes(self) -> bool:
        """Whether the estimator of arms gives slopes to covariates, also to those not found."""
        return self.backbone or self.adjusts_linearly

    def to_dict(self) -> dict[str, Any]:
        """The plan as nested dictionaries."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


def make_plan(problem: Problem, options: FitOptions, *, preset: str, seed: int) -> Plan:
    """Resolve every automatic option for this problem."""
    # Rows the gradient sees in each fold.
    folds = options.folds
    in_training = problem.rows if folds == 1 else problem.rows * (folds - 1) / folds
    validation_fraction = _validation_fraction(options, in_training)
    rows = max(1, int(in_training * (1 - validation_fraction)))
    hidden = automatic_widths(rows) if options.hidden == "auto" else options.hidden
    layer = middle_layer(hidden) if options.treatment_layer == "auto" else options.treatment_layer
    if layer > len(hidden):
        raise OptionError(
            f"treatment_layer={layer}, but the network has {len(hidden)} hidden layers {hidden}."
        )
    _check_validation(options)
    network = _architecture(problem, options, hidden, layer, options.treatment_units)
    inputs = min(problem.inputs, options.screen or problem.inputs)
    search, search_network, refitting = options.search, None, None
    if search is not None:
        middle = middle_layer(search.hidden)
        search_network = _architecture(problem, options, search.hidden, middle, "auto")
        training, refitting = (
            resolve_training(
                search.training,
                depth=len(search.hidden),
                rows=min(rows, search.rows),
                updates=updates,
                weights=search_network.weights(inputs),
            )
            for updates in (search.updates, search.refit_updates)
        )
        adjust = adjustment(search, problem.whole_treatment_model)
        margin = _outcome_margin(search, in_training)
        search = dataclasses.replace(
            search, training=training, adjust=adjust, outcome_margin=margin
        )
    variance: VarianceKind = "influence" if options.variance == "auto" else options.variance
    if problem.no_means is not None:
        variance = influence_only(options.variance, problem.no_means)
        check_estimand(options.estimand, problem.no_means)
    return Plan(
        preset=preset,
        network=network,
        training=resolve_training(
            options.training,
            depth=len(hidden),
            rows=rows,
            updates=_updates(options.updates, rows),
            weights=network.weights(inputs),
        ),
        search=search,
        search_network=search_network,
        refitting=refitting,
        backbone=backbone_of(options, problem.whole_treatment_model or problem.no_means),
        screen=options.screen,
        starts=options.starts,
        ensemble=min(options.ensemble, options.starts),
        folds=options.folds,
        repeats=options.repeats,
        seed=seed,
        validation_fraction=validation_fraction,
        keep=kept(options),
        estimand=options.estimand,
        clip=clip_of(options, problem.shares),
        slope_ridge=SLOPE_RIDGE,
        variance=variance,
        outlier_limit=options.outlier_limit,
        pack_bytes=_pack_bytes(options, problem.rows),
        imputations=options.imputations,
        candidates=options.candidates,
        neighbours=_fixed(options.neighbours),
    )


def _validation_fraction(options: FitOptions, rows: float) -> float:
    """Share of so many training rows that is held out."""
    if not isinstance(options.validation_fraction, str):
        return options.validation_fraction
    return min(VALIDATION_SHARE, MOST_VALIDATION_ROWS / rows)


def _outcome_margin(search: SearchOptions, rows: float) -> float:
    """By how much scores must exceed the largest of as many null ones."""
    if not isinstance(search.outcome_margin, str):
        return search.outcome_margin
    return MARGIN_OF_MANY_ROWS if rows >= MANY_ROWS else MARGIN_OF_FEW_ROWS


def _pack_bytes(options: FitOptions, rows: int) -> int:
    """The largest copy of the covariates: a search among many rows reads few of them at a time."""
    if not isinstance(options.pack_bytes, str):
        return options.pack_bytes
    return PACKED_MANY_ROWS if rows > ROWS_READ_AGAIN else PACKED_FEW_ROWS


def _updates(updates: int, rows: int) -> int:
    """Updates of the final networks: more rows have more to say, though each of them less."""
    growth: float = max(1.0, rows / ROWS_PER_UPDATES) ** 0.25
    return round(updates * growth)


def _check_validation(options: FitOptions) -> None:
    for training in (options.training, *([options.search.training] if options.search else [])):
        if training.estimate_variance and options.validation_fraction == 0:
            raise OptionError(
                "validation_fraction=0 leaves no rows to measure the noise on. Hold out some, or "
                "set estimate_variance=False in the training options."
            )


def _architecture(
    problem: Problem,
    options: FitOptions,
    hidden: tuple[int, ...],
    layer: int,
    units: int | Literal["auto"],
) -> Architecture:
    """A network with these hidden layers, the treatment in one of them (from 1)."""
    if hidden[layer - 1] < 2:
        raise OptionError(
            f"Hidden layer {layer} holds the treatment and needs at least one unit besides: give "
            f"it 2 or more units in hidden={hidden}."
        )
    return Architecture(
        inputs=_inputs(problem, options),
        hidden=hidden,
        treatment_layer=layer,
        treatment=problem.treatment,
        outcome=problem.outcome,
        visible_units=problem.visible_units,
        treatment_units=_treatment_units(hidden[: layer - 1], units, problem.visible_units),
        activation=options.activation,
        treatment_weight=options.treatment_weight,
        outcome_temperature=options.outcome_temperature,
    )


def _inputs(problem: Problem, options: FitOptions) -> int:
    """Covariates that may enter a network: without a search, those that pass the screening."""
    if options.search is not None or options.screen is None:
        return problem.inputs
    return min(options.screen, problem.inputs)


def _fixed(neighbours: Mapping[str, Sequence[str]] | Neighbours | None) -> Neighbours | None:
    """The neighbours as the options hold them, once checked."""
    return neighbours if neighbours is None or isinstance(neighbours, tuple) else None


def automatic_widths(rows: int) -> tuple[int, int, int]:
    """Hidden units for so many training rows.

    The ridge of the slab, not the width, bounds the complexity of the fit: twice the units gain
    nothing. The kernel computes sixteen units at the price of one.
    """
    if rows < ROWS_FOR_WIDER[0]:
        return 16, 10, 5
    return (24, 16, 8) if rows < ROWS_FOR_WIDER[1] else (32, 16, 8)


def middle_layer(hidden: tuple[int, ...]) -> int:
    """Layer of the treatment, from 1: those before describe covariates, those after see it."""
    return (len(hidden) + 1) // 2


def _treatment_units(below: tuple[int, ...], wanted: int | Literal["auto"], visible: int) -> int:
    """Units of the treatment model in each layer below the treatment's."""
    narrowest = min(below, default=2)
    # L levels have L-1 predictors, which fewer units could not tell apart.
    automatic = max(1, min(max(visible, narrowest // 4), narrowest - 1))
    units = automatic if wanted == "auto" else wanted
    if units >= narrowest:
        raise OptionError(
            f"{units} unit(s) for the treatment model leave the outcome model none in a layer of "
            f"{narrowest}: widen the layers before the treatment's, or lower treatment_units."
        )
    return units
