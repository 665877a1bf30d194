"""Summaries of arms: several levels, long labels, imputed covariates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cstonet as cs
from cstonet.analyses.arms.estimation import ArmsNuisances
from cstonet.analyses.arms.results import ArmsResults
from cstonet.data.gaps import CovariateGaps, Incomplete
from cstonet.estimators import CrossFit, Imputations, estimate_effects, pooled_effects
from cstonet.estimators.support import Overlap


def test_summary(exact):
    text = exact.summary().as_text()
    assert max(map(len, text.splitlines())) <= 78
    assert "ATE[high-placebo]" in text
    assert "placebo (reference)" in text
    assert repr(exact).count("ATE[") == 2
    for form in ("as_html", "as_latex", "as_csv"):
        assert "reference" in getattr(exact.summary(), form)()


def test_golden_multilevel(record_of, check_golden):
    simulation = cs.datasets.three_arms(n=300, p=5, seed=1)
    record = record_of(
        simulation, "5-8-5-1", treatment=[12, 0, 12, 0, 12], outcome=[12, 11, 12, 9, 0]
    )
    nuisances = simulation.nuisances()
    effects = estimate_effects(
        nuisances,
        levels=simulation.levels,
        clip=record.plan.clip,
        variance="paper",
        kind="multilevel",
    )
    results = ArmsResults(
        record,
        effects,
        ArmsNuisances(CrossFit(nuisances), (), Overlap.of(nuisances.propensity, nuisances)),
    )
    check_golden("summary_multilevel.txt", str(results.summary()))


def test_long_labels_do_not_overflow(exact, simulation, rebuilt):
    labels = tuple(f"a rather long label of the arm {level}" for level in simulation.levels)
    effects = estimate_effects(
        exact.nuisances, levels=labels, clip=0.02, variance="paper", kind="multilevel"
    )
    design = replace(exact.design, treatment=replace(exact.arms, levels=labels))
    long = rebuilt(exact, effects, CrossFit(exact.nuisances), design)
    assert max(map(len, long.summary().as_text().splitlines())) <= 78


def test_golden_imputed(make_results, rebuilt, check_golden):
    results = make_results()
    n = results.nobs
    missing = np.arange(n) % 7 == 0
    rows = np.flatnonzero(missing)
    gaps = CovariateGaps.of("mnar", (Incomplete("x2", (1,), None, missing, 0.0),))
    # Every imputation moves the nuisances of these rows a little further.
    shifts = np.linspace(-0.5, 0.5, 5)[:, None, None]
    imputations = Imputations(
        rows,
        results.nuisances.mu[rows] + shifts,
        np.repeat(results.nuisances.propensity[rows][None], 5, axis=0),
        np.zeros((len(rows), 5), np.float32),
    )

    def estimate(nuisances):
        return estimate_effects(nuisances, levels=(0, 1), clip=0.01, variance="paper")

    imputed = rebuilt(
        results,
        pooled_effects(estimate, results.nuisances, imputations),
        CrossFit(results.nuisances, imputations),
        replace(results.design, gaps=gaps),
    )
    # Fits with imputed covariates have no probabilities of inclusion.
    imputed.selection = imputed.selection.drop(
        columns=["treatment_probability", "outcome_probability"]
    )
    check_golden("summary_imputed.txt", str(imputed.summary()))
    assert imputed.effect("ATT").se > 0


def test_methods_tell_the_whole_story(fitted):
    paragraphs = fitted.methods().split("\n\n")
    assert [paragraph.partition(".")[0] for paragraph in paragraphs] == [
        "Model",
        "Covariates",
        "Training",
        "Linear parts",
        "Estimator",
        "Overlap",
        "Support",
        "Inference",
        "Software",
    ]
    for words in (
        "treat (3 levels)",
        f"layers of {fitted.plan.network_label} units",
        "score tests",
        "2-fold cross-fitting",
        "augmented inverse probability weighting",
        "each level against placebo",
        "kept at or above 0.0058 (placebo), 0.0064 (low), 0.0077 (high)",
        "at least three quarters",
        f"cstonet {cs.__version__}, preset 'custom', seed 1",
    ):
        assert words in fitted.methods()
    assert "  " not in fitted.methods()


def test_methods_of_a_fit_with_gaps_and_without_a_search(simulation, fit_quickly, quick_options):
    data = simulation.data.copy()
    data.loc[::9, "x2"] = np.nan
    options = quick_options("prune", epochs=4, folds=1, starts=1)
    imputed = fit_quickly(simulation.formula, data, options=options, missing="mar", imputations=2)
    text = imputed.methods()
    for words in ("missing at random", "2 imputations", "pruned by its mixture prior", "same rows"):
        assert words in text
    assert "score tests" not in text
