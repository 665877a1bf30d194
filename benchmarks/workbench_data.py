"""Data sets for the questions after a fit: effects that differ by group, by covariate, or not.

Truths are those of the population that the rows are drawn from, by a draw so large that its error
does not count beside that of a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from common import FloatArray
from scipy.special import expit

import cstonet as cs

FORMULA = "y ~ treat | ."
# Units of the draw that stands for the population, and its seed.
_POPULATION, _POPULATION_SEED = 1_000_000, 987_654_321
# Where x1 is cut into groups, in simulation 2.
EDGES = (-0.7, 0.0, 0.7)
_REGIONS = ("north", "east", "south", "west")
_REGION_EFFECTS = np.array([0.0, 0.5, 1.0, 1.5])


@dataclass(frozen=True, slots=True, eq=False)
class Truths:
    """What is true of the population.

    Attributes
    ----------
    groups : dict
        Mean effect of each group, by the label that `gate` gives it.
    projection : (k,) float64
        Coefficients of the best linear projection of the effect.
    risks : (2,) float64
        Mean outcome without and with treatment.
    """

    groups: dict[str, float]
    projection: FloatArray
    risks: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Rows with their true effects.

    Attributes
    ----------
    data : DataFrame
        y, treat, covariates.
    mu : (n, 2) float64
        Expected outcomes of the rows without and with treatment.
    """

    data: pd.DataFrame
    mu: FloatArray

    @property
    def tau(self) -> FloatArray:
        """Effect of each row, (n,)."""
        effects: FloatArray = self.mu[:, 1] - self.mu[:, 0]
        return effects


@dataclass(frozen=True, slots=True)
class Design:
    """How data sets of a kind are drawn, and what is asked of the fits to them.

    Attributes
    ----------
    title : str
        What the report calls it.
    draw : callable
        Rows of (n, seed).
    n : int
        Rows of a data set.
    by : str or None
        Column by which effects are grouped; numbers are cut at `EDGES`.
    projection : str or None
        Terms of the projection: columns joined by a plus.
    """

    title: str
    draw: Callable[[int, int], Draw]
    n: int = 2000
    by: str | None = None
    projection: str | None = None

    @property
    def cuts(self) -> tuple[float, ...] | None:
        """Edges at which `by` is cut; None: it has labels."""
        return EDGES if self.by is not None and self.by.startswith("x") else None

    def groups(self, data: pd.DataFrame) -> FloatArray:
        """Number of each row's group, in the order of the labels, (n,)."""
        assert self.by is not None
        column = data[self.by]
        if self.cuts is not None:
            return np.digitize(column, self.cuts).astype(np.float64)
        return pd.Categorical(column, sorted(column.unique())).codes.astype(np.float64)

    def regressors(self, data: pd.DataFrame) -> FloatArray:
        """Constant and terms of the projection, (n, k); text becomes dummies."""
        assert self.projection is not None
        terms = data[self.projection.replace(" ", "").split("+")]
        coded = pd.get_dummies(terms, drop_first=True).to_numpy(np.float64)
        return np.column_stack([np.ones(len(data)), coded])


@cache
def truths_of(name: str) -> Truths:
    """The truths of a design."""
    design = DESIGNS[name]
    everyone = design.draw(_POPULATION, _POPULATION_SEED)
    groups, projection = {}, np.empty(0)
    if design.by is not None:
        numbers = design.groups(everyone.data)
        groups = {
            str(int(number)): float(everyone.tau[numbers == number].mean())
            for number in np.unique(numbers)
        }
    if design.projection is not None:
        regressors = design.regressors(everyone.data)
        projection = np.linalg.lstsq(regressors, everyone.tau, rcond=None)[0]
    return Truths(groups, projection, everyone.mu.mean(axis=0))


def simulation2(n: int, seed: int) -> Draw:
    """The paper's second simulation with 50 covariates; of the population the relevant ones."""
    simulation = cs.datasets.simulation2(n=n, p=50 if n < _POPULATION else 5, seed=seed)
    return Draw(simulation.data, np.column_stack([simulation.mu0, simulation.mu1]))


def by_region(n: int, seed: int) -> Draw:
    """Effects by region and, in the same direction everywhere, by age; twenty covariates."""
    return _regional(n, seed, binary=False)


def risks_by_region(n: int, seed: int) -> Draw:
    """The same with an outcome of zero or one, whose log-odds have these effects."""
    return _regional(n, seed, binary=True)


def constant_effect(n: int, seed: int) -> Draw:
    """Strong nonlinear confounding, and the same effect for everyone."""
    rng = np.random.default_rng([seed, 23])
    x = rng.normal(size=(n, 20))
    treat = rng.random(n) < expit(0.7 * x[:, 0] - 0.7 * x[:, 1] + 0.4 * x[:, 2] * x[:, 0])
    base = 2 * np.tanh(x[:, 0]) + x[:, 1] ** 2 / 2 + x[:, 2] - x[:, 3] * x[:, 0]
    return _rows(rng, x, treat, np.column_stack([base, base + 1]))


def constant_linear(n: int, seed: int) -> Draw:
    """Everything linear, and the same effect for everyone: interactions found are spurious."""
    rng = np.random.default_rng([seed, 31])
    x = rng.normal(size=(n, 10)) * np.sqrt(0.8) + rng.normal(size=(n, 1)) * np.sqrt(0.2)
    treat = rng.random(n) < expit(x[:, :3] @ [0.7, -0.5, 0.4])
    base = x[:, :5] @ [2.0, -1.5, 1.0, 1.0, 0.5]
    return _rows(rng, x, treat, np.column_stack([base, base + 1]))


def _regional(n: int, seed: int, *, binary: bool) -> Draw:
    rng = np.random.default_rng([seed, 29 + binary])
    x, region = rng.normal(size=(n, 18)), rng.integers(4, size=n)
    age = rng.uniform(20, 70, size=n)
    older = (age - 45) / 15
    treat = rng.random(n) < expit(0.6 * x[:, 0] + 0.4 * older + 0.3 * (region == 2) - 0.2)
    base = x[:, 0] + np.sin(2 * x[:, 1]) + 0.5 * older + 0.4 * (region == 1)
    effect = _REGION_EFFECTS[region] + 0.5 * older
    mu = np.column_stack([base, base + effect])
    if binary:
        mu = expit(0.8 * mu - 0.9)
    extra = {"region": np.array(_REGIONS)[region], "age": age}
    return _rows(rng, x, treat, mu, extra, binary=binary)


def _rows(
    rng: np.random.Generator,
    x: FloatArray,
    treat: np.ndarray,
    mu: FloatArray,
    extra: dict[str, np.ndarray] | None = None,
    *,
    binary: bool = False,
) -> Draw:
    """A data set of covariates (n, p), treatments and expected outcomes (n, 2)."""
    received = mu[np.arange(len(mu)), treat.astype(int)]
    noise = rng.random(len(mu)) < received if binary else received + rng.normal(size=len(mu))
    columns = {f"x{j + 1}": x[:, j] for j in range(x.shape[1])}
    frame = pd.DataFrame(
        {"y": noise.astype(np.float64), "treat": treat.astype(int), **columns, **(extra or {})}
    )
    return Draw(frame, mu)


DESIGNS: dict[str, Design] = {
    "simulation2": Design("Simulation 2, n=2000, p=50", simulation2, by="x1", projection="x1 + x4"),
    "by-region": Design(
        "Effects by region and age, n=2000, p=20", by_region, by="region", projection="age + region"
    ),
    "risks": Design(
        "The same with a binary outcome", risks_by_region, by="region", projection="age + region"
    ),
    "constant": Design("The same effect for everyone, n=2000, p=20", constant_effect),
    "constant-linear": Design(
        "The same effect for everyone, all linear, n=1000, p=10", constant_linear, n=1000
    ),
}
