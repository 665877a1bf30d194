"""The models of one fold of a mediation: what they say of mediators, outcome and density ratio."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.analyses.arms.prediction import Prediction
from cstonet.analyses.mediation.law import MediatorLaw
from cstonet.analyses.mediation.reading import Mediators
from cstonet.crossfit.fold import Fold
from cstonet.data.units import Units
from cstonet.estimators.nuisances import FloatArray
from cstonet.network.covariates import Covariates
from cstonet.network.prediction import RowArrays, put_together
from cstonet.network.scaling import Scaling
from cstonet.network.trained import TrainedNetwork
from cstonet.streams import Stream

# Rows whose draws are predicted together: bounds the memory.
_ROWS_AT_ONCE = 2048
_NO_LIMIT = 1e6  # inputs that are standardised already


@dataclass(frozen=True, slots=True, eq=False)
class MediatorUnits:
    """The mediators' units, network units, and how they enter the outcome network.

    Attributes
    ----------
    center, scale : (J,)
        Network units are (m - center) / scale; binary mediators stay 0 and 1.
    binary : (J,)
        Which mediators are binary.
    inputs
        Standardisation of the outcome network's inputs, of which mediators are the last J.
    first : int
        Column of the first mediator among them.
    """

    center: FloatArray
    scale: FloatArray
    binary: NDArray[np.bool_]
    inputs: Scaling
    first: int

    @classmethod
    def of(
        cls, mediators: Mediators, weights: FloatArray | None, inputs: Scaling, first: int
    ) -> MediatorUnits:
        """The units of given mediators."""
        scales = [
            Units.of(column, family, weights)
            for column, family in zip(mediators.values.T, mediators.families, strict=True)
        ]
        return cls(
            center=np.array([scale.center for scale in scales]),
            scale=np.array([scale.scale for scale in scales]),
            binary=mediators.binary,
            inputs=inputs,
            first=first,
        )

    def standardise(self, values: FloatArray) -> FloatArray:
        """Values (…, J) to network units."""
        return np.asarray((values - self.center) / self.scale)

    def restore(self, values: FloatArray) -> FloatArray:
        """Network units (…, J) to the mediators' own."""
        return np.asarray(values * self.scale + self.center)

    def as_inputs(self, values: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
        """Chosen mediators (…, k) from network units to inputs of the outcome network."""
        raw = values * self.scale[chosen] + self.center[chosen]
        columns = self.first + chosen
        scaled = (raw - self.inputs.center[columns]) * self.inputs.inverse_scale[columns]
        return np.clip(scaled, -self.inputs.limit, self.inputs.limit)


@dataclass(frozen=True, slots=True, eq=False)
class MediationPrediction(RowArrays):
    """Nuisances of m rows, J mediators.

    Attributes
    ----------
    mu : (m, 2), eta : (m, 2, 2), propensity : (m, 2)
        As in :class:`cstonet.estimators.MediationNuisances`.
    log_ratio : (m,)
        log f(M|1,x) - log f(M|0,x).
    means : (m, 2, J)
        Means of the mediators under each treatment, in their units.
    ratio : (m, 2, J), own : (m, J), rest : (m, 2, J), both : (m, 2, J)
        As in :class:`cstonet.estimators.PathNuisances`.
    """

    mu: FloatArray
    eta: FloatArray
    propensity: FloatArray
    log_ratio: FloatArray
    means: FloatArray
    ratio: FloatArray
    own: FloatArray
    rest: FloatArray
    both: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class MediationSample:
    """The training rows as the models of all folds see them.

    Attributes
    ----------
    inputs, covariates
        Covariates with and without the mediators.
    treatment : (n,)
        Codes.
    values : (n, J)
        Mediators in network units.
    weights : (n,)
        Row weights.
    units, y_units
        Units of the mediators and of the outcome.
    seed
        That of the fit.
    """

    inputs: Covariates
    covariates: Covariates
    treatment: NDArray[np.int64]
    values: FloatArray
    weights: FloatArray
    units: MediatorUnits
    y_units: Units
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class FoldModels:
    """The trained models of one fold.

    Attributes
    ----------
    outcome, mediator
        Chosen networks, whose predictions are averaged.
    held : (k,)
        The mediators that the outcome model uses, in the order of the mediator networks' outcomes.
    law
        Their joint law around the mediator networks' means.
    linear : (2 + q, J)
        Regression of every mediator on 1, A and the q covariates that any model of the fold uses:
        it stands in for a network where a mediator is not held.
    units, y_units, threads
        Units of the mediators and of the outcome; threads to predict with.
    """

    outcome: tuple[TrainedNetwork, ...]
    mediator: tuple[TrainedNetwork, ...]
    held: NDArray[np.int64]
    law: MediatorLaw
    linear: FloatArray
    units: MediatorUnits
    y_units: Units
    threads: int

    @classmethod
    def fit(
        cls,
        outcome: Fold,
        mediator: Fold,
        held: NDArray[np.int64],
        sample: MediationSample,
        threads: int,
    ) -> FoldModels:
        """Estimate what the networks leave open, on the fold's training rows.

        Parameters
        ----------
        outcome, mediator
            The fold of either kind of network, on the same rows.
        held, threads
            See the class.
        sample
            The training rows.
        """
        rows = np.concatenate([outcome.split.fit, outcome.split.validation])
        means = _mediator_means(mediator.networks, sample.covariates, rows, threads)
        a, values, weights = sample.treatment[rows], sample.values[rows], sample.weights[rows]
        law = MediatorLaw.fit(
            values[:, held],
            means[np.arange(len(rows)), a],
            weights,
            sample.units.binary[held],
            Stream.MEDIATOR_RESIDUALS.generator(sample.seed, outcome.split.index),
        )
        used = _covariates_used(outcome.networks, mediator.networks, sample.units.first)
        design = np.column_stack([np.ones(len(rows)), a, sample.covariates.gather(rows, used)])
        root = np.sqrt(weights)[:, None]
        linear = np.linalg.lstsq(root * design, root * values, rcond=None)[0]
        return cls(
            outcome.networks,
            mediator.networks,
            held,
            law,
            linear,
            sample.units,
            sample.y_units,
            threads,
        )

    def predict(
        self,
        inputs: Covariates,
        data: Covariates,
        rows: NDArray[np.int64],
        values: FloatArray,
    ) -> MediationPrediction:
        """All nuisances of rows (m,) with mediators (m, J) in network units.

        Parameters
        ----------
        inputs, data
            Covariates with and without the mediators.
        """
        places = np.arange(len(rows))
        chunks = (places[i : i + _ROWS_AT_ONCE] for i in range(0, len(rows), _ROWS_AT_ONCE))
        parts = ((here, self._predict(inputs, data, rows[here], values[here])) for here in chunks)
        return put_together(parts, len(rows))

    def predict_total(
        self, inputs: Covariates, data: Covariates, rows: NDArray[np.int64]
    ) -> Prediction:
        """Outcome means over the mediators' law, and treatment probabilities; (m, 2) each."""
        means = _mediator_means(self.mediator, data, rows, self.threads)
        outcome = _OutcomeAt(self, inputs, rows)
        mu = [outcome.mean(self.law.draw(means[:, a]))[:, a] for a in (0, 1)]
        return Prediction(mu=np.column_stack(mu), propensity=self._outcome_means(inputs, rows)[1])

    def _predict(
        self,
        inputs: Covariates,
        data: Covariates,
        rows: NDArray[np.int64],
        values: FloatArray,
    ) -> MediationPrediction:
        means = _mediator_means(self.mediator, data, rows, self.threads)
        observed, law = values[:, self.held], self.law
        mu, propensity = self._outcome_means(inputs, rows)
        outcome = _OutcomeAt(self, inputs, rows)
        draws = [law.draw(means[:, a]) for a in (0, 1)]
        densities = [law.log_density(observed, means[:, a]) for a in (0, 1)]
        m, mediators = values.shape
        # A mediator that the outcome model does not use has no path: all its terms are zero.
        ratio, rest, both = (np.zeros((m, 2, mediators)) for _ in range(3))
        own = np.zeros((m, mediators))
        for position, j in enumerate(self.held):
            others = draws[1]
            own[:, j] = outcome.mean(_replaced(others, position, observed[:, None, position]))[:, 1]
            for a in (0, 1):
                # Rolled, the draws of this mediator do not go with those of the others.
                alone = np.roll(draws[a][:, :, position], len(law.noise) // 2, axis=1)
                fixed = np.repeat(observed[:, None, :], alone.shape[1], axis=1)
                rest[:, a, j] = outcome.mean(_replaced(fixed, position, alone))[:, 1]
                both[:, a, j] = outcome.mean(_replaced(others, position, alone))[:, 1]
                ratio[:, a, j] = law.own_over_conditional(
                    position, observed, means[:, a, position], means[:, 1]
                )
        return MediationPrediction(
            mu=mu,
            eta=np.stack([outcome.mean(drawn) for drawn in draws], axis=2),
            propensity=propensity,
            log_ratio=densities[1] - densities[0],
            means=self._all_means(data, rows, means),
            ratio=ratio,
            own=own,
            rest=rest,
            both=both,
        )

    def _outcome_means(
        self, inputs: Covariates, rows: NDArray[np.int64]
    ) -> tuple[FloatArray, FloatArray]:
        """μ̂_a(M, x) at the rows' own mediators and p̂_a(x), each (m, 2)."""
        parts = [net.means(inputs, rows, self.threads) for net in self.outcome]
        treated = np.mean([part[1][:, 0] for part in parts], axis=0)
        mu = self.y_units.restore(np.mean([part[0] for part in parts], axis=0))
        return mu, np.column_stack([1 - treated, treated])

    def _all_means(self, data: Covariates, rows: NDArray[np.int64], held: FloatArray) -> FloatArray:
        """Means of all mediators under each treatment, in their units, shape (m, 2, J)."""
        x = data.gather(rows, _covariates_used(self.outcome, self.mediator, self.units.first))
        base = self.linear[0] + x @ self.linear[2:]
        means = np.stack([base, base + self.linear[1]], axis=1)
        means[:, :, self.held] = held
        return self.units.restore(means)


class _OutcomeAt:
    """The outcome network at given rows' covariates and any mediators."""

    def __init__(self, models: FoldModels, inputs: Covariates, rows: NDArray[np.int64]) -> None:
        self._models = models
        columns = np.unique(np.concatenate([net.inputs for net in models.outcome]))
        self._base = inputs.gather(rows, columns)
        # A pruned network may have let go of a mediator that another start keeps.
        self._used = np.isin(models.units.first + models.held, columns)
        self._places = np.searchsorted(columns, (models.units.first + models.held)[self._used])
        self._networks = [
            dataclasses.replace(net, inputs=np.searchsorted(columns, net.inputs))
            for net in models.outcome
        ]

    def mean(self, mediators: FloatArray) -> FloatArray:
        """μ̂_a(m, x) averaged over K mediator vectors per row (m, K, k); shape (m, 2)."""
        rows, draws = mediators.shape[:2]
        models = self._models
        x = np.repeat(self._base, draws, axis=0)
        values = models.units.as_inputs(mediators, models.held)
        x[:, self._places] = values[:, :, self._used].reshape(rows * draws, len(self._places))
        q = x.shape[1]
        data = _core.Dataset(x, np.zeros(q), np.ones(q), _NO_LIMIT, 0)
        every = np.arange(len(x))
        mu = np.mean([net.means(data, every, models.threads)[0] for net in self._networks], axis=0)
        return models.y_units.restore(mu.reshape(rows, draws, 2).mean(axis=1))


def _mediator_means(
    networks: tuple[TrainedNetwork, ...],
    data: Covariates,
    rows: NDArray[np.int64],
    threads: int,
) -> FloatArray:
    """Means of the held mediators under each treatment, in network units, shape (m, 2, k)."""
    parts = [net.visible_means(data, rows, threads)[0] for net in networks]
    return np.asarray(np.mean(parts, axis=0))


def _covariates_used(
    outcome: tuple[TrainedNetwork, ...], mediator: tuple[TrainedNetwork, ...], p: int
) -> NDArray[np.int64]:
    """Covariates that any of the networks uses, mediators apart."""
    used = {int(j) for net in (*outcome, *mediator) for j in net.inputs if j < p}
    return np.array(sorted(used), dtype=np.int64)


def _replaced(mediators: FloatArray, position: int, values: FloatArray) -> FloatArray:
    changed = mediators.copy()
    changed[:, :, position] = values
    return changed
