"""Score tests of covariates outside the network: sums, statistics, blocks, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import twins
from scipy import sparse

from cstonet import _core
from cstonet.network.covariates import FoldCovariates
from cstonet.network.products import Products, main_effects

N, P, K = 90, 300, 3  # more covariates than one block of 128 takes, and a remainder


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
    rows = np.sort(rng.permutation(N)[:70])
    return {
        "data": _core.Dataset(x, center, inverse_scale, 3.0, 0),
        "standard": np.clip((x - center) * inverse_scale, -3, 3).astype(np.float32).astype(float),
        "rows": rows,
        "products": main_effects(rng.normal(size=(len(rows), K))),
    }


def statistics(
    problem: dict[str, Any], covariates: np.ndarray | None = None, threads: int = 1
) -> np.ndarray:
    data, rows = problem["data"], problem["rows"]
    squares = data.square_sums(rows, threads) / len(rows)
    return data.score_statistics(rows, problem["products"], squares, covariates, threads)


def test_statistics_match_their_twin(problem: dict[str, Any], level: str) -> None:
    actual = statistics(problem)
    f, g = problem["standard"][problem["rows"]], problem["products"].residuals.astype(float)
    # Sums of 70 terms; of the squares the feature has an error of its own, from centering.
    for features, z, roundings in (
        (f, actual[0], 80),
        (f**2 - (f**2).mean(axis=0), actual[1], 160),
    ):
        expected, terms = self_normalised(features, g)
        twins.assert_close(z, expected, roundings=roundings, scale=terms + 1)
        assert np.max(np.abs(z)) > 2


def test_sums_match_their_twin(problem: dict[str, Any], level: str) -> None:
    data, rows, products = problem["data"], problem["rows"], problem["products"]
    f, g = problem["standard"][rows], products.residuals.astype(float)
    mean = (f**2).mean(axis=0)
    actual = data.score_sums(rows, products, mean, None, 1)
    for feature, (total, squares) in zip((f, f**2 - mean), actual, strict=True):
        twins.assert_close(
            total, feature.T @ g, roundings=160, scale=(np.abs(feature) + 1).T @ np.abs(g)
        )
        twins.assert_close(
            squares,
            (feature**2).T @ g**2,
            roundings=160,
            scale=((np.abs(feature) + 1) ** 2).T @ g**2,
        )
    twins.assert_close(data.square_sums(rows, 1), (f**2).sum(axis=0), roundings=1)


def test_sums_of_parts_of_the_rows_add_up(problem: dict[str, Any]) -> None:
    data, rows, products = problem["data"], problem["rows"], problem["products"]
    mean = data.square_sums(rows, 1) / len(rows)
    whole = data.score_sums(rows, products, mean, None, 1)
    parts = [
        data.score_sums(rows[part], products.on_rows(part), mean, None, 1)
        for part in (slice(0, 31), slice(31, None))
    ]
    scale = np.abs(parts[0]) + np.abs(parts[1]) + len(rows)
    twins.assert_close(sum(parts), whole, roundings=2 * len(rows), scale=scale)


def test_a_constant_covariate_scores_nothing(problem: dict[str, Any]) -> None:
    actual = statistics(problem)
    assert np.all(actual[0, 7] == 0)
    assert np.all(np.isfinite(actual))


@pytest.mark.parametrize("some", [[3], [4, 5, 6], [9, 2, 11], []])
def test_scores_of_some_covariates_are_those_among_all(
    problem: dict[str, Any], some: list[int], level: str
) -> None:
    listed = statistics(problem, np.array(some, dtype=np.int64))
    assert listed.shape == (2, len(some), listed.shape[2])
    assert listed.tobytes() == np.ascontiguousarray(statistics(problem)[:, some]).tobytes()


def test_without_mean_squares_only_x_is_scored(problem: dict[str, Any]) -> None:
    alone = problem["data"].score_statistics(problem["rows"], problem["products"], None, None, 1)
    assert alone.tobytes() == statistics(problem)[:1].tobytes()


def large(rows: int, columns: int, directions: int) -> tuple[np.ndarray, Products]:
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    return x, main_effects(rng.normal(size=(rows, directions)))


# The first computes its products once and cuts the covariates (1024 are a task); the others have
# too many products for that (more than 2²² numbers with their padding). The second cuts the rows,
# the third has so many sums (2²⁰) that covariates take turns.
SHAPES = [(700, 2100, 3), (270_000, 3, 2), (4200, 1200, 1000)]


@pytest.mark.parametrize("shape", SHAPES, ids=["covariates", "rows", "turns"])
def test_threads_do_not_change_a_bit(shape: tuple[int, int, int]) -> None:
    x, products = large(*shape)
    p = shape[1]
    data = _core.Dataset(x, np.zeros(p), np.ones(p), 6.0, 0)
    rows = np.arange(len(x))
    mean = data.square_sums(rows, 1) / len(x)
    assert mean.tobytes() == (data.square_sums(rows, 3) / len(x)).tobytes()
    one, three = (data.score_sums(rows, products, mean, None, t) for t in (1, 3))
    assert one.tobytes() == three.tobytes()
    exact = x.astype(float).T @ products.residuals.astype(float)
    scale = np.abs(x).astype(float).T @ np.abs(products.residuals).astype(float)
    # Floats are added within blocks of 256 rows only, however many rows there are.
    twins.assert_close(one[0, 0], exact, roundings=257, scale=scale)


@pytest.mark.parametrize("pack_bytes", [0, 2**40], ids=["in place", "packed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_the_covariates_stand_in_memory_does_not_change_a_bit(
    dtype: type, pack_bytes: int
) -> None:
    x, products = large(500, 200, 3)
    rows, rest = np.arange(500), (np.zeros(200), np.ones(200), 6.0, pack_bytes)
    mean = np.ones(200)
    expected = _core.Dataset(x, *rest).score_sums(rows, products, mean, None, 1)
    for array in (x.astype(dtype), np.asfortranarray(x, dtype=dtype)):
        actual = _core.Dataset(array, *rest).score_sums(rows, products, mean, None, 1)
        assert actual.tobytes() == expected.tobytes()


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(700, 40, 3), (270_000, 3, 2)], ids=["covariates", "rows"])
def test_sparse_covariates_score_as_dense_ones(shape: tuple[int, int, int], index: type) -> None:
    n, p, _ = shape
    rng = np.random.default_rng(1)
    x, products = large(*shape)
    x[rng.random(x.shape) < 0.9] = 0
    x[:, 0] = 0
    x[3] *= 100  # some beyond the limit
    center, scale = rng.normal(size=p), rng.uniform(0.5, 2, size=p)
    columns = sparse.csc_array(x)
    compressed = _core.Dataset.compressed(
        columns.data,
        columns.indices.astype(index),
        columns.indptr.astype(index),
        n,
        center,
        scale,
        4.0,
    )
    dense = _core.Dataset(x, center, scale, 4.0, 0)
    rows = np.flatnonzero(np.arange(n) % 7 > 0)
    products = products.on_rows(rows)
    mean = dense.square_sums(rows, 1) / len(rows)
    np.testing.assert_allclose(compressed.square_sums(rows, 1) / len(rows), mean, rtol=1e-12)
    actual, other = (compressed.score_sums(rows, products, mean, None, t) for t in (1, 3))
    assert actual.tobytes() == other.tobytes()
    expected = dense.score_sums(rows, products, mean, None, 1)
    # In double but for the squares of the products; the dense sums are the rounded ones.
    z = np.clip((x[rows] - center) * scale, -4, 4).astype(np.float32).astype(float)
    g = np.abs(products.residuals.astype(float))
    for power, f in enumerate((z, z**2 - mean)):
        size = np.abs(f) + 1
        twins.assert_close(actual[power, 0], expected[power, 0], roundings=260, scale=size.T @ g)
        twins.assert_close(
            actual[power, 1], expected[power, 1], roundings=260, scale=(size**2).T @ g**2
        )


def test_a_covariate_that_does_not_exist_is_refused(problem: dict[str, Any]) -> None:
    for column in (-1, P):
        with pytest.raises(ValueError, match=f"covariate {column} does not exist"):
            statistics(problem, np.array([column]))


def test_a_covariate_that_explains_the_residual_stands_out() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 50))
    r = x[:, 4] + (x[:, 9] ** 2 - 1) + 0.5 * rng.normal(size=400)
    data = _core.Dataset(x, np.zeros(50), np.ones(50), np.inf, 0)
    mean = (x**2).mean(axis=0)
    z = data.score_statistics(np.arange(400), main_effects(r[:, None]), mean, None, 1)[..., 0]
    assert np.argmax(np.abs(z[0])) == 4
    assert np.argmax(np.abs(z[1])) == 9
    # Under the null a self-normalised sum is standard normal.
    others = np.delete(z, [4, 9], axis=1)
    assert 0.7 < others.std() < 1.3


@pytest.mark.parametrize("rows", [[0, N], [0, -1], [0]])
def test_rows_must_exist_and_have_a_residual_each(problem: dict[str, Any], rows: list[int]) -> None:
    with pytest.raises(ValueError, match="row"):
        problem["data"].score_sums(np.array(rows), main_effects(np.zeros((2, 1))), None, None, 1)


@pytest.mark.parametrize("kind", ["dense", "compressed"])
def test_scores_beyond_other_covariates_match_their_twin(kind: str) -> None:
    rng = np.random.default_rng(21)
    n, p, others = 700, 140, np.array([3, 60])
    x = rng.normal(size=(n, p)).astype(np.float32)
    x[:, 100:] += 2 * x[:, [3]] - x[:, [60]]  # what the others explain of these
    none, one = np.zeros(p), np.ones(p)
    if kind == "dense":
        data = _core.Dataset(x, none, one, 100.0, 0)
    else:
        stored = sparse.csc_array(x)
        data = _core.Dataset.compressed(
            stored.data, stored.indices, stored.indptr, n, none, one, 100.0
        )
    rows, g = np.arange(0, n, 2), rng.normal(size=(n // 2, K))
    wanted = np.array([0, 5, 100, 139])
    actual = FoldCovariates(data, rows).statistics_beyond(main_effects(g), wanted, others)
    basis = np.column_stack([np.ones(len(rows)), x[np.ix_(rows, others)]]).astype(float)
    f = x[np.ix_(rows, wanted)].astype(float)
    f -= basis @ np.linalg.lstsq(basis, f, rcond=None)[0]
    g = g.astype(np.float32).astype(float)
    # Sums of 350 terms, of features whose slopes and means are rounded to float32.
    for features, z in ((f, actual[0]), (f**2 - (f**2).mean(axis=0), actual[1])):
        expected, terms = self_normalised(features, g)
        twins.assert_close(z, expected, roundings=700, scale=terms + 1)
