"""Fits that are asked for another effect than the ATE."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import NotAvailableError, OptionError


@pytest.fixture(scope="module")
def binary():
    return cs.datasets.simulation2(n=300, p=6, seed=2)


@pytest.fixture(scope="module")
def everyone(binary, fit_quickly):
    return fit_quickly(binary.formula, binary.data, repeats=2)


@pytest.fixture(scope="module")
def treated(binary, fit_quickly):
    return fit_quickly(binary.formula, binary.data, repeats=2, estimand="ATT")


def test_it_leads_the_effects(everyone, treated):
    assert list(treated.params.index) == ["ATT", "ATE", "POM[0]", "POM[1]"]
    assert treated.effects.n_contrasts == 2
    assert treated.effect() == treated.effect("ATT")
    assert repr(treated).startswith("<ArmsResults: ATT = ")
    assert "ATE" not in repr(treated)
    # What follows is what there was, and what leads is what could be asked for afterwards.
    for name in everyone.params.index:
        assert treated.params[name] == everyone.params[name]
        assert treated.bse[name] == pytest.approx(everyone.bse[name], rel=1e-12)
    asked = everyone.effect("ATT")
    assert treated.params["ATT"] == pytest.approx(asked.estimate, rel=1e-12)
    assert treated.bse["ATT"] == pytest.approx(asked.se, rel=1e-12)


def test_it_can_be_tested_against_the_others(treated):
    test = treated.t_test("ATT - ATE = 0")
    cov = treated.cov_params()
    variance = cov.loc["ATT", "ATT"] + cov.loc["ATE", "ATE"] - 2 * cov.loc["ATT", "ATE"]
    assert float(test.sd.item()) == pytest.approx(np.sqrt(variance), rel=1e-9)
    with pytest.raises(OptionError, match="ATE is POM"):
        treated.t_test("ATE - POM[1] + POM[0] = 0")
    assert treated.test_equal_arms().pvalue == pytest.approx(treated.pvalues["ATE"], rel=1e-6)


def test_summary_and_methods_follow(treated):
    text = treated.summary().as_text()
    assert "Estimand: ATT, treat = 1 against 0, among those who received 1\n" in text
    flat = " ".join(text.split())
    assert "ATT: among those who received 1; ATE = POM[1] - POM[0]" in flat
    assert "The ATT is the effect among those who received 1" in treated.methods()
    assert treated.plan.estimand == "ATT"
    assert max(map(len, text.splitlines())) <= 78


@pytest.mark.parametrize(
    ("estimand", "words"),
    [
        ("ATC", "among those who received placebo"),
        ("ATO", "among units that could have received either (overlap weights)"),
    ],
)
def test_several_levels(simulation, fit_quickly, estimand, words):
    results = fit_quickly(simulation.formula, simulation.data, estimand=estimand)
    names = [f"{estimand}[low-placebo]", f"{estimand}[high-placebo]"]
    assert list(results.params.index[:4]) == [*names, "ATE[low-placebo]", "ATE[high-placebo]"]
    assert results.leading == tuple(names)
    assert words in " ".join(results.summary().as_text().split())
    assert repr(results).count(estimand) == 2
    with pytest.raises(NotAvailableError, match="several leading effects"):
        results.effect()
    asked = fit_quickly(simulation.formula, simulation.data).effect(names[0])
    assert results.bse[names[0]] == pytest.approx(asked.se, rel=1e-12)
    assert np.isfinite(results.test_equal_arms().statistic)
    assert (results.conf_int(simultaneous=True)[0] <= results.conf_int()[0]).all()


def test_with_imputed_covariates(binary, fit_quickly):
    data = binary.data.copy()
    data.loc[::7, "x1"] = np.nan
    results = fit_quickly(binary.formula, data, missing="mar", imputations=3, estimand="ATO")
    asked = fit_quickly(binary.formula, data, missing="mar", imputations=3).effect("ATO")
    assert results.effect("ATO").se == pytest.approx(asked.se, rel=1e-12)
    assert len(results.effects.freedom) == 4


def test_only_arms_have_it(fit_quickly, quick_options):
    doses = cs.datasets.dose_curve(n=200, p=5, seed=1)
    with pytest.raises(OptionError, match=r"estimand='ATT'.*a continuous treatment"):
        fit_quickly(doses.formula, doses.data, estimand="ATT")
    mediation = cs.datasets.one_mediator(n=200, p=5, seed=1)
    with pytest.raises(OptionError, match=r"estimand='ATC'.*mediators"):
        fit_quickly(mediation.formula, mediation.data, estimand="ATC")
    with pytest.raises(OptionError, match="estimand must be one of 'ATE', 'ATT', 'ATC', 'ATO'"):
        replace(quick_options(), estimand="LATE")
