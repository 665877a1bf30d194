"""The analysis of a continuous treatment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.base import Analysis, Request, problem_of
from cstonet.analyses.doses.cautions import dose_warnings
from cstonet.analyses.doses.estimation import (
    DoseEstimates,
    DoseModels,
    dose_models,
    estimate_doses,
)
from cstonet.analyses.doses.reading import check_effects, read_dose
from cstonet.analyses.doses.results import DoseResults
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
from cstonet.data.treatment import Dose, natural_kind
from cstonet.data.variables import Vector
from cstonet.network.training_data import TrainingData
from cstonet.settings.plan import Plan, Problem

Trained = tuple[FittedNetworks, TrainingData]
_WHAT = "a continuous treatment"


class DoseAnalysis(Analysis[Design[Dose], Trained, DoseModels, DoseEstimates]):
    """Average marginal effect and dose-response curve, doubly robust."""

    kinds = ("continuous",)
    complete_only = _WHAT

    def suits(self, raw: RawData, kind: str | None) -> bool:
        """Doses by name, or numbers that look like amounts."""
        return (natural_kind(raw.treatment) if kind is None else kind) == "continuous"

    def read_treatment(
        self, treatment: Vector, weights: NDArray[np.float64] | None, request: Request
    ) -> Dose:
        """The doses."""
        return read_dose(treatment, request.reference, weights)

    def finish_reading(self, design: Design[Dose], raw: RawData) -> Design[Dose]:
        """Nothing more, but outcome and doses must suit each other."""
        del raw
        check_effects(design)
        return design

    def problem(self, design: Design[Dose]) -> Problem:
        """Scores of doses need the whole treatment model, and are no differences of means."""
        return problem_of(design, whole_treatment_model=_WHAT, no_means=_WHAT)

    def train(self, design: Design[Dose], plan: Plan, workforce: Workforce) -> Trained:
        """One network per fold and start, of dose and outcome."""
        return train_networks(design, plan, workforce)

    def nuisances(self, design: Design[Dose], plan: Plan, trained: Trained) -> DoseModels:
        """μ̂(a, x) with its slope, and the density of the dose, of every repetition."""
        del plan
        return dose_models(design, *trained)

    def estimate(self, design: Design[Dose], plan: Plan, nuisances: DoseModels) -> DoseEstimates:
        """The average marginal effect."""
        del design
        return estimate_doses(plan, nuisances)

    def results(
        self,
        design: Design[Dose],
        plan: Plan,
        trained: Trained,
        nuisances: DoseModels,
        estimates: DoseEstimates,
        runtime: float,
    ) -> DoseResults:
        """The effect, the curve, predictions and diagnostics."""
        networks = trained[0]
        record = FitRecord(
            design=design,
            plan=plan,
            networks=networks,
            selection=nuisances.selection,
            notes=constant_note(networks) + spread_note(estimates.effects, estimates.singles),
            runtime=runtime,
            warnings=dose_warnings(design, nuisances.average, estimates.effects)
            + few_units_warning(estimates.effects, design)
            + in_sample_warning(plan)
            + training_warnings(networks),
        )
        return DoseResults(record, estimates.effects, nuisances)
