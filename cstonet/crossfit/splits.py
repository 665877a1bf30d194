"""Which rows train, which measure the noise, which are predicted: folds and validation rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.data.roles import counted
from cstonet.errors import OneArmedError, TooFewRowsError

# First words of the seed sequences, so that folds and validation rows have streams of their own.
_FOLDS, _VALIDATION = 1, 2


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of one fold: trained on, held out within training, and left for prediction."""

    fit: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


def make_splits(
    strata: NDArray[np.int64],
    *,
    folds: int,
    repeats: int,
    validation_fraction: float,
    seed: int,
    trainable: NDArray[np.bool_],
) -> tuple[Split, ...]:
    """Split the rows, balanced within strata, as often as asked.

    Every repetition deals the rows anew; its folds follow those of the one before.

    Parameters
    ----------
    strata : (n,)
        Codes of the groups to spread evenly: the treatment arms, and for a binary outcome the
        arms by outcome.
    folds
        Number of folds; 1 trains on every row and predicts the same rows.
    repeats
        Number of repetitions.
    validation_fraction
        Share of a fold's training rows held out.
    seed
        The fit's seed.
    trainable : (n,)
        Rows that may be trained on; the others (of weight zero) are predicted only.
    """
    splits = []
    # Dealt apart, rows that only predict leave the folds of the others as they would be without.
    dealt = strata + (strata.max() + 1) * ~trainable
    for repeat in range(repeats):
        fold = assign_folds(dealt, folds, np.random.default_rng([_FOLDS, seed, repeat]))
        for k in range(folds):
            train = np.flatnonzero(trainable & ((fold != k) | (folds == 1)))
            rng = np.random.default_rng([_VALIDATION, seed, repeat, k])
            held_out = _spread_sample(strata[train], validation_fraction, rng)
            splits.append(
                Split(
                    fit=train[~held_out],
                    validation=train[held_out],
                    test=np.flatnonzero(fold == k),
                )
            )
    return tuple(splits)


def assign_folds(
    strata: NDArray[np.int64], folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Fold of every row, shape (n,); each stratum is dealt out evenly, in random order."""
    fold = np.zeros(len(strata), dtype=np.int64)
    first = 0  # where the next stratum's dealing begins, so that remainders even out
    for code in np.unique(strata):
        rows = rng.permutation(np.flatnonzero(strata == code))
        fold[rows] = (np.arange(len(rows)) + first) % folds
        first += len(rows)
    return fold


def _spread_sample(
    strata: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark about ``fraction`` of the rows of each stratum, leaving at least one unmarked."""
    chosen = np.zeros(len(strata), dtype=bool)
    for code in np.unique(strata):
        rows = rng.permutation(np.flatnonzero(strata == code))
        chosen[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    return chosen


def check_folds(
    treatment: NDArray[np.int64],
    levels: tuple[object, ...],
    folds: int,
    weights: NDArray[np.float64] | None = None,
) -> None:
    """Raise an error unless every fold can train on at least two units of each arm.

    Parameters
    ----------
    treatment : (n,)
        Codes into `levels`.
    levels
        The treatment's values.
    folds
        Number of folds.
    weights : (n,) or None
        Row weights; rows of weight zero train nothing.

    Raises
    ------
    TooFewRowsError, OneArmedError
    """
    treatment = counted(treatment, weights)
    n, positive = len(treatment), "" if weights is None else " with positive weight"
    if folds > n:
        raise TooFewRowsError(
            f"{folds} folds need at least {folds} rows{positive}, but there are {n}. Use fewer "
            "folds, or folds=1 to train and estimate on the same rows."
        )
    # One unit per fold leaves two or more to train on, whichever fold is left out, from three
    # folds on; two folds need two units each.
    needed = folds if folds >= 3 else 2 * folds
    for code, level in enumerate(levels):
        units = int(np.sum(treatment == code))
        if units < needed:
            raise OneArmedError(
                f"Treatment arm {level!r} has {units} unit(s){positive}; with {folds} fold(s) an "
                f"effect needs at least {needed} in each arm. Use fewer folds, or more data."
            )
