"""Working networks of the structure search: small fits on a support, and what they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.data.variables import Family
from cstonet.errors import NumericalError
from cstonet.network.covariates import Covariates, FoldCovariates
from cstonet.network.divergence import divergence_advice
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Structure, Wiring
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training import Carried, train_starts
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.search.predictors import FirstLayerSlopes, Scored
from cstonet.search.projection import OwnDirections
from cstonet.search.scores import ScoreTests
from cstonet.settings.options import TrainingOptions
from cstonet.streams import Stream

# Kernel tasks of the search are told from final starts by their start numbers.
_FIRST_SEARCH_START = 1_000_000
# Directions x_s of the support's own members: products with new covariates.
_MOST_PRODUCTS = 16
# A probability that no model is more certain of, as far as the information of a row goes.
_RARE = 1e-3


class Pool(Protocol):
    """Completions of rows with gaps that a network trains on."""

    @property
    def candidates(self) -> _core.Candidates:
        """As the kernel reads them."""


PoolT = TypeVar("PoolT", bound=Pool)


class Imputer(Protocol[PoolT]):
    """What a search needs of the imputation of missing covariates."""

    def draw(self, inputs: NDArray[np.int64]) -> PoolT:
        """Completions of rows with gaps, for a network that reads these covariates."""

    def update(self, pool: PoolT, networks: Sequence[TrainedNetwork]) -> TrainingData:
        """Complete the covariates as networks see them that were trained on a pool."""


@dataclass(frozen=True, slots=True)
class Working:
    """Residuals of a working network on the training rows, and the directions of each.

    The treatment's residuals are those of all its levels: leaving one out would make the search
    depend on which level is the reference. Two levels share one residual, up to its sign.
    """

    outcome: tuple[Scored, ...]
    treatment: tuple[Scored, ...]


class WorkingNetworks(Generic[PoolT]):
    """The working networks of one fold's search, one refit after the other.

    Parameters
    ----------
    data
        Shared by all folds; those of the imputer, if there is one.
    place
        The fold's rows, random streams and threads.
    network
        The working network, for any number of inputs.
    training, refitting
        Resolved options: of networks from random weights, and of those that go on from another.
    rows
        Rows to learn from, if there are more.
    treatment_units
        First-layer units of the treatment model.
    imputer
        Completes covariates with gaps after each refit; None if there are none.

    Attributes
    ----------
    data
        As the latest refit has completed them.
    place
        As given.
    rows : (m,)
        Those that residuals are taken of: first those to learn from, where there are more; then all
        fitted and validation rows.
    sees_all
        Whether it is all of them.
    rescues
        Why networks were trained again with smaller steps.
    """

    def __init__(
        self,
        data: TrainingData,
        place: Workplace,
        network: NetworkSpec,
        training: TrainingOptions,
        refitting: TrainingOptions,
        *,
        rows: int,
        treatment_units: int,
        imputer: Imputer[PoolT] | None = None,
    ) -> None:
        self.data = data
        self.place = place
        self._network = network
        self._training, self._refitting = training, refitting
        self._learns_from = _thinned(data, place, rows)
        self.sees_all = len(self._learns_from) == len(place.split.fit)
        self.rows = place.split.known if self.sees_all else self._learns_from
        self._treatment_units = treatment_units
        self._imputer = imputer
        self.rescues: list[str] = []
        self._refits = 0
        self._kept: tuple[Structure, Working] | None = None
        # Networks to go on from: the one behind what was last kept, and the latest.
        self._trained: list[tuple[Structure, Carried]] = []
        self._covariates: FoldCovariates | None = None

    @property
    def covariates(self) -> FoldCovariates:
        """The covariates on the rows that residuals are taken of, as the latest refit has them."""
        known = self._covariates
        if known is None or known.covariates is not self.data.covariates:
            known = self._covariates = FoldCovariates(
                self.data.covariates, self.rows, threads=self.threads, stop=self.stop
            )
        return known

    def look_at_all(self) -> None:
        """From here on, take residuals of all rows."""
        if self.sees_all:
            return
        self.rows, self.sees_all = self.place.split.known, True
        self._kept = self._covariates = None

    @property
    def rarest(self) -> int:
        """Units of the smallest arm among the fold's rows; all of them, if there are doses."""
        if self._network.continuous:
            return len(self.rows)
        others = self.data.treatment[self.rows].sum(axis=0)
        return int(min(others.min(), len(self.rows) - others.sum()))

    @property
    def fold(self) -> int:
        """Position among the folds of all repetitions."""
        return self.place.split.index

    @property
    def threads(self) -> int:
        """Threads to use."""
        return self.place.threads

    @property
    def stop(self) -> Callable[[int], object] | None:
        """Called now and then; may raise to stop."""
        return self.place.stop

    @property
    def latest(self) -> tuple[Structure, Working]:
        """The network last kept, and the supports that it is on."""
        if self._kept is None:
            raise RuntimeError("no network has been kept yet")
        return self._kept

    def kept(self, structure: Structure, *, renew: bool = False) -> Working:
        """The network last kept if it is on this structure and not to be renewed, or a new one."""
        if renew or self._kept is None or self._kept[0] != structure:
            self._kept = structure, self.refit(structure)
            del self._trained[:-1]
        return self._kept[1]

    def refit(self, structure: Structure) -> Working:
        """Train a working network on the supports and take its residuals and directions."""
        start = _FIRST_SEARCH_START + self._refits
        self._refits += 1
        if len(structure.inputs) == 0 and self._imputer is None and not self._network.continuous:
            return without_covariates(self.data, self.rows)  # the arms' means need no network
        wiring = Wiring.sparse(self._network, structure, self._treatment_units)
        previous = self._nearest(structure)
        pool = None if self._imputer is None else self._imputer.draw(wiring.inputs)
        result = self._train(wiring, start, previous, None if pool is None else pool.candidates)
        net = TrainedNetwork.from_task(self.fold, start, wiring, result)
        self._trained[1:] = [(structure, Carried(net.inputs, result))]
        if self._imputer is not None and pool is not None:
            self.data = self._imputer.update(pool, [net])
        return self._residuals(net, structure)

    def _nearest(self, structure: Structure) -> Carried | None:
        """The network to go on from: the one that lacks the least, then the one to lose the least.

        None if no network has learned from a covariate that is still there.
        """
        useful = [
            (structure.beyond(known), known.beyond(structure), network)
            for known, network in self._trained
            if np.isin(known.inputs, structure.inputs).any()
        ]
        return min(useful, key=lambda one: one[:2])[2] if useful else None

    def _train(
        self,
        wiring: Wiring,
        start: int,
        previous: Carried | None,
        candidates: _core.Candidates | None,
    ) -> _core.TaskResult:
        (trained,) = train_starts(
            self.place,
            wiring,
            self._training if previous is None else self._refitting,
            self.data,
            [start],
            candidates=candidates,
            rows=self._learns_from,
            previous=previous,
            trace=False,
        )
        if trained.failure:
            raise NumericalError(
                f"A working network of the structure search diverged (fold {self.fold + 1}: "
                f"{trained.failure}). "
                + divergence_advice(trained.failure, "FitOptions.search.training")
            )
        if trained.rescue:
            self.rescues.append(trained.rescue)
        return trained.result

    def _residuals(self, net: TrainedNetwork, structure: Structure) -> Working:
        """What a network leaves of treatment and outcome, and where covariates could enter."""
        data, rows = self.data, self.rows
        received = data.visible[rows, : -len(data.families)]
        expected, mean = expected_units(net, data.covariates, rows, received, self.threads)
        residuals = data.outcome[rows] - expected
        surprise = all_levels(received - mean)
        modifiers = surprise.astype(np.float32)
        covariates, width = self.covariates, net.spec.treatment_width
        own = [
            FirstLayerSlopes.of(net, received, unit, covariates)
            for unit in range(width + net.spec.units[-1])
        ]
        level_slopes: list[FirstLayerSlopes | None] = list(own[:width])
        if width > 1:  # the reference has no predictor, hence no slopes
            level_slopes.append(None)
        members = structure.outcome[:_MOST_PRODUCTS], structure.treatment[:_MOST_PRODUCTS]
        outcome_own, treatment_own = own_directions(
            data, structure, received, expected, None if net.spec.continuous else mean
        )
        return Working(
            outcome=tuple(
                Scored(residual, modifiers, slopes, members[0], known)
                for residual, slopes, known in zip(
                    residuals.T, own[width:], outcome_own, strict=True
                )
            ),
            treatment=tuple(
                Scored(residual, None, slopes, members[1], known)
                for residual, slopes, known in zip(
                    surprise.T, level_slopes, treatment_own, strict=True
                )
            ),
        )


def _thinned(data: TrainingData, place: Workplace, most: int) -> NDArray[np.int64]:
    """At most so many of the rows that a fold fits to, spread evenly over arms and outcomes."""
    rows = place.split.fit
    if len(rows) <= most:
        return rows
    # A systematic sample of the rows in the order of treatment, then outcome.
    ranked = rows[np.lexsort(data.visible[rows].T[::-1])]
    offset = Stream.SEARCH_ROWS.generator(place.seed, place.split.index).random()
    places = ((np.arange(most) + offset) * (len(ranked) / most)).astype(np.int64)
    return np.sort(ranked[places])


def all_levels(surprise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Residuals of all treatment levels, (m, L), from those of all but the reference, (m, L-1).

    Two levels, or a dose, keep their one.
    """
    if surprise.shape[1] == 1:
        return surprise
    return np.column_stack([surprise, -surprise.sum(axis=1)])


def without_covariates(data: TrainingData, rows: NDArray[np.int64]) -> Working:
    """What models without covariates leave of treatment and outcome, on some rows.

    The treatment's model is its mean. The outcome's is a regression on the treatment, which gives
    every arm its own mean, and to a dose a line.
    """
    weights = data.weights[rows].astype(np.float64)
    treatment, outcome = data.treatment[rows], data.outcome[rows]
    received = np.column_stack([np.ones(len(rows)), treatment])
    root = np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(root * received, root * outcome, rcond=None)[0]
    expected = received @ slopes
    surprise = all_levels(treatment - np.average(treatment, axis=0, weights=weights))
    modifiers = surprise.astype(np.float32)
    own = own_directions(data, Structure(), treatment.astype(np.float32), expected, None)
    return Working(
        outcome=tuple(
            Scored(residual, modifiers, own=known)
            for residual, known in zip((outcome - expected).T, own[0], strict=True)
        ),
        treatment=tuple(
            Scored(residual, own=known) for residual, known in zip(surprise.T, own[1], strict=True)
        ),
    )


def own_directions(
    data: TrainingData,
    structure: Structure,
    received: NDArray[np.float32],
    expected: NDArray[np.float64],
    mean: NDArray[np.float64] | None,
) -> tuple[list[OwnDirections], list[OwnDirections]]:
    """Directions of every outcome, and of every level of the treatment, of models on m rows.

    Parameters
    ----------
    data
        Says of which families the outcomes are.
    structure
        The supports.
    received : (m, L-1)
        The treatment.
    expected : (m, J)
        Outcomes that the models expect.
    mean : (m, L-1), optional
        Probabilities of the treatment's units; None where rows do not differ in their information
        about the treatment: a dose, or a model without covariates.
    """
    same = np.ones(len(received))
    outcome = [
        OwnDirections(
            outcome_information(column, family),
            structure.outcome,
            received,
        )
        for column, family in zip(expected.T, data.families, strict=True)
    ]
    levels = 1 if received.shape[1] == 1 else received.shape[1] + 1
    if mean is None:
        return outcome, [OwnDirections(same, structure.treatment)] * levels
    known = mean if levels == 1 else np.column_stack([mean, 1 - mean.sum(axis=1)])
    return outcome, [OwnDirections(binary_information(p), structure.treatment) for p in known.T]


def outcome_information(expected: NDArray[np.float64], family: Family) -> NDArray[np.float64]:
    """How much rows know about the predictor of an outcome that is expected there, (m,)."""
    if family == "binomial":
        return binary_information(expected)
    if family == "poisson":  # in units of the mean; a line may expect less than nothing
        return np.maximum(expected, _RARE)
    return np.ones(len(expected))


def binary_information(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of a binary variable of this probability, at least that of a rare event, (m,)."""
    inner = np.clip(probability, _RARE, 1 - _RARE)
    return inner * (1 - inner)


def weighted_tests(
    data: TrainingData, covariates: FoldCovariates, parts: Sequence[Scored]
) -> ScoreTests:
    """Score tests of a model's predictors on the rows of a fold, which count with their weights."""
    weights = data.weights[covariates.rows].astype(np.float64)
    return ScoreTests(
        covariates,
        [part.weighted(weights) for part in parts],
    )


def expected_units(
    net: TrainedNetwork,
    data: Covariates,
    rows: NDArray[np.int64],
    received: NDArray[np.float32],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outcomes (m, J) and treatment units (m, L-1) that a network expects of m rows.

    The outcomes are those under the treatment received, as dummies or a dose (m, L-1).
    """
    means = net.means_received(data, rows, received, threads)
    width = net.spec.treatment_width
    return means[:, width:], means[:, :width]
