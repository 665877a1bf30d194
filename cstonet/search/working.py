"""Working networks of the structure search: small fits on a support, and what they leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.errors import NumericalError
from cstonet.network.forward import ForwardPass
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Structure, Wiring
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training import divergence_advice, train_starts
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.search.scores import Scored, ScoreTests, normalised
from cstonet.settings.options import TrainingOptions

# Kernel tasks of the search are told from final starts by their start numbers.
_FIRST_SEARCH_START = 1_000_000
# Directions x_s of the support's own members: products with new covariates.
_MOST_PRODUCTS = 16


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
    training
        Resolved options.
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
        Those that residuals are taken of: fitted and validation rows.
    """

    def __init__(
        self,
        data: TrainingData,
        place: Workplace,
        network: NetworkSpec,
        training: TrainingOptions,
        *,
        treatment_units: int,
        imputer: Imputer[PoolT] | None = None,
    ) -> None:
        self.data = data
        self.rows = place.split.known
        self.place = place
        self._network = network
        self._training = training
        self._treatment_units = treatment_units
        self._imputer = imputer
        self._refits = 0
        self._kept: tuple[Structure, Working] | None = None

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
        return self._kept[1]

    def refit(self, structure: Structure) -> Working:
        """Train a working network on the supports and take its residuals and directions."""
        wiring = Wiring.sparse(self._network, structure, self._treatment_units)
        start = _FIRST_SEARCH_START + self._refits
        self._refits += 1
        if self._imputer is None:
            return self._residuals(self._train(wiring, start, None), structure)
        pool = self._imputer.draw(wiring.inputs)
        net = self._train(wiring, start, pool.candidates)
        self.data = self._imputer.update(pool, [net])
        return self._residuals(net, structure)

    def _train(
        self, wiring: Wiring, start: int, candidates: _core.Candidates | None
    ) -> TrainedNetwork:
        result = train_starts(
            self.place,
            wiring,
            self._training,
            self.data,
            [start],
            candidates=candidates,
            trace=False,
        )[0]
        if result.failure:
            raise NumericalError(
                f"A working network of the structure search diverged (fold {self.fold + 1}: "
                f"{result.failure}). "
                + divergence_advice(result.failure, "FitOptions.search.training")
            )
        return TrainedNetwork.from_task(self.fold, start, wiring.spec, result)

    def _residuals(self, net: TrainedNetwork, structure: Structure) -> Working:
        """What a network leaves of treatment and outcome, and where covariates could enter."""
        data, rows = self.data, self.rows
        treatment = data.treatment[rows]
        expected, mean = expected_units(net, data.covariates, rows, treatment, self.threads)
        residuals = data.outcome[rows] - expected
        slopes = ForwardPass(net, data.covariates, rows).first_layer_slopes(treatment)
        members = [
            data.covariates.gather(rows, np.array(support[:_MOST_PRODUCTS], dtype=np.int64))
            for support in (structure.outcome, structure.treatment)
        ]
        one = np.ones((len(rows), 1))
        surprise, level_slopes = all_levels(treatment - mean), list(slopes.treatment)
        if net.spec.treatment_width > 1:  # the reference has no predictor, hence no slopes
            level_slopes.append(one[:, :0])
        return Working(
            outcome=tuple(
                Scored(
                    residual,
                    np.hstack([one, surprise, normalised(slope), members[0]]),
                    main=1 + surprise.shape[1],
                )
                for residual, slope in zip(residuals.T, slopes.outcome, strict=True)
            ),
            treatment=tuple(
                Scored(residual, np.hstack([one, normalised(slope), members[1]]), main=1)
                for residual, slope in zip(surprise.T, level_slopes, strict=True)
            ),
        )


def all_levels(surprise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Residuals of all treatment levels, (m, L), from those of all but the reference, (m, L-1).

    Two levels, or a dose, keep their one.
    """
    if surprise.shape[1] == 1:
        return surprise
    return np.column_stack([surprise, -surprise.sum(axis=1)])


def weighted_tests(data: TrainingData, place: Workplace, parts: Sequence[Scored]) -> ScoreTests:
    """Score tests of a model's predictors on the rows of a fold, which count with their weights."""
    rows = place.split.known
    weights = data.weights[rows].astype(np.float64)
    return ScoreTests(
        data.covariates,
        rows,
        [dataclasses.replace(part, residual=part.residual * weights) for part in parts],
        threads=place.threads,
        stop=place.stop,
    )


def expected_units(
    net: TrainedNetwork,
    data: _core.Dataset,
    rows: NDArray[np.int64],
    treatment: NDArray[np.float64],
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outcomes (m, J) and treatment units (m, L-1) that a network expects of m rows.

    The outcomes are those under the treatment received, as dummies or a dose (m, L-1).
    """
    if net.spec.continuous:
        at_dose = ForwardPass(net, data, rows).at_doses(treatment)
        return at_dose.mu, at_dose.mean[:, None]
    mu, mean = net.visible_means(data, rows, threads)
    codes = (treatment @ np.arange(1, mu.shape[1])).astype(np.int64)
    return mu[np.arange(len(rows)), codes], mean
