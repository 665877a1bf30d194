"""Trained networks: parameters, what training said about them, and their predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from cstonet import _core
from cstonet.crossfit.splits import Split
from cstonet.imputation.new_rows import CompletedRows
from cstonet.network.scaling import OutcomeScale, Scaling
from cstonet.network.spec import NetworkSpec
from cstonet.network.structure import Structure
from cstonet.settings.plan import Plan

if TYPE_CHECKING:
    from cstonet.imputation.imputation import GapData, ImputationModel

# Position of the visible blocks in layer order: the treatment's layer precedes the outcome's.
TREATMENT, OUTCOME = 0, 1

# Each activation's value, and its slope as a function of its value.
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (np.tanh, lambda h: 1 - h**2),
    "sigmoid": (expit, lambda h: h * (1 - h)),
    "relu": (lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(np.float64)),
}


def level_dummies(levels: int) -> NDArray[np.float64]:
    """Values of the treatment's units at each level, shape (L, L-1): zeros for the reference."""
    return np.eye(levels)[:, 1:]


@dataclass(frozen=True, slots=True)
class Slopes:
    """d predictor / d first-layer units, shape (m, units): each outcome, each treatment unit."""

    outcome: tuple[NDArray[np.float64], ...]
    treatment: tuple[NDArray[np.float64], ...]


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """One network: the parameters θ̂ of a (fold, start) and what training said about them.

    Attributes
    ----------
    spec
        Layers, on the connected covariates only.
    inputs : (q,)
        Indices of the connected covariates.
    weights, masks, biases
        Per layer: (inputs, units), (inputs, units), (units,).
    variance
        Estimated variance of the (first) outcome in network units (1 for binary outcomes).
    log_likelihood : (2,)
        Of treatment and outcome (or outcomes), over the fold's training rows.
    bic
        The criterion among starts.
    selects_treatment, selects_outcome : (q,)
        Does a path of kept weights lead from the covariate to the unit, and did the search, if
        there was one, find it for that model? (The networks may adjust for more covariates.) Those
        that are adjusted for by linear terms need no path to the treatment's unit.
    linear : (k,)
        Covariates found for the treatment alone that the estimator adjusts for by linear terms,
        whether or not the treatment model uses them.
    """

    fold: int
    start: int
    spec: NetworkSpec
    inputs: NDArray[np.int64]
    weights: tuple[NDArray[np.float32], ...]
    masks: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    variance: float
    log_likelihood: NDArray[np.float64]
    bic: float
    selects_treatment: NDArray[np.bool_]
    selects_outcome: NDArray[np.bool_]
    linear: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def from_task(
        cls,
        fold: int,
        start: int,
        network: NetworkSpec,
        result: _core.TaskResult,
        found: Structure | None = None,
        linear: tuple[int, ...] = (),
    ) -> TrainedNetwork:
        """Take over the kernel's result of one task, and what a search had found for it."""
        outcomes = np.array(result.reaches[OUTCOME:], dtype=bool)
        selects = [np.array(result.reaches[TREATMENT], dtype=bool), np.logical_or.reduce(outcomes)]
        if found is not None:
            selects[TREATMENT] |= np.isin(result.inputs, linear)
            selects[TREATMENT] &= np.isin(result.inputs, found.treatment)
            selects[OUTCOME] &= np.isin(result.inputs, found.outcome)
        return cls(
            fold=fold,
            start=start,
            spec=network.with_inputs(len(result.inputs)),
            inputs=result.inputs,
            weights=tuple(result.weights),
            masks=tuple(result.masks),
            biases=tuple(result.biases),
            variance=float(result.variances[OUTCOME]),
            log_likelihood=result.log_likelihood,
            bic=result.bic,
            selects_treatment=selects[TREATMENT],
            selects_outcome=selects[OUTCOME],
            linear=np.array(linear, dtype=np.int64),
        )

    def selects(self, block: int) -> NDArray[np.bool_]:
        """Which connected covariates the treatment's or the outcome's model holds, shape (q,)."""
        return self.selects_treatment if block == TREATMENT else self.selects_outcome

    @property
    def nonzero(self) -> int:
        """Kept weights |γ̂|."""
        return int(sum(np.count_nonzero(m) for m in self.masks))

    def means(
        self, data: _core.Dataset, rows: NDArray[np.int64], threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Outcome means in network units, shape (m, L), and probabilities of the treatment's units.

        The latter, shape (m, L-1), are those of all levels but the reference.
        """
        outcomes, probability = self.visible_means(data, rows, threads)
        return outcomes[:, :, -1], probability

    def visible_means(
        self, data: _core.Dataset, rows: NDArray[np.int64], threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same for a network with J outcomes, whose means have shape (m, L, J)."""
        # Visible units to predict under: each treatment level. The outcome feeds nothing, so its
        # value is immaterial.
        dummies = level_dummies(self.spec.treatment_width + 1)
        clamp = np.pad(dummies, ((0, 0), (0, self.spec.units[-1]))).astype(np.float32)
        means = _core.predict(
            self.spec,
            list(self.weights),
            list(self.biases),
            self.inputs,
            data,
            rows,
            clamp,
            threads,
        ).astype(np.float64)
        own = self.spec.treatment_width
        return means[:, :, own:].transpose(1, 0, 2), means[0, :, :own]

    def first_layer_slopes(
        self, data: _core.Dataset, rows: NDArray[np.int64], treatment: NDArray[np.float64]
    ) -> Slopes:
        """Derivatives of all predictors with respect to the first layer's units.

        Parameters
        ----------
        treatment : (m, L-1)
            Treatment of the rows as dummies, to which the treatment's units are clamped.
        """
        treatment_layer, own = self.spec.treatment_layer, self.spec.treatment_width
        weights = [w.astype(np.float64) for w in self.weights]
        biases = [b.astype(np.float64) for b in self.biases]
        value, slope = ACTIVATIONS[self.spec.activation]
        outputs = [data.gather(rows, self.inputs).astype(np.float64)]
        for i in range(len(self.spec.layers) - 1):
            output = value(outputs[-1] @ weights[i] + biases[i])
            if i == treatment_layer:
                output[:, -own:] = treatment
            outputs.append(output)

        def descend(signal: NDArray[np.float64], top: int) -> NDArray[np.float64]:
            """Chain rule from the units of layer ``top`` to those of layer 0."""
            for i in range(top, 0, -1):
                signal = (signal @ weights[i].T) * slope(outputs[i])
                if i - 1 == treatment_layer:
                    signal[:, -own:] = 0.0  # the treatment is observed: nothing flows through it
            return signal

        depth = len(weights) - 1
        outcomes = (descend(np.tile(u, (len(rows), 1)), depth) for u in np.eye(self.spec.units[-1]))
        units = np.eye(weights[treatment_layer].shape[1])[-own:]
        treatments = (descend(np.tile(unit, (len(rows), 1)), treatment_layer) for unit in units)
        return Slopes(outcome=tuple(outcomes), treatment=tuple(treatments))

    def path_strength(self, block: int) -> NDArray[np.float64]:
        """Share of each connected covariate in the total weight of paths to a block, shape (q,).

        A path weighs the product of its absolute weights; the inputs are standardised, so paths
        of different covariates compare. Paths end at visible units.
        """
        return _shares(self._path_weights(self.weights, block).sum(axis=1))

    def level_strengths(self) -> NDArray[np.float64]:
        """The same for each unit of the treatment's block, shape (q, L-1)."""
        flow = self._path_weights(self.weights, TREATMENT)
        return np.apply_along_axis(_shares, 0, flow)

    def selects_levels(self) -> NDArray[np.bool_]:
        """Does a path of kept weights lead to the unit of a treatment level? Shape (q, L-1)."""
        reached = self._path_weights(self.masks, TREATMENT) > 0
        linear = np.isin(self.inputs, self.linear)
        return self.selects_treatment[:, None] & (reached | linear[:, None])

    def _path_weights(
        self, weights: tuple[NDArray[np.float32], ...], block: int
    ) -> NDArray[np.float64]:
        """Total weight of the paths from each covariate to each unit of a block, (q, size)."""
        flow = np.abs(weights[0]).astype(np.float64)
        for layer, above in zip(self.spec.layers[:-1], weights[1:], strict=True):
            if block == TREATMENT and any(b.visible for b in layer):
                break
            latent = sum(b.size for b in layer if not b.visible)
            flow = flow[:, :latent] @ np.abs(above[:latent])
        # The block holds the layer's last units.
        return flow[:, -self.spec.treatment_width :] if block == TREATMENT else flow


def _shares(total: NDArray[np.float64]) -> NDArray[np.float64]:
    return total / total.sum() if total.sum() > 0 else total


@dataclass(frozen=True, slots=True)
class Prediction:
    """Nuisances at given rows: μ̂_a(x), shape (m, levels), and p̂_a(x), shape (m, levels)."""

    mu: NDArray[np.float64]
    propensity: NDArray[np.float64]

    def with_rows(self, rows: NDArray[np.int64], part: Prediction) -> Prediction:
        """The same with other predictions in some rows."""
        mu, propensity = self.mu.copy(), self.propensity.copy()
        mu[rows], propensity[rows] = part.mu, part.propensity
        return Prediction(mu, propensity)


def mean_prediction(
    parts: Sequence[Prediction], weights: NDArray[np.float64] | None = None
) -> Prediction:
    """The average of K predictions of the same m rows; weights (m, K) sum to one in each row."""
    mu, propensity = [part.mu for part in parts], [part.propensity for part in parts]
    if weights is None:
        return Prediction(np.mean(mu, axis=0), np.mean(propensity, axis=0))
    return Prediction(
        np.einsum("mk,kml->ml", weights, mu), np.einsum("mk,kml->ml", weights, propensity)
    )


@dataclass(frozen=True)
class FittedNetworks:
    """All networks of a fit, the chosen ones of each fold, and how to predict with them.

    Attributes
    ----------
    networks
        Every (fold, start) that converged.
    splits, chosen
        Per fold of every repetition: its rows, and the networks whose predictions are averaged.
    failures
        Why starts were given up.
    trace
        One row per fold, start and epoch.
    search
        One row per move of the structure search; empty without one.
    dose_scale
        Units of a continuous treatment, see :mod:`cstonet.analyses.doses.networks`.
    gaps, imputation
        What is missing in the covariates, and per fold how it is imputed; None and empty if
        nothing is.
    """

    plan: Plan
    splits: tuple[Split, ...]
    networks: tuple[TrainedNetwork, ...]
    chosen: tuple[tuple[TrainedNetwork, ...], ...]
    failures: tuple[str, ...]
    x_scaling: Scaling
    y_scale: OutcomeScale
    trace: pd.DataFrame
    search: pd.DataFrame
    threads: int
    dose_scale: OutcomeScale | None = None
    gaps: GapData | None = None
    imputation: tuple[ImputationModel, ...] = ()

    @property
    def n_nonzero(self) -> int:
        """Kept weights, averaged over the chosen networks."""
        return round(float(np.mean([net.nonzero for fold in self.chosen for net in fold])))

    @property
    def n_weights(self) -> int:
        """Weights of the unpruned network on all covariates."""
        widths = self.plan.network.units
        sources = (self.plan.network.inputs, *widths[:-1])
        return sum(a * b for a, b in zip(sources, widths, strict=True))

    @cached_property
    def bic(self) -> pd.DataFrame:
        """BIC of every (fold, start), and whether it was chosen."""
        chosen = {(net.fold, net.start) for fold in self.chosen for net in fold}
        return pd.DataFrame(
            [
                {
                    "fold": net.fold,
                    "start": net.start,
                    "bic": net.bic,
                    "nonzero": net.nonzero,
                    "chosen": (net.fold, net.start) in chosen,
                }
                for net in self.networks
            ]
        )

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Nuisances at new rows, shape (m, p), averaged over the chosen networks of all folds."""
        data, rows = self.x_scaling.dataset(X, 0), np.arange(X.shape[0])
        return mean_prediction([self._average(fold, data, rows) for fold in self.chosen])

    def predict_incomplete(self, X: NDArray[np.floating], missing: NDArray[np.bool_]) -> Prediction:
        """Nuisances at new rows, averaged over draws of their missing covariates.

        Parameters
        ----------
        X : (m, p)
            Covariates, with anything in the gaps.
        missing : (m, number of incomplete variables)
            Where the gaps are. They are drawn given the observed covariates of the row and, if
            values are missing not at random, given what is missing.
        """
        data = self.x_scaling.dataset(X, self.plan.pack_bytes)
        everywhere = mean_prediction(
            [self._average(fold, data, np.arange(X.shape[0])) for fold in self.chosen]
        )
        parts = []
        for number, (networks, model) in enumerate(zip(self.chosen, self.imputation, strict=True)):
            # Draws that are to be weighed have to be more.
            equal = model.missingness is None
            draws = self.plan.imputations if equal else self.plan.candidates
            new = CompletedRows.draw(model, data, missing, draws, (self.plan.seed, number))
            rows = new.entries.rows
            each = [self._average(networks, completed, rows) for completed in new.each()]
            weights = new.weights(np.stack([prediction.propensity for prediction in each]))
            parts.append(mean_prediction(each, weights))
        return everywhere.with_rows(rows, mean_prediction(parts))

    def with_imputed(
        self, X: NDArray[np.floating], values: NDArray[np.float32]
    ) -> NDArray[np.floating]:
        """A copy of the training rows' covariates (n, p) with means of imputed values (e, M)."""
        if self.gaps is None:
            return X
        entries, scaling = self.gaps.entries, self.x_scaling
        completed = X.copy()
        scale = scaling.inverse_scale[entries.column]
        mean = values.mean(axis=1) / np.where(scale > 0, scale, 1.0)
        completed[entries.rows[entries.row], entries.column] = mean + scaling.center[entries.column]
        for variable in self.gaps.variables:
            if variable.raw_levels is not None:
                # Rare levels lie beyond the bound on standardised values, where they look alike.
                places = [entries.column == column for column in variable.columns]
                codes = variable.codes(np.stack([values[p].ravel() for p in places], axis=1))
                drawn = variable.raw_levels[codes].reshape(-1, values.shape[1], len(places))
                completed[np.ix_(variable.missing, variable.columns)] = drawn.mean(axis=1)
        return completed

    def linear_covariates(self, repetition: int | None = None) -> NDArray[np.int64]:
        """Covariates that the estimator adjusts for by linear terms, ascending, shape (k,).

        If there are any in a fold of this repetition of the cross-fitting, or of all of them, the
        other covariates found are among them: a slope must not stand in for what the outcome model
        gets wrong about a correlated one.
        """
        folds = self.chosen
        if repetition is not None:
            first = repetition * self.plan.folds
            folds = folds[first : first + self.plan.folds]
        nets = [net for fold in folds for net in fold]
        if not any(len(net.linear) for net in nets):
            return np.empty(0, dtype=np.int64)
        return np.unique(
            np.concatenate([array for net in nets for array in (net.inputs, net.linear)])
        )

    def predict_out_of_fold(
        self, data: _core.Dataset, rows: NDArray[np.int64] | None = None
    ) -> list[Prediction]:
        """Nuisances at the training rows, each from networks that did not train on it.

        One prediction per repetition of the cross-fitting, of all rows or of some, shape (m,).
        """
        folds = list(zip(self.splits, self.chosen, strict=True))
        levels = self.plan.network.treatment_width + 1
        wanted = np.arange(data.rows) if rows is None else rows
        # Of every row: where its prediction goes, or -1.
        place = np.full(data.rows, -1)
        place[wanted] = np.arange(len(wanted))
        predictions = []
        for first in range(0, len(folds), self.plan.folds):
            mu, propensity = np.empty((len(wanted), levels)), np.empty((len(wanted), levels))
            for split, networks in folds[first : first + self.plan.folds]:
                test = split.test[place[split.test] >= 0]
                part = self._average(networks, data, test)
                mu[place[test]], propensity[place[test]] = part.mu, part.propensity
            predictions.append(Prediction(mu, propensity))
        return predictions

    def _average(
        self, nets: tuple[TrainedNetwork, ...], data: _core.Dataset, rows: NDArray[np.int64]
    ) -> Prediction:
        levels = self.plan.network.treatment_width + 1
        outcome, treated = np.zeros((len(rows), levels)), np.zeros((len(rows), levels - 1))
        for net in nets:
            mu, probability = net.means(data, rows, self.threads)
            outcome += mu / len(nets)
            treated += probability / len(nets)
        # The reference has the rest, which rounding may leave a hair below zero.
        rest = np.maximum(1 - treated.sum(axis=1), 0.0)
        return Prediction(
            mu=self.y_scale.restore(outcome), propensity=np.column_stack([rest, treated])
        )
