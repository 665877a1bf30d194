"""Diagnostics and the summary of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.analyses.doses.cautions import dose_warnings
from cstonet.analyses.doses.estimation import DoseModels
from cstonet.analyses.doses.methods import density_paragraph
from cstonet.analyses.doses.results import DoseResults
from cstonet.estimators.dispersion import Dispersion
from cstonet.estimators.marginal_effect import estimate_marginal_effect


def test_weighting_balances_the_covariates(simulation, fitted):
    balance = fitted.balance()
    x1 = simulation.data["x1"]
    expected = np.corrcoef(x1, simulation.data["dose"])[0, 1]
    np.testing.assert_allclose(balance.loc["x1", "correlation_before"], expected)
    assert abs(balance.loc["x1", "correlation_after"]) < 0.5 * abs(expected)


def test_overlap(fitted):
    overlap = fitted.overlap()
    assert list(overlap["n"]) == [100] * 5 + [500]
    assert (overlap["effective"] <= overlap["n"]).all()
    assert overlap.loc["all", "n_bounded"] == fitted.effects.n_clipped
    assert (overlap["from"] <= overlap["to"]).all()


@pytest.fixture
def oracle_results(record_of):
    """Results around the true nuisances of a simulation."""

    def results(*, heteroscedastic=False):
        simulation = cs.datasets.dose_curve(n=300, p=5, seed=1, heteroscedastic=heteroscedastic)
        record = record_of(
            simulation, "5-8-5-1", treatment=[12, 0, 12, 0, 12], outcome=[12, 11, 12, 9, 0]
        )
        nuisances = simulation.nuisances()
        pvalue = 0.0004 if heteroscedastic else 0.4
        dispersion = Dispersion(nuisances.variance, heteroscedastic, pvalue)
        models = DoseModels(nuisances, dispersion, (nuisances,), record.selection)
        effects = estimate_marginal_effect(nuisances, clip=0.01)
        record = replace(record, warnings=dose_warnings(record.design, nuisances, effects))
        return DoseResults(record, effects, models)

    return results


def test_golden(oracle_results, check_golden):
    check_golden("summary_dose.txt", str(oracle_results().summary()))


def test_summary(fitted, oracle_results):
    for results in (fitted, oracle_results(heteroscedastic=True)):
        text = results.summary().as_text()
        assert max(map(len, text.splitlines())) <= 78
        assert "dose (continuous)" in text
        assert "POM" not in text
        for form in ("as_html", "as_latex", "as_csv"):
            assert "AME" in getattr(results.summary(), form)()
    assert "of gaussian residuals: 0.400, 1.000)" in density_paragraph(oracle_results())
    assert "a variance that depends on them" in density_paragraph(results)


def test_a_dose_that_the_covariates_determine_is_a_warning(oracle_results):
    results = oracle_results()
    assert "all but determine" not in " ".join(results.warnings)
    nuisances = results.dose_nuisances
    near = replace(nuisances, mean=nuisances.dose - 0.1 * nuisances.surprise)
    first = dose_warnings(results.design, near, results.effects)[0]
    assert first.startswith("The covariates all but determine dose (99% of its variance)")


def test_methods(fitted):
    text = fitted.methods()
    for words in ("AME", "gaussian residuals", "local linear", "2-fold cross-fitting", "seed 1"):
        assert words in text


def test_largest_imbalance_is_in_the_notes(oracle_results):
    results = oracle_results()
    after = results.balance()["correlation_after"].abs()
    found = results.largest_imbalance
    assert (found.covariate, found.after) == (after.idxmax(), after.max())
    text = " ".join(results.summary().as_text().split())
    assert f"Largest correlation with dose after weighting: {after.max():.2f}" in text
