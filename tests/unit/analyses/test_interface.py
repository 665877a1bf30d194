"""A fourth analysis in one file: what an analysis must bring, and that nothing else must change.

The toy is a randomised trial: the chance of treatment is known, the same for all, so that no
treatment model enters the estimate. It reads, plans, trains, estimates and prints through the
interface alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.analyses import registry
from cstonet.analyses.arms.prediction import predict_out_of_fold
from cstonet.analyses.arms.reading import read_arms
from cstonet.analyses.base import Analysis, problem_of
from cstonet.analyses.results import CausalResults, FitRecord
from cstonet.crossfit.fitted import train_networks
from cstonet.estimators import Effects, Nuisances, estimate_effects
from cstonet.network.prediction import averaged
from cstonet.reporting.methods import methods_text, model_paragraph
from cstonet.reporting.summary import SummaryParts, effects_table, estimator_row, role_rows
from cstonet.search.selection import select


@dataclass(frozen=True)
class TrialNuisances:
    mu: np.ndarray  # (n, 2)
    chance: float


class TrialAnalysis(Analysis):
    kinds = ("randomised",)
    complete_only = "a randomised treatment"

    def suits(self, raw, kind):
        return kind == "randomised"

    def read_treatment(self, treatment, weights, request):
        return read_arms(treatment, "binary", request.reference, weights)

    def finish_reading(self, design, raw):
        return design

    def problem(self, design):
        return problem_of(design)

    def train(self, design, plan, workforce):
        return train_networks(design, plan, workforce)

    def nuisances(self, design, plan, trained):
        networks, data = trained
        mu = averaged(predict_out_of_fold(networks, data.covariates)).mu
        return TrialNuisances(mu, design.treatment.codes.mean())

    def estimate(self, design, plan, nuisances):
        n, p = len(design.y), nuisances.chance
        known = Nuisances(
            y=design.y,
            treatment=design.treatment.codes,
            mu=nuisances.mu,
            propensity=np.tile([1 - p, p], (n, 1)),
            weights=design.weights,
            fold=np.zeros(n, dtype=np.int64),
        )
        levels = design.treatment.levels
        return estimate_effects(known, levels=levels, clip=plan.clip, variance="influence")

    def results(self, design, plan, trained, nuisances, estimates, runtime):
        selection = select(design.covariates, trained[0].folds)
        record = FitRecord(design, plan, trained[0], selection, (), runtime)
        return TrialResults(record, estimates, nuisances.chance)


class TrialResults(CausalResults):
    def __init__(self, record: FitRecord, effects: Effects, chance: float) -> None:
        super().__init__(record, effects)
        self.chance = chance

    def summary_parts(self, alpha):
        return SummaryParts(
            estimand="ATE, treated against not",
            left=role_rows(self.design),
            right=[estimator_row("Trial", self.plan), ("Chance:", f"{self.chance:.2f}")],
            tables=[effects_table(self, alpha)],
            notes=["The chance of treatment is known."],
        )

    def methods(self):
        return methods_text([model_paragraph(self.design, self.plan), "Trial. A coin was thrown."])


@pytest.fixture
def with_trials(monkeypatch):
    monkeypatch.setattr(registry, "ANALYSES", [TrialAnalysis(), *registry.ANALYSES])


@pytest.fixture
def trial():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 4))
    treat = rng.permutation(np.repeat([0, 1], 200))
    y = 2.0 * treat + x[:, 0] + rng.normal(size=400)
    columns = {f"x{j + 1}": column for j, column in enumerate(x.T)}
    return pd.DataFrame({"y": y, "treat": treat, **columns})


def test_a_new_analysis_is_run_and_printed(with_trials, trial, quick_options):
    options = quick_options(epochs=60)
    results = cs.fit("y ~ treat | .", trial, treatment="randomised", options=options, seed=1)
    assert isinstance(results, TrialResults)
    # The estimate of a randomised effect is within sampling error of the truth.
    assert abs(results.params["ATE"] - 2.0) < 4 * results.bse["ATE"]
    text = results.summary().as_text()
    assert "Trial, 2-fold cross-fit" in text
    assert "0.50" in text
    assert "[1] The chance of treatment is known." in text
    assert "Estimand: ATE, treated against not" in text
    assert results.methods().endswith("\n\nTrial. A coin was thrown.")
    assert results.effect("ATE").estimate == results.params["ATE"]


def test_its_own_errors_and_those_of_everyone(with_trials, trial):
    gaps = trial.assign(x1=trial["x1"].mask(trial.index < 5))
    with pytest.raises(cs.errors.MissingValuesError, match="with a randomised treatment"):
        cs.fit("y ~ treat | .", gaps, treatment="randomised", missing="mar")
    with pytest.raises(cs.errors.OptionError, match="'randomised'"):
        cs.fit("y ~ treat | .", trial, treatment="randomized")


def test_without_it_the_kind_is_unknown(trial):
    with pytest.raises(cs.errors.OptionError, match="treatment='randomised' is not available"):
        cs.fit("y ~ treat | .", trial, treatment="randomised")


def test_an_analysis_that_lacks_a_part_cannot_be_made():
    class Half(Analysis):
        kinds = ("half",)

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_other_analyses_are_not_disturbed(with_trials, trial, quick_options):
    results = cs.fit("y ~ treat | .", trial, options=replace(quick_options(), clip=0.02), seed=1)
    assert isinstance(results, cs.ArmsResults)
