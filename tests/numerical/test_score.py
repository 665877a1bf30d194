"""Score tests of covariates outside the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import twins

from cstonet import _core

N, P, K = 90, 300, 3  # more covariates than one task of 128 takes, and a remainder


def self_normalised(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ g f / √Σ g² f² of every column of f with every column of g, and the size of its terms."""
    root = np.sqrt((f**2).T @ g**2)
    safe = np.where(root > 0, root, 1)
    return (f.T @ g) / safe, (np.abs(f).T @ np.abs(g)) / safe


@pytest.fixture(scope="module")
def problem() -> dict[str, Any]:
    rng = np.random.default_rng(9)
    x = rng.normal(loc=5, size=(N, P))
    x[:, 7] = 5  # constant
    center, inverse_scale = x.mean(axis=0), 1 / np.maximum(x.std(axis=0), 1e-3)
    rows = rng.permutation(N)[:70]
    return {
        "data": _core.Dataset(x, center, inverse_scale, 3.0, 0),
        "standard": np.clip((x - center) * inverse_scale, -3, 3).astype(np.float32).astype(float),
        "rows": rows,
        "directions": rng.normal(size=(len(rows), K)).astype(np.float32),
    }


def test_statistics_match_their_twin(problem: dict[str, Any], level: str) -> None:
    rows, g = problem["rows"], problem["directions"]
    actual = _core.score_statistics(problem["data"], rows, g, 1)
    f = problem["standard"][rows]
    # Sums of 70 terms; of the squares the feature has an error of its own, from centering.
    for features, z, roundings in (
        (f, actual[0], 80),
        (f**2 - (f**2).mean(axis=0), actual[1], 160),
    ):
        expected, terms = self_normalised(features, g.astype(float))
        twins.assert_close(z, expected, roundings=roundings, scale=terms + 1)
        assert np.max(np.abs(z)) > 2


def test_a_constant_covariate_scores_nothing(problem: dict[str, Any]) -> None:
    actual = _core.score_statistics(problem["data"], problem["rows"], problem["directions"], 1)
    assert np.all(actual[0, 7] == 0)
    assert np.all(np.isfinite(actual))


def test_threads_do_not_change_a_bit(problem: dict[str, Any]) -> None:
    one, three = (
        _core.score_statistics(problem["data"], problem["rows"], problem["directions"], t)
        for t in (1, 3)
    )
    assert one.tobytes() == three.tobytes()


@pytest.mark.parametrize("some", [[3], [4, 5, 6], [9, 2, 11], []])
def test_scores_of_some_covariates_are_those_among_all(
    problem: dict[str, Any], some: list[int], level: str
) -> None:
    arguments = problem["data"], problem["rows"], problem["directions"], 1
    everything = _core.score_statistics(*arguments)
    listed = _core.score_statistics(*arguments, covariates=np.array(some, dtype=np.int64))
    assert listed.tobytes() == np.ascontiguousarray(everything[:, some]).tobytes()


def test_a_covariate_that_does_not_exist_is_refused(problem: dict[str, Any]) -> None:
    arguments = problem["data"], problem["rows"], problem["directions"], 1
    for column in (-1, P):
        with pytest.raises(ValueError, match="covariate does not exist"):
            _core.score_statistics(*arguments, covariates=np.array([column]))


def test_a_covariate_that_explains_the_residual_stands_out() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 50))
    r = x[:, 4] + (x[:, 9] ** 2 - 1) + 0.5 * rng.normal(size=400)
    data = _core.Dataset(x, np.zeros(50), np.ones(50), np.inf, 0)
    z = _core.score_statistics(data, np.arange(400), r[:, None].astype(np.float32), 1)[..., 0]
    assert np.argmax(np.abs(z[0])) == 4
    assert np.argmax(np.abs(z[1])) == 9
    # Under the null a self-normalised sum is standard normal.
    others = np.delete(z, [4, 9], axis=1)
    assert 0.7 < others.std() < 1.3


@pytest.mark.parametrize("rows", [[0, N], [0, -1], [0]])
def test_rows_must_exist_and_have_a_direction_each(
    problem: dict[str, Any], rows: list[int]
) -> None:
    with pytest.raises(ValueError, match="row"):
        _core.score_statistics(
            problem["data"], np.array(rows), np.zeros((2, 1), dtype=np.float32), 1
        )
