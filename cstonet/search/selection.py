"""Which covariates the pruned networks kept, for the treatment and for the outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.network.trained import OUTCOME, TREATMENT, FittedNetworks

# Share of the networks that must select a covariate. A covariate that stands in for another one,
# or is a chance finding of some rows, is found in some folds and not in others.
STABLE = 0.75


def selection_table(
    covariates: tuple[str, ...], fitted: FittedNetworks, levels: Sequence[object] = ()
) -> pd.DataFrame:
    """Selection of every covariate, indexed by covariate.

    A network selects a covariate for the treatment model if a path of kept weights leads from it
    to the treatment's unit (or the search found it and left it to linear terms), for the outcome
    model if one leads to the outcome's unit without
    passing through the treatment (which is observed). Where a search found the supports, it must
    also have found the covariate for that model: the networks may adjust for more.

    ``treatment`` and ``outcome`` say whether at least three quarters of the chosen networks select
    the covariate. Counts and frequencies are over the supports that were found independently: one
    per fold where a search finds them (all starts of a fold share its support), one per fold and
    start where each network is pruned by itself. Strengths are shares of the total path weight,
    averaged over the chosen networks, and ``strength`` is the larger of those in models that the
    covariate was found for. A covariate of the treatment alone that is kept out of the weights has
    no path to the treatment's unit: it is selected by the search, with strength zero.

    ``levels`` are those of a multilevel treatment, the reference first. Each of the others then
    has columns ``treatment[b]`` and ``treatment_strength[b]``, the same for paths to the unit of
    its log-odds against the reference.
    """
    p = len(covariates)
    chosen = [net for fold in fitted.chosen for net in fold]
    searched = fitted.plan.search is not None
    independent = [fold[0] for fold in fitted.chosen] if searched else fitted.networks
    columns: dict[str, NDArray[np.generic]] = {}
    counts: dict[str, NDArray[np.int64]] = {}
    strengths: dict[str, NDArray[np.float64]] = {}
    for name, block in (("treatment", TREATMENT), ("outcome", OUTCOME)):
        votes, counts[name], strengths[name] = np.zeros(p), np.zeros(p, dtype=np.int64), np.zeros(p)
        for net in independent:
            counts[name][net.inputs[net.selects(block)]] += 1
        for net in chosen:
            votes[net.inputs[net.selects(block)]] += 1
            strengths[name][net.inputs] += net.path_strength(block)
        columns[name] = votes >= STABLE * len(chosen)
    fits = len(independent)
    for name in ("treatment", "outcome"):
        columns[f"{name}_count"] = counts[name]
        columns[f"{name}_frequency"] = counts[name] / fits
        columns[f"{name}_strength"] = strengths[name] / len(chosen)
    columns["strength"] = np.max(
        [columns[f"{name}_strength"] * (counts[name] > 0) for name in counts], axis=0
    )
    for unit, level in enumerate(levels[1:]):
        votes, strength = np.zeros(p), np.zeros(p)
        for net in chosen:
            votes[net.inputs[net.selects_levels()[:, unit]]] += 1
            strength[net.inputs] += net.level_strengths()[:, unit]
        columns[f"treatment[{level}]"] = votes >= STABLE * len(chosen)
        columns[f"treatment_strength[{level}]"] = strength / len(chosen)
    table = pd.DataFrame(columns, index=pd.Index(covariates, name="covariate"))
    table.attrs["fits"] = fits
    return table
