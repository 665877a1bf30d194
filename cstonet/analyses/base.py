"""What an analysis is.

An analysis knows how its treatment is read, how its networks are planned and trained, which
nuisances they give, which effects follow, and what its results say. ``CausalStoNet`` goes through
these steps in order and never asks which analysis it has. A new one is a folder beside ``arms``
with a child of :class:`Analysis`, and a place in ``cstonet.analyses.registry``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.results import CausalResults
from cstonet.crossfit.workforce import Workforce
from cstonet.data.design import AnyDesign, Design, read_design
from cstonet.data.kept import kept_covariates
from cstonet.data.raw import Missing, RawData
from cstonet.data.treatment import Treatment
from cstonet.data.variables import Family, Vector, block_family
from cstonet.settings.options import FitOptions
from cstonet.settings.plan import Plan, Problem, make_plan

DesignT = TypeVar("DesignT", bound=AnyDesign)
TrainedT = TypeVar("TrainedT")
NuisancesT = TypeVar("NuisancesT")
EstimatesT = TypeVar("EstimatesT")


@dataclass(frozen=True, slots=True)
class Request:
    """What the user said about the data.

    Attributes
    ----------
    family
        Distribution of the outcome; None: to be inferred.
    kind
        Kind of treatment; None: to be inferred.
    reference
        Level of the treatment that others are compared with; None: the first.
    missing
        What to do about missing values.
    """

    family: Family | None = None
    kind: str | None = None
    reference: Any = None
    missing: Missing = "raise"


class Analysis(ABC, Generic[DesignT, TrainedT, NuisancesT, EstimatesT]):
    """One kind of causal analysis, from the user's variables to results.

    The four types are those of its design, of what training leaves, of its nuisances and of its
    estimates. Each is handed to the next step and to nobody else.

    Attributes
    ----------
    kinds
        Values of ``treatment=`` that it can serve.
    complete_only
        What it has that no imputation of covariates can be combined with, such as "mediators";
        None if covariates may be imputed.
    """

    kinds: ClassVar[tuple[str, ...]]
    complete_only: ClassVar[str | None] = None

    @abstractmethod
    def suits(self, raw: RawData, kind: str | None) -> bool:
        """Whether these variables, with the kind of treatment asked for, are for this analysis."""

    @abstractmethod
    def read_treatment(
        self, treatment: Vector, weights: NDArray[np.float64] | None, request: Request
    ) -> Treatment:
        """The treatment as a value, checked; a copy of the user's column."""

    def read(self, raw: RawData, request: Request) -> DesignT:
        """The checked data, or the error that says why there are none."""
        raw.check_gaps(request.missing, self.complete_only)
        design = read_design(
            raw,
            lambda treatment, weights: self.read_treatment(treatment, weights, request),
            family=request.family,
            missing=request.missing,
        )
        return self.finish_reading(design, raw)

    @abstractmethod
    def finish_reading(self, design: Design[Any], raw: RawData) -> DesignT:
        """The analysis' own design from the common one: what else it reads, checks and warns of."""

    @abstractmethod
    def problem(self, design: DesignT) -> Problem:
        """What the plan has to know."""

    def plan(self, design: DesignT, options: FitOptions, *, preset: str, seed: int) -> Plan:
        """Every automatic option resolved."""
        if options.keep is not None:
            options = options.replace(keep=kept_covariates(design.spec, options.keep))
        return make_plan(self.problem(design), options, preset=preset, seed=seed)

    @abstractmethod
    def train(self, design: DesignT, plan: Plan, workforce: Workforce) -> TrainedT:
        """Train the networks of all folds."""

    @abstractmethod
    def nuisances(self, design: DesignT, plan: Plan, trained: TrainedT) -> NuisancesT:
        """What the networks say of the training rows, out of fold."""

    @abstractmethod
    def estimate(self, design: DesignT, plan: Plan, nuisances: NuisancesT) -> EstimatesT:
        """The effects. From here on no network is in sight."""

    @abstractmethod
    def results(
        self,
        design: DesignT,
        plan: Plan,
        trained: TrainedT,
        nuisances: NuisancesT,
        estimates: EstimatesT,
        runtime: float,
    ) -> CausalResults:
        """What the user gets, with the parts of its summary."""


AnyAnalysis = Analysis[Any, Any, Any, Any]


def problem_of(
    design: AnyDesign,
    *,
    further_inputs: int = 0,
    whole_treatment_model: str | None = None,
    no_means: str | None = None,
    shares: tuple[float, ...] | None = None,
) -> Problem:
    """What the plan has to know of a design, and what the analysis says about itself.

    Parameters
    ----------
    design
        The data.
    further_inputs
        Columns that the network reads beside the covariates.
    whole_treatment_model, no_means, shares
        See :class:`~cstonet.settings.plan.Problem`.
    """
    rows, columns = design.X.shape
    return Problem(
        rows=rows,
        inputs=columns + further_inputs,
        treatment=design.treatment.block_family,
        outcome=block_family(design.family),
        visible_units=design.treatment.block_units,
        whole_treatment_model=whole_treatment_model,
        no_means=no_means,
        shares=shares,
    )
