"""Data sets that ask for more than overlap and a few strong confounders, with every truth.

Rare arms, treatments that covariates determine, many medium confounders, outcomes that all
covariates act on, effects that differ by arm, rich outcome functions. The coefficients of a design
are fixed; covariates, treatment and outcome are drawn anew by each seed. `load_design` gives a
data set; the twins of real data are in support_twins.py and have the same shape.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from common import FloatArray, Problem
from loaders import frame_of, true_nuisances
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from cstonet.estimators import estimate_effects, estimate_target

# Rows that a population's truths are averaged over, and how many of them exist at a time. The
# Monte-Carlo error is 1/14 of a standard error at n = 2000 or less.
_POPULATION, _CHUNK = 400_000, 20_000
_ENTROPY = 15


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SupportProblem(Problem):
    """A data set with the truth about every row.

    Parameters
    ----------
    mu : (n, 2) float64
        Expected outcome of each row without and with treatment, μ_a(x_i).
    propensity : (n,) float64
        P(A = 1 | x_i); 0 or 1 where covariates determine the treatment.
    truths, sample_truths : dict of float
        "ATE", "ATT", "POM[0]", "POM[1]" of the population and of the rows.
    oracles : dict of (float, float)
        Estimate and standard error with the true nuisances, by name of the effect; empty where
        covariates determine the treatment.
    """

    mu: FloatArray
    propensity: FloatArray
    truths: dict[str, float]
    sample_truths: dict[str, float]
    oracles: dict[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Covariates of n rows and what follows from them.

    Parameters
    ----------
    covariates : DataFrame, n rows
        Named covariates.
    mu : (n, 2) float64
        Expected outcomes μ_0(x), μ_1(x).
    propensity : (n,) float64
        P(A = 1 | x).
    """

    covariates: pd.DataFrame
    mu: FloatArray
    propensity: FloatArray


@dataclass(frozen=True, slots=True)
class Design:
    """How data sets of one kind are drawn.

    Parameters
    ----------
    title : str
        What the report calls it.
    n : int
        Rows of a data set.
    rows : callable
        ``rows(rng, n)`` draws covariates.
    outcome : {"gaussian", "binomial"}
        Family of the outcome around its mean.
    noise : float
        Standard deviation of a Gaussian outcome.
    treated : int or None
        Treated units, where exactly so many are drawn at random; else each by its propensity.
    """

    title: str
    n: int
    rows: Callable[[np.random.Generator, int], Rows]
    outcome: Literal["gaussian", "binomial"] = "gaussian"
    noise: float = 1.0
    treated: int | None = None


def stream(design: str, seed: int) -> np.random.Generator:
    """Random numbers of one data set; seed -1 is that of the population."""
    return np.random.default_rng([_ENTROPY, zlib.crc32(design.encode()), seed + 1])


def load_design(name: str, seed: int) -> SupportProblem:
    """The data set of a design in `DESIGNS` that belongs to this seed."""
    design, rng = DESIGNS[name], stream(name, seed)
    rows = design.rows(rng, design.n)
    if design.treated is None:
        treat = (rng.random(design.n) < rows.propensity).astype(np.int64)
    else:
        treat = np.zeros(design.n, np.int64)
        treat[rng.choice(design.n, design.treated, replace=False)] = 1
    mean = rows.mu[np.arange(design.n), treat]
    if design.outcome == "binomial":
        y = (rng.random(design.n) < mean).astype(np.float64)
    else:
        y = mean + design.noise * rng.standard_normal(design.n)
    return problem_of(y, treat, rows, population_truths(name))


def problem_of(
    y: FloatArray, treat: NDArray[np.int64], rows: Rows, truths: dict[str, float]
) -> SupportProblem:
    """The data set made of these rows, with the rows' own truths and the oracle's estimates."""
    tau = rows.mu[:, 1] - rows.mu[:, 0]
    oracles = oracle_effects(y, treat, rows.mu, rows.propensity)
    return SupportProblem(
        data=frame_of(y, treat, rows.covariates),
        sample_ate=float(tau.mean()),
        ate=truths["ATE"],
        tau=tau,
        oracle=oracles.get("ATE"),
        mu=rows.mu,
        propensity=rows.propensity,
        truths=truths,
        sample_truths=truths_of_rows(rows.mu, treat.astype(np.float64)),
        oracles=oracles,
    )


def truths_of_rows(mu: FloatArray, treated: FloatArray) -> dict[str, float]:
    """Mean effects and outcomes of rows, (n, 2), which count as treated with these weights, (n,).

    The weights are received treatments for the truths of a data set, propensities for those of
    its population.
    """
    tau = mu[:, 1] - mu[:, 0]
    return {
        "ATE": float(tau.mean()),
        "ATT": float(treated @ tau / treated.sum()),
        "POM[0]": float(mu[:, 0].mean()),
        "POM[1]": float(mu[:, 1].mean()),
    }


@lru_cache
def population_truths(name: str) -> dict[str, float]:
    """Mean effects and outcomes in the population of a design, by averaging over many rows."""
    rng, mu, propensity = stream(name, -1), [], []
    for _ in range(_POPULATION // _CHUNK):
        rows = DESIGNS[name].rows(rng, _CHUNK)
        mu.append(rows.mu)
        propensity.append(rows.propensity)
    return truths_of_rows(np.concatenate(mu), np.concatenate(propensity))


def oracle_effects(
    y: FloatArray, treat: NDArray[np.int64], mu: FloatArray, propensity: FloatArray
) -> dict[str, tuple[float, float]]:
    """AIPW with the true nuisances: estimates and standard errors of ATE, ATT and both means."""
    if not ((propensity > 0) & (propensity < 1)).all():
        return {}
    nuisances = true_nuisances(y, treat, mu, propensity)
    arms = estimate_effects(nuisances, levels=(0, 1), clip=0.0, variance="influence")
    treated = estimate_target(nuisances, "ATT", (1, 0), clip=0.0, name="ATT")
    return {
        name: (float(estimate), float(se))
        for effects in (arms, treated)
        for name, estimate, se in zip(
            effects.names, effects.estimates, effects.standard_errors, strict=True
        )
    }


def normals(rng: np.random.Generator, n: int, p: int, correlation: float) -> FloatArray:
    """Standard normal columns (n, p), neighbours correlated: ρ^|j-k|."""
    X: FloatArray = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def named(X: FloatArray) -> pd.DataFrame:
    """The columns (n, p) as x1, …, xp."""
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(1, X.shape[1] + 1)])


def _means(mu0: FloatArray, tau: FloatArray | float) -> FloatArray:
    """Both arms' expected outcomes (n, 2)."""
    return np.column_stack([mu0, mu0 + tau])


def randomised(share: float) -> Callable[[np.random.Generator, int], Rows]:
    """Twenty covariates, three of them bent into the outcome, x1 changing the effect mildly."""

    def rows(rng: np.random.Generator, n: int) -> Rows:
        X = normals(rng, n, 20, 0.3)
        mu0 = np.tanh(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 2] * (X[:, 0] > 0)
        return Rows(named(X), _means(mu0, 1 + 0.3 * X[:, 0]), np.full(n, share))

    return rows


def by_category(rng: np.random.Generator, n: int) -> Rows:
    """Six categories, three of which are treated; outcome by category and two of five numbers."""
    code = rng.integers(0, 6, n)
    X = normals(rng, n, 5, 0.3)
    level = np.array([0.0, 3.0, -2.0, 5.0, 1.0, -4.0])[code]
    covariates = named(X)
    covariates.insert(0, "g", pd.Series(np.array(list("abcdef"))[code], dtype="category"))
    mu0 = level + X[:, 0] + np.sin(2 * X[:, 1])
    return Rows(covariates, _means(mu0, 1.0), np.isin(code, (1, 3, 4)).astype(np.float64))


def by_threshold(weights: tuple[float, ...]) -> Callable[[np.random.Generator, int], Rows]:
    """Ten covariates; treated are those whose weighted sum of the first ones is positive.

    The outcome bends in that sum around zero, which a smooth model can take for an effect.
    """

    def rows(rng: np.random.Generator, n: int) -> Rows:
        X = normals(rng, n, 10, 0.3)
        index = X[:, : len(weights)] @ np.array(weights)
        mu0 = 2 * np.tanh(1.5 * index) + X[:, 1] + np.sin(2 * X[:, 2])
        return Rows(named(X), _means(mu0, 1.0), (index > 0).astype(np.float64))

    return rows


def linear(
    outcome: FloatArray, treatment: FloatArray, correlation: float
) -> Callable[[np.random.Generator, int], Rows]:
    """Outcome and log-odds of treatment linear in the covariates with these slopes; effect 1."""

    def rows(rng: np.random.Generator, n: int) -> Rows:
        X = normals(rng, n, len(outcome), correlation)
        return Rows(named(X), _means(X @ outcome, 1.0), expit(X @ treatment))

    return rows


def slopes(p: int, values: FloatArray, every: int = 1) -> FloatArray:
    """Slopes (p,) that are these for the first covariates, or for every so many-th one."""
    out = np.zeros(p)
    out[: every * len(values) : every] = values
    return out


def waves(k: int, mean: float, spread: float) -> FloatArray:
    """Fixed numbers (k,) between mean - spread and mean + spread, in no order that matters."""
    out: FloatArray = mean + spread * np.sin(1.0 + 2.3 * np.arange(k))
    return out


def by_arm(rng: np.random.Generator, n: int) -> Rows:
    """A covariate z drives the treatment and acts on the outcome of the treated only: slope 0.2."""
    X, z = normals(rng, n, 19, 0.3), rng.standard_normal(n)
    covariates = named(X)
    covariates.insert(0, "z", z)
    mu0 = X[:, 0] + 0.5 * X[:, 1] ** 2 + np.tanh(2 * X[:, 2])
    return Rows(covariates, _means(mu0, 1 + 0.2 * z), expit(-1.13 + 0.8 * z + 0.4 * X[:, 0]))


def rich(binary: bool) -> Callable[[np.random.Generator, int], Rows]:
    """Normal, binary and count covariates; ten act by slopes, squares, products, thresholds."""

    def rows(rng: np.random.Generator, n: int) -> Rows:
        latent = normals(rng, n, 22, 0.3)
        X = latent.copy()
        X[:, 8:15] = latent[:, 8:15] > np.linspace(-0.6, 0.6, 7)
        # Counts by quantiles of a geometric distribution with mean 1.
        X[:, 15:] = np.floor(-np.log1p(-ndtr(latent[:, 15:])) / np.log(2))
        x, b, c = X[:, :8], X[:, 8:15], np.minimum(X[:, 15:], 5)
        shape = (
            1.0 * x[:, 0]
            + 0.8 * (x[:, 1] ** 2 - 1)
            + 1.0 * x[:, 2] * b[:, 0]
            - 1.2 * (x[:, 3] > 0.5)
            + 0.7 * x[:, 0] * x[:, 1]
            + 0.6 * (c[:, 0] - 1)
            + 1.0 * b[:, 1] * (c[:, 1] > 1)
            + 0.8 * np.sin(2 * x[:, 4])
            - 0.7 * b[:, 2]
        )
        tau = 0.8 + 0.4 * x[:, 0] - 0.5 * b[:, 0]
        odds = 0.6 * x[:, 0] + 0.5 * (x[:, 1] ** 2 - 1) - 0.6 * (x[:, 3] > 0.5) + 0.5 * b[:, 1]
        mu = _means(shape, tau) if not binary else expit(_means(1.5 * shape, 1.5 * tau))
        return Rows(named(X), mu, expit(np.clip(odds, -2.5, 2.5)))

    return rows


_DECAY = 1 / np.arange(1.0, 201.0)

DESIGNS = {
    "rare-9": Design("randomised, 9 treated of 3000", 3000, randomised(0.003), treated=9),
    "rare-1pct": Design("randomised, 1 % of 3000", 3000, randomised(0.01), treated=30),
    "rare-2pct": Design("randomised, 2 % of 3000", 3000, randomised(0.02), treated=60),
    "rare-50pct": Design("randomised, half of 3000", 3000, randomised(0.5), treated=1500),
    "category": Design("treatment determined by a category", 1000, by_category),
    "threshold": Design("treatment determined by a threshold", 1000, by_threshold((1.0,))),
    "jointly": Design("treatment determined by two covariates", 1000, by_threshold((1.0, 1.0))),
    "thirty": Design(
        "thirty medium confounders, n=2000, p=100",
        2000,
        linear(
            slopes(100, waves(30, 0.18, 0.06), every=3),
            slopes(100, waves(30, 0.065, 0.02), every=3),
            0.3,
        ),
        noise=2.0,
    ),
    "approx-sparse": Design(
        "approximately sparse, n=1000, p=200", 1000, linear(0.4 * _DECAY, 0.4 * _DECAY, 0.5)
    ),
    "seven-weak": Design(
        "seven weak confounders, n=500, p=30",
        500,
        linear(slopes(30, waves(7, 0.12, 0.03), 4), slopes(30, waves(7, 0.2, 0.05), 4), 0.3),
    ),
    "linear-22": Design(
        "outcome linear in 22 covariates, R² 0.95, n=500",
        500,
        linear(waves(22, 0.65, 0.5), slopes(22, waves(6, 0.35, 0.1), 3), 0.3),
    ),
    "linear-100": Design(
        "outcome linear in 100 covariates, n=2000",
        2000,
        linear(waves(100, 0.2, 0.25), slopes(100, waves(12, 0.25, 0.1), 7), 0.3),
    ),
    "arm-slope": Design("effect by a covariate of the treatment, 28 % treated", 1000, by_arm),
    "rich-binary": Design("rich binary outcome, n=500, p=22", 500, rich(True), "binomial"),
    "rich-gaussian": Design("rich outcome, n=500, p=22", 500, rich(False)),
}
