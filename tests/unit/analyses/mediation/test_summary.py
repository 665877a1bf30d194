"""The summary of a mediation fit."""

from __future__ import annotations

import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses.mediation.results import MediationResults
from cstonet.errors import OptionError
from cstonet.estimators import estimate_mediation
from cstonet.reporting.numbers import with_error


def test_summary(fitted):
    text = fitted.summary().as_text()
    assert max(map(len, text.splitlines())) <= 78
    for words in ("sequential ignorability", "Mediator", "mediator", "EIF", "NIE"):
        assert words in text
    for form in ("as_html", "as_latex", "as_csv"):
        assert "NDE" in getattr(fitted.summary(), form)()
    assert repr(fitted).startswith("<MediationResults: TE")
    for words in ("multiply robust", "no common cause", "Density ratios", "2 mediators", "seed 1"):
        assert words in fitted.methods()


def test_level_of_every_interval_in_the_summary(fitted):
    text = " ".join(fitted.summary(alpha=0.1).as_text().split())
    share = fitted.proportion_mediated(alpha=0.1)
    lower, upper = with_error(share.estimate, share.se, share.lower, share.upper)[2:]
    assert f"90% interval {lower} to {upper}" in text
    assert "95%" not in text
    for wrong in (None, "5%", 1.0):
        with pytest.raises(OptionError, match="alpha must lie"):
            fitted.summary(alpha=wrong)


def test_the_level_that_is_coded_one_is_shown(fitted, mediated, fit_briefly):
    assert list(fitted.mediators["level"]) == ["", "yes"]
    assert "of which 1 stands for: b = yes (not no)" in " ".join(fitted.summary().as_text().split())
    plain = mediated.assign(b=mediated["b"] == "yes")
    other = fit_briefly("y ~ treat | . | m + b", plain)
    assert list(other.mediators["level"]) == ["", True]
    assert "stands for" not in other.summary().as_text()


def test_golden(record_of, check_golden):
    simulation = cs.datasets.three_mediators(n=300, p=5, seed=1)
    record = record_of(
        simulation,
        "8-8-5-1",
        strength=[0.4, 0.3, 0.2, 0.2, 0.1],
        treatment=[12, 12, 12, 0, 0],
        mediator=[12, 12, 0, 12, 0],
        outcome=[12, 0, 12, 0, 12],
    )
    mediators = pd.DataFrame(
        {
            "family": "gaussian",
            "outcome": [True, True, False],
            "outcome_count": [12, 12, 5],
            "effect": [0.71, 0.52, 0.61],
            "effect_se": [0.051, 0.049, 0.05],
            "effect_pvalue": [0.0, 0.0, 0.0],
            "indirect": [0.51, 0.41, 0.0002],
            "indirect_se": [0.061, 0.058, 0.013],
        },
        index=pd.Index(["m1", "m2", "m3"], name="mediator"),
    )
    nuisances = simulation.nuisances()
    estimated = estimate_mediation(nuisances, clip=0.01)
    results = MediationResults(record, estimated, nuisances, mediators)
    check_golden("summary_mediation.txt", str(results.summary()))
