"""res.heterogeneity(): what it returns, prints and refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from cstonet.analyses.arms.estimation import ArmsNuisances
from cstonet.errors import NotAvailableError, OptionError
from cstonet.estimators import CrossFit, Imputations
from cstonet.estimators.calibration import estimate_calibration
from cstonet.estimators.heterogeneity_test import (
    autoc_statistics,
    calibration_statistics,
    combined_test,
)
from cstonet.estimators.ranking import estimate_toc


def with_nuisances(results, *each):
    """Results whose repetitions of the cross-fitting are these; a single one is the average."""
    results.nuisances = each[0]
    repetitions = tuple(map(CrossFit, each)) if len(each) > 1 else ()
    overlap = results._cross_fits.overlap
    results._cross_fits = ArmsNuisances(CrossFit(each[0]), repetitions, overlap)
    return results


def test_numbers_are_those_of_the_estimators(make_results):
    results = make_results(n=400, weighted=True)
    found = results.heterogeneity()
    calibration = estimate_calibration(results.nuisances, (1, 0), clip=0.01)
    np.testing.assert_allclose(found.calibration["estimate"], calibration.estimates, rtol=1e-12)
    np.testing.assert_allclose(found.calibration["se"], calibration.standard_errors, rtol=1e-12)
    test = combined_test([calibration_statistics(results.nuisances, (1, 0), 0.01)])
    assert found.calibration.loc["differential", "pvalue"] == test.pvalue < 1e-4
    assert found.calibration.loc["differential", "statistic"] == test.statistic
    test = combined_test([autoc_statistics(results.nuisances, (1, 0), 0.01)])
    assert found.pvalue == found.autoc.pvalue == test.pvalue < 1e-4
    ranking = estimate_toc(results.nuisances, (1, 0), clip=0.01, shares=tuple(found.toc["share"]))
    np.testing.assert_allclose(found.toc["estimate"], ranking.estimates[1:], rtol=1e-12)
    assert found.autoc.estimate == pytest.approx(ranking.estimates[0], rel=1e-12)
    assert list(found.toc) == ["share", "estimate", "se", "lower", "upper"]
    assert found.toc["share"].iloc[-1] == 1.0


def test_a_contrast_turned_round_ranks_the_other_way(make_results):
    results = make_results(n=400)
    forth, back = results.heterogeneity(), results.heterogeneity(contrast=(0, 1))
    assert back.contrast == "0 - 1"
    # The calibration is the same; the AUTOC looks at those who lose most.
    forth_p, back_p = (one.calibration.loc["differential", "pvalue"] for one in (forth, back))
    assert back_p == pytest.approx(forth_p, rel=1e-9)
    assert back.autoc.estimate != pytest.approx(forth.autoc.estimate, rel=1e-3)
    np.testing.assert_allclose(
        back.calibration["estimate"], forth.calibration["estimate"], rtol=1e-9
    )


def test_repetitions_are_averaged_and_differ(make_results):
    results = make_results(n=300)
    one = results.nuisances
    rng = np.random.default_rng(1)
    other = replace(one, mu=one.mu + rng.normal(0, 0.3, one.mu.shape), fold=rng.integers(0, 3, 300))
    found = with_nuisances(results, one, other).heterogeneity()
    singles = [estimate_calibration(each, (1, 0), clip=0.01) for each in (one, other)]
    mean = np.mean([single.estimates for single in singles], axis=0)
    variance = np.mean(
        [np.diag(single.covariance) + (single.estimates - mean) ** 2 for single in singles], axis=0
    )
    np.testing.assert_allclose(found.calibration["estimate"], mean, rtol=1e-12)
    np.testing.assert_allclose(found.calibration["se"], np.sqrt(variance), rtol=1e-12)


def test_text(make_results):
    text = str(make_results(n=500).heterogeneity())
    assert "differential" in text
    assert "AUTOC" in text
    assert "first 10 %" in text
    assert text.endswith("Units with larger predicted effects have larger effects.")
    assert max(map(len, text.splitlines())) <= 78


def test_predictions_that_do_not_vary(make_results):
    results = make_results(n=200)
    flat = replace(results.nuisances, mu=np.tile([0.0, 2.0], (200, 1)))
    found = with_nuisances(results, flat).heterogeneity()
    assert found.constant
    assert found.pvalue == found.autoc.pvalue == 1.0
    assert found.autoc.estimate == pytest.approx(0.0, abs=1e-12)
    assert "do not vary" in str(found)


def test_in_sample_predictions_are_refused(make_results):
    results = make_results(n=200)
    in_sample = replace(results.nuisances, fold=np.zeros(200, dtype=np.int64))
    with_nuisances(results, in_sample)
    for question in (results.heterogeneity, results.policy):
        with pytest.raises(NotAvailableError, match="not cross-fitted"):
            question()


def test_impossible_arguments(make_results):
    results = make_results(n=200)
    with pytest.raises(OptionError, match="alpha"):
        results.heterogeneity(alpha=2)
    with pytest.raises(OptionError, match="contrast"):
        results.heterogeneity(contrast=(1, 1))


def test_few_clusters_are_compared_with_student(make_results):
    results = make_results(n=120)
    few = replace(results.nuisances, clusters=np.arange(120) % 6)
    table = with_nuisances(results, few).heterogeneity().calibration
    row = table.loc["mean"]
    assert row["pvalue"] == pytest.approx(t.sf(row["statistic"], 5), rel=1e-9)
    assert row["upper"] - row["estimate"] == pytest.approx(t.ppf(0.975, 5) * row["se"], rel=1e-9)


def test_imputations_count_alike_in_all_repetitions(make_results):
    """The order of the repetitions does not matter, nor which of them imputations move most."""
    results, rng = make_results(n=300), np.random.default_rng(2)
    rows, one = np.arange(60), results.nuisances
    each = []
    for spread in (0.1, 1.0):
        mu = one.mu[rows] + rng.normal(0, spread, (4, 60, 2))
        p = np.broadcast_to(one.propensity[rows], mu.shape)
        each.append(CrossFit(one, Imputations(rows, mu, p, np.zeros((0, 4), np.float32))))
    errors = []
    for repetitions in (each, each[::-1]):
        overlap = results._cross_fits.overlap
        results._cross_fits = ArmsNuisances(each[0], tuple(repetitions), overlap)
        errors.append(results.heterogeneity().calibration["se"].to_numpy())
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-12)
