"""Imputations of every row by models that did not train on it, and its nuisances at each.

The candidates of :mod:`cstonet.imputation.imputation` are drawn and weighed once more, for the rows
that a fold held out and by that fold's networks. What is chosen are the M imputations behind the
effects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from cstonet import _core
from cstonet.estimators.imputations import Imputations
from cstonet.imputation.imputation import GapData, ImputationModel, candidate_likelihood, choose
from cstonet.imputation.noise import FreshNoise
from cstonet.network.trained import FittedNetworks, Prediction, mean_prediction
from cstonet.search.working import TrainingData

# First word of the seed sequences.
_IMPUTATIONS = 5


def impute(
    fitted: FittedNetworks,
    models: Sequence[ImputationModel],
    data: TrainingData,
    gaps: GapData,
    imputations: int,
) -> tuple[Imputations, list[Imputations]]:
    """Draw the missing covariates of every row by models that did not train on it.

    Parameters
    ----------
    fitted, models
        Networks and imputation models of each split.
    data
        Covariates with start values in the gaps, treatment and outcome.
    gaps
        What is missing.
    imputations
        Number M of imputations; those of each repetition of the cross-fitting use its models.

    Returns
    -------
    imputations
        Nuisances of the rows with gaps at each imputation, averaged over repetitions.
    repetitions
        The same rows at the same imputations, under each repetition alone.
    """
    plan, entries = fitted.plan, gaps.entries
    repeats = len(fitted.splits) // plan.folds
    values = np.empty((len(entries.row), imputations), dtype=np.float32)
    shared = _core.Gaps(entries.first, entries.column, data.covariates.columns)
    inputs = np.concatenate([net.inputs for fold in fitted.chosen for net in fold])
    used = gaps.whole(inputs)
    for number, (split, networks, model) in enumerate(
        zip(fitted.splits, fitted.chosen, models, strict=True)
    ):
        mine = np.arange(number // plan.folds, imputations, repeats)
        held_out = np.zeros(data.covariates.rows, dtype=bool)
        held_out[split.test] = True
        here = held_out[entries.rows][entries.row]
        if not here.any() or len(mine) == 0:
            continue
        rng = np.random.default_rng([_IMPUTATIONS, plan.seed, number])
        noise = FreshNoise(rng)
        # First all entries once; then those that a network reads, as often as there are
        # candidates. If being missing tells something, all of them are weighed.
        entries_here = entries.only(here)
        once = model.covariates.draw(data.covariates, entries_here, 1, noise)[:, 0]
        values[np.ix_(here, mine)] = once[:, None]
        every = np.zeros(len(entries.row), dtype=np.float32)
        every[here] = once
        covariates = _core.completed(data.covariates, shared, every)
        read = here & (entries.marked(used) | (model.missingness is not None))
        pool = entries.only(read)
        drawn = model.covariates.draw(covariates, pool, gaps.candidates, noise)
        completed_data = dataclasses.replace(data, covariates=covariates)
        weight = candidate_likelihood(networks, completed_data, pool, drawn, fitted.threads)
        weight += model.log_weight(covariates, pool, drawn)
        index = choose(weight, len(mine), rng)
        values[np.ix_(read, mine)] = drawn[np.arange(len(drawn))[:, None], index[pool.row]]

    everything = []
    for m in range(imputations):
        completed = _core.completed(
            data.covariates, shared, np.ascontiguousarray(values[:, m], dtype=np.float32)
        )
        everything.append(fitted.predict_out_of_fold(completed, entries.rows))

    def collected(predictions: Sequence[Prediction]) -> Imputations:
        return Imputations(
            rows=entries.rows,
            mu=np.stack([prediction.mu for prediction in predictions]),
            propensity=np.stack([prediction.propensity for prediction in predictions]),
            values=values,
        )

    averaged = collected([mean_prediction(predictions) for predictions in everything])
    # All have the same imputations, so that what repetitions differ by is no noise of imputing.
    return averaged, [collected(alone) for alone in zip(*everything, strict=True)]
