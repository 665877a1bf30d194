"""Which covariates the pruned networks kept, for the treatment and for the outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.network.structure import Model
from cstonet.network.trained import OUTCOME, TREATMENT, TrainedNetwork
from cstonet.search.inclusion import WeighedFold, mean_inclusion
from cstonet.search.scope import Adjustment

# Share of the networks that must select a covariate. A covariate that stands in for another one,
# or is a chance finding of some rows, is found in some folds and not in others.
STABLE = 0.75


class SearchedFold(WeighedFold, Protocol):
    """What the selection asks of a fold."""

    @property
    def networks(self) -> tuple[TrainedNetwork, ...]:
        """Its chosen networks."""

    @property
    def adjustment(self) -> Adjustment:
        """What its search found."""

    @property
    def starts(self) -> tuple[TrainedNetwork, ...]:
        """All of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Which covariates were selected, and out of how many supports.

    Attributes
    ----------
    table : DataFrame
        One row per covariate, see :func:`select`.
    supports : int
        Number of supports behind the counts.
    """

    table: pd.DataFrame
    supports: int


def select(
    covariates: tuple[str, ...],
    folds: Sequence[SearchedFold],
    levels: Sequence[object] = (),
    kept: Collection[str] = (),
) -> Selection:
    """Selection of every covariate, indexed by covariate.

    A network selects a covariate for the treatment model if a path of kept weights leads from it
    to the treatment's unit (or the search found it and left it to slopes), for the outcome
    model if one leads to the outcome's unit without passing through the treatment (which is
    observed). Where a search found the supports, it must also have found the covariate for that
    model: the networks may adjust for more.

    ``treatment`` and ``outcome`` say whether at least three quarters of the chosen networks select
    the covariate. Counts and frequencies are over the supports that were found independently: one
    per fold where a search finds them (all starts of a fold share its support), one per fold and
    start where each network is pruned by itself. Strengths are shares of the total path weight,
    averaged over the chosen networks, and ``strength`` is the larger of those in models that the
    covariate was found for. A covariate of the treatment alone that is kept out of the weights has
    no path to the treatment's unit: it is selected by the search, with strength zero.
    Where every fold can tell, ``treatment_probability`` and ``outcome_probability`` say how
    probable it is that the covariate belongs to the model (:mod:`cstonet.search.inclusion`).

    ``levels`` are those of a multilevel treatment, the reference first. Each of the others then
    has columns ``treatment[b]`` and ``treatment_strength[b]``, the same for paths to the unit of
    its log-odds against the reference.

    ``kept`` are covariates that were not searched for but kept in all models; if there are any, a
    column of that name marks them. Their probabilities are NaN.
    """
    p = len(covariates)
    chosen = [(fold.adjustment, net) for fold in folds for net in fold.networks]
    independent = [
        (fold.adjustment, net)
        for fold in folds
        for net in (fold.starts if fold.adjustment.found is None else fold.networks[:1])
    ]
    columns: dict[str, NDArray[np.generic]] = {}
    counts: dict[str, NDArray[np.int64]] = {}
    strengths: dict[str, NDArray[np.float64]] = {}
    for name, block in (("treatment", TREATMENT), ("outcome", OUTCOME)):
        votes, counts[name], strengths[name] = np.zeros(p), np.zeros(p, dtype=np.int64), np.zeros(p)
        for adjustment, net in independent:
            counts[name][net.inputs[adjustment.selects(net, block)]] += 1
        for adjustment, net in chosen:
            votes[net.inputs[adjustment.selects(net, block)]] += 1
            strengths[name][net.inputs] += net.path_strength(block)
        columns[name] = votes >= STABLE * len(chosen)
    supports = len(independent)
    models: tuple[Model, ...] = ("treatment", "outcome")
    for name in models:
        columns[f"{name}_count"] = counts[name]
        columns[f"{name}_frequency"] = counts[name] / supports
        probability = mean_inclusion(folds, name)
        if probability is not None:
            columns[f"{name}_probability"] = probability
        columns[f"{name}_strength"] = strengths[name] / len(chosen)
    columns["strength"] = np.max(
        [columns[f"{name}_strength"] * (counts[name] > 0) for name in counts], axis=0
    )
    columns |= _level_columns(p, chosen, levels)
    if kept:
        columns["kept"] = np.isin(covariates, list(kept))
    table = pd.DataFrame(columns, index=pd.Index(covariates, name="covariate"))
    return Selection(table, supports)


def _level_columns(
    p: int, chosen: Sequence[tuple[Adjustment, TrainedNetwork]], levels: Sequence[object]
) -> dict[str, NDArray[np.generic]]:
    """Selection and strength for the unit of every level but the first."""
    columns: dict[str, NDArray[np.generic]] = {}
    for unit, level in enumerate(levels[1:]):
        votes, strength = np.zeros(p), np.zeros(p)
        for adjustment, net in chosen:
            votes[net.inputs[adjustment.selects_levels(net)[:, unit]]] += 1
            strength[net.inputs] += net.level_strengths()[:, unit]
        columns[f"treatment[{level}]"] = votes >= STABLE * len(chosen)
        columns[f"treatment_strength[{level}]"] = strength / len(chosen)
    return columns
