"""Three arms, one of them a placebo: a multilevel treatment with every truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from cstonet.datasets.simulation import (
    FORMULA,
    FloatArray,
    assemble_frame,
    check_options,
    frozen,
)
from cstonet.datasets.truths import as_text, dependencies, several_effects
from cstonet.estimators import Effects, Nuisances, estimate_effects
from cstonet.streams import DataStream

LEVELS = ("placebo", "low", "high")
OUTCOME_SUPPORT = ("x1", "x2", "x3", "x4")
TREATMENT_SUPPORT = ("x1", "x3", "x5")

# Population means of the three arms. The covariates are centred and symmetric, with variance one,
# so every other term of the outcome averages to zero.
POPULATION_MEANS = (0.0, 1.0, 2.0)

CORRELATION = 0.5  # of neighbouring covariates


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThreeArms:
    """A simulated data set of n units in three arms, with all its truths.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``treat`` (a category: placebo, low, high), covariates ``x1``, …,
        ``xp``.
    formula : str
        The formula to fit.
    seed : int
        Seed it was made with.
    levels : tuple of str
        The arms, the reference first.
    mu : (n, 3) float64
        Expected outcome of each unit in each arm, μ_a(x_i).
    propensity : (n, 3) float64
        P(A = a | x_i).
    outcome_support, treatment_support : tuple of str
        The covariates that the outcome, and the treatment, depend on.
    means : dict of str to float
        Population mean of each potential outcome.
    contrasts : dict of str to float
        Population effects against the reference, named as in a fit: what intervals should cover.
    """

    data: pd.DataFrame
    formula: str
    seed: int
    levels: tuple[str, ...]
    mu: FloatArray
    propensity: FloatArray
    outcome_support: tuple[str, ...]
    treatment_support: tuple[str, ...]
    means: dict[str, float]
    contrasts: dict[str, float]

    def __repr__(self) -> str:
        n, columns = self.data.shape
        return f"<three_arms: n={n}, p={columns - 2}, seed={self.seed}>"

    @property
    def treatment(self) -> NDArray[np.int64]:
        """Codes of the treatments into `levels`, shape (n,)."""
        return np.asarray(self.data["treat"].cat.codes, dtype=np.int64)

    @property
    def sample_contrasts(self) -> dict[str, float]:
        """Mean effects over the rows: what the error of an estimate is measured against."""
        differences = (self.mu[:, 1:] - self.mu[:, :1]).mean(axis=0)
        return dict(zip(self.contrasts, differences.tolist(), strict=True))

    def row_truths(self) -> pd.DataFrame:
        """The true nuisances of every row: mu and propensity of each arm, such as mu_low."""
        columns = {}
        for name, values in (("mu", self.mu), ("propensity", self.propensity)):
            for arm, column in zip(self.levels, values.T, strict=True):
                columns[f"{name}_{arm}"] = column
        return pd.DataFrame(columns)

    def describe(self) -> str:
        """Formula, true effects, and what the variables depend on: one per line."""
        return as_text(
            [
                ("formula", self.formula),
                ("reference", self.levels[0]),
                *several_effects(self.sample_contrasts, self.contrasts, self.oracle()),
                *dependencies(self.treatment_support, self.outcome_support),
            ]
        )

    def nuisances(self) -> Nuisances:
        """The true nuisances, for estimators that are told everything."""
        return Nuisances(
            y=self.data["y"].to_numpy(np.float64),
            treatment=self.treatment,
            mu=self.mu,
            propensity=self.propensity,
            weights=None,
            fold=np.zeros(len(self.data), np.int64),
        )

    def oracle(self) -> Effects:
        """AIPW estimates with the true nuisances: the best that any fit can hope for."""
        return estimate_effects(
            self.nuisances(), levels=self.levels, clip=0.0, variance="influence", kind="multilevel"
        )


def three_arms(n: int = 3000, p: int = 100, *, seed: int = 0, noise: float = 1.0) -> ThreeArms:
    """Confounded three-arm trial without randomisation: placebo, low and high dose.

    The covariates are standard normal with correlation 0.5^|j-k|. The arms have log-odds against
    placebo of

        low:   0.6 x1 - 0.5 x3,        high:  0.7 x3 - 0.4 x1 + 0.4 x5,

    and the outcome is

        y = x1 + ½ (x2² - 1) + tanh(2 x3) + (1 + ½ x1) 1(low) + (2 + tanh(x4)) 1(high) + σ ε,

    so that the effects against placebo average to 1 and 2.

    Parameters
    ----------
    n : int
        Number of units.
    p : int
        Number of covariates, at least 5.
    seed : int
        Same seed, same data.
    noise : float
        σ, the standard deviation of the outcome's noise.

    Returns
    -------
    ThreeArms
        Data and truths.

    Examples
    --------
    >>> from cstonet.datasets import three_arms
    >>> sim = three_arms(n=300, p=10, seed=1)
    >>> sim.contrasts
    {'ATE[low-placebo]': 1.0, 'ATE[high-placebo]': 2.0}
    """
    check_options(n, p, seed, noise=noise)
    rng = DataStream.THREE_ARMS.generator(seed)
    covariates = autoregressive(rng, p, n)
    propensity, mu = treatment_probabilities(covariates.T), outcome_means(covariates.T)
    # The first level whose cumulated probability exceeds a uniform number.
    passed = rng.random((n, 1)) > propensity.cumsum(axis=1)[:, :-1]
    codes: NDArray[np.int64] = passed.sum(axis=1)
    y = np.take_along_axis(mu, codes[:, None], axis=1)[:, 0] + noise * rng.standard_normal(n)
    data = assemble_frame(y, codes, covariates)
    data["treat"] = pd.Categorical.from_codes(codes, categories=pd.Index(LEVELS))
    reference, *others = LEVELS
    means = dict(zip(LEVELS, POPULATION_MEANS, strict=True))
    return ThreeArms(
        data=data,
        formula=FORMULA,
        seed=int(seed),
        levels=LEVELS,
        mu=frozen(mu),
        propensity=frozen(propensity),
        outcome_support=OUTCOME_SUPPORT,
        treatment_support=TREATMENT_SUPPORT,
        means=means,
        contrasts={f"ATE[{b}-{reference}]": means[b] - means[reference] for b in others},
    )


def treatment_probabilities(x: FloatArray) -> FloatArray:
    """P(A = a | x), shape (n, 3), of units x (n, p)."""
    low = 0.6 * x[:, 0] - 0.5 * x[:, 2]
    high = 0.7 * x[:, 2] - 0.4 * x[:, 0] + 0.4 * x[:, 4]
    probabilities: FloatArray = softmax(np.column_stack([np.zeros(len(x)), low, high]), axis=1)
    return probabilities


def outcome_means(x: FloatArray) -> FloatArray:
    """μ_a(x), shape (n, 3), of units x (n, p)."""
    placebo = x[:, 0] + 0.5 * (x[:, 1] ** 2 - 1) + np.tanh(2 * x[:, 2])
    low, high = 1 + 0.5 * x[:, 0], 2 + np.tanh(x[:, 3])
    means: FloatArray = np.column_stack([placebo, placebo + low, placebo + high])
    return means


def autoregressive(rng: np.random.Generator, p: int, n: int) -> FloatArray:
    """Standard normals (p, n) with correlation ρ^|j-k| between rows j and k."""
    x = rng.standard_normal((p, n))
    x[1:] *= np.sqrt(1 - CORRELATION**2)
    for j in range(1, p):
        x[j] += CORRELATION * x[j - 1]
    return x
