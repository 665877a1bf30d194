"""Counts, as many as a Poisson law gives or more widely spread, with every truth."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from cstonet.datasets.simulation import (
    FORMULA,
    N_RELEVANT,
    FloatArray,
    Simulation,
    assemble_frame,
    check_options,
    frozen,
)
from cstonet.datasets.three_arms import CORRELATION, autoregressive
from cstonet.errors import OptionError
from cstonet.streams import DataStream

OUTCOME_SUPPORT = ("x1", "x2", "x3", "x4")
TREATMENT_SUPPORT = ("x1", "x3", "x5")

# Of log μ_0(x), and of log μ_1(x) - log μ_0(x): a constant, and slopes in x1, …, x5.
_CONTROL = 0.4, np.array([0.4, -0.3, 0.3, 0.0, 0.0])
_EFFECT = 0.3, np.array([0.0, 0.0, 0.0, 0.2, 0.0])


def counts(n: int = 2000, p: int = 50, *, seed: int = 0, overdispersion: float = 0.0) -> Simulation:
    """Counts whose logs of expectations are linear, and a treatment that multiplies them.

    The covariates are standard normal with correlation 0.5^|j-k|, and

        logit P(A = 1 | x) = 0.6 x1 - 0.5 x3 + 0.4 x5,
        log E(y | x, A) = 0.4 + 0.4 x1 - 0.3 x2 + 0.3 x3 + A (0.3 + 0.2 x4).

    Given these, y is Poisson, or negative binomial with variance μ + φ μ².

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    overdispersion : float
        φ, the variance of a gamma variable of mean one that multiplies the mean of each unit; 0 for
        Poisson.

    Returns
    -------
    Simulation
        Data and truths; `ratio` is the rate ratio in the population. Fit it with
        ``family="poisson"``.

    Examples
    --------
    >>> from cstonet.datasets import counts
    >>> sim = counts(n=200, seed=1)
    >>> round(sim.ratio, 4)
    1.412
    """
    check_options(n, p, seed, overdispersion=overdispersion)
    if overdispersion < 0:
        raise OptionError(f"overdispersion is a variance and cannot be negative: {overdispersion}")
    rng = DataStream.COUNTS.generator(seed)
    covariates = autoregressive(rng, p, n)
    relevant = covariates[:N_RELEVANT].T
    propensity: FloatArray = expit(relevant @ np.array([0.6, 0.0, -0.5, 0.0, 0.4]))
    treatment = (rng.random(n) < propensity).astype(np.int64)
    mu0, mu1 = (mean_outcome(relevant, arm) for arm in (0, 1))
    mean = np.where(treatment == 1, mu1, mu0)
    if overdispersion > 0:
        mean = mean * rng.gamma(1 / overdispersion, overdispersion, size=n)
    y = rng.poisson(mean).astype(np.float64)
    mean0, mean1 = population_mean(0), population_mean(1)
    return Simulation(
        data=assemble_frame(y, treatment, covariates),
        formula=FORMULA,
        name="counts",
        seed=int(seed),
        mu0=frozen(mu0),
        mu1=frozen(mu1),
        tau=frozen(mu1 - mu0),
        propensity=frozen(propensity),
        outcome_support=OUTCOME_SUPPORT,
        treatment_support=TREATMENT_SUPPORT,
        ate=mean1 - mean0,
        mean0=mean0,
    )


def mean_outcome(x: FloatArray, treatment: int) -> FloatArray:
    """μ_a(x), shape (n,), of units x (n, 5) under treatment a = 0 or 1."""
    constant, slopes = _log_mean(treatment)
    mean: FloatArray = np.exp(constant + x @ slopes)
    return mean


def population_mean(treatment: int) -> float:
    """E μ_a(x): the mean of a log-normal variable, exp(constant + variance / 2)."""
    constant, slopes = _log_mean(treatment)
    places = np.arange(N_RELEVANT)
    covariance = CORRELATION ** np.abs(np.subtract.outer(places, places))
    return float(np.exp(constant + slopes @ covariance @ slopes / 2))


def _log_mean(treatment: int) -> tuple[float, FloatArray]:
    """Constant and slopes (5,) of log μ_a(x)."""
    return _CONTROL[0] + treatment * _EFFECT[0], _CONTROL[1] + treatment * _EFFECT[1]
