"""Score tests of covariates that say nothing on the rows they are tested on."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.network.covariates import FoldCovariates
from cstonet.network.scaling import Scaling, column_scaling
from cstonet.search.predictors import Scored
from cstonet.search.scores import Largest, ScoreTests, constant, threshold

N = 60


def scores_of(x, residual, modifiers=None, members=(), *, rows=None, scaling=None):
    """Score tests of the columns of x (n, p), by default standardised on all n rows."""
    scaling = column_scaling(x, limit=6.0) if scaling is None else scaling
    data = scaling.dataset(x, pack_bytes=2**20)
    rows = np.arange(len(x)) if rows is None else rows
    if modifiers is not None:
        modifiers = modifiers[rows, None].astype(np.float32)
    predictor = Scored(residual[rows], modifiers, None, members)
    return ScoreTests(FoldCovariates(data, rows), [predictor])


def admit(tests, p, bar=2.0):
    critical = Largest(np.full(p, bar), np.full(p, np.inf))
    return [found.covariate for found in tests.admit(critical, inside=[], most=p)]


@pytest.fixture
def effect():
    """Residuals that one direction, the treatment, explains: no covariate has a part in it."""
    rng = np.random.default_rng(3)
    treatment = np.resize([-0.5, 0.5], N)
    return rng, treatment + 0.3 * rng.standard_normal(N), treatment


def test_a_level_that_only_left_out_rows_have_is_not_admitted(effect):
    rng, residual, treatment = effect
    x = np.column_stack([np.arange(N) >= N - 2, rng.standard_normal(N)]).astype(np.float64)
    rows = np.arange(N - 2)
    tests = scores_of(x, residual, treatment, rows=rows)
    assert tests.largest([0]).overall[0] > 5  # the treatment's own score
    assert 0 not in admit(tests, p=2)


def test_a_square_that_is_constant_does_not_count(effect):
    rng, residual, treatment = effect
    sign = rng.permutation(np.resize([-1.0, 1.0], N))[:, None]
    # Two units in the last place of a float32 more under treatment: the squares differ by rounding
    # errors alone, and these explain the residual.
    sign *= 0.7 + 1.2e-7 * (treatment[:, None] > 0)
    scaling = Scaling(center=np.zeros(1), inverse_scale=np.ones(1), limit=6.0)
    tests = scores_of(sign, residual, treatment, scaling=scaling)
    linear, square = np.abs(tests.statistics(np.array([0])))[:, 0]
    assert square.max() > 5 > linear.max()
    assert admit(tests, p=1, bar=5.0) == []
    # What it says in itself, it still says.
    assert admit(scores_of(sign, sign[:, 0], treatment, scaling=scaling), p=1) == [0]


def test_a_copy_of_a_member_has_no_product_with_it(effect):
    rng, _, _ = effect
    sign = rng.permutation(np.resize([-1.0, 1.0], N))
    residual = 1 + 0.1 * rng.standard_normal(N)
    # The product of two copies of ±1 is one: its score is that of the residual's mean.
    tests = scores_of(sign[:, None], residual, members=(0,))
    assert tests.largest([0]).overall[0] > 5
    assert admit(tests, p=1) == []


def test_critical_values_are_those_of_the_largest_score_or_the_price_of_a_weight():
    """3.03 = sqrt(2 log 100) among many, 1.95 = sqrt(2 log log 800) however few."""
    assert threshold(100, 800) == pytest.approx(np.sqrt(2 * np.log(100)))
    assert threshold(100, 800, 0.5) == pytest.approx(np.sqrt(2 * np.log(100)) + 0.5)
    assert threshold(2, 800, 0.2) == pytest.approx(np.sqrt(2 * np.log(np.log(800))) + 0.2)
    assert threshold(0, 1) == 0  # nothing to test, and no rows to do it with


def test_constant_columns():
    x = np.linspace(-1, 1, N)
    columns = np.column_stack([x, np.zeros(N), np.full(N, 0.1), 5 + 1e-8 * x, 1e-9 * x])
    moments = columns.mean(axis=0), columns.var(axis=0)
    np.testing.assert_array_equal(constant(*moments), [False, True, True, True, False])


@pytest.mark.parametrize("missing", ["mar", "drop"])
def test_fits_with_rare_levels_do_not_divide_by_zero(missing):
    rng = np.random.default_rng(4)
    n = 42
    simulation = cs.datasets.simulation2(n=n, p=5, seed=4)
    levels = np.where(rng.random(n) < 0.4, "b", "a").astype(object)
    for k, row in enumerate(rng.permutation(n)[:6]):
        levels[row] = f"rare{k // 2}"
    gaps = {"g": pd.Series(levels).mask(rng.random(n) < 0.1)}
    data = simulation.data.assign(**gaps, x1=simulation.data["x1"].mask(rng.random(n) < 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        results = cs.fit(
            simulation.formula,
            data,
            missing=missing,
            updates=200,
            imputations=2,
            folds=3,
            repeats=1,
            n_jobs=1,
        )
    assert np.isfinite(results.params).all()


def test_an_effect_put_back_shows_in_those_that_could_stand_in_for_it():
    """A covariate correlated by r with the one whose effect z is back has a score of about r z.

    The residual adds its own score to each. On 20 000 rows r is known to 0.006, and r z to 0.05;
    the effect is in the score's own spread too, but only by a share of z² / 20 000.
    """
    rng, rows, z = np.random.default_rng(6), 20_000, 8.0
    x = rng.standard_normal((rows, 3))
    x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    treatment = np.resize([-0.5, 0.5], rows)
    tests = scores_of(x, 3.0 * rng.standard_normal(rows), treatment, (2,))
    before = tests.statistics(np.arange(3))[0, :, 0]
    scores = tests.stand_ins({0: z, 2: 5.0})[0]
    np.testing.assert_allclose(scores[:2], np.abs(before[:2] + z * np.array([1, 0.6])), atol=0.15)
    assert scores[2] < 4
    # The tests themselves are as they were.
    np.testing.assert_array_equal(tests.statistics(np.arange(3))[0, :, 0], before)


def test_what_the_support_explains_of_a_covariate_does_not_count_where_asked():
    """A network that is wrong about x0 leaves what a covariate that depends on x0 would score."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((20_000, 3))
    x[:, 1] += x[:, 0]
    misfit = 0.2 * (np.tanh(x[:, 0]) - 0.3 * x[:, 0])
    residual = misfit + 0.1 * x[:, 2] + rng.standard_normal(len(x))
    critical = Largest(np.full(3, 5.0), np.full(3, np.inf))

    def admitted(beyond):
        tests = scores_of(x, residual)
        found = tests.admit(critical, inside=[0], most=2, beyond=beyond)
        return {one.covariate for one in found}

    assert admitted(()) == {1, 2}
    assert admitted((0,)) == {2}
