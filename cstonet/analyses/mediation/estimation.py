"""From predictions of the mediation networks to nuisances, effects and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, stdtr

from cstonet.analyses.mediation.models import MediationPrediction
from cstonet.analyses.mediation.networks import MediationNetworks
from cstonet.analyses.mediation.reading import MediationDesign
from cstonet.crossfit.fold import by_repetition, fold_labels
from cstonet.estimators import (
    Estimates,
    MediationEffects,
    MediationNuisances,
    PathNuisances,
    estimate_mediation,
    estimate_mediator_effects,
    estimate_paths,
)
from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.network.prediction import averaged
from cstonet.search.selection import Selection, select

# Least distance of a propensity from 0 and 1 where its log-odds are taken.
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Mediated:
    """Nuisances of one repetition of the cross-fitting, or of their average.

    Attributes
    ----------
    nuisances
        Of the effects.
    paths
        Of the paths through single mediators.
    means : (n, 2, J)
        Of the treatment's effects on the mediators: their means under each treatment.
    """

    nuisances: MediationNuisances
    paths: PathNuisances
    means: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class MediatedRows:
    """Nuisances of the training rows: averaged over the repetitions, and of each."""

    average: Mediated
    repetitions: tuple[Mediated, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MediationEstimates:
    """Effects, and what goes through each mediator.

    Attributes
    ----------
    mediation
        TE, NDE and NIE.
    singles
        The same from each repetition alone.
    on_mediators
        Effect of the treatment on each mediator.
    paths
        Interventional indirect effect through each.
    """

    mediation: MediationEffects
    singles: tuple[MediationEffects, ...]
    on_mediators: Estimates
    paths: Estimates


def mediated_rows(
    design: MediationDesign,
    networks: MediationNetworks,
    predictions: Sequence[MediationPrediction],
) -> MediatedRows:
    """Predictions as the estimators take them.

    Estimates are those of the repetitions' average, standard errors those of a single one.
    """
    folds = [fold_labels(group) for group in by_repetition(networks.outcome.folds)]
    return MediatedRows(
        average=_mediated(design, averaged(predictions), folds[0]),
        repetitions=tuple(
            _mediated(design, prediction, labels)
            for prediction, labels in zip(predictions, folds, strict=True)
        ),
    )


def _mediated(design: MediationDesign, prediction: MediationPrediction, fold: IntArray) -> Mediated:
    """Data and predictions as the estimators take them.

    By Bayes' rule the log-odds of treatment given mediators are those without them plus the log
    of the density ratio.
    """
    p = prediction.propensity[:, 1]
    treated = expit(logit(np.clip(p, _LEAST, 1 - _LEAST)) + prediction.log_ratio)
    nuisances = MediationNuisances(
        y=design.y,
        treatment=design.treatment.codes,
        mu=prediction.mu,
        eta=prediction.eta,
        propensity=prediction.propensity,
        posterior=np.column_stack([1 - treated, treated]),
        weights=design.weights,
        fold=fold,
        clusters=design.clusters,
    )
    paths = PathNuisances(prediction.ratio, prediction.own, prediction.rest, prediction.both)
    return Mediated(nuisances, paths, prediction.means)


def estimate(design: MediationDesign, clip: float, rows: MediatedRows) -> MediationEstimates:
    """Effects, and those of single mediators."""

    def one_by_one(mediated: Mediated) -> tuple[Estimates, Estimates]:
        nuisances, values = mediated.nuisances, design.mediators.values
        return (
            estimate_mediator_effects(nuisances, values, mediated.means, clip=clip),
            estimate_paths(nuisances, mediated.paths, clip=clip),
        )

    singles = tuple(
        estimate_mediation(repetition.nuisances, clip=clip) for repetition in rows.repetitions
    )
    each = [one_by_one(repetition) for repetition in rows.repetitions]
    on_mediators, paths = (
        whole.over_repetitions(alone)
        for whole, alone in zip(one_by_one(rows.average), zip(*each, strict=True), strict=True)
    )
    whole = estimate_mediation(rows.average.nuisances, clip=clip)
    return MediationEstimates(whole.over_repetitions(singles), singles, on_mediators, paths)


def select_inputs(networks: MediationNetworks) -> Selection:
    """Selection among the outcome network's inputs, mediators after covariates."""
    outcome = networks.outcome
    return select(outcome.covariates, outcome.folds, kept=outcome.plan.keep)


def select_covariates(
    design: MediationDesign, networks: MediationNetworks, inputs: Selection
) -> Selection:
    """Selection of every covariate for treatment, mediators and outcome.

    The table of :func:`cstonet.search.selection.select`, with columns ``mediator``,
    ``mediator_count``, ``mediator_frequency`` and ``mediator_strength``. `inputs` is what
    :func:`select_inputs` gives.
    """
    table = inputs.table.iloc[: len(design.covariates)].copy()
    mediator = select(design.covariates, networks.mediator.folds).table
    for suffix in ("", "_count", "_frequency", "_strength"):
        table[f"mediator{suffix}"] = mediator[f"outcome{suffix}"]
    table["strength"] = table[[f"{m}_strength" for m in ("treatment", "mediator", "outcome")]].max(
        axis=1
    )
    return Selection(table, inputs.supports)


def mediator_table(
    design: MediationDesign, inputs: Selection, estimates: MediationEstimates
) -> pd.DataFrame:
    """One row per mediator: is it held, what the treatment does to it, what goes through it.

    See :class:`cstonet.analyses.mediation.results.MediationResults`.
    """
    mediators, effect, path = design.mediators, estimates.on_mediators, estimates.paths
    held = inputs.table.iloc[len(design.covariates) :]
    return pd.DataFrame(
        {
            "family": list(mediators.families),
            "level": [pair[1] if pair else "" for pair in mediators.levels],
            **{name: held[name].to_numpy() for name in _HELD},
            "effect": effect.values,
            "effect_se": effect.errors,
            "effect_pvalue": _pvalue(effect),
            "indirect": path.values,
            "indirect_se": path.errors,
            "indirect_pvalue": _pvalue(path),
        },
        index=pd.Index(mediators.names, name="mediator"),
    )


_HELD = ("outcome", "outcome_count", "outcome_frequency", "outcome_strength")


def _pvalue(estimates: Estimates) -> FloatArray:
    """Two-sided p-values; 1 where a path was never in a model and has no error either."""
    values, errors, freedom = estimates.values, estimates.errors, estimates.freedom
    z = np.divide(values, errors, out=np.zeros_like(values), where=errors > 0)
    tail = ndtr(-np.abs(z)) if freedom is None else stdtr(freedom, -np.abs(z))
    return np.asarray(2 * tail)
