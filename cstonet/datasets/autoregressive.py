"""Simulation 2 of the paper: AR(2) covariates and an outcome that is itself a small network."""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from cstonet.datasets.simulation import (
    FORMULA,
    N_RELEVANT,
    FloatArray,
    Simulation,
    assemble_frame,
    check_options,
    draw_units,
    frozen,
)
from cstonet.errors import OptionError
from cstonet.streams import DataStream

Outcome: TypeAlias = Literal["gaussian", "binomial"]

OUTCOME_SUPPORT = ("x1", "x2", "x3", "x4", "x5")
TREATMENT_SUPPORT = ("x1", "x2", "x3", "x5")

# Log-odds of a binary outcome per unit of the Gaussian outcome's mean: the risk is 0.50 without
# treatment and 0.68 with it, and stays within 0.18 and 0.82.
RISK_SCALE = 0.25

# The precision matrix: 1 on the diagonal, then these on the first and second off-diagonals.
_BANDS = (1.0, 0.5, 0.25)


def simulation2(
    n: int = 1000,
    p: int = 100,
    *,
    seed: int = 0,
    noise: float = 1.0,
    balanced: bool = True,
    outcome: Outcome = "gaussian",
    null_effect: bool = False,
) -> Simulation:
    """AR(2) covariates, five of them relevant; treatment and outcome are nested tanh functions.

    The covariates are Gaussian; their precision matrix has 1 on the diagonal, 0.5 and 0.25 beside
    it. With g1 = tanh(2 x1 + x4), g2 = tanh(2 x2 - 2 x3) and g3 = tanh(-2 x4 + x5),

        logit P(A = 1 | x) = tanh(-x1 - 2 x5) - g2,
        y = -4 tanh(tanh(-2 g1 + g2) - 2 A) + 2 tanh(2 tanh(g2 - 2 g3) - A) + σ ε,

    ε standard normal, one draw per row. Exchanging x for -x exchanges the arms, so half of the
    population is treated, and balancing the arms changes neither propensity nor mean effect.

    Parameters
    ----------
    n : int
        Number of units; the paper has 10 000 for training.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise; a binary outcome has none.
    balanced : bool
        Whether both arms have the same size, as in the paper.
    outcome : {"gaussian", "binomial"}
        "binomial" (not in the paper): y is 0 or 1, with a quarter of the mean above as its
        log-odds. mu0, mu1 are then risks, and effects are risk differences.
    null_effect : bool
        Whether treatment does nothing: μ_1 = μ_0 for every unit, the confounding stays.

    Returns
    -------
    Simulation
        Data and truths.

    Examples
    --------
    >>> from cstonet.datasets import simulation2
    >>> sim = simulation2(n=200, seed=1)
    >>> sim
    <simulation2: n=200, p=100, seed=1, ate=3.1593>
    >>> sim.treatment_support
    ('x1', 'x2', 'x3', 'x5')
    """
    check_options(n, p, seed, noise=noise)
    if outcome not in get_args(Outcome):
        allowed = " or ".join(map(repr, get_args(Outcome)))
        raise OptionError(f"outcome must be {allowed}, not {outcome!r}")
    rng = DataStream.SIMULATION2.generator(seed)
    units, treatment = draw_units(
        rng,
        n,
        lambda count: _autoregress(rng.standard_normal((N_RELEVANT, count)), p),
        lambda units: treatment_probability(units.T),
        balanced=balanced,
    )
    covariates = np.empty((p, n))
    covariates[:N_RELEVANT] = units
    rng.standard_normal(out=covariates[N_RELEVANT:])
    _autoregress(covariates, p, first=N_RELEVANT)

    signals = _signals(covariates.T)
    mu0 = _mean_outcome(signals, 0, outcome)
    mu1 = mu0.copy() if null_effect else _mean_outcome(signals, 1, outcome)
    mu = np.where(treatment == 1, mu1, mu0)
    if outcome == "binomial":
        y = (rng.random(n) < mu).astype(np.float64)
    else:
        y = mu + noise * rng.standard_normal(n)
    return Simulation(
        data=assemble_frame(y, treatment, covariates),
        formula=FORMULA,
        name="simulation2",
        seed=int(seed),
        mu0=frozen(mu0),
        mu1=frozen(mu1),
        tau=frozen(mu1 - mu0),
        propensity=frozen(treatment_probability(covariates.T)),
        outcome_support=OUTCOME_SUPPORT,
        treatment_support=TREATMENT_SUPPORT,
        ate=0.0 if null_effect else population_ate(p, outcome),
        # The mean without treatment is an odd function of x, and so are its log-odds.
        mean0=0.5 if outcome == "binomial" else 0.0,
    )


def treatment_probability(x: FloatArray) -> FloatArray:
    """P(A = 1 | x), shape (n,), of units x (n, p)."""
    probability: FloatArray = expit(
        np.tanh(-x[:, 0] - 2 * x[:, 4]) - np.tanh(2 * x[:, 1] - 2 * x[:, 2])
    )
    return probability


def mean_outcome(x: FloatArray, treatment: int, outcome: Outcome = "gaussian") -> FloatArray:
    """μ_a(x), shape (n,), of units x (n, p) under treatment a = 0 or 1."""
    return _mean_outcome(_signals(x), treatment, outcome)


@lru_cache(maxsize=64)
def population_ate(p: int, outcome: Outcome = "gaussian") -> float:
    """E τ(x) with p covariates, to nine digits ("gaussian") or six ("binomial").

    τ depends on x only through the three sums inside g1, g2 and g3, which are jointly normal, so
    a grid replaces the simulation: the trapezoidal rule on standard normal scores. The Gaussian
    outcome adds a function of (g1, g2) to one of (g2, g3); its integrals have two dimensions.
    The value depends on p only through the covariance of x1, …, x5, for p < 30 noticeably.
    """
    sums = np.array([[0, 2, -2, 0, 0], [2, 0, 0, 1, 0], [0, 0, 0, -2, 1]], np.float64)
    covariance = sums @ relevant_covariance(p) @ sums.T  # of the sums inside g2, g1, g3
    if outcome == "binomial":
        weights, coordinates = _normal_grid(covariance, 80)
        g2, g1, g3 = (np.tanh(values) for values in coordinates)
        risk0, risk1 = (_mean_outcome((g1, g2, g3), a, outcome) for a in (0, 1))
        return float(np.sum(weights * (risk1 - risk0)))
    ate = 0.0
    for part, partner in ((_first_part, 1), (_second_part, 2)):
        weights, coordinates = _normal_grid(covariance[np.ix_([0, partner], [0, partner])], 400)
        g2, g = (np.tanh(values) for values in coordinates)
        ate += float(np.sum(weights * (part(g, g2, 1) - part(g, g2, 0))))
    return ate


def relevant_covariance(p: int) -> FloatArray:
    """Covariance (5, 5) of x1, …, x5 among p covariates."""
    from scipy.linalg import solveh_banded

    # Beyond a few dozen columns the far end no longer reaches x5: 0.59^(2 * 75) < 1e-34.
    reach = min(p, 80)
    columns: FloatArray = solveh_banded(_banded(reach), np.eye(reach)[:, :N_RELEVANT], lower=True)
    return columns[:N_RELEVANT]


Signals: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


def _signals(x: FloatArray) -> Signals:
    """g1, g2, g3: the first layer of the outcome's network."""
    return (
        np.tanh(2 * x[:, 0] + x[:, 3]),
        np.tanh(2 * x[:, 1] - 2 * x[:, 2]),
        np.tanh(-2 * x[:, 3] + x[:, 4]),
    )


def _first_part(g1: FloatArray, g2: FloatArray, treatment: int) -> FloatArray:
    part: FloatArray = -4 * np.tanh(np.tanh(-2 * g1 + g2) - 2 * treatment)
    return part


def _second_part(g3: FloatArray, g2: FloatArray, treatment: int) -> FloatArray:
    part: FloatArray = 2 * np.tanh(2 * np.tanh(g2 - 2 * g3) - treatment)
    return part


def _mean_outcome(signals: Signals, treatment: int, outcome: Outcome) -> FloatArray:
    g1, g2, g3 = signals
    mean = _first_part(g1, g2, treatment) + _second_part(g3, g2, treatment)
    if outcome == "gaussian":
        return mean
    risk: FloatArray = expit(RISK_SCALE * mean)
    return risk


def _banded(p: int) -> FloatArray:
    """The precision matrix in LAPACK's lower banded form, (3, p)."""
    return np.repeat(np.array(_BANDS)[:, None], p, axis=1)


@lru_cache(maxsize=64)
def _coefficients(p: int) -> FloatArray:
    """Coefficients (3, p) of x_j in terms of a shock and its two predecessors.

    The precision matrix C reads the same from both ends, so its Cholesky factor, turned around,
    gives C = U Uᵀ with U upper triangular, and Uᵀ x = z runs from x1 to xp:
    U_jj x_j = z_j - U_{j-1,j} x_{j-1} - U_{j-2,j} x_{j-2}.
    """
    from scipy.linalg import cholesky_banded

    factor: FloatArray = cholesky_banded(_banded(p), lower=True)[:, ::-1]
    return np.stack([1 / factor[0], -factor[1] / factor[0], -factor[2] / factor[0]])


def _autoregress(shocks: FloatArray, p: int, first: int = 0) -> FloatArray:
    """Turn shocks (k, n) into the first k of p covariates, in place, from row `first` on."""
    scale, previous, second = _coefficients(p)
    for j in range(first, len(shocks)):
        row = shocks[j]
        row *= scale[j]
        if j >= 1:
            row += previous[j] * shocks[j - 1]
        if j >= 2:
            row += second[j] * shocks[j - 2]
    return shocks


def _normal_grid(covariance: FloatArray, points: int) -> tuple[FloatArray, list[FloatArray]]:
    """Weights and coordinates of a product grid for centred normals with this covariance."""
    score = np.linspace(-8.5, 8.5, points)  # leaves out a mass of 1e-17 per axis
    density = np.exp(-(score**2) / 2)
    axes = np.ix_(*[score] * len(covariance))
    weights = reduce(np.multiply, np.ix_(*[density / density.sum()] * len(covariance)))
    coordinates = [
        sum((slope * axis for slope, axis in zip(row, axes, strict=True)), np.zeros(()))
        for row in np.linalg.cholesky(covariance)
    ]
    return weights, coordinates
