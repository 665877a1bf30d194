"""Standard errors over the repetitions of the cross-fitting: by hand, and in fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.estimators import (
    CrossFit,
    Imputations,
    effects_over_repetitions,
    estimate_effects,
    estimate_target,
    missing_information,
    pooled_effects,
)


def estimate(nuisances):
    return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="influence")


def by_hand(estimates, singles):
    """Mean of each repetition's covariance and the outer product of its distance."""
    total = np.zeros((len(estimates), len(estimates)))
    for single in singles:
        for i, first in enumerate(single.estimates - estimates):
            for j, second in enumerate(single.estimates - estimates):
                total[i, j] += single.covariance[i, j] + first * second
    return total / len(singles)


@pytest.fixture(scope="module")
def nuisances(draw_nuisances):
    return draw_nuisances(200, np.random.default_rng(1))[1]


def disturbed(nuisances, rng):
    """The same data with other regressions."""
    return replace(nuisances, mu=nuisances.mu + 0.5 * rng.normal(size=nuisances.mu.shape))


def test_covariance_by_hand(nuisances):
    rng = np.random.default_rng(2)
    singles = [estimate(disturbed(nuisances, rng)) for _ in range(3)]
    whole = estimate(nuisances)
    found = effects_over_repetitions(whole, singles)
    np.testing.assert_array_equal(found.estimates, whole.estimates)
    np.testing.assert_allclose(found.covariance, by_hand(whole.estimates, singles), rtol=1e-12)
    # The ATE stays the difference of the means.
    difference = np.array([0.0, -1.0, 1.0])
    assert found.covariance[0, 0] == pytest.approx(difference @ found.covariance @ difference)
    # One repetition is its own average, and none says nothing.
    np.testing.assert_array_equal(
        effects_over_repetitions(whole, [whole]).covariance, whole.covariance
    )
    assert effects_over_repetitions(whole, []) is whole


def test_imputations_add_the_same(nuisances):
    """The rule holds within imputations; what differs between them is added as it was."""
    rng = np.random.default_rng(3)
    rows = np.arange(0, 200, 4)

    def imputed(of, count):
        shape = (count, len(rows), 2)
        mu = of.mu[rows] + 0.4 * rng.normal(size=shape)
        propensity = np.broadcast_to(of.propensity[rows], shape)
        return CrossFit(of, Imputations(rows, mu, propensity, np.zeros((0, count), np.float32)))

    whole = imputed(nuisances, 6).effects(estimate)
    parts = [imputed(disturbed(nuisances, rng), 3) for _ in range(2)]
    singles = [part.effects(estimate) for part in parts]
    found = effects_over_repetitions(whole, singles)
    within = by_hand(
        whole.estimates, [replace(s, covariance=s.covariance - s.between) for s in singles]
    )
    np.testing.assert_allclose(found.covariance, within + whole.between, rtol=1e-12)
    fraction, freedom = missing_information(np.diag(within), np.diag(whole.between), 6, 200)
    np.testing.assert_allclose(found.missing_information, fraction, rtol=1e-12)
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-12)
    # A cross-fit estimates by Rubin's rules, and averages over its imputations.
    pooled = pooled_effects(estimate, parts[0].nuisances, parts[0].imputations)
    np.testing.assert_array_equal(singles[0].covariance, pooled.covariance)
    np.testing.assert_allclose(
        parts[0].mean.mu[rows], parts[0].imputations.mu.mean(axis=0), rtol=1e-12
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_errors_of_a_fit(gaps):
    """All effects of a fit follow the rule, those in other populations too."""
    data = cs.datasets.simulation2(n=300, p=6, seed=1).data
    if gaps:
        data.loc[::9, "x1"] = np.nan
    changes = {"missing": "mar", "imputations": 4} if gaps else {}
    missing = changes.pop("missing", "raise")
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, missing=missing)
    results = model.fit(seed=1, folds=2, starts=1, updates=300, repeats=2, **changes)

    def effect_on_treated(nuisances):
        return estimate_target(nuisances, "ATT", (1, 0), clip=0.01, name="ATT")

    def effects(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance=results.plan.variance)

    for function, error in (
        (effects, results.bse["ATE"]),
        (effect_on_treated, results.effect("ATT").se),
    ):
        whole = CrossFit(results.nuisances, results.imputations).effects(function)
        singles = [repetition.effects(function) for repetition in results.repetitions]
        assert len(singles) == 2
        assert singles[0].estimates[0] != singles[1].estimates[0]
        expected = effects_over_repetitions(whole, singles)
        assert error == pytest.approx(expected.standard_errors[0], rel=1e-12)
        assert error > whole.standard_errors[0]
    if gaps:
        assert [r.imputations.count for r in results.repetitions] == [2, 2]
    assert "those of a single one" in " ".join(results.summary().as_text().split())
