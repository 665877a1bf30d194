"""Figures that others published for the same protocols, as printed there, with their sources.

None of them is computed here. Where a peer of ours has the settings behind a published figure, the
figure carries the peer's name, and the report puts it beside what the peer does in our own run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_COVERAGE = "github.com/DoubleML/doubleml-coverage"


@dataclass(frozen=True, slots=True)
class Published:
    """What a published simulation says about one method.

    Parameters
    ----------
    learners : str
        How the source calls the method: learner of the outcome, learner of the treatment.
    coverage, length, mae : float
        Coverage of 95 % intervals, their mean length, and the mean absolute error.
    repetitions : int
        Data sets.
    peer : str
        Our peer with the same learners and settings, if there is one.
    """

    learners: str
    coverage: float
    length: float
    mae: float
    repetitions: int = 1000
    peer: str = ""

    @property
    def coverage_error(self) -> float:
        """Monte-Carlo standard error of the coverage."""
        return math.sqrt(self.coverage * (1 - self.coverage) / self.repetitions)


@dataclass(frozen=True, slots=True)
class PublishedEffect:
    """A published estimate on real data.

    Parameters
    ----------
    method : str
        Who estimated how.
    estimate, lower, upper : float
        Estimate and 95 % limits.
    source : str
        Where it is printed.
    """

    method: str
    estimate: float
    lower: float
    upper: float
    source: str


# Of another design, 1000 rows and 5 covariates: on the page, but in no table and no picture.
IRM_TUNED = (
    Published("tuned by DoubleML", 0.900, 0.373, 0.091, repetitions=500),
    Published("with its defaults", 0.988, 2.257, 0.389, repetitions=500),
)
_IRM_TUNED_FIGURES = "; ".join(
    f"{each.learners}, MAE {each.mae}, coverage {100 * each.coverage:.1f} %, length {each.length}"
    for each in IRM_TUNED
)
IRM_SOURCE = (
    f"{_COVERAGE}, results/irm/irm_ate_coverage.csv at commit 18b52a3 (DoubleML 0.11.5.dev55, "
    "10 August 2026); linear with logistic regression at commit 2fafde5 (DoubleML 0.10.0, June "
    '2025). What the source calls bias is the mean absolute error, and "MAE" here. LightGBM '
    "for both is also published on easier data, 1000 rows and 5 covariates: "
    f"{_IRM_TUNED_FIGURES} (500 data sets, results/irm/irm_ate_tune_coverage.csv at commit "
    "27fa90e, DoubleML 0.12.dev0, November 2025)"
)
IRM = (
    Published("lasso, forest", 0.959, 0.693, 0.134, peer="doubleml-lasso-forest"),
    Published("forest, forest", 0.951, 0.741, 0.143, peer="doubleml-forest"),
    Published("lasso, logistic regression", 0.963, 0.797, 0.158),
    Published("linear, logistic regression", 0.966, 0.807, 0.160, peer="doubleml-linear"),
    Published("forest, logistic regression", 0.970, 0.882, 0.168),
    Published("LightGBM, logistic regression", 0.974, 0.927, 0.176),
    Published("lasso, LightGBM", 0.970, 1.298, 0.251),
    Published("LightGBM, LightGBM", 0.978, 1.456, 0.283, peer="doubleml-lightgbm-slow"),
)
# An earlier run of the same pages had other settings, and shorter intervals that cover less.
IRM_FORMER_SOURCE = (
    f"{_COVERAGE}, results/irm/irm_ate_coverage.csv at commit 4e4b6e1, with scikit-learn's "
    "LogisticRegressionCV for the treatment"
)
IRM_FORMER = Published("lasso, cross-validated logistic regression", 0.935, 0.557, 0.123)

ARMS_SOURCE = (
    f"{_COVERAGE}, results/irm/apos_causal_contrast.csv at commit 066a447 (DoubleML 0.12.dev0, "
    "December 2025), both effects together"
)
ARMS = (
    Published("linear, logistic regression", 0.944, 1.37, 0.285, peer="doubleml-linear"),
    Published("LightGBM, logistic regression", 0.975, 6.46, 1.118),
    Published("linear, LightGBM", 0.985, 7.92, 1.307),
    Published("LightGBM, LightGBM", 0.956, 39.9, 8.670, peer="doubleml-lightgbm-slow"),
)
# LightGBM with hyperparameters tuned by DoubleML, results/irm/apos_tune_causal_contrast.csv.
ARMS_TUNED = Published("LightGBM, LightGBM, tuned", 0.945, 5.10, 1.146, repetitions=200)

# Bands over groups and over a curve of effects: (kind, learners, pointwise coverage and length,
# uniform coverage and length) of the shortest intervals with linear or forest learners.
BANDS_SOURCE = (
    f"{_COVERAGE}, results/irm/irm_gate_coverage.csv at commit 10de76d and "
    "results/irm/irm_cate_coverage.csv at commit 066a447, 1000 data sets of 500 rows each"
)
BANDS = (
    ("GATE", "linear, logistic regression", 0.957, 0.499, 0.998, 0.983),
    ("GATE", "forest, logistic regression", 0.951, 0.479, 0.998, 0.946),
    ("CATE", "linear, logistic regression", 0.951, 0.569, 0.996, 1.201),
    ("CATE", "forest, logistic regression", 0.949, 0.550, 0.998, 1.164),
)

_DOUBLEML_PENSION = "DoubleML's documentation, R: Impact of 401(k) on Financial Wealth"
PENSION = (
    PublishedEffect("DoubleML, lasso", 8850, 6222, 11478, _DOUBLEML_PENSION),
    PublishedEffect("DoubleML, forest", 8202, 6010, 10394, _DOUBLEML_PENSION),
    PublishedEffect("DoubleML, tree", 8415, 6092, 10739, _DOUBLEML_PENSION),
    PublishedEffect("DoubleML, xgboost", 8048, 5731, 10365, _DOUBLEML_PENSION),
)
CATTANEO = (
    PublishedEffect(
        "AIPW, linear and probit with squared age",
        -230.99,
        -282.36,
        -179.62,
        "Stata manual, teffects aipw; also the reference of statsmodels' own tests",
    ),
)
_WHAT_IF = (
    "Hernán and Robins, Causal Inference: What If, chapters 12 and 13, with the programs of "
    "github.com/remlapmot/cibookex-r"
)
NHEFS = (
    PublishedEffect("inverse probability weights", 3.44, 2.41, 4.47, _WHAT_IF),
    PublishedEffect("standardization", 3.5, 2.6, 4.5, _WHAT_IF),
)
EFFECTS = {"pension": PENSION, "cattaneo": CATTANEO, "nhefs": NHEFS}
