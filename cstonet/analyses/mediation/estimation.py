"""From predictions of the mediation networks to effects, paths and tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr

from cstonet.analyses.mediation.models import MediationPrediction, averaged
from cstonet.analyses.mediation.networks import MediationNetworks, mediators_of
from cstonet.data.design import Design
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
from cstonet.search.selection import selection_table

# Least distance of a propensity from 0 and 1 where its log-odds are taken.
_LEAST = 1e-12


def mediation_nuisances(
    design: Design, prediction: MediationPrediction, fold: IntArray
) -> MediationNuisances:
    """Data and predictions as the estimator takes them.

    By Bayes' rule the log-odds of treatment given mediators are those without them plus the log
    of the density ratio.
    """
    p = prediction.propensity[:, 1]
    treated = expit(logit(np.clip(p, _LEAST, 1 - _LEAST)) + prediction.log_ratio)
    return MediationNuisances(
        y=design.y,
        treatment=design.treatment,
        mu=prediction.mu,
        eta=prediction.eta,
        propensity=prediction.propensity,
        posterior=np.column_stack([1 - treated, treated]),
        weights=design.weights,
        fold=fold,
    )


def estimate(
    design: Design, prediction: MediationPrediction, fold: IntArray, clip: float
) -> MediationEffects:
    """The effects from one set of predictions."""
    return estimate_mediation(mediation_nuisances(design, prediction, fold), clip=clip)


def mediation_selection(design: Design, networks: MediationNetworks) -> pd.DataFrame:
    """Selection of every covariate for treatment, mediators and outcome.

    The table of :func:`cstonet.search.selection.selection_table`, with columns ``mediator``,
    ``mediator_count``, ``mediator_frequency`` and ``mediator_strength``.
    """
    both = selection_table(_inputs(design), networks.outcome)
    table = both.iloc[: len(design.covariates)].copy()
    mediator = selection_table(design.covariates, networks.mediator)
    for suffix in ("", "_count", "_frequency", "_strength"):
        table[f"mediator{suffix}"] = mediator[f"outcome{suffix}"]
    table["strength"] = table[[f"{m}_strength" for m in ("treatment", "mediator", "outcome")]].max(
        axis=1
    )
    table.attrs["fits"] = both.attrs["fits"]
    return table


def mediator_table(
    design: Design,
    networks: MediationNetworks,
    repetitions: Sequence[MediationPrediction],
    fold: IntArray,
    clip: float,
) -> pd.DataFrame:
    """One row per mediator: is it held, what the treatment does to it, what goes through it.

    Estimates are those of the repetitions' average, standard errors those of a single one; see
    :class:`cstonet.analyses.mediation.results.MediationResults`.
    """
    mediators = mediators_of(design)
    held = selection_table(_inputs(design), networks.outcome).iloc[len(design.covariates) :]
    both = _mediator_by_mediator(design, averaged(repetitions), fold, clip)
    singles = [_mediator_by_mediator(design, one, fold, clip) for one in repetitions]
    effect, path = (
        whole.over_repetitions(alone)
        for whole, alone in zip(both, zip(*singles, strict=True), strict=True)
    )
    table = pd.DataFrame(
        {
            "family": list(mediators.families),
            "level": [pair[1] if pair else "" for pair in mediators.levels],
            **{name: held[name].to_numpy() for name in _HELD},
            "effect": effect.values,
            "effect_se": effect.errors,
            "effect_pvalue": _pvalue(effect.values, effect.errors),
            "indirect": path.values,
            "indirect_se": path.errors,
            "indirect_pvalue": _pvalue(path.values, path.errors),
        },
        index=pd.Index(mediators.names, name="mediator"),
    )
    table.attrs["fits"] = held.attrs["fits"]
    return table


def _mediator_by_mediator(
    design: Design, prediction: MediationPrediction, fold: IntArray, clip: float
) -> tuple[Estimates, Estimates]:
    """The treatment's effect on each mediator, and the path through it, from one prediction."""
    nuisances, values = mediation_nuisances(design, prediction, fold), mediators_of(design).values
    paths = PathNuisances(prediction.ratio, prediction.own, prediction.rest, prediction.both)
    return (
        estimate_mediator_effects(nuisances, values, prediction.means, clip=clip),
        estimate_paths(nuisances, paths, clip=clip),
    )


_HELD = ("outcome", "outcome_count", "outcome_frequency", "outcome_strength")


def _inputs(design: Design) -> tuple[str, ...]:
    """Names of the outcome network's inputs."""
    return (*design.covariates, *mediators_of(design).names)


def _pvalue(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Two-sided p-values; 1 where a path was never in a model and has no error either."""
    z = np.divide(values, errors, out=np.zeros_like(values), where=errors > 0)
    return np.asarray(2 * ndtr(-np.abs(z)))
