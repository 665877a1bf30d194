"""Fits to units in clusters: what they say, and that they say the same of what is the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.estimators.clusters import influence_covariance

# Two fits of the same units err by at most this many standard errors in total, both being within
# three of the truth except with probability 0.005.
MONTE_CARLO = 3 * 2**0.5


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.clustered(n_clusters=30, size=8, p=6, seed=1)


def fit_quickly(data, options, formula="y ~ treat | .", **further):
    model = cs.CausalStoNet.from_formula(formula, data, **further)
    return model.fit(options=options, seed=1, n_jobs=1)


@pytest.fixture(scope="module")
def fitted(simulation, quick_options):
    options = quick_options("search", repeats=2, estimand="ATT")
    return fit_quickly(simulation.data, options, cluster="village")


def test_folds_keep_villages_whole_in_every_repetition(fitted, simulation):
    splits = [fold.split for fold in fitted.networks.folds]
    assert {split.repetition for split in splits} == {0, 1}
    for split in splits:
        known, tested = (set(simulation.clusters[rows]) for rows in (split.known, split.test))
        assert not known & tested


def test_errors_are_those_of_sums_over_villages(simulation, quick_options):
    results = fit_quickly(simulation.data, quick_options("prune"), cluster="village")
    assert results.nuisances.linear is None
    expected = influence_covariance(results.effects.influence, results.design.clusters)
    np.testing.assert_allclose(results.effects.covariance, expected, rtol=1e-10)


def test_repetitions_and_leverage_only_add(fitted):
    assert fitted.effects.variance_kind == "influence"
    assert fitted.nuisances.clusters is fitted.design.clusters
    least = influence_covariance(fitted.effects.influence, fitted.design.clusters)
    assert (np.diag(fitted.effects.covariance) >= 0.9 * np.diag(least)).all()
    assert fitted.use_t
    assert fitted.effects.freedom.max() <= 29


def test_summary_and_methods_say_so(fitted):
    text = fitted.summary().as_text()
    assert "Clusters:               30 (village)   Units clipped:" in text
    assert "Units per cluster:                    8" in text
    assert "P>|t|" in text
    words = " ".join(text.split())
    assert "Clustered by village: standard errors, tests and intervals are cluster-robust" in words
    assert "(G = 30, factor G/(G-1) = 1.034)" in words
    assert "the influence function, clustered by village" in words
    methods = fitted.methods()
    assert "summed over the G = 30 clusters" in methods
    assert "G/(G-1) = 1.034" in methods
    assert "because few clusters decide the estimates" in methods
    assert "clusters stayed whole in folds and validation rows" in methods


def test_a_file_without_rows_knows_the_clusters(fitted, tmp_path):
    pytest.importorskip("safetensors")
    fitted.save(tmp_path / "fit.cst")
    loaded = cs.load(tmp_path / "fit.cst")
    assert loaded.summary().as_text() == fitted.summary().as_text()
    assert loaded.methods() == fitted.methods()


def test_row_numbers_as_clusters_change_the_factor_alone(simulation, quick_options):
    data = simulation.data.drop(columns="village")
    options = quick_options("search", variance="influence", backbone=False)
    alone = fit_quickly(data, options)
    single = fit_quickly(data, options, cluster=np.arange(len(data)))
    np.testing.assert_array_equal(single.params, alone.params)
    factor = len(data) / (len(data) - 1)
    within = np.diag(single.cov_params()) / np.diag(alone.cov_params())
    # What slopes held by a ridge leave has the factor, too.
    np.testing.assert_allclose(within, factor, rtol=1e-9)


def test_copies_without_cluster_are_mentioned(simulation, quick_options):
    data = simulation.data.drop(columns="village")
    twice = pd.concat([data, data.iloc[:40]], ignore_index=True)
    words = " ".join(fit_quickly(twice, quick_options("prune")).summary().as_text().split())
    assert "40 rows are exact copies of another in outcome, treatment and all covariates" in words
    assert "cluster=" in words
    told = fit_quickly(twice, quick_options("prune"), cluster=np.r_[:240, :40])
    assert "exact copies" not in told.summary().as_text()


def test_doses_in_clusters(quick_options):
    data = cs.datasets.dose_curve(n=240, p=5, seed=1).data
    options = quick_options("prune")
    results = fit_quickly(data, options, "y ~ dose | .", cluster=np.arange(240) // 8)
    summary = results.summary().as_text()
    assert "30 (cluster)" in summary
    assert "Units per cluster:" in summary
    influence = results.effects.influence
    expected = influence_covariance(influence, results.design.clusters)
    np.testing.assert_allclose(results.effects.covariance, expected, rtol=1e-10)
    curve = results.dose_response(grid=[4.0, 5.0, 6.0]).table
    assert (curve["uniform_upper"] > curve["upper"]).all()
    # Student's t with at most 29 degrees of freedom has more than 2.04 for 1.96.
    assert ((curve["upper"] - curve["estimate"]) / curve["se"] > 2.04).all()


def test_mediation_in_clusters(quick_options):
    data = cs.datasets.one_mediator(n=240, p=5, seed=1).data
    formula = cs.datasets.one_mediator(n=20, p=5, seed=1).formula
    results = fit_quickly(data, quick_options("search"), formula, cluster=np.arange(240) // 8)
    assert "30 (cluster)" in results.summary().as_text()
    expected = influence_covariance(results.effects.influence, results.design.clusters)
    np.testing.assert_allclose(results.effects.covariance, expected, rtol=1e-8)
    assert results.effects.freedom.max() <= 29


@pytest.mark.slow
def test_integer_weights_are_repeated_rows():
    """Copies are dealt and trained differently, so that fits agree up to Monte Carlo error only."""
    simulation = cs.datasets.simulation2(n=600, p=8, seed=3)
    times = np.random.default_rng(0).integers(1, 4, size=600)
    rows = np.repeat(np.arange(600), times)
    often = simulation.data.iloc[rows].reset_index(drop=True)
    one = cs.fit(simulation.formula, simulation.data, weights=times, variance="influence", seed=1)
    other = cs.fit(simulation.formula, often, cluster=rows, seed=1)
    # Both are of the same units: they differ by less than two independent fits would.
    gap = abs(one.params - other.params)
    assert (gap < MONTE_CARLO * one.bse).all()
    assert (gap < one.bse).all()
    np.testing.assert_allclose(other.bse, one.bse, rtol=0.25)
    untold = cs.fit(simulation.formula, often, seed=1)
    assert (untold.bse < other.bse).all()
