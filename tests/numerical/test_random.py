from __future__ import annotations

import math
from collections.abc import Callable

import cstonet_seams
import numpy as np
import pytest
import twins
import twins_random
from scipy import stats

ONES = 0xFFFFFFFF
# From the known-answer file of the Random123 distribution: (counter, key, words).
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_the_twin_knows_the_answers(
    counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]
) -> None:
    assert twins_random.philox(key, counter) == words


def test_the_kernel_knows_the_answer_to_zero(level: str) -> None:
    """The other answers have block numbers out of reach here; the C++ suite asks for them."""
    assert tuple(cstonet_seams.random_bits((0, 0), (0, 0, 0), 4)) == KNOWN_ANSWERS[0][2]


@pytest.mark.parametrize("n", [1, 3, 4, 63, 64, 65, 1000])
def test_bits_match_the_twin(n: int, level: str) -> None:
    rng = np.random.default_rng(n)
    words = [int(w) for w in rng.integers(0, 2**32, size=5)]
    key, counter = words[:2], words[2:]
    expected = twins_random.bits(key, counter, n)
    assert np.array_equal(cstonet_seams.random_bits(tuple(key), tuple(counter), n), expected)


@pytest.mark.parametrize(
    "stream", [(0, 0, 0, 0), (12345, 3, 7, 0), (2**63 - 1, 1, 0, 0), (5, 1, 2, 1), (0, 0, 0, 2**63)]
)
def test_normals_match_the_twin(stream: tuple[int, int, int, int], level: str) -> None:
    n, a, b = 2001, 17, 2**16 + 3
    key = twins_random.stream_key(*stream)
    expected = twins_random.normals(key, (a, b, twins_random.Purpose.LATENT), n)
    actual = cstonet_seams.normals(stream, twins_random.Purpose.LATENT, a, b, n)
    # radius · cosine, each accurate to two units in the last place: relative to the radius, which
    # is below 6. Near u = 1 the radius is the root of a small difference, exact to 2^-24 itself.
    twins.assert_close(actual, expected, roundings=10, scale=6)


def test_every_level_draws_the_same_bits() -> None:
    before = cstonet_seams.level()
    draws: list[np.ndarray] = []
    try:
        for name in cstonet_seams.levels():
            cstonet_seams.use_level(name)
            draws.append(cstonet_seams.normals((1, 2, 3, 0), 3, 4, 5, 100_003))
    finally:
        cstonet_seams.use_level(before)
    for other in draws[1:]:
        assert np.array_equal(draws[0].view(np.uint32), other.view(np.uint32))


def test_a_number_does_not_depend_on_how_many_are_drawn() -> None:
    long = cstonet_seams.normals((1, 2, 3, 0), 1, 0, 0, 1000)
    for n in (1, 63, 64, 65, 999):
        assert np.array_equal(cstonet_seams.normals((1, 2, 3, 0), 1, 0, 0, n), long[:n])


N = 1_000_000


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    return cstonet_seams.normals((2024, 0, 0, 0), 3, 1, 0, N).astype(float)


# The draws are fixed numbers, so these tests give the same verdict every time; a bound of 4.5
# standard deviations is one that a sound generator misses with probability 1e-5.
BOUND = 4.5


@pytest.mark.parametrize(
    ("moment", "expected", "variance"),
    [
        (lambda x: x, 0, 1),
        (lambda x: x**2, 1, 2),
        (lambda x: x**3, 0, 15),
        (lambda x: x**4, 3, 96),
        (lambda x: (np.abs(x) > 4).astype(float), *(2 * [2 * stats.norm.sf(4)])),
        (lambda x: (np.abs(x) > 4.5).astype(float), *(2 * [2 * stats.norm.sf(4.5)])),
    ],
    ids=["mean", "variance", "skewness", "kurtosis", "beyond 4", "beyond 4.5"],
)
def test_moments_and_tails(
    sample: np.ndarray, moment: Callable[[np.ndarray], np.ndarray], expected: float, variance: float
) -> None:
    error = moment(sample).mean() - expected
    assert abs(error) <= BOUND * math.sqrt(variance / N)


def test_distribution_is_normal(sample: np.ndarray) -> None:
    assert stats.kstest(sample, "norm").pvalue > 1e-4


def test_no_number_exceeds_what_24_bits_can_give(sample: np.ndarray) -> None:
    assert np.abs(sample).max() <= math.sqrt(2 * 24 * math.log(2)) * (1 + 4 * twins.U)


def test_neighbours_and_streams_are_uncorrelated(sample: np.ndarray) -> None:
    n = 100_000
    x = sample[:n]
    others = [sample[n : 2 * n], np.roll(x, 1), np.roll(x, 2)]
    for stream, purpose, a, b in [
        ((2025, 0, 0, 0), 3, 1, 0),
        ((2024, 1, 0, 0), 3, 1, 0),
        ((2024, 0, 1, 0), 3, 1, 0),
        ((2024, 0, 0, 1), 3, 1, 0),
        ((2024, 0, 0, 0), 2, 1, 0),
        ((2024, 0, 0, 0), 3, 2, 0),
        ((2024, 0, 0, 0), 3, 1, 1),
    ]:
        others.append(cstonet_seams.normals(stream, purpose, a, b, n).astype(float))
    for y in others:
        for f in (lambda v: v, np.square):
            assert abs(np.corrcoef(f(x), f(y))[0, 1]) <= BOUND / math.sqrt(n)


def test_fold_start_and_network_are_not_interchangeable() -> None:
    numbers = range(4)
    keys = {
        twins_random.stream_key(seed, fold, start, network)
        for seed in numbers
        for fold in numbers
        for start in numbers
        for network in numbers
    }
    assert len(keys) == 4**4


def test_the_first_network_has_the_key_of_seed_fold_and_start() -> None:
    """Numbers from before networks were numbered: a fit of one network keeps its results."""
    assert twins_random.stream_key(12345, 3, 7, 0) == (0xFF3364A5, 0xDE3096AD)
    draws = [cstonet_seams.normals((12345, 3, 7, network), 3, 0, 0, 64) for network in range(3)]
    assert not np.intersect1d(draws[0], draws[1]).size
    assert not np.intersect1d(draws[1], draws[2]).size
