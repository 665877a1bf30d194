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


def imputed(nuisances, rows, moves):
    """Imputations that move the regressions of these rows: (M, g, 2)."""
    return Imputations(
        rows,
        nuisances.mu[rows] + moves,
        np.broadcast_to(nuisances.propensity[rows], moves.shape),
        np.zeros((0, len(moves)), np.float32),
    )


def test_imputations_add_the_same(nuisances):
    """The rule holds within imputations; what differs between them is added as it was."""
    rng = np.random.default_rng(3)
    rows = np.arange(0, 200, 4)
    moves = 0.4 * rng.normal(size=(6, len(rows), 2))

    def cross_fit(of):
        return CrossFit(of, imputed(of, rows, moves))

    average = cross_fit(nuisances)
    whole = average.effects(estimate)
    # A cross-fit estimates by Rubin's rules, and averages over its imputations.
    pooled = pooled_effects(estimate, nuisances, average.imputations)
    np.testing.assert_array_equal(whole.covariance, pooled.covariance)
    np.testing.assert_allclose(average.mean.mu[rows], nuisances.mu[rows] + moves.mean(axis=0))

    singles = [cross_fit(disturbed(nuisances, rng)).effects(estimate) for _ in range(2)]
    found = effects_over_repetitions(whole, singles)
    within = by_hand(
        whole.estimates, [replace(s, covariance=s.covariance - s.between) for s in singles]
    )
    np.testing.assert_allclose(found.covariance, within + whole.between, rtol=1e-12)
    fraction, freedom = missing_information(np.diag(within), np.diag(whole.between), 6, 200)
    np.testing.assert_allclose(found.missing_information, fraction, rtol=1e-12)
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-12)


def test_equal_repetitions_change_nothing(draw_nuisances):
    """What the imputations differ by counts once, however many repetitions have them."""
    nuisances = draw_nuisances(200, np.random.default_rng(1), weighted=True)[1]
    weights = nuisances.weights.copy()
    weights[:20] = 0
    nuisances = replace(nuisances, weights=weights)
    rows = np.arange(0, 200, 4)
    moves = 0.4 * np.random.default_rng(4).normal(size=(3, len(rows), 2))
    whole = CrossFit(nuisances, imputed(nuisances, rows, moves)).effects(estimate)
    found = effects_over_repetitions(whole, [whole] * 5)
    assert whole.n_counted == 180
    for name in ("covariance", "missing_information", "freedom"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9)


def test_one_imputation_has_no_freedom_to_lose():
    with np.errstate(all="raise"):
        fraction, freedom = missing_information(np.array([2.0]), np.array([0.0]), 1, 101)
    assert fraction[0] == 0.0
    assert freedom[0] == pytest.approx(100 * 101 / 103)


QUICK = {"folds": 2, "starts": 1, "updates": 300}


@pytest.mark.parametrize("gaps", [False, True])
def test_errors_of_a_fit(gaps):
    """All effects of a fit follow the rule, those in other populations too."""
    data = cs.datasets.simulation2(n=300, p=6, seed=1).data
    if gaps:
        data.loc[::9, "x1"] = np.nan
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, missing="mar" if gaps else "raise")
    results = model.fit(seed=1, repeats=2, imputations=3, **QUICK)
    repetitions = results._repetitions

    # Each repetition predicts every row by networks that did not train on it; the fit averages.
    for number, repetition in enumerate(repetitions):
        for fold, split in enumerate(results.networks.splits[2 * number : 2 * number + 2]):
            assert set(repetition.nuisances.fold[split.test]) == {fold}
    for name in ("mu", "propensity"):
        alone = [getattr(repetition.mean, name) for repetition in repetitions]
        assert not np.allclose(*alone)
        np.testing.assert_allclose(
            np.mean(alone, axis=0), getattr(results.nuisances, name), rtol=1e-6
        )
    if gaps:
        alone = [repetition.imputations.mu for repetition in repetitions]
        np.testing.assert_allclose(np.mean(alone, axis=0), results.imputations.mu, rtol=1e-6)

    def effect_on_treated(nuisances):
        return estimate_target(nuisances, "ATT", (1, 0), clip=0.01, name="ATT")

    def effects(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance=results.plan.variance)

    for function, error in (
        (effects, results.bse["ATE"]),
        (effect_on_treated, results.effect("ATT").se),
    ):
        whole = CrossFit(results.nuisances, results.imputations).effects(function)
        expected = effects_over_repetitions(whole, [r.effects(function) for r in repetitions])
        assert error == pytest.approx(expected.standard_errors[0], rel=1e-12)
        assert error > whole.standard_errors[0]
    assert "those of a single one" in " ".join(results.summary().as_text().split())


def test_one_repetition_with_imputations_is_pooled_as_it_is():
    data = cs.datasets.simulation2(n=300, p=6, seed=1).data
    data.loc[::9, "x1"] = np.nan
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, missing="mar")
    results = model.fit(seed=1, repeats=1, imputations=2, **QUICK)

    def effects(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance=results.plan.variance)

    pooled = pooled_effects(effects, results.nuisances, results.imputations)
    np.testing.assert_allclose(results.cov_params(), pooled.covariance, rtol=1e-9)
    np.testing.assert_allclose(results.effects.freedom, pooled.freedom, rtol=1e-9)
    assert "of a single one" not in " ".join(results.summary().as_text().split())


def test_levels_of_a_treatment_follow_the_rule():
    simulation = cs.datasets.three_arms(n=300, p=5, seed=1)
    model = cs.CausalStoNet.from_formula(simulation.formula, simulation.data)
    results = model.fit(seed=1, repeats=2, **QUICK)
    b, a = simulation.levels[2], simulation.levels[1]

    def effect(nuisances):
        return estimate_target(nuisances, "ATT", (2, 1), clip=0.01, name="ATT")

    whole = effect(results.nuisances)
    singles = [repetition.effects(effect) for repetition in results._repetitions]
    variance = np.mean(
        [s.covariance[0, 0] + (s.estimates[0] - whole.estimates[0]) ** 2 for s in singles]
    )
    assert results.effect(f"ATT[{b}-{a}]").se == pytest.approx(np.sqrt(variance), rel=1e-9)
    # Simultaneous intervals have these errors, too.
    limits = results.conf_int(simultaneous=True)
    half = (limits[1] - limits[0]).to_numpy()[:2] / 2
    np.testing.assert_allclose(half / results.bse.to_numpy()[:2], half[0] / results.bse.iloc[0])


def test_repeated_training_without_folds_is_no_cross_fitting():
    data = cs.datasets.simulation2(n=300, p=6, seed=1).data
    results = cs.fit("y ~ treat | .", data, seed=1, repeats=2, **(QUICK | {"folds": 1}))
    text = " ".join(results.summary().as_text().split())
    assert "average the 2 repetitions of the training" in text
    assert "repetitions of the cross-fitting" not in text
