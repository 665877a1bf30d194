"""The field protocols: what each asks, its data sets, methods and sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from common import Problem
from field_data import load_arms, load_irm
from field_genes import load_genes
from field_peers import Question
from field_real import (
    SOURCES,
    Source,
    load_cattaneo,
    load_lalonde,
    load_nhefs,
    load_pension,
)
from loaders import FAMILIES
from metrics import Truth
from tuning import LAST_TUNING_SEED

# What estimates are compared with: a truth, an experiment, or what others published.
Benchmark: TypeAlias = Literal["truth", "experiment", "published"]
# ``load(folder, number)``; simulations need no folder.
Loader: TypeAlias = Callable[[Path, int], Problem]

_SIMULATED = range(LAST_TUNING_SEED + 1, LAST_TUNING_SEED + 501)
_FIELD = (
    "calibrated,ols,ols-interacted,statsmodels-aipw,doubleml-lasso,doubleml-lightgbm,"
    "doubleml-lightgbm-stopped,doubleml-forest,econml-forest,econml-forest-dr,bart,bcf"
)
_TREATED = "calibrated,ols,doubleml-lasso,doubleml-lightgbm,doubleml-forest,econml-forest-dr,bart"
_CHEAP = "calibrated,ols,ols-interacted,statsmodels-aipw,doubleml-linear"


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol.

    Parameters
    ----------
    title : str
        Heading in the report.
    about : str
        What the data are and what is asked, for the report.
    groups : dict of callable
        Loaders of the data sets by the group that their results have.
    numbers : range
        Data sets of a full run; on real data without draws, seeds of the fit.
    methods, quick_methods : str
        Methods of a full and of a quick run.
    question : {"ATE", "ATT", "arms"}
        Which effects.
    benchmark : {"truth", "experiment", "published"}
        What estimates are compared with.
    source : Source or None
        Files that are needed.
    quick : int
        Data sets of a quick run.
    errors : {"sample", "population"}
        The truth that errors are measured against.
    scaled : bool
        Whether errors are in standard deviations of the outcome, as data sets differ in units.
    unit : str
        What the outcome of real data is counted in.
    """

    title: str
    about: str
    groups: dict[str, Loader]
    numbers: range
    methods: str = _FIELD
    quick_methods: str = _CHEAP
    question: Question = "ATE"
    benchmark: Benchmark = "truth"
    source: Source | None = None
    quick: int = 1
    errors: Truth = "sample"
    scaled: bool = False
    unit: str = ""


def _without_folder(load: Callable[[int], Problem], folder: Path, number: int) -> Problem:  # noqa: ARG001
    return load(number)


def _without_number(load: Callable[[Path], Problem], folder: Path, number: int) -> Problem:  # noqa: ARG001
    return load(folder)


def _family(name: str, about: str, quick_methods: str = _CHEAP, scaled: bool = False) -> Protocol:
    """The protocol of a family of the loaders."""
    family = FAMILIES[name]
    return Protocol(
        title=family.title,
        about=about,
        groups={name: family.load},
        numbers=family.numbers,
        source=SOURCES[family.folder],
        quick_methods=quick_methods,
        errors="population" if scaled else "sample",
        scaled=scaled,
    )


def _real(
    name: str, title: str, about: str, unit: str, load: Callable[[Path], Problem]
) -> Protocol:
    """A protocol of one real data set with published estimates."""
    return Protocol(
        title=title,
        about=about,
        groups={name: partial(_without_number, load)},
        numbers=range(1, 4),
        benchmark="published",
        source=SOURCES[name],
        unit=unit,
    )


_SCALED_NOTE = "Errors and lengths are in standard deviations of the outcome."

PROTOCOLS = {
    "irm": Protocol(
        title="DoubleML's coverage simulation of the ATE",
        about="`make_irm_data` with 500 rows, 20 covariates and an effect of 0.5: the effect and "
        "the log-odds of treatment are linear, and the overlap is thin (log-odds with a standard "
        "deviation of 1.8).",
        groups={"irm": partial(_without_folder, load_irm)},
        numbers=_SIMULATED,
        methods="calibrated,ols,ols-interacted,statsmodels-aipw,doubleml-linear,doubleml-lasso,"
        "doubleml-forest,doubleml-lasso-forest,doubleml-lightgbm-slow,econml-forest-dr,bart,bcf",
        quick=2,
        errors="population",
    ),
    "multi-arm": Protocol(
        title="DoubleML's coverage simulation of three arms",
        about="`make_irm_data_discrete_treatments` with 500 rows, 5 covariates, linear: arms b and "
        "c lie below and above the median of a latent dose. The effect of an arm that the data "
        "identify averages over all covariates, given the median that divided the arms; the "
        "published protocol takes the mean over the units of the arm, and the population's median. "
        'Errors and "coverage" are those of the former; "of the published truth" is the latter. '
        "Both effects against the reference are pooled.",
        groups={"multi-arm": partial(_without_folder, load_arms)},
        numbers=_SIMULATED,
        methods="calibrated,ols,ols-interacted,doubleml-linear,doubleml-lasso,"
        "doubleml-lightgbm-slow",
        quick_methods="calibrated,ols,ols-interacted,doubleml-linear",
        question="arms",
        quick=2,
        errors="population",
    ),
    "acic2019": _family(
        "acic2019",
        "2000 rows, 185 covariates; effects of the population. " + _SCALED_NOTE,
        quick_methods="calibrated,ols,ols-interacted",
        scaled=True,
    ),
    "acic2019-low": _family(
        "acic2019-low",
        "About 500 rows and up to 22 covariates; effects of the population. " + _SCALED_NOTE,
        scaled=True,
    ),
    "acic2016": _family(
        "acic2016",
        "4802 rows and 58 real covariates, three of them factors; simulated treatments and "
        "outcomes; effects on the rows.",
        quick_methods="calibrated,ols,ols-interacted",
    ),
    "ihdp": _family(
        "ihdp", "747 infants, 25 real covariates, simulated outcomes; effects on the rows."
    ),
    "twins": _family(
        "twins",
        "4821 pairs of twins and their deaths; which twin is seen is drawn; 46 covariates; effects "
        "on the rows.",
        quick_methods="calibrated,ols,ols-interacted",
    ),
    "tcga-genes": Protocol(
        title="Gene expression, simulated treatments and outcomes",
        about="769 tumours, 6000 genes: more covariates than rows. Six genes drawn for each data "
        "set decide on treatment and outcome, two of them on both; bounded, nonlinear functions, "
        "propensities between 0.04 and 0.96. Truths are those of the tumours.",
        groups={"tcga-genes": load_genes},
        numbers=range(LAST_TUNING_SEED + 1, LAST_TUNING_SEED + 21),
        methods="calibrated,doubleml-lasso,doubleml-lightgbm,doubleml-lightgbm-stopped,"
        "doubleml-forest,doubleml-lasso-forest,econml-forest-dr,bart,bcf",
        quick_methods="calibrated,doubleml-forest",
        source=SOURCES["tcga"],
    ),
    "lalonde": Protocol(
        title="LaLonde: participants of an experiment, controls of a survey",
        about="185 participants of the NSW programme with the people of the PSID (2490) or the CPS "
        "(15 992) for controls, 8 covariates; the effect among participants (ATT) beside that of "
        "the experiment.",
        groups={
            "lalonde-psid": partial(
                _without_number, partial(load_lalonde, comparison="psid_controls")
            ),
            "lalonde-cps": partial(
                _without_number, partial(load_lalonde, comparison="cps_controls")
            ),
        },
        numbers=range(1, 4),
        methods=_TREATED,
        quick_methods="calibrated,ols,doubleml-linear",
        question="ATT",
        benchmark="experiment",
        source=SOURCES["lalonde"],
        unit="dollars of 1978",
    ),
    "pension": _real(
        "pension",
        "401(k) eligibility and net financial assets",
        "9915 households, 9 covariates.",
        "dollars",
        load_pension,
    ),
    "cattaneo": _real(
        "cattaneo",
        "Smoking mothers and birth weight",
        "4642 births, 5 covariates.",
        "grams",
        load_cattaneo,
    ),
    "nhefs": _real(
        "nhefs",
        "Smokers who stop and weight gain (NHEFS)",
        "1566 smokers, 9 covariates.",
        "kg",
        load_nhefs,
    ),
}


@dataclass(frozen=True, slots=True)
class FieldCase:
    """One data set: protocol, group within it, number, and folder of all data."""

    protocol: str
    group: str
    seed: int
    folder: Path

    def load(self) -> Problem:
        """Draw or read the data."""
        protocol = PROTOCOLS[self.protocol]
        source = protocol.source
        folder = self.folder if source is None else self.folder / source.folder
        return protocol.groups[self.group](folder, self.seed)
