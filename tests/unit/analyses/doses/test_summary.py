"""Diagnostics and the summary of a fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cstonet as cs
from cstonet.analyses.doses.estimation import DoseEstimates
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


def oracle_results(simulation, plan, *, heteroscedastic=False, **changes):
    names = [f"x{j}" for j in range(1, 6)]
    selected = np.array([True, False, True, False, True])
    selection = pd.DataFrame(
        {"treatment": selected, "outcome": [True] * 4 + [False], "strength": 0.2}, index=names
    ).assign(treatment_count=12 * selected, outcome_count=[12, 11, 12, 9, 0])
    selection.attrs["fits"] = 12
    nuisances = simulation.nuisances()
    return DoseResults(
        design=cs.CausalStoNet.from_formula(simulation.formula, simulation.data).design,
        plan=plan,
        estimates=DoseEstimates(
            nuisances,
            Dispersion(nuisances.variance, heteroscedastic, 0.0004 if heteroscedastic else 0.4),
            estimate_marginal_effect(nuisances, clip=0.01),
            (),
            (nuisances,),
        ),
        selection=selection,
        networks=SimpleNamespace(n_nonzero=41, n_weights=123),
        notes=(),
        runtime=1.0,
        **changes,
    )


def test_golden(make_plan, check_golden):
    simulation = cs.datasets.dose_curve(n=300, p=5, seed=1)
    results = oracle_results(simulation, make_plan(network_label="5-8-5-1"))
    check_golden("summary_dose.txt", str(results.summary()))


def test_summary(fitted, make_plan):
    for results in (
        fitted,
        oracle_results(
            cs.datasets.dose_curve(n=300, p=5, seed=1, heteroscedastic=True),
            make_plan(),
            heteroscedastic=True,
        ),
    ):
        text = results.summary().as_text()
        assert max(map(len, text.splitlines())) <= 78
        assert "dose (continuous)" in text
        assert "POM" not in text
        for form in ("as_html", "as_latex", "as_csv"):
            assert "AME" in getattr(results.summary(), form)()
    assert "p < 0.001" in text


def test_a_dose_that_the_covariates_determine_is_noted(make_plan):
    simulation = cs.datasets.dose_curve(n=300, p=5, seed=1)
    results = oracle_results(simulation, make_plan())
    text = " ".join(results.summary().as_text().split())
    assert "all but determine" not in text
    surprise = results.dose_nuisances.surprise
    results.dose_nuisances = replace(
        results.dose_nuisances, mean=results.dose_nuisances.dose - 0.1 * surprise
    )
    text = " ".join(results.summary().as_text().split())
    assert "99% of its variance. They all but determine it" in text
