"""What every accuracy benchmark shares: a data set with its truth, and what a method says of it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Record: TypeAlias = dict[str, Any]

FORMULA = "y ~ treat | ."
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

# Two-sided 95 % quantile of the normal distribution.
Z95 = 1.959963984540054


class Variables(Protocol):
    """What a peer needs of a data set."""

    @property
    def y(self) -> FloatArray:
        """Outcomes, (n,)."""

    @property
    def treat(self) -> NDArray[np.int64]:
        """Treatments, (n,), 0 or 1."""

    @property
    def X(self) -> NDArray[np.floating[Any]]:
        """Covariates, (n, p)."""

    @property
    def binary(self) -> bool:
        """Whether the outcome is 0 or 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A data set and what is known about it.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``treat`` (0 or 1), covariates: all other columns.
    sample_ate : float
        Mean effect over the rows.
    ate : float or None
        Mean effect in the population the rows are drawn from, where it is known.
    tau : (n,) float64 or None
        Effect expected for each row, τ(x_i), where it is known.
    oracle : (float, float) or None
        Estimate with the true nuisances and its standard error, where they are known.
    supports : dict of frozenset of str or None
        Covariates that the "outcome" and the "treatment" depend on, where they are known.
    missing : str
        What the package is told about gaps in the covariates, see `cstonet.fit`.
    """

    data: pd.DataFrame
    sample_ate: float
    ate: float | None = None
    tau: FloatArray | None = None
    oracle: tuple[float, float] | None = None
    supports: dict[str, frozenset[str]] | None = None
    missing: str = "raise"

    @property
    def y(self) -> FloatArray:
        """Outcomes, (n,)."""
        return self.data["y"].to_numpy(np.float64)

    @property
    def treat(self) -> NDArray[np.int64]:
        """Treatments, (n,), 0 or 1."""
        return self.data["treat"].to_numpy(np.int64)

    @property
    def X(self) -> FloatArray:
        """Covariates as a matrix, factors as dummies: for methods that know no factors."""
        covariates = self.data.drop(columns=["y", "treat"])
        return pd.get_dummies(covariates, drop_first=True).to_numpy(np.float64)

    @property
    def binary(self) -> bool:
        """Whether the outcome is 0 or 1."""
        return bool(np.isin(self.y, (0, 1)).all())

    def rows(self, chosen: NDArray[np.bool_]) -> Problem:
        """Some of the rows, chosen by a mask (n,); the oracle knows the whole only.

        Where the rows' own effects are not known, their mean is taken for that of all.
        """
        tau = None if self.tau is None else self.tau[chosen]
        return Problem(
            data=self.data[chosen].reset_index(drop=True),
            sample_ate=self.sample_ate if tau is None else float(tau.mean()),
            ate=self.ate,
            tau=tau,
            supports=self.supports,
            missing=self.missing,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What a method says about a data set.

    Parameters
    ----------
    ate, se, lower, upper : float
        Mean effect, standard error and 95 % limits.
    cate : (n,) float64 or None
        Effect of each row.
    selected : dict of frozenset of str or None
        Covariates selected for the "outcome" and the "treatment", if the method selects.
    extra : dict or None
        Figures of one benchmark only, by name, for its results file.
    """

    ate: float
    se: float
    lower: float
    upper: float
    cate: FloatArray | None = None
    selected: dict[str, frozenset[str]] | None = None
    extra: Record | None = None


class Case(Protocol):
    """A data set that a worker can make or load by itself."""

    @property
    def group(self) -> str:
        """Data sets that are averaged over have the same group."""

    @property
    def seed(self) -> int:
        """Number of the data set within its group; also the seed of the fit."""

    def load(self) -> Problem:
        """The data set."""


class Method(Protocol):
    """A way to estimate the effect."""

    @property
    def name(self) -> str:
        """Name on the command line and in the report."""

    @property
    def recipe(self) -> str:
        """What a result was computed with: another recipe is another result."""

    def prepare(self) -> None:
        """Import what is needed; raise ImportError where it is not installed."""

    def estimate(self, problem: Problem, *, threads: int, seed: int) -> Estimate:
        """Estimate the effect with this many threads."""


def selection_counts(truth: frozenset[str], selected: frozenset[str]) -> dict[str, int]:
    """Sizes of Ŝ, Ŝ without S, S without Ŝ, and S: what the rates over data sets are made of."""
    return {
        "selected": len(selected),
        "false": len(selected - truth),
        "missed": len(truth - selected),
        "true": len(truth),
    }


def measure(problem: Problem, estimate: Estimate) -> Record:
    """An estimate beside the truth, as what is written to the results file."""
    pehe = None
    if problem.tau is not None and estimate.cate is not None:
        pehe = float(np.sqrt(np.mean((estimate.cate - problem.tau) ** 2)))
    selection = None
    if problem.supports is not None and estimate.selected is not None:
        selection = {
            model: selection_counts(support, estimate.selected[model])
            for model, support in problem.supports.items()
        }
    n, columns = problem.data.shape
    return {
        "n": n,
        "p": columns - 2,
        "estimate": estimate.ate,
        "se": estimate.se,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "sample_ate": problem.sample_ate,
        "ate": problem.ate,
        "oracle": None if problem.oracle is None else list(problem.oracle),
        "y_sd": float(problem.y.std()),
        "selection": selection,
        "pehe": pehe,
        **(estimate.extra or {}),
    }


def number_range(text: str) -> list[int]:
    """Numbers of ``"101:120"`` (both ends included), ``"1,2,5"`` or a mixture."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        numbers += range(int(first), int(last or first) + 1)
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text!r} holds no number; write 101:120 or 1,2,5")
    return numbers
