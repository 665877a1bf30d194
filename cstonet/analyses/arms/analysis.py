"""The analysis of a treatment with two or more levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.cautions import (
    check_separation,
    overlap_warnings,
    support_warnings,
)
from cstonet.analyses.arms.estimation import (
    ArmsEstimates,
    ArmsNuisances,
    arms_nuisances,
    estimate_arms,
)
from cstonet.analyses.arms.mixing import with_mixture
from cstonet.analyses.arms.reading import read_arms, warn_of_empty_arms
from cstonet.analyses.arms.results import ArmsResults
from cstonet.analyses.base import Analysis, Request, problem_of
from cstonet.analyses.notes import (
    constant_note,
    few_units_warning,
    in_sample_warning,
    spread_note,
    training_warnings,
)
from cstonet.analyses.results import FitRecord
from cstonet.crossfit.fitted import FittedNetworks, train_networks
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import Design
from cstonet.data.raw import RawData
from cstonet.data.treatment import Arms
from cstonet.data.variables import Vector
from cstonet.network.trained import OUTCOME
from cstonet.network.training_data import TrainingData
from cstonet.search.selection import select
from cstonet.settings.plan import Plan, Problem

Trained = tuple[FittedNetworks, TrainingData]


class ArmsAnalysis(Analysis[Design[Arms], Trained, ArmsNuisances, ArmsEstimates]):
    """Average effects of levels against a reference, by augmented inverse probability weighting."""

    kinds = ("binary", "multilevel")

    def suits(self, raw: RawData, kind: str | None) -> bool:
        """Whatever no other analysis takes."""
        del raw, kind
        return True

    def read_treatment(
        self, treatment: Vector, weights: NDArray[np.float64] | None, request: Request
    ) -> Arms:
        """The arms."""
        return read_arms(treatment, request.kind, request.reference, weights)

    def finish_reading(self, design: Design[Arms], raw: RawData) -> Design[Arms]:
        """Warn of covariates without a value in an arm."""
        del raw
        warn_of_empty_arms(design)
        return design

    def problem(self, design: Design[Arms]) -> Problem:
        """Imputations need the whole treatment model."""
        gaps = None if design.gaps is None else "missing covariates"
        arms = design.treatment
        counted = np.bincount(arms.codes, design.unit_weights, len(arms.levels))
        shares = tuple(float(share) for share in counted / counted.sum())
        return problem_of(design, whole_treatment_model=gaps, shares=shares)

    def train(self, design: Design[Arms], plan: Plan, workforce: Workforce) -> Trained:
        """One network per fold and start, of treatment and outcome."""
        fitted, data = train_networks(design, plan, workforce)
        return with_mixture(fitted, data), data

    def nuisances(self, design: Design[Arms], plan: Plan, trained: Trained) -> ArmsNuisances:
        """μ̂_a(x) and p̂_a(x) of every repetition."""
        found = arms_nuisances(design, plan, *trained)
        check_separation(found.overlap, design.treatment, design.X, design.covariates)
        return found

    def estimate(self, design: Design[Arms], plan: Plan, nuisances: ArmsNuisances) -> ArmsEstimates:
        """AIPW."""
        return estimate_arms(design, plan, nuisances)

    def results(
        self,
        design: Design[Arms],
        plan: Plan,
        trained: Trained,
        nuisances: ArmsNuisances,
        estimates: ArmsEstimates,
        runtime: float,
    ) -> ArmsResults:
        """The table of effects, predictions and diagnostics."""
        networks, arms = trained[0], design.treatment
        levels = arms.levels if arms.kind == "multilevel" else ()
        record = FitRecord(
            design=design,
            plan=plan,
            networks=networks,
            selection=select(design.covariates, networks.folds, levels, plan.keep),
            notes=constant_note(networks)
            + spread_note(estimates.effects, estimates.singles, len(arms.levels) - 1),
            runtime=runtime,
            warnings=support_warnings(nuisances.overlap, plan.estimand)
            + overlap_warnings(nuisances.average.mean, estimates.effects, plan.estimand)
            + few_units_warning(estimates.effects, design)
            + in_sample_warning(plan)
            + training_warnings(networks, (("outcome", OUTCOME),)),
        )
        return ArmsResults(record, estimates.effects, nuisances)
