"""Twins of LaLonde's data: real covariates, treatment and earnings from models fitted to them.

The rows are those of the participants of the NSW programme (Dehejia and Wahba's sample) and of a
comparison group from a survey, PSID or CPS, whose members mostly have nothing in common with
participants. Each data set draws as many rows with replacement, their treatments by a propensity
that was fitted to the real participation, and their earnings: none with a fitted probability, else
log-normal in kind, with residuals drawn from those of the fit. The effect is known for every row:
the programme helps those who earned little, and costs those something who earned much. So the
means over all rows are the population's truths, exactly.

The files are not part of this repository; SOURCE.txt beside them says where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from common import FloatArray
from loaders import ridge_logistic, standardised
from numpy.typing import NDArray
from scipy.special import expit
from support_data import Rows, SupportProblem, problem_of, stream, truths_of_rows

COVARIATES = ["age", "education", "black", "hispanic", "married", "nodegree", "re74", "re75"]
# Earnings around which asinh turns from straight to logarithmic, in dollars.
_BEND = 5000.0
# Members of the comparison group of 15 992 that the CPS twin keeps.
_CPS_MEMBERS = 4000


@dataclass(frozen=True, slots=True)
class Twin:
    """A twin's title in the report, the file of its comparison group and how many are kept."""

    title: str
    comparison: str
    members: int | None = None


TWINS = {
    "psid-twin": Twin("twin of NSW + PSID", "psid_controls"),
    "cps-twin": Twin("twin of NSW + CPS", "cps_controls", _CPS_MEMBERS),
}


@dataclass(frozen=True, slots=True, eq=False)
class Earnings:
    """The law of the earnings of N rows, by arm.

    Parameters
    ----------
    working : (N, 2) float64
        Probability of any earnings without and with treatment.
    log_level : (N, 2) float64
        Logarithm of positive earnings, without residual.
    residuals : (m,) float64
        What is added to it, each with probability 1/m.
    """

    working: FloatArray
    log_level: FloatArray
    residuals: FloatArray

    @property
    def means(self) -> FloatArray:
        """Expected earnings (N, 2): of the mixture, exactly."""
        out: FloatArray = self.working * np.exp(self.log_level) * np.exp(self.residuals).mean()
        return out

    def draw(
        self, rng: np.random.Generator, rows: NDArray[np.int64], arm: NDArray[np.int64]
    ) -> FloatArray:
        """Earnings of rows, (n,), under these treatments, (n,)."""
        residual = rng.choice(self.residuals, len(rows))
        level = np.exp(self.log_level[rows, arm] + residual)
        return np.where(rng.random(len(rows)) < self.working[rows, arm], level, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The rows that data sets are drawn from: covariates, propensities, earnings, truths."""

    covariates: pd.DataFrame
    propensity: FloatArray
    earnings: Earnings
    truths: dict[str, float]


def load_twin(name: str, seed: int, folder: Path) -> SupportProblem:
    """Draw number `seed` of a twin in `TWINS`; `folder` holds LaLonde's files."""
    population, rng = population_of(name, folder), stream(name, seed)
    size = len(population.covariates)
    rows = rng.integers(0, size, size)
    treat = (rng.random(size) < population.propensity[rows]).astype(np.int64)
    y = population.earnings.draw(rng, rows, treat)
    drawn = Rows(
        population.covariates.iloc[rows].reset_index(drop=True),
        population.earnings.means[rows],
        population.propensity[rows],
    )
    return problem_of(y, treat, drawn, population.truths)


@lru_cache
def population_of(name: str, folder: Path) -> Population:
    """Fit the models of a twin to the real rows."""
    twin = TWINS[name]
    nsw, comparison = (
        pd.read_csv(folder / f"{file}.csv.gz") for file in ("nsw_dw", twin.comparison)
    )
    if twin.members is not None:
        kept = stream(name, -1).choice(len(comparison), twin.members, replace=False)
        comparison = comparison.iloc[np.sort(kept)]
    # The programme's own controls show what participants earn without it: they serve the fit of
    # earnings, and are no rows of the twin.
    everybody = pd.concat([nsw, comparison], ignore_index=True)
    member = np.r_[nsw["treat"].to_numpy() == 1, np.ones(len(comparison), bool)]
    participant = everybody["treat"].to_numpy() == 1
    X = everybody[COVARIATES].astype(np.float64)
    features = _features(X)
    design = np.column_stack([np.ones(len(X)), features])
    coefficients = ridge_logistic(design[member], participant[member].astype(np.float64))
    earnings = _earnings(design, everybody["re78"].to_numpy(np.float64), ~participant, X)
    propensity: FloatArray = expit(design[member] @ coefficients)
    law = Earnings(earnings.working[member], earnings.log_level[member], earnings.residuals)
    return Population(
        covariates=X[member].reset_index(drop=True),
        propensity=propensity,
        earnings=law,
        truths=truths_of_rows(law.means, propensity),
    )


def _features(X: pd.DataFrame) -> FloatArray:
    """Standardised terms (N, k): covariates, squares, no earnings, and a few products."""
    past = [np.arcsinh(X[name].to_numpy() / _BEND) for name in ("re74", "re75")]
    none = [(X[name].to_numpy() == 0).astype(np.float64) for name in ("re74", "re75")]
    age, education, black, married = (
        X[name].to_numpy() for name in ("age", "education", "black", "married")
    )
    terms = [
        *(age, age**2, education, education**2, black, X["hispanic"], married, X["nodegree"]),
        *past,
        *none,
        *(value**2 for value in past),
        *(none[0] * none[1], black * none[0], married * none[0], education * past[0]),
    ]
    return standardised(np.column_stack(terms))


def _earnings(
    design: FloatArray, earned: FloatArray, untreated: NDArray[np.bool_], X: pd.DataFrame
) -> Earnings:
    """Fit both parts of the earnings (N,) to untreated rows, and let the treatment change them.

    The log-odds of working rise by 0.8 s, positive earnings by 0.35 s - 0.15 on the logarithmic
    scale, where s = exp(-mean past earnings / 6000) falls from 1 to 0 the more a person earned,
    and by 0.05 for those without a degree.
    """
    works = untreated & (earned > 0)
    odds = design @ ridge_logistic(design[untreated], (earned[untreated] > 0).astype(np.float64))
    # Least squares with a ridge of one row per coefficient: it only keeps rare terms in place.
    ridge = np.diag(np.r_[0.0, np.ones(design.shape[1] - 1)])
    gram = design[works].T @ design[works] + ridge
    log_level = design @ np.linalg.solve(gram, design[works].T @ np.log(earned[works]))
    need = np.exp(-(X["re74"] + X["re75"]).to_numpy() / 2 / 6000)
    gain = 0.35 * need - 0.15 + 0.05 * X["nodegree"].to_numpy()
    return Earnings(
        working=expit(np.column_stack([odds, odds + 0.8 * need])),
        log_level=np.column_stack([log_level, log_level + gain]),
        residuals=np.log(earned[works]) - log_level[works],
    )
