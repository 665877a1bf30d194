"""Random streams: every purpose has numbers of its own, and the same ones for good."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cstonet.streams import DataStream, Stream

DRAWS = 8


# A seed gives the same results in every version: numbers may be added, never changed.
GIVEN = {
    "FOLDS": 1,
    "VALIDATION": 2,
    "MULTIPLIERS": 3,
    "TRAINING_IMPUTATIONS": 4,
    "IMPUTATIONS": 5,
    "NEW_ROWS": 6,
    "MEDIATOR_RESIDUALS": 7,
}


def test_numbers_of_the_purposes_are_unique_and_never_given_again():
    numbers = {name: stream.value for name, stream in Stream.__members__.items()}
    assert GIVEN.items() <= numbers.items()
    assert len(set(numbers.values())) == len(numbers)


@pytest.mark.parametrize("stream", Stream)
@pytest.mark.parametrize("words", [(), (0,), (3,), (3, 0, 12)])
def test_generator_is_that_of_the_seed_sequence(stream, words):
    expected = np.random.default_rng(np.random.SeedSequence([stream.value, *words]))
    np.testing.assert_array_equal(
        stream.generator(*words).standard_normal(DRAWS), expected.standard_normal(DRAWS)
    )


def test_purposes_and_words_share_no_numbers():
    keys = itertools.product(Stream, [(1,), (2,), (1, 2), (2, 1)])
    draws = {tuple(stream.generator(*words).random(DRAWS)) for stream, words in keys}
    assert len(draws) == 4 * len(Stream)


@pytest.mark.parametrize("stream", DataStream)
def test_data_sets_are_drawn_by_seed_and_number(stream):
    expected = np.random.default_rng(np.random.SeedSequence([12, stream.value]))
    np.testing.assert_array_equal(stream.generator(12).random(DRAWS), expected.random(DRAWS))
