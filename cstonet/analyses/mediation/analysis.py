"""The analysis of what goes through mediators."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.cautions import overlap_warnings
from cstonet.analyses.arms.reading import read_arms
from cstonet.analyses.base import Analysis, Request, problem_of
from cstonet.analyses.mediation.cautions import check_overlap, mediation_warnings
from cstonet.analyses.mediation.estimation import (
    MediatedRows,
    MediationEstimates,
    estimate,
    mediated_rows,
    mediator_table,
    select_covariates,
    select_inputs,
)
from cstonet.analyses.mediation.models import MediationSample
from cstonet.analyses.mediation.networks import MediationNetworks, train_mediation
from cstonet.analyses.mediation.reading import MediationDesign, not_binary, read_mediators
from cstonet.analyses.mediation.results import MediationResults
from cstonet.analyses.notes import (
    constant_note,
    few_units_warning,
    in_sample_warning,
    spread_note,
    training_warnings,
)
from cstonet.analyses.results import FitRecord
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import Design
from cstonet.data.raw import RawData
from cstonet.data.treatment import Arms, natural_kind
from cstonet.data.variables import Vector
from cstonet.errors import NotAvailableError
from cstonet.network.trained import OUTCOME
from cstonet.settings.options import FitOptions
from cstonet.settings.plan import Plan, Problem

Trained = tuple[MediationNetworks, MediationSample]
_WHAT = "mediators"


class MediationAnalysis(Analysis[MediationDesign, Trained, MediatedRows, MediationEstimates]):
    """Total, natural direct and natural indirect effects of a binary treatment."""

    kinds = ("binary",)
    complete_only = _WHAT

    def suits(self, raw: RawData, kind: str | None) -> bool:
        """Whatever has mediators."""
        del kind
        return raw.mediators is not None

    def read_treatment(
        self, treatment: Vector, weights: NDArray[np.float64] | None, request: Request
    ) -> Arms:
        """Two arms."""
        kind = natural_kind(treatment) if request.kind is None else request.kind
        if kind == "continuous":
            raise not_binary(kind)
        return read_arms(treatment, request.kind, request.reference, weights)

    def finish_reading(self, design: Design[Arms], raw: RawData) -> MediationDesign:
        """The mediators."""
        if raw.mediators is None:
            raise ValueError("there are no mediators")
        fields = {field.name: getattr(design, field.name) for field in dataclasses.fields(design)}
        mediators = read_mediators(design, raw.mediators)
        return MediationDesign(**fields, mediators=mediators)

    def problem(self, design: MediationDesign) -> Problem:
        """The outcome network reads the mediators; that of the mediators follows from its plan."""
        mediators = len(design.mediators.names)
        return problem_of(
            design, further_inputs=mediators, whole_treatment_model=_WHAT, no_means=_WHAT
        )

    def plan(self, design: MediationDesign, options: FitOptions, *, preset: str, seed: int) -> Plan:
        """As for any analysis, but the structure must be searched for."""
        if options.search is None:
            raise NotAvailableError(
                f"Mediation keeps the mediators out of the treatment model, which needs the "
                f"structure search; preset {preset!r} has none. Use preset='calibrated', or "
                "options with search."
            )
        return super().plan(design, options, preset=preset, seed=seed)

    def train(self, design: MediationDesign, plan: Plan, workforce: Workforce) -> Trained:
        """Networks of treatment and outcome, then those of the mediators that these hold."""
        return train_mediation(design, plan, workforce)

    def nuisances(self, design: MediationDesign, plan: Plan, trained: Trained) -> MediatedRows:
        """Outcome regressions, their means over the mediators' law, density ratios."""
        del plan
        networks, sample = trained
        return mediated_rows(design, networks, networks.predict_out_of_fold(sample))

    def estimate(
        self, design: MediationDesign, plan: Plan, nuisances: MediatedRows
    ) -> MediationEstimates:
        """TE, NDE, NIE, and the paths through single mediators."""
        return estimate(design, plan.single_clip, nuisances)

    def results(
        self,
        design: MediationDesign,
        plan: Plan,
        trained: Trained,
        nuisances: MediatedRows,
        estimates: MediationEstimates,
        runtime: float,
    ) -> MediationResults:
        """The effects, the table of mediators, predictions of the total effect."""
        networks, mediation = trained[0], estimates.mediation
        singles = [single.effects for single in estimates.singles]
        inputs = select_inputs(networks)
        record = FitRecord(
            design=design,
            plan=plan,
            networks=networks,
            selection=select_covariates(design, networks, inputs),
            notes=constant_note(networks.mediator) + spread_note(mediation.effects, singles),
            runtime=runtime,
            warnings=check_overlap(nuisances.average.nuisances.total(), design)
            + overlap_warnings(nuisances.average.nuisances.total(), mediation.effects)
            + mediation_warnings(mediation, len(design.y))
            + few_units_warning(mediation.effects, design)
            + in_sample_warning(plan)
            + training_warnings(networks.outcome)
            + training_warnings(networks.mediator, (("mediator", OUTCOME),)),
        )
        mediators = mediator_table(design, inputs, estimates)
        return MediationResults(record, mediation, nuisances.average.nuisances, mediators)
