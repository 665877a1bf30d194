"""Folds and validation rows."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.crossfit.splits import assign_folds, make_splits
from cstonet.data.treatment import Arms
from cstonet.errors import OneArmedError
from cstonet.network.training_data import Split
from cstonet.streams import Stream


def splits_of(
    strata: np.ndarray,
    folds: int,
    validation_fraction: float,
    *,
    seed: int,
    repeats: int = 1,
    trainable: np.ndarray | None = None,
) -> tuple[Split, ...]:
    return make_splits(
        strata,
        folds=folds,
        repeats=repeats,
        validation_fraction=validation_fraction,
        seed=seed,
        trainable=np.ones(len(strata), dtype=bool) if trainable is None else trainable,
    )


@pytest.fixture
def strata():
    return np.random.default_rng(0).choice(3, size=200, p=[0.5, 0.35, 0.15])


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_folds_partition_the_rows(strata, folds):
    splits = splits_of(strata, folds, 0.2, seed=4)
    assert len(splits) == folds
    tested = np.concatenate([split.test for split in splits])
    np.testing.assert_array_equal(np.sort(tested), np.arange(200))
    for split in splits:
        rows = np.concatenate([split.fit, split.validation, split.test])
        np.testing.assert_array_equal(np.sort(rows), np.arange(200))


def test_one_fold_trains_and_predicts_the_same_rows(strata):
    (split,) = splits_of(strata, 1, 0.25, seed=4)
    np.testing.assert_array_equal(split.test, np.arange(200))
    trained = np.concatenate([split.fit, split.validation])
    np.testing.assert_array_equal(np.sort(trained), np.arange(200))


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_folds_are_balanced_within_and_over_strata(strata, folds):
    fold = assign_folds(strata, folds, np.random.default_rng(1))
    for code in range(3):
        sizes = np.bincount(fold[strata == code], minlength=folds)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1  # remainders go to different folds


def test_validation_rows_are_spread_over_the_strata(strata):
    (split,) = splits_of(strata, 1, 0.2, seed=0)
    for code in range(3):
        units = np.sum(strata == code)
        assert np.sum(strata[split.validation] == code) == round(0.2 * units)


def test_no_validation_rows_on_request(strata):
    for split in splits_of(strata, 3, 0.0, seed=0):
        assert split.validation.size == 0


def test_training_keeps_a_unit_of_every_stratum():
    strata = np.array([0] * 20 + [1])
    (split,) = splits_of(strata, 1, 0.5, seed=0)
    assert 20 in split.fit


def test_seed_decides(strata):
    def tests(seed):
        return [split.test.tolist() for split in splits_of(strata, 3, 0.2, seed=seed)]

    assert tests(1) == tests(1)
    assert tests(1) != tests(2)


def test_other_fraction_leaves_the_folds_alone(strata):
    """Folds and validation rows have random streams of their own."""
    few, many = (splits_of(strata, 3, fraction, seed=1) for fraction in (0.1, 0.3))
    for one, other in zip(few, many, strict=True):
        np.testing.assert_array_equal(one.test, other.test)
        assert len(one.validation) < len(other.validation)


@pytest.mark.parametrize(("folds", "needed"), [(1, 2), (2, 4), (3, 3), (10, 10)])
def test_every_fold_needs_both_arms(folds, needed):
    enough = np.array([0] * 50 + [1] * needed)
    Arms("treat", enough, ("a", "b"), "binary").check_folds(folds, None)
    with pytest.raises(OneArmedError, match=f"arm 'b' has {needed - 1} unit.*at least {needed}"):
        Arms("treat", enough[:-1], ("a", "b"), "binary").check_folds(folds, None)
    # What is asked for suffices: two units of the small arm train in every fold.
    for split in splits_of(enough, folds, 0.0, seed=0):
        assert np.sum(enough[split.fit] == 1) >= 2


def test_every_repetition_deals_the_rows_anew():
    strata = np.repeat([0, 1], 30)
    parts = splits_of(strata, 3, 0.2, seed=1, repeats=2)
    assert len(parts) == 6
    for repetition in (parts[:3], parts[3:]):
        assert sorted(np.concatenate([p.test for p in repetition])) == list(range(60))
    assert [p.test.tolist() for p in parts[:3]] != [p.test.tolist() for p in parts[3:]]
    assert [p.index for p in parts] == list(range(6))
    assert [(p.repetition, p.number) for p in parts] == [(r, k) for r in (0, 1) for k in range(3)]
    # The first repetition does not depend on how many follow.
    alone = splits_of(strata, 3, 0.2, seed=1)
    assert [p.fit.tolist() for p in alone] == [p.fit.tolist() for p in parts[:3]]


def test_rows_that_may_not_be_trained_on_are_only_predicted():
    strata = np.repeat([0, 1], 30)
    trainable = np.arange(60) % 5 != 0
    parts = splits_of(strata, 3, 0.2, seed=1, trainable=trainable)
    for part in parts:
        assert trainable[part.fit].all()
        assert trainable[part.validation].all()
    assert sorted(np.concatenate([p.test for p in parts])) == list(range(60))


def test_rows_of_weight_zero_leave_the_folds_of_the_others_alone():
    rng = np.random.default_rng(0)
    strata, trainable = rng.integers(0, 2, 80), rng.random(80) < 0.4
    rows = np.flatnonzero(trainable)
    alone = splits_of(strata[rows], 3, 0.2, seed=1)
    for part, other in zip(
        splits_of(strata, 3, 0.2, seed=1, trainable=trainable), alone, strict=True
    ):
        np.testing.assert_array_equal(part.fit, rows[other.fit])
        np.testing.assert_array_equal(part.validation, rows[other.validation])
        np.testing.assert_array_equal(np.intersect1d(part.test, rows), rows[other.test])


def test_rows_are_those_of_lists_dealt_at_once(strata):
    """The labels that a fit keeps stand for lists of rows, dealt stratum by stratum."""
    trainable = np.arange(len(strata)) % 9 > 0
    splits = splits_of(strata, 3, 0.2, seed=4, repeats=2, trainable=trainable)
    for split in splits:
        dealt = strata + 3 * ~trainable
        labels = assign_folds(dealt, 3, Stream.FOLDS.generator(4, split.repetition))
        train = np.flatnonzero(trainable & (labels != split.number))
        rng = Stream.VALIDATION.generator(4, split.repetition, split.number)
        held_out = np.zeros(len(train), dtype=bool)
        for code in np.unique(strata[train]):
            rows = rng.permutation(np.flatnonzero(strata[train] == code))
            held_out[rows[: min(round(0.2 * len(rows)), len(rows) - 1)]] = True
        np.testing.assert_array_equal(split.fit, train[~held_out])
        np.testing.assert_array_equal(split.validation, train[held_out])
        np.testing.assert_array_equal(split.known, train)
        np.testing.assert_array_equal(split.test, np.flatnonzero(labels == split.number))


def test_a_fit_keeps_little_of_its_rows():
    """One byte per row and repetition, and a bit per row and fold; lists would be 80 bytes."""
    strata = np.arange(8000) % 2
    splits = splits_of(strata, 5, 0.2, seed=1, repeats=2)
    deals = {id(split.deal): split.deal.labels.nbytes for split in splits}
    assert sum(deals.values()) == 2 * 8000
    assert sum(split.marks.nbytes for split in splits) == 10 * 6400 // 8
