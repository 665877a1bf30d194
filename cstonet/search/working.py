"""Working networks of the structure search: small fits on a support, and what they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.analyses.doses.networks import evaluate
from cstonet.crossfit.splits import Split
from cstonet.errors import NumericalError
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Structure
from cstonet.network.trained import TrainedNetwork
from cstonet.search.scores import Scored, normalised
from cstonet.settings.options import SearchOptions

# Kernel tasks of the search are told from final starts by their start numbers.
_FIRST_SEARCH_START = 1_000_000
# Directions x_s of the support's own members: products with new covariates.
_MOST_PRODUCTS = 16


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What the training of every fold shares.

    Attributes
    ----------
    covariates
        As the kernel reads them.
    visible : (n, L)
        Treatment as L-1 dummies or as a standardised dose, and standardised outcome (or outcomes).
    weights : (n,)
        Row weights.
    family
        Of the outcome; "binomial" if that of any of several is.
    outcomes
        How many columns at the end of ``visible`` are outcomes.
    """

    covariates: _core.Dataset
    visible: NDArray[np.float32]
    weights: NDArray[np.float32]
    family: str
    outcomes: int = 1

    @property
    def treatment(self) -> NDArray[np.float64]:
        """Treatment as dummies of all levels but the reference, or as a dose, shape (n, L-1)."""
        return self.visible[:, : -self.outcomes].astype(np.float64)

    @property
    def outcome(self) -> NDArray[np.float64]:
        """Standardised outcomes, shape (n, outcomes)."""
        return self.visible[:, -self.outcomes :].astype(np.float64)


class Imputer(Protocol):
    """What a search needs of the imputation of missing covariates."""

    def candidates(self, inputs: NDArray[np.int64]) -> _core.Candidates:
        """Completions of rows with gaps, for a network that reads these covariates."""

    def update(self, networks: Sequence[TrainedNetwork]) -> TrainingData:
        """Complete the covariates as a network sees them."""


@dataclass(frozen=True, slots=True)
class Working:
    """Residuals of a working network on the training rows, and the directions of each.

    The treatment's residuals are those of all its levels: leaving one out would make the search
    depend on which level is the reference. Two levels share one residual, up to its sign.
    """

    outcome: tuple[Scored, ...]
    treatment: tuple[Scored, ...]


class WorkingNetworks:
    """The working networks of one fold's search, one refit after the other.

    Parameters
    ----------
    data
        Shared by all folds.
    split
        The fold's rows.
    network
        The working network, for any number of inputs.
    options
        Resolved options.
    treatment_units
        First-layer units of the treatment model.
    fold, seed, threads
        As for training.
    stop
        Called now and then; may raise to stop.
    imputer
        Completes covariates with gaps after each refit; None if there are none.

    Attributes
    ----------
    data
        As the latest refit has completed them.
    rows : (m,)
        Those that residuals are taken of: fitted and validation rows.
    fold, threads, stop
        As given.
    """

    def __init__(
        self,
        data: TrainingData,
        split: Split,
        network: NetworkSpec,
        options: SearchOptions,
        *,
        treatment_units: int,
        fold: int,
        seed: int,
        threads: int,
        stop: Callable[[int], object] | None = None,
        imputer: Imputer | None = None,
    ) -> None:
        self.data = data
        self.rows = np.sort(np.concatenate([split.fit, split.validation]))
        self._split = split
        self._network = network
        self._options = options
        self._treatment_units = treatment_units
        self.fold = fold
        self._seed = seed
        self.threads = threads
        self.stop = stop
        self._imputer = imputer
        self._refits = 0
        self._kept: tuple[Structure, Working] | None = None

    def kept(self, structure: Structure, *, renew: bool = False) -> Working:
        """The network last kept if it is on this structure and not to be renewed, or a new one."""
        if renew or self._kept is None or self._kept[0] != structure:
            self._kept = structure, self.refit(structure)
        return self._kept[1]

    def refit(self, structure: Structure) -> Working:
        """Train a working network on the supports and take its residuals and directions."""
        data, rows, inputs = self.data, self.rows, structure.inputs
        network = self._network.with_inputs(len(inputs))
        task = (
            self.fold,
            _FIRST_SEARCH_START + self._refits,
            self._split.fit,
            self._split.validation,
        )
        self._refits += 1
        result = _core.train(
            network,
            self._options.training,
            data.covariates,
            inputs,
            data.visible,
            data.weights,
            [task],
            self._seed,
            self.threads,
            self.stop,
            structure.masks(network, self._treatment_units),
            None if self._imputer is None else self._imputer.candidates(inputs),
            trace=False,
        )[0]
        if result.failure:
            raise NumericalError(
                f"A working network of the structure search diverged (fold {self.fold + 1}: "
                f"{result.failure}). Use smaller rates in FitOptions.search.training.stages."
            )
        net = TrainedNetwork.from_task(self.fold, task[1], network, result)
        if self._imputer is not None:
            data = self.data = self._imputer.update([net])
        treatment = data.treatment[rows]
        if network.continuous:
            at_dose = evaluate(net, data.covariates, rows, treatment)
            expected, mean = at_dose.mu, at_dose.mean[:, None]
        else:
            mu, mean = net.visible_means(data.covariates, rows, self.threads)
            codes = (treatment @ np.arange(1, mu.shape[1])).astype(np.int64)
            expected = mu[np.arange(len(rows)), codes]
        residuals = data.outcome[rows] - expected
        slopes = net.first_layer_slopes(data.covariates, rows, treatment)
        members = [
            data.covariates.gather(rows, np.array(support[:_MOST_PRODUCTS], dtype=np.int64))
            for support in (structure.outcome, structure.treatment)
        ]
        one = np.ones((len(rows), 1))
        surprise, level_slopes = treatment - mean, list(slopes.treatment)
        if network.treatment_width > 1:  # the reference has no predictor, hence no slopes
            surprise = np.column_stack([surprise, -surprise.sum(axis=1)])
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
