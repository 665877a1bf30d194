"""Predictions out of fold, on folds that only say who they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cstonet.crossfit.fold import Fold, by_repetition, fold_labels, out_of_fold
from cstonet.network.prediction import RowArrays
from cstonet.network.training_data import Deal, Split
from cstonet.search.scope import Adjustment

# The fold of every row, in each of two repetitions.
DEALT = np.array([[0, 1, 2, 2, 0, 1, 0], [2, 2, 0, 1, 1, 0, 0]])


@dataclass(frozen=True, slots=True, eq=False)
class Said(RowArrays):
    """Which row was predicted, and by which fold of all."""

    row: NDArray[np.int64]
    fold: NDArray[np.int64]


def fold_of(index: int, repetition: int, number: int) -> Fold:
    split = Split(index, repetition, number, Deal(DEALT[repetition].astype(np.uint8), folds=3))
    return Fold(split, Adjustment(), (), (), (), pd.DataFrame(), ())


@pytest.fixture
def folds() -> tuple[Fold, ...]:
    return tuple(fold_of(3 * r + k, r, k) for r in range(2) for k in range(3))


@pytest.fixture
def predict() -> Callable[[Fold, NDArray[np.int64]], Said]:
    return lambda fold, rows: Said(rows, np.full(len(rows), fold.split.index))


def test_repetitions_are_told_apart(folds):
    first, second = by_repetition(folds)
    assert (first, second) == (folds[:3], folds[3:])
    assert [(fold.repetition, fold.number) for fold in second] == [(1, 0), (1, 1), (1, 2)]


def test_labels_are_those_of_each_repetition(folds):
    for group, dealt in zip(by_repetition(folds), DEALT, strict=True):
        np.testing.assert_array_equal(fold_labels(group), dealt)


def test_every_row_is_predicted_by_the_fold_that_left_it_out(folds, predict):
    predictions = out_of_fold(folds, predict)
    assert len(predictions) == 2
    for repetition, said in enumerate(predictions):
        np.testing.assert_array_equal(said.row, np.arange(7))
        np.testing.assert_array_equal(said.fold, 3 * repetition + DEALT[repetition])


@pytest.mark.parametrize("rows", [[0, 3, 5], [6, 1], [4], [0, 4, 6]])
def test_some_rows_come_in_the_order_asked_for(folds, predict, rows):
    """The last ones are all in one fold of the first repetition: others are asked for no row."""
    rows = np.array(rows)
    for repetition, said in enumerate(out_of_fold(folds, predict, rows)):
        np.testing.assert_array_equal(said.row, rows)
        np.testing.assert_array_equal(said.fold, 3 * repetition + DEALT[repetition][rows])


def test_one_repetition_gives_one_prediction(folds, predict):
    (said,) = out_of_fold(folds[:3], predict)
    np.testing.assert_array_equal(said.fold, DEALT[0])
