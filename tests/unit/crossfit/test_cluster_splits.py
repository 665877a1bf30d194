"""Folds and validation rows that keep clusters whole."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.crossfit.splits import assign_clusters, make_splits


def splits_of(strata, clusters, *, folds=3, repeats=2, fraction=0.2, seed=1, trainable=None):
    return make_splits(
        strata,
        folds=folds,
        repeats=repeats,
        validation_fraction=fraction,
        seed=seed,
        trainable=np.ones(len(strata), dtype=bool) if trainable is None else trainable,
        clusters=clusters,
    )


@pytest.fixture
def villages():
    """(clusters, strata) of 400 rows in 50 clusters of unequal size, treated as a whole."""
    rng = np.random.default_rng(0)
    clusters = rng.choice(50, size=400, p=rng.dirichlet(np.full(50, 4.0)))
    return clusters, (clusters % 3 == 0).astype(np.int64)


def test_no_cluster_is_split(villages):
    clusters, strata = villages
    splits = splits_of(strata, clusters)
    for split in splits:
        parts = [set(clusters[rows]) for rows in (split.fit, split.validation, split.test)]
        assert len(parts[1]) > 0
        assert not parts[0] & parts[1]
        assert not parts[0] & parts[2]
        assert not parts[1] & parts[2]
    tested = np.concatenate([split.test for split in splits if split.repetition == 0])
    np.testing.assert_array_equal(np.sort(tested), np.arange(400))


def test_folds_and_validation_rows_are_balanced(villages):
    clusters, strata = villages
    largest = np.bincount(clusters).max()
    for split in splits_of(strata, clusters):
        for code in (0, 1):
            share = np.sum(strata == code) / 3
            assert abs(np.sum(strata[split.test] == code) - share) <= largest
            known = np.sum(strata[split.known] == code)
            assert abs(np.sum(strata[split.validation] == code) - 0.2 * known) <= largest


def test_seed_and_repetition_decide(villages):
    clusters, strata = villages
    one, same, other = (splits_of(strata, clusters, seed=seed) for seed in (1, 1, 2))
    labels = [[split.deal.labels for split in splits] for splits in (one, same, other)]
    np.testing.assert_array_equal(labels[0], labels[1])
    assert (labels[0][0] != labels[2][0]).any()
    assert (labels[0][0] != labels[0][-1]).any()


def test_names_of_clusters_do_not_matter(villages):
    clusters, strata = villages
    renamed = np.random.default_rng(3).permutation(500)[clusters]
    one, other = splits_of(strata, clusters), splits_of(strata, renamed)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.test, b.test)
        np.testing.assert_array_equal(a.validation, b.validation)


def test_rows_that_are_clusters_by_themselves_are_dealt_as_rows(villages):
    _, strata = villages
    one, other = splits_of(strata, None), splits_of(strata, np.arange(400)[::-1].copy())
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.test, b.test)
        np.testing.assert_array_equal(a.validation, b.validation)


def test_clusters_that_only_predict_leave_the_others_alone(villages):
    clusters, strata = villages
    # 30 further rows in ten clusters of weight zero, at the end.
    more = np.repeat(np.arange(100, 110), 3)
    trainable = np.repeat([True, False], [400, 30])
    everyone = splits_of(
        np.concatenate([strata, np.zeros(30, np.int64)]),
        np.concatenate([clusters, more]),
        trainable=trainable,
    )
    for a, b in zip(splits_of(strata, clusters), everyone, strict=True):
        np.testing.assert_array_equal(a.test, b.test[b.test < 400])
        np.testing.assert_array_equal(a.fit, b.fit)


@pytest.mark.parametrize("folds", [2, 5])
def test_as_many_clusters_as_folds_are_one_each(folds):
    clusters = np.repeat(np.arange(folds), 7)
    labels = assign_clusters(
        clusters,
        np.zeros(len(clusters), np.int64),
        np.ones(len(clusters), dtype=bool),
        folds,
        np.random.default_rng(0),
    )
    assert sorted(labels[::7]) == list(range(folds))


def test_a_rare_arm_is_spread_over_the_folds():
    clusters = np.repeat(np.arange(60), 10)
    strata = np.isin(clusters, (5, 17, 40)).astype(np.int64)
    for split in splits_of(strata, clusters):
        assert np.sum(strata[split.test]) == 10
