"""Sensitivity of a fit to omitted confounders: which effects have it, what covariates say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cstonet.analyses.strength import Yardsticks, benchmark_terms, gains_of
from cstonet.data.columns import Column
from cstonet.data.covariates import CovariateSpec, LevelBlock, NumericBlock
from cstonet.errors import NotAvailableError, OptionError
from cstonet.estimators import CrossFit
from cstonet.estimators.clusters import influence_covariance
from cstonet.estimators.evalues import evalue
from cstonet.estimators.omitted_variables import bias_scale


@pytest.mark.parametrize("name", [None, "ATE", "ATT", "ATC", "ATO"])
def test_it_starts_from_the_effect_as_it_is_reported(make_results, name):
    results = make_results()
    sensitivity, effect = results.sensitivity(name), results.effect(name)
    assert sensitivity.effect == effect
    lower, upper = sensitivity.confidence_bounds(0, 0)
    assert (float(lower), float(upper)) == pytest.approx((effect.lower, effect.upper), rel=1e-9)
    scale = bias_scale(results.nuisances, name or "ATE", (1, 0), clip=results.effects.clip)
    assert sensitivity.scale == pytest.approx(np.sqrt(scale.estimates.prod()), rel=1e-12)
    assert 0 < sensitivity.robustness_value_ci < sensitivity.robustness_value < 1


def test_the_confounder_of_the_design_is_its_benchmark(make_results):
    # x1 drives treatment and outcome; x2 and x3 do nothing.
    results = make_results(n=4000, n_selected=3)
    table = results.sensitivity().benchmarks
    assert table.index[0] == "x1"
    # In each arm the slope of x1 is 1 or 2 and the noise has variance one; x1 varies less there.
    arms = [results.nuisances.treatment == arm for arm in (0, 1)]
    x1 = results.design.X[:, 0]
    lost = sum(
        arm.mean() * slope**2 * x1[arm].var() for arm, slope in zip(arms, (1, 2), strict=True)
    )
    assert lost > 1
    assert table.loc["x1", "r2_outcome"] == 1.0
    # ν² with x1 is E[2 + e^x + e^-x] = 2 + 2√e, without it 4.
    truth = (2 + 2 * np.exp(0.5)) / 4 - 1
    spread = np.std(np.exp(x1) + np.exp(-x1)) / np.sqrt(4000) / 4
    # Beside the sample of x1, a slope of the logit of standard error 0.04 moves it by 4 · 0.04/4.
    assert table.loc["x1", "r2_treatment"] == pytest.approx(truth, abs=4 * (spread + 0.04))
    assert (table.loc[["x2", "x3"], ["r2_outcome", "r2_treatment"]] < 0.01).all(axis=None)


def test_benchmarks_can_be_left_out_or_must_be_known(make_results):
    results = make_results()
    assert results.sensitivity(benchmarks=False).benchmarks.empty
    with pytest.raises(OptionError, match="'refit'"):
        results.sensitivity(benchmarks="networks")
    with pytest.raises(NotAvailableError, match="Fit again"):
        results.sensitivity(benchmarks="refit")
    with pytest.raises(OptionError, match="alpha"):
        results.sensitivity(alpha=2)
    with pytest.raises(NotAvailableError, match="no effect 'ATX'"):
        results.sensitivity("ATX")


def test_binary_outcomes_have_e_values(make_results):
    results = make_results(family="binomial", variance="influence")
    sensitivity = results.sensitivity(alpha=0.1)
    ratio = results.effect("RR", alpha=0.1)
    assert sensitivity.evalue == evalue(ratio.estimate)
    assert sensitivity.evalue_ci == evalue(ratio.lower)
    assert results.sensitivity("ATT").evalue is None
    assert make_results().sensitivity().evalue is None


def test_levels_have_one_for_every_contrast(with_truth):
    results = with_truth("influence")
    with pytest.raises(NotAvailableError, match="several leading effects"):
        results.sensitivity()
    name = results.effects.names[1]
    b, a = results._target(name)[1]
    sensitivity = results.sensitivity(name)
    nuisances = results.nuisances
    squares = (nuisances.y - nuisances.mu[np.arange(nuisances.n), nuisances.treatment]) ** 2
    there = np.isin(nuisances.treatment, (a, b))
    assert sensitivity.residual_variance == pytest.approx(np.mean(squares * there), rel=1e-12)
    assert len(sensitivity.benchmarks)


def test_repetitions_and_their_disagreement_are_in_the_errors(fitted):
    name = fitted.effects.names[0]
    sensitivity = fitted.sensitivity(name, benchmarks=False)
    assert np.linalg.eigvalsh(sensitivity.covariance).min() > -1e-12
    assert sensitivity.covariance[0, 0] == pytest.approx(fitted.effects.covariance[0, 0], rel=1e-9)


def test_clusters_are_in_all_errors(make_results, monkeypatch):
    results = make_results(variance="influence")
    alone = results.sensitivity(benchmarks=False)
    clusters = np.arange(results.nobs) // 5
    nuisances = dataclasses.replace(results.nuisances, clusters=clusters)
    cross_fits = dataclasses.replace(results._cross_fits, average=CrossFit(nuisances))
    monkeypatch.setattr(results, "_cross_fits", cross_fits)
    joint = results._with_scale("ATE")
    expected = influence_covariance(joint.influence, clusters)
    np.testing.assert_allclose(joint.covariance, expected, rtol=1e-9)
    assert np.abs(joint.covariance[1:, 1:] / alone.covariance[1:, 1:] - 1).min() > 0.001


def test_indicators_of_a_column_are_one_benchmark():
    spec = CovariateSpec(
        (NumericBlock(("x", "z")), LevelBlock(Column("g", "levels", ("a", "b", "c"))))
    )
    selection = pd.DataFrame(
        {
            "treatment": [True, False, False, False],
            "outcome": [True, False, False, True],
            "strength": [0.2, 0.0, 0.1, 0.5],
        },
        index=list(spec.names),
    )
    assert benchmark_terms(selection, spec) == {"g": (2, 3), "x": (0,)}


def test_many_rows_are_sampled_and_the_same_ones_each_time():
    rng = np.random.default_rng(1)
    n = 12_000
    X, treatment = rng.normal(size=(n, 2)), rng.integers(0, 2, size=(n, 1)).astype(float)
    one, other = (
        Yardsticks.of(X, {"a": (0,), "b": (1,)}, treatment, np.ones(n), np.zeros(n, int), 3)
        for _ in range(2)
    )
    assert len(one.rows) == 10_000
    np.testing.assert_array_equal(one.rows, other.rows)
    # Without folds rows are held out all the same.
    assert len(np.unique(one.parts)) == 5


def test_gains_hold_what_regressions_lose_against_the_fit():
    variances = {None: (2.0, 4.0), "x": (2.3, 3.2)}
    gains = gains_of(["x"], variances.__getitem__, residual_variance=1.0)
    assert gains["x"].r2_outcome == pytest.approx(0.3)
    assert gains["x"].r2_treatment == pytest.approx(0.25)


def test_refits_do_without_each_covariate(fit_quickly):
    import cstonet as cs

    simulation = cs.datasets.simulation2(n=300, p=6, seed=1)
    fitted = fit_quickly(simulation.formula, simulation.data)
    few = fitted.selection.assign(treatment=False, outcome=False)
    few.iloc[0, few.columns.get_loc("outcome")] = True
    fitted.selection = few
    heard = []
    sensitivity = fitted.sensitivity(
        benchmarks="refit", n_jobs=1, progress=lambda done, total: heard.append((done, total))
    )
    assert list(sensitivity.benchmarks.index) == [few.index[0]]
    assert heard[-1][0] == heard[-1][1]
    assert sensitivity.effect == fitted.effect()
    assert "repetition of the whole fit" in sensitivity.methods()
    assert "penalised regressions" in fitted.sensitivity().methods()
