"""Which classes a file may hold, where they live, and which of their fields are rows of the data.

A file names classes; only those listed here are ever made, so that no file decides what is
imported. A new class that results hold belongs here, and so does the name of a new field with one
value per row: ``tests/unit/files`` fails as long as it does not. Other new fields need nothing,
and if they have a default, older files can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from cstonet.errors import NotAvailableError

ALL = "*"


@dataclass(frozen=True, slots=True)
class Kind:
    """A class that files may hold.

    Attributes
    ----------
    home : str
        Its module.
    rows : tuple of str
        Fields that hold rows of the data, which a file has only with its data. ``("*",)``: the
        object as a whole does.
    by_json : bool
        Whether it says by `to_json` what a file keeps of it, and `from_json` checks that.
    condensed : bool
        Whether it can say the same in less, by `condensed`, for files without their data.
    """

    home: str
    rows: tuple[str, ...] = ()
    by_json: bool = False
    condensed: bool = False


_WHOLE = (ALL,)
_DESIGN = ("y", "X", "weights", "index", "lookup", "clusters")

KINDS: dict[str, Kind] = {
    # Results and what they are made of.
    "ArmsResults": Kind("cstonet.analyses.arms.results"),
    "DoseResults": Kind("cstonet.analyses.doses.results"),
    "MediationResults": Kind("cstonet.analyses.mediation.results"),
    "FitRecord": Kind("cstonet.analyses.results"),
    "Recipe": Kind("cstonet.analyses.recipe"),
    "Call": Kind("cstonet.analyses.recipe", by_json=True),
    "ArmsAnalysis": Kind("cstonet.analyses.arms.analysis"),
    "DoseAnalysis": Kind("cstonet.analyses.doses.analysis"),
    "MediationAnalysis": Kind("cstonet.analyses.mediation.analysis"),
    "ArmFacts": Kind("cstonet.analyses.arms.facts"),
    "DoseFacts": Kind("cstonet.analyses.doses.facts"),
    "LargestImbalance": Kind("cstonet.reporting.balance_note"),
    # Data.
    "Design": Kind("cstonet.data.design", _DESIGN),
    "MediationDesign": Kind("cstonet.analyses.mediation.reading", _DESIGN),
    "Mediators": Kind("cstonet.analyses.mediation.reading", ("values",)),
    "Arms": Kind("cstonet.data.treatment", ("codes",)),
    "Dose": Kind("cstonet.data.treatment", ("values",)),
    "Units": Kind("cstonet.data.units"),
    "CovariateSpec": Kind("cstonet.data.covariates", by_json=True),
    "Received": Kind("cstonet.data.received", by_json=True),
    "CovariateGaps": Kind("cstonet.data.gaps"),
    "Incomplete": Kind("cstonet.data.gaps", ("missing",)),
    "Lookup": Kind("cstonet.data.lookup", _WHOLE),
    # Settings.
    "FitOptions": Kind("cstonet.settings.options"),
    "SearchOptions": Kind("cstonet.settings.options"),
    "TrainingOptions": Kind("cstonet.settings.training_options"),
    "StageOptions": Kind("cstonet.settings.training_options"),
    "SamplerOptions": Kind("cstonet.settings.training_options"),
    "PriorOptions": Kind("cstonet.settings.training_options"),
    "OptimizerOptions": Kind("cstonet.settings.training_options"),
    "Plan": Kind("cstonet.settings.plan"),
    "Architecture": Kind("cstonet.settings.plan"),
    # Networks.
    "FittedNetworks": Kind("cstonet.crossfit.fitted"),
    "Fold": Kind("cstonet.crossfit.fold", condensed=True),
    "Split": Kind("cstonet.network.training_data", ("marks",)),
    "Deal": Kind("cstonet.network.training_data", ("labels", "trainable")),
    "NetworkSpec": Kind("cstonet.network.spec"),
    "Block": Kind("cstonet.network.spec"),
    "TrainedNetwork": Kind("cstonet.network.trained"),
    "TrainedStart": Kind("cstonet.network.trained"),
    "Backbone": Kind("cstonet.network.backbone"),
    "LinearPredictor": Kind("cstonet.network.backbone"),
    "Mixture": Kind("cstonet.network.mixture"),
    "Scaling": Kind("cstonet.network.scaling"),
    "StandardisedColumns": Kind("cstonet.network.scaling", _WHOLE),
    "Structure": Kind("cstonet.network.structure"),
    "Adjustment": Kind("cstonet.search.scope"),
    "Inclusion": Kind("cstonet.search.inclusion"),
    "Move": Kind("cstonet.search.search"),
    "Selection": Kind("cstonet.search.selection"),
    "MediationNetworks": Kind("cstonet.analyses.mediation.networks"),
    "FoldModels": Kind("cstonet.analyses.mediation.models"),
    "MediatorUnits": Kind("cstonet.analyses.mediation.models"),
    "MediatorLaw": Kind("cstonet.analyses.mediation.law"),
    # Imputation.
    "GapData": Kind("cstonet.imputation.gap_data"),
    "Entries": Kind("cstonet.imputation.conditionals", _WHOLE),
    "Variable": Kind("cstonet.imputation.conditionals", ("missing",)),
    "ImputationModel": Kind("cstonet.imputation.candidates"),
    "CovariateModel": Kind("cstonet.imputation.conditionals"),
    "MissingnessModel": Kind("cstonet.imputation.missingness", ("treatment",)),
    "Regression": Kind("cstonet.imputation.regressions"),
    # Estimates, and what they are made of.
    "Effects": Kind("cstonet.estimators.aipw", ("influence",)),
    "MediationEffects": Kind("cstonet.estimators.mediation"),
    "ArmsNuisances": Kind("cstonet.analyses.arms.estimation", _WHOLE),
    "CrossFit": Kind("cstonet.estimators.repetitions", _WHOLE),
    "Nuisances": Kind("cstonet.estimators.nuisances", _WHOLE),
    "Imputations": Kind("cstonet.estimators.imputations", _WHOLE),
    "Overlap": Kind("cstonet.estimators.support", _WHOLE),
    "DoseModels": Kind("cstonet.analyses.doses.estimation"),
    "DoseNuisances": Kind("cstonet.estimators.dose_nuisances", _WHOLE),
    "ResidualDensity": Kind("cstonet.estimators.residual_density"),
    "Dispersion": Kind("cstonet.estimators.dispersion", ("values", "terms")),
    "MediationNuisances": Kind("cstonet.estimators.mediation", _WHOLE),
}


def class_of(name: str) -> type[Any]:
    """The class that a name in a file stands for, which must be one of `KINDS`."""
    found: type[Any] = getattr(import_module(KINDS[name].home), name)
    return found


def name_of(value: object) -> str:
    """The name under which a file knows the class of an object.

    Raises
    ------
    NotAvailableError
        If files do not know it.
    """
    cls = type(value)
    kind = KINDS.get(cls.__name__)
    if kind is None or kind.home != cls.__module__:
        raise NotAvailableError(
            f"A {cls.__name__} cannot be saved: files hold what cs.fit returns, made of plain "
            "numbers, texts and arrays."
        )
    return cls.__name__
