"""Data sets for the benchmarks: the paper's simulations, and real covariates with known effects.

Each case is small and can be sent to another process, which makes or loads the data itself. The
files of the real data and where they come from are described by the SOURCE.txt beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import FloatArray, Problem
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from cstonet.datasets import Simulation, simulation1, simulation2
from cstonet.estimators import Nuisances, estimate_effects

SIMULATIONS: dict[str, Callable[..., Any]] = {
    "1": simulation1,
    "2": simulation2,
    "2-binomial": lambda **sizes: simulation2(outcome="binomial", **sizes),
    "2-null": lambda **sizes: simulation2(null_effect=True, **sizes),
}


def truths_of(sim: Simulation) -> dict[str, Any]:
    """What is known about a simulated data set, as the fields of a `Problem`."""
    return {
        "sample_ate": sim.sample_ate,
        "ate": sim.ate,
        "tau": sim.tau,
        "oracle": sim.oracle_ate(),
        "supports": {
            "outcome": frozenset(sim.outcome_support),
            "treatment": frozenset(sim.treatment_support),
        },
    }


@dataclass(frozen=True, slots=True)
class SimulationCase:
    """One data set of a simulation: its name in `SIMULATIONS`, sizes and seed."""

    simulation: str
    n: int
    p: int
    seed: int

    @property
    def group(self) -> str:
        """Simulation and sizes."""
        return f"simulation {self.simulation}, n={self.n}, p={self.p}"

    def load(self) -> Problem:
        """Draw the data."""
        sim = SIMULATIONS[self.simulation](n=self.n, p=self.p, seed=self.seed)
        return Problem(data=sim.data, **truths_of(sim))


# The columns of the pairs' file that are no covariates: identifiers, weights (which define the
# treatment), outcomes, and states and places of birth, of which the regions are kept. Birth order
# is added back as one column.
TWINS_NOT_COVARIATES = [
    *("cevae_row", "dbirwt_0", "dbirwt_1", "mort_0", "mort_1", "infant_id_0", "infant_id_1"),
    *("brstate", "stoccfipb", "mplbir", "bord_0", "bord_1"),
]
_TWINS_ENTROPY = 77


def load_twins(folder: Path, draw: int) -> Problem:
    """4821 pairs of twins: treatment is to be the heavier one, the outcome is death in a year.

    The paper draws which twin is observed: Bernoulli(σ(w_o'x + w_h (z/10 - 0.1))) with
    w_o ~ N(0, 0.1 I), w_h ~ N(5, 0.1), z the category of gestation and x the other 45 covariates.
    These are standardised here for the draw: raw codes such as a year of about 90 would treat
    everybody or nobody. Birth order is that of the heavier twin, a property of the pair: the order
    of the observed twin would be a consequence of the draw.
    """
    pairs = pd.read_csv(folder / "twins_lt2kg_complete_4821.csv.gz")
    covariates = pairs.drop(columns=TWINS_NOT_COVARIATES, errors="ignore").astype(np.float64)
    covariates["bord"] = pairs["bord_1"].astype(np.float64)
    rng = np.random.default_rng(np.random.SeedSequence([_TWINS_ENTROPY, draw]))
    others = standardised(covariates.drop(columns="gestat10").to_numpy())
    w_o = rng.normal(0.0, np.sqrt(0.1), others.shape[1])
    w_h = rng.normal(5.0, np.sqrt(0.1))
    gestation = covariates["gestat10"].to_numpy()
    propensity = expit(others @ w_o + w_h * (gestation / 10 - 0.1))
    treat = (rng.random(len(pairs)) < propensity).astype(np.int64)
    y0, y1 = (pairs[name].to_numpy(np.float64) for name in ("mort_0", "mort_1"))
    y = np.where(treat == 1, y1, y0)
    data = frame_of(y, treat, covariates)
    risks = np.column_stack([_logistic_risk(covariates.to_numpy(), y_a) for y_a in (y0, y1)])
    return Problem(
        data=data,
        sample_ate=float(np.mean(y1 - y0)),
        oracle=aipw(y, treat, risks, propensity),
    )


def load_acic2016(folder: Path, number: int) -> Problem:
    """ACIC 2016: 58 real covariates, three of them factors; simulated treatment and outcome."""
    covariates = _factors(pd.read_csv(folder / "x.csv.gz"))
    truth = pd.read_csv(folder / f"zymu_{number}.csv.gz")
    treat = truth["z"].to_numpy(np.int64)
    y = np.where(treat == 1, truth["y1"], truth["y0"]).astype(np.float64)
    tau = (truth["mu1"] - truth["mu0"]).to_numpy(np.float64)
    return Problem(frame_of(y, treat, covariates), sample_ate=float(tau.mean()), tau=tau)


def load_acic2019(folder: Path, number: int, kind: str = "high") -> Problem:
    """ACIC 2019, high- or low-dimensional test sets: population and rows' effects.

    185 covariates and 2000 rows, or up to 22 covariates and about 500 rows.
    """
    observed = pd.read_csv(folder / kind / f"testdataset{number}.csv.gz")
    truth = pd.read_csv(folder / kind / f"testdataset{number}_cf.csv.gz")
    # Some files call the rows' means EY1_i and EY0_i.
    mu1, mu0 = (truth.filter(regex=f"^EY{a}(_i)?$").iloc[:, 0].to_numpy(np.float64) for a in (1, 0))
    tau = mu1 - mu0
    data = frame_of(
        observed["Y"].to_numpy(np.float64),
        observed["A"].to_numpy(np.int64),
        observed.drop(columns=["Y", "A"]),
    )
    return Problem(data, sample_ate=float(tau.mean()), ate=float(truth["ATE"].iloc[0]), tau=tau)


def load_ihdp(folder: Path, number: int) -> Problem:
    """IHDP: 25 real covariates of 747 infants, simulated outcomes."""
    table = pd.read_csv(folder / f"ihdp_npci_{number}.csv.gz", header=None).to_numpy(np.float64)
    # treatment, y_factual, y_cfactual, mu0, mu1, x1, …, x25
    tau = table[:, 4] - table[:, 3]
    covariates = pd.DataFrame(table[:, 5:], columns=[f"x{j}" for j in range(1, 26)])
    data = frame_of(table[:, 1], table[:, 0].astype(np.int64), covariates)
    return Problem(data, sample_ate=float(tau.mean()), tau=tau)


@dataclass(frozen=True, slots=True)
class Family:
    """A collection of data sets of one kind.

    Parameters
    ----------
    load : callable
        ``load(folder, number)`` gives a data set.
    numbers : range
        The data sets (or draws) of a full run.
    title : str
        What the report calls it.
    folder : str
        Where its files are, within the folder of all families.
    """

    load: Callable[[Path, int], Problem]
    numbers: range
    title: str
    folder: str


FAMILIES = {
    # Draws that nobody looked at while the package's options were chosen.
    "twins": Family(load_twins, range(101, 121), "Twins, 20 draws of the treatment", "twins"),
    "acic2019": Family(
        load_acic2019, range(1, 5), "ACIC 2019, high-dimensional test sets", "acic2019"
    ),
    "acic2019-low": Family(
        partial(load_acic2019, kind="low"),
        range(1, 5),
        "ACIC 2019, low-dimensional test sets",
        "acic2019",
    ),
    "acic2016": Family(load_acic2016, range(1, 6), "ACIC 2016", "acic2016"),
    "ihdp": Family(load_ihdp, range(1, 26), "IHDP", "ihdp"),
}


def frame_of(y: FloatArray, treat: NDArray[np.int64], covariates: pd.DataFrame) -> pd.DataFrame:
    """Frame with columns y, treat and the covariates."""
    head = pd.DataFrame({"y": y, "treat": treat}, index=covariates.index)
    return pd.concat([head, covariates], axis=1)


def _factors(covariates: pd.DataFrame) -> pd.DataFrame:
    """The same frame with its columns of strings as categories."""
    strings = [c for c in covariates if not pd.api.types.is_numeric_dtype(covariates[c])]
    return covariates.astype(dict.fromkeys(strings, "category"))


def standardised(X: FloatArray) -> FloatArray:
    """Columns (n, p) with mean 0 and standard deviation 1; constant columns become 0."""
    spread = X.std(axis=0)
    centred: FloatArray = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return centred


def _logistic_risk(X: FloatArray, y: FloatArray) -> FloatArray:
    """Fitted risks (n,) of a logistic regression on standardised columns (n, p).

    Fitted to the outcomes of all pairs under one treatment, which no estimator gets to see: as
    near to E[Y_a | x] as twins allow.
    """
    design = np.column_stack([np.ones(len(y)), standardised(X)])
    risk: FloatArray = expit(design @ ridge_logistic(design, y))
    return risk


def ridge_logistic(design: FloatArray, y: FloatArray) -> FloatArray:
    """Coefficients (k,) of a logistic regression, held in place by a ridge of unit prior variance.

    Parameters
    ----------
    design : (n, k) float64
        Ones, which are not penalised, and standardised columns.
    y : (n,) float64
        Outcomes, 0 or 1.
    """

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        eta = design @ beta
        slopes = np.r_[0.0, beta[1:]]
        value = np.logaddexp(0, eta).sum() - y @ eta + slopes @ slopes / 2
        return float(value), design.T @ (expit(eta) - y) + slopes

    coefficients: FloatArray = minimize(
        loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B"
    ).x
    return coefficients


def aipw(
    y: FloatArray, treat: NDArray[np.int64], mu: FloatArray, propensity: FloatArray
) -> tuple[float, float]:
    """AIPW with these nuisances: estimate and standard error of the mean effect."""
    nuisances = true_nuisances(y, treat, mu, propensity)
    effects = estimate_effects(nuisances, levels=(0, 1), clip=0.0, variance="influence")
    position = effects.names.index("ATE")
    return float(effects.estimates[position]), float(effects.standard_errors[position])


def true_nuisances(
    y: FloatArray, treat: NDArray[np.int64], mu: FloatArray, propensity: FloatArray
) -> Nuisances:
    """Known means (n, 2) and propensities (n,) as what the estimators take."""
    return Nuisances(
        y=y,
        treatment=treat,
        mu=mu,
        propensity=np.column_stack([1 - propensity, propensity]),
        weights=None,
        fold=np.zeros(len(y), np.int64),
    )
