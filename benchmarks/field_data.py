"""DoubleML's own simulations: an effect of 0.5 with 20 covariates, and three arms.

The designs are written here from their documentation and drawn with seeds of their own, so
that results do not depend on an installed DoubleML; a test compares them with it, draw by draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from common import Estimate, FloatArray, Problem, Record
from loaders import aipw, frame_of
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from support_data import normals, stream

from cstonet.estimators import Nuisances, estimate_effects

IRM_ROWS, IRM_COVARIATES, IRM_EFFECT = 500, 20, 0.5

ARMS_ROWS, ARMS_COVARIATES = 500, 5
# Arms besides the reference, each with the same share of the rows that are not in the reference.
ARMS_LEVELS = 2
ARMS_NAMES = ("a", "b", "c")
# Nodes of the numerical integrals, and how far out the residual of the latent dose is followed.
_NODES, _REACH = 61, 8.0


@dataclass(frozen=True, slots=True, eq=False)
class ArmsProblem(Problem):
    """A data set with several arms; `treat` of its data holds their names.

    Parameters
    ----------
    arms : (n,) int64
        Number of each row's arm; 0 is the reference.
    truths : dict of float
        Effects against the reference by the package's names of them, such as "ATE[b-a]".
    published_truths : dict of float
        What the published protocol takes for the same effects.
    oracles : dict of (float, float)
        Estimates with the true nuisances, and their standard errors.
    """

    arms: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    truths: dict[str, float] = field(default_factory=dict)
    published_truths: dict[str, float] = field(default_factory=dict)
    oracles: dict[str, tuple[float, float]] = field(default_factory=dict)


def load_irm(seed: int) -> Problem:
    """A draw of DoubleML's ``make_irm_data`` with 500 rows, 20 covariates and an ATE of 0.5."""
    rng = stream("irm", seed)
    X = normals(rng, IRM_ROWS, IRM_COVARIATES, 0.5)
    return irm_problem(X, rng.random(IRM_ROWS), rng.standard_normal(IRM_ROWS))


def irm_problem(X: FloatArray, uniform: FloatArray, noise: FloatArray) -> Problem:
    """DoubleML's interactive regression model, given its random numbers.

    A unit is treated if σ(c_d x'β) exceeds a uniform number, and y = d (θ + c_y x'β) + ζ, where
    β_j = j⁻² and the constants make half of the variance of the outcome's and of the treatment's
    index explained.

    Parameters
    ----------
    X : (n, p) float64
        Covariates, normal with correlations 0.5^|j-k|.
    uniform, noise : (n,) float64
        Uniform on (0, 1), and standard normal.
    """
    p = X.shape[1]
    beta = 1.0 / np.arange(1, p + 1) ** 2
    gaps = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    unit = X @ beta / np.sqrt(beta @ 0.5**gaps @ beta)  # variance 1
    propensity = expit(np.pi / np.sqrt(3) * unit)
    treat = (propensity > uniform).astype(np.int64)
    tau = IRM_EFFECT + unit
    y = treat * tau + noise
    mu = np.column_stack([np.zeros(len(y)), tau])
    return Problem(
        frame_of(y, treat, pd.DataFrame(X, columns=[f"x{j}" for j in range(1, p + 1)])),
        sample_ate=float(tau.mean()),
        ate=IRM_EFFECT,
        tau=tau,
        oracle=aipw(y, treat, mu, propensity),
    )


def load_arms(seed: int) -> ArmsProblem:
    """A draw of DoubleML's ``make_irm_data_discrete_treatments``: 500 rows, linear, three arms."""
    rng = stream("multi-arm", seed)
    X = rng.standard_normal((ARMS_ROWS, ARMS_COVARIATES))
    noise, residual = np.sqrt(5.0) * rng.standard_normal(ARMS_ROWS), rng.standard_normal(ARMS_ROWS)
    return arms_problem(X, noise, residual, rng.random(ARMS_ROWS))


def arms_problem(
    X: FloatArray, noise: FloatArray, residual: FloatArray, uniform: FloatArray
) -> ArmsProblem:
    """DoubleML's design with discrete levels of a continuous treatment, given its random numbers.

    Half of the rows are in the reference. The others are in arm b or c by whether a latent dose
    D = m(x) + ε is below or above its median, and their outcome rises by f(D). The f is that of
    DoubleML's code, which its documentation gives otherwise.

    The effect of an arm is E f(D) given the arm and x, averaged over all x, with the median that
    divided the arms of this data set: it moves the effect of arm b by half a standard error.
    DoubleML's protocol takes E f(D) given the arm for the truth, thus over the x of that arm, and
    the same median in all data sets: another number, recorded beside.

    Parameters
    ----------
    X : (n, p) float64
        Covariates, standard normal, of which four matter.
    noise, residual, uniform : (n,) float64
        Noise of the outcome (variance 5), ε (standard normal), and what assigns the reference.
    """
    index = dose_index(X)
    dose = index + residual
    inner = np.quantile(dose, np.linspace(0, 1, ARMS_LEVELS + 1)[1:-1])
    bounds = np.r_[-np.inf, inner, np.inf]
    arms = np.where(uniform >= 1 / ARMS_LEVELS, 1 + np.searchsorted(inner, dose, "right"), 0)
    base = 210 + 27.4 * X[:, 0] + 13.7 * X[:, 1:4].sum(axis=1)
    y = base + np.where(arms > 0, dose_effect(dose), 0.0) + noise
    gains, shares = arm_gains(index, bounds)
    names = np.array(ARMS_NAMES)[arms]
    covariates = pd.DataFrame(X, columns=[f"x{j}" for j in range(1, X.shape[1] + 1)])
    data = pd.concat([pd.DataFrame({"y": y, "treat": names}), covariates], axis=1)
    truths = arm_truths(bounds)
    effect = next(iter(truths))
    sample = {name: float(gain.mean()) for name, gain in zip(truths, gains.T, strict=True)}
    oracles = _arms_oracle(y, arms, base, gains, shares)
    return ArmsProblem(
        data=data,
        sample_ate=sample[effect],
        ate=truths[effect],
        oracle=oracles[effect],
        arms=arms.astype(np.int64),
        truths=truths,
        published_truths=published_arm_truths(),
        oracles=oracles,
    )


def dose_index(X: FloatArray) -> FloatArray:
    """The mean (n,) of the latent dose given the covariates (n, p)."""
    out: FloatArray = 0.3 * (X[:, :4] @ np.array([-1.0, 0.5, -0.25, -0.1]))
    return out


def dose_effect(dose: FloatArray) -> FloatArray:
    """What a latent dose adds to the outcome of a unit that is not in the reference."""
    out: FloatArray = 15 * expit(dose + 1.2 * np.cos(dose)) - 2
    return out


def arm_gains(index: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E f(D) given arm and index, and the arms' shares among units not in the reference.

    Parameters
    ----------
    index : (n,) float64
        Mean of the latent dose of each unit.
    bounds : (levels + 1,) float64
        Doses between which each arm lies, from -∞ to ∞.

    Returns
    -------
    gains, shares : (n, levels) float64
        By numerical integration over the dose's residual.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    gains, shares = np.empty((2, len(index), len(bounds) - 1))
    for k in range(len(bounds) - 1):
        low, high = np.clip([bounds[k] - index, bounds[k + 1] - index], -_REACH, _REACH)
        half = (high - low)[:, None] / 2
        residual = (high + low)[:, None] / 2 + half * nodes
        density = half * weights * norm.pdf(residual)
        shares[:, k] = density.sum(axis=1)
        gains[:, k] = (density * dose_effect(index[:, None] + residual)).sum(axis=1)
    return gains / shares, shares / shares.sum(axis=1, keepdims=True)


def arm_truths(bounds: FloatArray) -> dict[str, float]:
    """Effects of the arms between these doses against the reference, in the population."""
    index, weights = _indices()
    return _by_effect(weights @ arm_gains(index, bounds)[0])


@lru_cache
def published_arm_truths() -> dict[str, float]:
    """What DoubleML's protocol takes for the effects: means over the units of each arm."""
    index, weights = _indices()
    # The dose of a unit drawn at random is normal; its quantiles divide the arms.
    quantiles = norm.ppf(np.linspace(0, 1, ARMS_LEVELS + 1))
    gains, shares = arm_gains(index, np.sqrt(1 + _index_variance()) * quantiles)
    return _by_effect((weights @ (gains * shares)) / (weights @ shares))


def _indices() -> tuple[FloatArray, FloatArray]:
    """Nodes (61,) and weights of integrals over the index of a unit drawn at random."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return np.sqrt(_index_variance()) * nodes, weights / weights.sum()


def _by_effect(values: FloatArray) -> dict[str, float]:
    """Figures of the arms, (levels,), by the package's names of their effects."""
    reference, *others = ARMS_NAMES
    return {f"ATE[{arm}-{reference}]": float(v) for arm, v in zip(others, values, strict=True)}


def _index_variance() -> float:
    return float(np.sum(dose_index(np.eye(4)) ** 2))


def _arms_oracle(
    y: FloatArray,
    arms: NDArray[np.int64],
    base: FloatArray,
    gains: FloatArray,
    shares: FloatArray,
) -> dict[str, tuple[float, float]]:
    """AIPW with the true means and shares of the arms."""
    reference = 1 / ARMS_LEVELS
    nuisances = Nuisances(
        y=y,
        treatment=arms,
        mu=base[:, None] + np.column_stack([np.zeros(len(y)), gains]),
        propensity=np.column_stack([np.full(len(y), reference), (1 - reference) * shares]),
        weights=None,
        fold=np.zeros(len(y), np.int64),
    )
    effects = estimate_effects(
        nuisances, levels=ARMS_NAMES, clip=0.0, variance="influence", kind="multilevel"
    )
    found = zip(effects.names, effects.estimates, effects.standard_errors, strict=True)
    return {name: (float(v), float(se)) for name, v, se in found if name.startswith("ATE")}


def arms_estimate(problem: ArmsProblem, found: dict[str, Record], **extra: Any) -> Estimate:
    """Several effects as what the runner takes: the first leads, all are in the results file.

    Parameters
    ----------
    problem : ArmsProblem
        The data set.
    found : dict of dict
        "estimate", "se", "lower" and "upper" of each effect in `problem.truths`.
    **extra
        Further figures for the results file.
    """
    effects = {
        name: found[name]
        | {
            "truth": truth,
            "published_truth": problem.published_truths[name],
            "oracle": list(problem.oracles[name]),
        }
        for name, truth in problem.truths.items()
    }
    first = next(iter(effects.values()))
    return Estimate(
        ate=first["estimate"],
        se=first["se"],
        lower=first["lower"],
        upper=first["upper"],
        extra={"effects": effects, **extra},
    )
