"""Which rows train, which measure the noise, which are predicted: folds and validation rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstonet.network.training_data import Deal, Split
from cstonet.streams import Stream


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
    splits: list[Split] = []
    # Dealt apart, rows that only predict leave the folds of the others as they would be without.
    every = bool(trainable.all())
    dealt = strata if every else strata + (strata.max() + 1) * ~trainable
    for repeat in range(repeats):
        labels = assign_folds(dealt, folds, Stream.FOLDS.generator(seed, repeat))
        deal = Deal(labels, folds, None if every else trainable)
        for k in range(folds):
            rng = Stream.VALIDATION.generator(seed, repeat, k)
            held_out = _spread_sample(strata[deal.known(k)], validation_fraction, rng)
            marks = np.packbits(held_out) if held_out.any() else None
            splits.append(Split(len(splits), repeat, k, deal, marks))
    return tuple(splits)


def assign_folds(
    strata: NDArray[np.int64], folds: int, rng: np.random.Generator
) -> NDArray[np.unsignedinteger]:
    """Fold of every row, shape (n,); each stratum is dealt out evenly, in random order."""
    fold = np.zeros(len(strata), dtype=np.min_scalar_type(folds - 1))
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
