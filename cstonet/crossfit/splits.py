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
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Split, ...]:
    """Split the rows, balanced within strata, as often as asked.

    Clusters stay whole: no row is predicted, or validated, by a model that trained on another of
    its cluster. Every repetition deals the rows anew; its folds follow those of the one before.

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
    clusters : (n,), optional
        Codes of the clusters that rows belong to.
    """
    if clusters is not None and len(np.unique(clusters)) == len(clusters):
        clusters = None  # every row by itself
    splits: list[Split] = []
    # Dealt apart, rows that only predict leave the folds of the others as they would be without.
    every = bool(trainable.all())
    dealt = strata if every else strata + (strata.max() + 1) * ~trainable
    for repeat in range(repeats):
        rng = Stream.FOLDS.generator(seed, repeat)
        if clusters is None:
            labels = assign_folds(dealt, folds, rng)
        else:
            labels = assign_clusters(clusters, dealt, trainable, folds, rng)
        deal = Deal(labels, folds, None if every else trainable)
        for k in range(folds):
            rng = Stream.VALIDATION.generator(seed, repeat, k)
            known = deal.known(k)
            if clusters is None:
                held_out = _spread_sample(strata[known], validation_fraction, rng)
            else:
                held_out = _sample_clusters(
                    clusters[known], strata[known], validation_fraction, rng
                )
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


def assign_clusters(
    clusters: NDArray[np.int64],
    strata: NDArray[np.int64],
    trainable: NDArray[np.bool_],
    folds: int,
    rng: np.random.Generator,
) -> NDArray[np.unsignedinteger]:
    """Fold of every row, shape (n,), the same for all rows of a cluster.

    Clusters are dealt from the largest to the smallest, equal ones in random order, each to the
    fold that has the least of what it brings: Σ_s (rows of stratum s it has) × (those it gets) /
    (those there are). What is rare weighs most, and no fold can run ahead of the others. Rows that
    only predict count last, as a tie-break.

    Parameters
    ----------
    clusters, strata, trainable : (n,)
        Codes of the clusters and strata of the rows, and which of them train.
    folds, rng
        Number of folds, and the order of equal clusters.
    """
    sizes, places = _table(clusters, strata)
    trains = np.bincount(places, trainable, len(sizes))
    # Clusters that only predict are shuffled after the others, which then are as without them.
    apart = np.flatnonzero(trains > 0), np.flatnonzero(trains == 0)
    order = np.concatenate([rng.permutation(some) for some in apart])
    order = order[np.lexsort((-sizes[order].sum(axis=1), -trains[order]))]
    share = sizes / sizes.sum(axis=0)
    load, rows = np.zeros((folds, sizes.shape[1])), np.zeros(folds)
    label = np.zeros(len(sizes), dtype=np.min_scalar_type(folds - 1))
    for cluster in order:
        fold = int(np.lexsort((rows, load @ share[cluster]))[0])
        label[cluster] = fold
        load[fold] += sizes[cluster]
        rows[fold] += sizes[cluster].sum()
    return np.asarray(label[places])


def _table(
    clusters: NDArray[np.int64], strata: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of every cluster in every stratum, shape (G, S), and the cluster 0, …, G-1 of each row.

    Clusters are in the order in which they appear, strata in that of their codes.
    """
    found, firsts, places = np.unique(clusters, return_index=True, return_inverse=True)
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(firsts)] = np.arange(len(found))
    places = rank[places]
    codes, columns = np.unique(strata, return_inverse=True)
    counts = np.bincount(places * len(codes) + columns, minlength=len(found) * len(codes))
    return counts.reshape(len(found), len(codes)), places


def _sample_clusters(
    clusters: NDArray[np.int64],
    strata: NDArray[np.int64],
    fraction: float,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Mark whole clusters, with about ``fraction`` of the rows of each stratum and never all.

    In random order, a cluster is taken if the marked rows are nearer to that with it than without.
    """
    sizes, places = _table(clusters, strata)
    total = sizes.sum(axis=0)
    wanted, marked = fraction * total, np.zeros(len(total))
    chosen = np.zeros(len(sizes), dtype=bool)
    for cluster in rng.permutation(len(sizes)):
        more = marked + sizes[cluster]
        nearer = np.sum((more - wanted) ** 2 / total) < np.sum((marked - wanted) ** 2 / total)
        if nearer and (more < total).all():
            chosen[cluster], marked = True, more
    return np.asarray(chosen[places])


def _spread_sample(
    strata: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark about ``fraction`` of the rows of each stratum, leaving at least one unmarked."""
    chosen = np.zeros(len(strata), dtype=bool)
    for code in np.unique(strata):
        rows = rng.permutation(np.flatnonzero(strata == code))
        chosen[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    return chosen
