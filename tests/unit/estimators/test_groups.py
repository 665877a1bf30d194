"""Effects of several groups against those of each by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.estimators import estimate_target
from cstonet.estimators.groups import estimate_groups

N, CLIP = 400, 0.02


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def nuisances(request, draw_nuisances):
    X, drawn = draw_nuisances(N, np.random.default_rng(5), weighted=request.param)
    return replace(drawn, linear=X, found=np.array([0]), ridge=0.1)


@pytest.fixture(scope="module")
def groups() -> np.ndarray:
    return np.random.default_rng(6).integers(-1, 3, N)


def estimate(nuisances, groups):
    return estimate_groups(nuisances, groups, (1, 0), clips=[CLIP] * 3, names=["a", "b", "c"])


def test_each_group_is_an_effect_among_its_units(nuisances, groups):
    found = estimate(nuisances, groups)
    for g in range(3):
        own = nuisances.among(groups == g)
        alone = estimate_target(own, "ATE", (1, 0), clip=CLIP, name="x")
        assert found.estimates[g] == alone.estimates[0]
        assert found.standard_errors[g] == pytest.approx(alone.standard_errors[0], rel=1e-14)
        assert (found.freedom is None) or found.freedom[g] == alone.freedom[0]
    assert found.names == ("a", "b", "c")
    off = found.covariance[~np.eye(3, dtype=bool)]
    np.testing.assert_array_equal(off, 0.0)


def test_influence_values_are_those_of_means_over_all_units(nuisances, groups):
    found = estimate(nuisances, groups)
    np.testing.assert_allclose(found.influence.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(found.influence[groups == -1], 0.0)
    # A little more weight on one unit moves the estimate of its group by its influence value / n,
    # but for the slopes, which are held: these move in second order.
    unit = int(np.flatnonzero(groups == 1)[0])
    step = 1e-5
    weights = nuisances.unit_weights.copy()
    weights[unit] += step * N / (groups == 1).sum() * weights[groups == 1].mean()
    moved = estimate(replace(nuisances, weights=weights), groups)
    slope = (moved.estimates[1] - found.estimates[1]) / step * (groups == 1).sum()
    value = found.influence[unit, 1] / nuisances.unit_weights[unit]
    scale = (groups == 1).sum() / N
    assert slope * scale == pytest.approx(value * scale, rel=0.05, abs=0.02)


def test_clusters_across_groups_make_them_correlated(nuisances, groups):
    """Every cluster has a unit in each of two groups, with errors in common."""
    rng = np.random.default_rng(8)
    clusters = np.arange(N) % 80
    common = rng.normal(size=80)[clusters]
    shaken = replace(nuisances, y=nuisances.y + 2 * common * (2 * nuisances.treatment - 1))
    found = estimate(replace(shaken, clusters=clusters), groups)
    sums = np.stack([np.bincount(clusters, column, 80) for column in found.influence.T], axis=1)
    rough = sums.T @ sums
    correlation = rough / np.sqrt(np.outer(np.diag(rough), np.diag(rough)))
    errors = found.standard_errors
    np.testing.assert_allclose(found.covariance, correlation * np.outer(errors, errors), rtol=1e-10)
    assert correlation[0, 1] > 0.2
