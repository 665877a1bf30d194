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

from cstonet.analyses.arms.prediction import Prediction
from cstonet.analyses.mediation.models import (
    FoldModels,
    MediationPrediction,
    MediationSample,
    MediatorUnits,
)
from cstonet.analyses.mediation.reading import MediationDesign
from cstonet.crossfit.fitted import FittedNetworks, NetworkSet, kept_places, train_networks
from cstonet.crossfit.fold import Fold, out_of_fold
from cstonet.crossfit.training import FoldJob
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import Design
from cstonet.data.treatment import Arms
from cstonet.data.units import Units
from cstonet.data.variables import Family, block_family
from cstonet.network.prediction import averaged
from cstonet.network.scaling import Scaling, column_scaling
from cstonet.network.spec import NetworkSpec, causal_network
from cstonet.network.trained import OUTCOME
from cstonet.network.training_data import TrainingData
from cstonet.search.scope import SearchScope
from cstonet.settings.plan import Architecture, Plan

# Up to so many mediators are all held in the outcome model; of more, those that pass their test.
HELD_WITHOUT_TEST = 5
# Slab variance of the mediator networks as a share of the outcome networks': a density ratio is the
# exponential of differences of means, and makes much of little noise in them.
SLAB_SHARE = 0.5
# Number of the mediator networks among those of a fit; the outcome's are the first.
_MEDIATOR_NETWORKS = 1


@dataclass(frozen=True)
class MediationNetworks(NetworkSet):
    """All networks of a mediation fit, and how to predict with them.

    Attributes
    ----------
    outcome
        Networks of the treatment and the outcome, on covariates and mediators.
    mediator
        Networks of the mediators, on covariates.
    models
        Per fold of every repetition: its chosen networks and the mediators' law.
    units
        The mediators' units.
    """

    outcome: FittedNetworks
    mediator: FittedNetworks
    models: tuple[FoldModels, ...]
    units: MediatorUnits

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
        return _stacked(outcome=self.outcome.trace, mediator=self.mediator.trace)

    @property
    def search(self) -> pd.DataFrame:
        """Moves of both structure searches."""
        return _stacked(outcome=self.outcome.search, mediator=self.mediator.search)

    def check(self) -> None:
        """Raise ValueError if parts of it disagree in shape, as those of a wrong file may."""
        self.outcome.check()
        self.mediator.check()
        self.units.inputs.check(len(self.outcome.covariates))

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Total-effect nuisances of new rows (m, p): outcome means over the mediators' law."""
        both = np.concatenate([X, np.tile(self.units.center, (len(X), 1))], axis=1)
        inputs = self.outcome.x_scaling.dataset(both, 0)
        data, rows = self.mediator.x_scaling.dataset(X, 0), np.arange(len(X))
        return averaged([models.predict_total(inputs, data, rows) for models in self.models])

    def predict_out_of_fold(self, sample: MediationSample) -> list[MediationPrediction]:
        """Nuisances at the training rows, each from networks that did not train on it.

        Returns
        -------
        list
            One prediction per repetition of the cross-fitting.
        """

        def of_fold(fold: Fold, test: NDArray[np.int64]) -> MediationPrediction:
            models = self.models[fold.split.index]
            return models.predict(sample.inputs, sample.covariates, test, sample.values[test])

        return out_of_fold(self.outcome.folds, of_fold)


def train_mediation(
    design: MediationDesign, plan: Plan, workforce: Workforce
) -> tuple[MediationNetworks, MediationSample]:
    """Train both networks in every fold.

    Returns
    -------
    networks, sample
        The networks, and the rows as they see them.
    """
    p = design.X.shape[1]
    scope = _outcome_scope(p, len(design.mediators.names))
    outcome, inputs = train_networks(with_mediators(design), plan, workforce.part(0, 2), scope)
    units = MediatorUnits.of(design.mediators, design.weights, outcome.x_scaling, p)
    scaling = column_scaling(design.X, plan.outlier_limit, design.weights)
    sample = MediationSample(
        inputs=inputs.covariates,
        covariates=scaling.dataset(design.X, plan.pack_bytes),
        treatment=design.treatment.codes,
        values=units.standardise(design.mediators.values),
        weights=design.unit_weights,
        units=units,
        y_units=outcome.y_units,
        seed=plan.seed,
    )
    held = [_held(fold, p) for fold in outcome.folds]
    mediator = _train_mediators(design, outcome, held, sample, scaling, workforce.part(1, 2))
    models = tuple(
        FoldModels.fit(of_outcome, of_mediators, kept, sample, workforce.threads)
        for of_outcome, of_mediators, kept in zip(outcome.folds, mediator.folds, held, strict=True)
    )
    return MediationNetworks(outcome, mediator, models, units), sample


def with_mediators(design: MediationDesign) -> Design[Arms]:
    """The design of the outcome network: mediators as further columns of X."""
    # In double precision: a mediator may be large beside its spread.
    X = np.concatenate([design.X, design.mediators.values], axis=1)
    return dataclasses.replace(design, X=X, covariates=design.covariates + design.mediators.names)


def _train_mediators(
    design: MediationDesign,
    outcome: FittedNetworks,
    held: list[NDArray[np.int64]],
    sample: MediationSample,
    scaling: Scaling,
    workforce: Workforce,
) -> FittedNetworks:
    """Networks of the mediators that the outcome networks of each fold hold."""
    plan, prior = outcome.plan, outcome.plan.training.prior
    narrow = dataclasses.replace(prior, slab_variance=SLAB_SHARE * prior.slab_variance)
    treatment = design.treatment.visible()
    jobs = []
    for fold, kept in zip(outcome.folds, held, strict=True):
        families = tuple(design.mediators.families[j] for j in kept)
        visible = np.column_stack([treatment, sample.values[:, kept]])
        job = FoldJob(
            data=TrainingData(
                covariates=sample.covariates,
                visible=np.ascontiguousarray(visible, dtype=np.float32),
                weights=sample.weights.astype(np.float32),
                families=families,
            ),
            plan=plan,
            network=_network(plan.network, design, families),
            working=None
            if plan.search_network is None
            else _network(plan.search_network, design, families),
            training=dataclasses.replace(plan.training, prior=narrow),
            scope=_mediator_scope(fold, design.X.shape[1], kept_places(design, plan)),
            network_id=_MEDIATOR_NETWORKS,
        )
        jobs.append(job)
    tasks = [job.on(fold.split) for job, fold in zip(jobs, outcome.folds, strict=True)]
    return FittedNetworks(
        plan=plan,
        folds=tuple(workforce.run(tasks)),
        covariates=design.covariates,
        x_scaling=scaling,
        y_units=Units(0.0, 1.0),  # the mediators' units are not the networks' concern
        threads=workforce.threads,
        spec=jobs[0].network,
    )


def _network(
    plan: Architecture, design: MediationDesign, families: tuple[Family, ...]
) -> NetworkSpec:
    """A network of mediators of these families, on the covariates."""
    one = causal_network(plan)
    outcomes = tuple(block_family(family) for family in families)
    return one.with_inputs(design.X.shape[1]).with_outcomes(outcomes, plan.outcome_temperature)


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


def _mediator_scope(fold: Fold, p: int, always: tuple[int, ...]) -> SearchScope:
    """The mediator network's search: the covariates of the other models are familiar to it."""
    known = tuple(sorted({int(j) for net in fold.networks for j in net.inputs if j < p}))
    return SearchScope(models=("outcome",), always=always, familiar=known, adjust=known)


def _held(fold: Fold, p: int) -> NDArray[np.int64]:
    """Mediators that the outcome model of any of the networks uses; at least the first."""
    used = {
        int(j) - p
        for net in fold.networks
        for j in net.inputs[fold.adjustment.selects(net, OUTCOME)]
        if j >= p
    }
    return np.array(sorted(used) or [0], dtype=np.int64)


def _stacked(**frames: pd.DataFrame) -> pd.DataFrame:
    """Frames one below the other, with a column that names their network."""
    parts = [frame.assign(network=label) for label, frame in frames.items()]
    stacked: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return stacked
