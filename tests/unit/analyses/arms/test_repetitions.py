"""Fits with several repetitions of the cross-fitting: all their effects follow one rule."""

from __future__ import annotations

import numpy as np
import pytest

import cstonet as cs
from cstonet.crossfit.fold import by_repetition
from cstonet.estimators import (
    CrossFit,
    effects_over_repetitions,
    estimate_effects,
    estimate_target,
    pooled_effects,
)

QUICK = {"folds": 2, "starts": 1, "updates": 300}


@pytest.mark.parametrize("gaps", [False, True])
def test_errors_of_a_fit(gaps):
    """All effects of a fit follow the rule, those in other populations too."""
    data = cs.datasets.simulation2(n=300, p=6, seed=1).data
    if gaps:
        data.loc[::9, "x1"] = np.nan
    model = cs.CausalStoNet.from_formula("y ~ treat | .", data, missing="mar" if gaps else "raise")
    results = model.fit(seed=1, repeats=2, imputations=3, **QUICK)
    repetitions = results._cross_fits.repetitions

    # Each repetition predicts every row by networks that did not train on it; the fit averages.
    groups = by_repetition(results.networks.folds)
    assert [len(folds) for folds in groups] == [2, 2]
    for repetition, folds in zip(repetitions, groups, strict=True):
        for number, fold in enumerate(folds):
            assert set(repetition.nuisances.fold[fold.split.test]) == {number}
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
    assert "those of a single one" in results.methods()


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
    singles = [repetition.effects(effect) for repetition in results._cross_fits.repetitions]
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
    assert "repeated 2 times with other starts" in results.methods()
    assert "out of fold" not in results.methods()
    assert "No cross-fitting (folds=1)" in results.warnings[-1]
