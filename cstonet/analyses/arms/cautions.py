"""What the reader of a comparison of arms is warned of, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.data.caller import caller_stacklevel
from cstonet.data.matrix import dense_part, is_partitioned
from cstonet.data.treatment import Arms
from cstonet.errors import LostSupportWarning, SeparationError
from cstonet.estimators import Effects, Nuisances, Target
from cstonet.estimators.support import COUNTERPART, LEAST_SHARED, MOST_LOST, Overlap

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

# Share of clipped units from which overlap is called poor, and of lost ones that is worth a word.
_POOR_OVERLAP, _SOME_LOST = 0.05, 0.05
# Covariates that are named as telling the arms apart: at most so many, and nearly as well as the
# best of them.
_NAMED, _NEARLY = 3, 0.8
# How a summary calls an effect that the data say nothing about.
NOT_ESTIMABLE = "not estimable"


def not_estimable(estimand: str) -> str:
    """What to say of an estimand without enough support, and what to ask for instead."""
    text = f"The {estimand} is {NOT_ESTIMABLE} with these data: its interval is not to be used."
    if estimand == "ATO":
        return text
    return (
        f'{text} estimand="ATO" asks for less: the effect among units that could have received '
        "either level."
    )


def check_separation(overlap: Overlap, arms: Arms, X: Matrix, covariates: Sequence[str]) -> None:
    """Raise SeparationError if hardly a unit has a counterpart in another arm.

    Parameters
    ----------
    overlap
        Who has counterparts where.
    arms
        The treatment.
    X, covariates
        The covariates and their names.
    """
    shared = float(np.average(~overlap.without, weights=overlap.unit_weights))
    if shared >= LEAST_SHARED:
        return
    names = telling(X, covariates, overlap.treatment)
    who = f" ({', '.join(names)} above all)" if names else ""
    raise SeparationError(
        f"The covariates determine {arms.name}{who}: given them, only {shared:.1%} of the units "
        "have a counterpart in every arm, so the data say nothing about its effect. Leave out "
        "covariates that follow from the treatment or define it, or restrict the data to units "
        "that could have received either level."
    )


def telling(X: Matrix, covariates: Sequence[str], treatment: NDArray[np.integer]) -> list[str]:
    """Names of the covariates that tell an arm from the others best, each by itself."""
    if is_partitioned(X):
        return []
    apart = np.zeros(len(covariates))
    for j in range(len(covariates)):
        ranks = pd.Series(dense_part(X, slice(None), slice(j, j + 1))[:, 0]).rank().to_numpy()
        for arm in np.unique(treatment):
            inside = treatment == arm
            gap = ranks[inside].mean() - ranks[~inside].mean()
            # Twice the distance of the area under the ROC curve from one half.
            apart[j] = max(apart[j], 2 * abs(gap) / len(ranks))
    order = np.argsort(-apart, kind="stable")[:_NAMED]
    return [covariates[j] for j in order if apart[j] > _NEARLY * apart[order[0]]]


def overlap_warnings(
    nuisances: Nuisances, effects: Effects, target: Target = "ATE"
) -> tuple[str, ...]:
    """Weights that were cut; those of the ATE, the other estimands have smaller ones.

    Parameters
    ----------
    nuisances
        Those of the training rows.
    effects
        What was estimated, with the number of clipped units.
    target
        The estimand that leads the table.
    """
    share = effects.n_clipped / nuisances.n
    if share < _POOR_OVERLAP or target != "ATE":
        return ()
    return (
        f"Overlap is poor: the propensities of {effects.n_clipped} units ({share:.1%}) were "
        "clipped, and clipping that many may bias the effects. See res.overlap().",
    )


def support_warnings(overlap: Overlap, target: Target) -> tuple[str, ...]:
    """Units without counterparts; also as a LostSupportWarning.

    Parameters
    ----------
    overlap
        Who has counterparts where.
    target
        The estimand that leads the table.
    """
    sentences = tuple(_support_warnings(overlap, target))
    for sentence in sentences:
        warnings.warn(sentence, LostSupportWarning, stacklevel=caller_stacklevel())
    return sentences + _rows_below(overlap, target)


def _rows_below(overlap: Overlap, target: Target) -> tuple[str, ...]:
    """That the ATE below another estimand is not estimable."""
    share = overlap.largest_lost_share("ATE")
    if target == "ATE" or share <= MOST_LOST:
        return ()
    return (
        f"ATE and means below the {target} are {NOT_ESTIMABLE}: {share:.0%} of all units have no "
        "counterpart in another arm. Their intervals include what extrapolation could hide.",
    )


def _support_warnings(overlap: Overlap, target: Target) -> Iterator[str]:
    share = overlap.largest_lost_share(target)
    if share < _SOME_LOST:
        return
    text = (
        f"{share:.0%} of the units that the {target} asks about have no counterpart in another arm "
        f"(given all covariates, their probability of it is below {COUNTERPART:.0%} of its share)"
    )
    if share <= MOST_LOST:
        yield (
            f"{text}: there the effect rests on extrapolation, and interval and p-value include "
            "what that could hide. res.support() describes the others."
        )
        return
    others: tuple[Target, ...] = ("ATT", "ATC")
    instead = next(
        (w for w in others if w != target and overlap.largest_lost_share(w) <= _SOME_LOST), "ATO"
    )
    yield (
        f"{text}: the {target} is {NOT_ESTIMABLE} from these data; intervals and p-values include "
        f'what extrapolation could hide. estimand="{instead}" asks for less, and res.support() '
        "describes the part of the population in which the effect is estimable."
    )
