"""Mediation as two Causal-StoNets over the same folds.

The likelihood of treatment, mediators and outcome is f(A|x) f(M|A,x) f(Y|A,M,x). As the models of
the three share no unit, it is maximised factor by factor, and one deep network with mediators in
the middle is the same as two shallow ones:

outcome network
    x and M in, A in its layer, Y at the end. M may feed the outcome model, never the treatment's.
mediator network
    x in, A in its layer, at the end one visible block per mediator, each with its own variance.

The outcome network comes first: it says which mediators matter to the outcome, and only these are
modelled by the mediator network.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet import _core
from cstonet.analyses.mediation.models import (
    FoldModels,
    MediationPrediction,
    MediatorUnits,
    concatenated,
)
from cstonet.analyses.mediation.reading import Mediators
from cstonet.crossfit.training import FoldJob, Progress, collect, run_folds, train_networks
from cstonet.data.design import Design
from cstonet.errors import NotAvailableError
from cstonet.estimators.nuisances import FloatArray
from cstonet.network.scaling import OutcomeScale, column_scaling
from cstonet.network.spec import BlockFamily
from cstonet.network.structure import SearchScope
from cstonet.network.trained import FittedNetworks, Prediction, TrainedNetwork, mean_prediction
from cstonet.search.working import TrainingData
from cstonet.settings.options import FitOptions
from cstonet.settings.plan import Plan, adjustment, influence_only, make_plan

# Up to so many mediators are all held in the outcome model; of more, those that pass their test.
HELD_WITHOUT_TEST = 5
# Slab variance of the mediator networks as a share of the outcome networks': a density ratio is the
# exponential of differences of means, and makes much of little noise in them.
SLAB_SHARE = 0.5


def outcome_design(design: Design) -> Design:
    """The design of the outcome network: mediators as further columns of X."""
    mediators = mediators_of(design)
    # In double precision: a mediator may be large beside its spread.
    X = np.concatenate([design.X, mediators.values], axis=1)
    return dataclasses.replace(
        design, X=X, covariates=(*design.covariates, *mediators.names), mediators=None
    )


def mediators_of(design: Design) -> Mediators:
    """The mediators of a design that has some."""
    if design.mediators is None:
        raise ValueError("the design has no mediators")
    return design.mediators


def mediation_plan(design: Design, options: FitOptions, *, preset: str, seed: int) -> Plan:
    """The plan of the outcome network, from which that of the mediator network follows."""
    if options.search is None:
        raise NotAvailableError(
            f"Mediation keeps the mediators out of the treatment model, which needs the structure "
            f"search; preset {preset!r} has none. Use preset='calibrated', or options with search."
        )
    options = options.replace(
        variance=influence_only(options.variance, "mediators"),
        search=dataclasses.replace(options.search, adjust=adjustment(options.search, "mediators")),
    )
    return make_plan(outcome_design(design), options, preset=preset, seed=seed)


def _mediator_plan(plan: Plan, inputs: int, binary: NDArray[np.bool_]) -> Plan:
    """The same plan for networks of the mediators."""
    families: tuple[BlockFamily, ...] = tuple("bernoulli" if b else "gaussian" for b in binary)
    if plan.search_network is None:
        raise ValueError("the plan of a mediation has a search")
    prior = plan.training.prior
    narrow = dataclasses.replace(prior, slab_variance=SLAB_SHARE * prior.slab_variance)
    return dataclasses.replace(
        plan,
        training=dataclasses.replace(plan.training, prior=narrow),
        network=plan.network.with_inputs(inputs).with_outcomes(families),
        search_network=plan.search_network.with_inputs(inputs).with_outcomes(families),
    )


@dataclass(frozen=True)
class MediationNetworks:
    """All networks of a mediation fit, and how to predict with them.

    Attributes
    ----------
    outcome
        Networks of the treatment and the outcome, on covariates and mediators.
    mediator
        Networks of the mediators, on covariates.
    folds
        Per fold of every repetition: its chosen networks and the mediators' law.
    units
        The mediators' units.
    """

    outcome: FittedNetworks
    mediator: FittedNetworks
    folds: tuple[FoldModels, ...]
    units: MediatorUnits

    @property
    def plan(self) -> Plan:
        """The plan of the outcome networks."""
        return self.outcome.plan

    @property
    def failures(self) -> tuple[str, ...]:
        """Why starts were given up."""
        return self.outcome.failures + self.mediator.failures

    @property
    def n_nonzero(self) -> int:
        """Kept weights of an outcome and a mediator network, averaged over the chosen ones."""
        return self.outcome.n_nonzero + self.mediator.n_nonzero

    @property
    def n_weights(self) -> int:
        """Weights of the two unpruned networks."""
        return self.outcome.n_weights + self.mediator.n_weights

    @property
    def trace(self) -> pd.DataFrame:
        """Training history of both networks."""
        return self._stacked("trace")

    @property
    def search(self) -> pd.DataFrame:
        """Moves of both structure searches."""
        return self._stacked("search")

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Total-effect nuisances of new rows (m, p): outcome means over the mediators' law."""
        both = np.concatenate([X, np.tile(self.units.center, (len(X), 1))], axis=1)
        inputs = self.outcome.x_scaling.dataset(both, 0)
        data, rows = self.mediator.x_scaling.dataset(X, 0), np.arange(len(X))
        return mean_prediction([fold.predict_total(inputs, data, rows) for fold in self.folds])

    def predict_out_of_fold(
        self, inputs: _core.Dataset, data: _core.Dataset, values: FloatArray
    ) -> list[MediationPrediction]:
        """Nuisances at the training rows, each from networks that did not train on it.

        Parameters
        ----------
        inputs, data
            Covariates with and without the mediators.
        values : (n, J)
            Mediators in network units.

        Returns
        -------
        list
            One prediction per repetition of the cross-fitting.
        """
        per_fold = [
            fold.predict(inputs, data, split.test, values[split.test])
            for fold, split in zip(self.folds, self.outcome.splits, strict=True)
        ]
        predictions = []
        for first in range(0, len(per_fold), self.plan.folds):
            chosen = slice(first, first + self.plan.folds)
            order = np.concatenate([split.test for split in self.outcome.splits[chosen]])
            predictions.append(concatenated(per_fold[chosen], np.argsort(order)))
        return predictions

    def _stacked(self, name: str) -> pd.DataFrame:
        parts = {"outcome": self.outcome, "mediator": self.mediator}
        frames = [getattr(part, name).assign(network=label) for label, part in parts.items()]
        stacked: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return stacked


def train_mediation(
    design: Design, plan: Plan, *, threads: int, progress: Progress | None = None
) -> tuple[MediationNetworks, list[MediationPrediction]]:
    """Train both networks in every fold.

    Returns
    -------
    networks, predictions
        The networks, and the out-of-fold nuisances of each repetition.
    """
    mediators, p = mediators_of(design), design.X.shape[1]
    outcome, inputs = train_networks(
        outcome_design(design),
        plan,
        threads=threads,
        progress=_half(progress, 0),
        scope=_outcome_scope(p, len(mediators.names)),
    )
    units = MediatorUnits.of(mediators, design.weights, outcome.x_scaling, p)
    values = units.standardise(mediators.values)
    x_scaling = column_scaling(design.X, plan.outlier_limit, design.weights)
    data = x_scaling.dataset(design.X, plan.pack_bytes)
    weights = np.ones(len(design.y)) if design.weights is None else design.weights
    held = [_held(nets, p) for nets in outcome.chosen]
    jobs = [
        FoldJob(
            data=TrainingData(
                covariates=data,
                visible=np.ascontiguousarray(
                    np.column_stack([design.treatment, values[:, kept]]), dtype=np.float32
                ),
                weights=weights.astype(np.float32),
                family="binomial" if mediators.binary[kept].any() else "gaussian",
                outcomes=len(kept),
            ),
            plan=_mediator_plan(plan, p, mediators.binary[kept]),
            scope=_mediator_scope(nets, p),
        )
        for kept, nets in zip(held, outcome.chosen, strict=True)
    ]
    results = run_folds(jobs, outcome.splits, threads, _half(progress, 1))
    mediator = FittedNetworks(
        plan=jobs[0].plan,
        splits=outcome.splits,
        x_scaling=x_scaling,
        y_scale=OutcomeScale(0.0, 1.0),  # the mediators' units are not the networks' concern
        threads=threads,
        **collect(results, plan, design.covariates),
    )
    folds = tuple(
        FoldModels.fit(
            outcome=nets,
            mediator=others,
            held=kept,
            units=units,
            y_scale=outcome.y_scale,
            data=data,
            rows=np.concatenate([split.fit, split.validation]),
            treatment=design.treatment,
            values=values,
            weights=weights,
            seed=(plan.seed, fold),
            threads=threads,
        )
        for fold, (nets, others, kept, split) in enumerate(
            zip(outcome.chosen, mediator.chosen, held, outcome.splits, strict=True)
        )
    )
    networks = MediationNetworks(outcome=outcome, mediator=mediator, folds=folds, units=units)
    return networks, networks.predict_out_of_fold(inputs.covariates, data, values)


def _outcome_scope(p: int, mediators: int) -> SearchScope:
    """The outcome network's search: mediators come after p covariates, and never explain A."""
    columns = tuple(range(p, p + mediators))
    few = mediators <= HELD_WITHOUT_TEST
    return SearchScope(
        always=columns if few else (),
        one_of=() if few else columns,
        familiar=columns,
        barred=columns,
    )


def _mediator_scope(outcome: tuple[TrainedNetwork, ...], p: int) -> SearchScope:
    """The mediator network's search: the covariates of the other models are familiar to it."""
    known = tuple(sorted({int(j) for net in outcome for j in net.inputs if j < p}))
    return SearchScope(models=("outcome",), familiar=known, adjust=known)


def _held(networks: tuple[TrainedNetwork, ...], p: int) -> NDArray[np.int64]:
    """Mediators that the outcome model of any of the networks uses; at least the first."""
    used = {int(j) - p for net in networks for j in net.inputs[net.selects_outcome] if j >= p}
    return np.array(sorted(used) or [0], dtype=np.int64)


def _half(progress: Progress | None, half: int) -> Progress | None:
    """Progress of the first (0) or the second (1) of two trainings, counted as half of both."""
    if progress is None:
        return None
    return lambda done, total: progress(half * total + done, 2 * total)
