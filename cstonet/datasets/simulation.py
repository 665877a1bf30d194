"""What a simulated data set is, and the steps that all simulations share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.datasets.truths import as_text, dependencies, one_effect, oracle_line
from cstonet.errors import OptionError
from cstonet.estimators import Effects, Nuisances, estimate_effects

FloatArray: TypeAlias = NDArray[np.float64]

# Covariates that treatment and outcome can depend on, in both simulations: x1, …, x5.
N_RELEVANT = 5
FORMULA = "y ~ treat | ."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation:
    """A simulated data set of n units with all its truths.

    Parameters
    ----------
    data : DataFrame, n rows
        Outcome ``y``, treatment ``treat`` (0 or 1), covariates ``x1``, …, ``xp``.
    formula : str
        The formula to fit.
    name : str
        Name of the function that made it.
    seed : int
        Seed it was made with.
    mu0, mu1 : (n,) float64
        Expected outcome of each unit without and with treatment, μ_a(x_i).
    tau : (n,) float64
        Treatment effect of each unit, τ(x_i) = μ_1(x_i) - μ_0(x_i).
    propensity : (n,) float64
        P(A = 1 | x_i) under the scheme that drew the units, balanced arms included.
    outcome_support, treatment_support : tuple of str
        The covariates that μ_0 or μ_1, and the propensity, depend on.
    ate : float
        E τ(x) in the population that the scheme samples from: what an interval should cover.
    mean0 : float
        E μ_0(x) in that population, the mean outcome without treatment; NaN where nobody has
        computed it.
    """

    data: pd.DataFrame
    formula: str
    name: str
    seed: int
    mu0: FloatArray
    mu1: FloatArray
    tau: FloatArray
    propensity: FloatArray
    outcome_support: tuple[str, ...]
    treatment_support: tuple[str, ...]
    ate: float
    mean0: float = math.nan

    def __repr__(self) -> str:
        n, p = len(self.data), sum(name.startswith("x") for name in self.data.columns)
        return f"<{self.name}: n={n}, p={p}, seed={self.seed}, ate={self.ate:.4f}>"

    @property
    def sample_ate(self) -> float:
        """Mean effect over the rows: what the error of an estimate is measured against."""
        return float(self.tau.mean())

    @property
    def ratio(self) -> float:
        """Ratio of the population means with and without treatment: of risks, or of rates."""
        return 1 + self.ate / self.mean0 if self.mean0 else math.nan

    @property
    def odds_ratio(self) -> float:
        """Odds ratio of a binary outcome in the population, not given the covariates."""
        mean1 = self.mean0 + self.ate
        return mean1 / (1 - mean1) * (1 - self.mean0) / self.mean0

    def row_truths(self) -> pd.DataFrame:
        """The true nuisances of every row: mu0, mu1, tau, propensity."""
        names = ("mu0", "mu1", "tau", "propensity")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def describe(self) -> str:
        """Formula, true effects, and what the variables depend on: one per line."""
        oracle = oracle_line("oracle estimate", self._oracle(), "ATE")
        return as_text(
            [
                ("formula", self.formula),
                *one_effect("ATE", self.sample_ate, self.ate, oracle),
                *dependencies(self.treatment_support, self.outcome_support),
            ]
        )

    def oracle_ate(self) -> tuple[float, float]:
        """AIPW estimate with the true nuisances: the best that any fit can hope for.

        Returns
        -------
        estimate, standard_error : float
            The standard error is that of the efficient influence function.
        """
        effects = self._oracle()
        position = effects.names.index("ATE")
        return float(effects.estimates[position]), float(effects.standard_errors[position])

    def nuisances(self) -> Nuisances:
        """The true nuisances, for estimators that are told everything."""
        return Nuisances(
            y=self.data["y"].to_numpy(np.float64),
            treatment=self.data["treat"].to_numpy(np.int64),
            mu=np.column_stack([self.mu0, self.mu1]),
            propensity=np.column_stack([1 - self.propensity, self.propensity]),
            weights=None,
            fold=np.zeros(len(self.data), np.int64),
        )

    def _oracle(self) -> Effects:
        return estimate_effects(self.nuisances(), levels=(0, 1), clip=0.0, variance="influence")


def check_options(n: object, p: object, seed: object, **numbers: object) -> None:
    """Refuse sizes, seeds and numbers that no data set can be made with.

    Parameters
    ----------
    n, p, seed : int
        Numbers of units and covariates, and the seed.
    **numbers : float
        Further options by name, which must be finite; ``noise`` must not be negative.
    """
    for name, value, least in (("n", n, 2), ("p", p, N_RELEVANT), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise OptionError(f"{name} must be an integer of at least {least}, not {value!r}")
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
            raise OptionError(f"{name} must be a finite number, not {number!r}")
        if name == "noise" and number < 0:
            raise OptionError(f"noise is a standard deviation and cannot be negative: {number!r}")


def draw_units(
    rng: np.random.Generator,
    n: int,
    draw: Callable[[int], FloatArray],
    propensity: Callable[[FloatArray], FloatArray],
    *,
    balanced: bool,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw units and their treatments, on request with arms of equal size.

    Only what the treatment needs is drawn for a candidate; the columns that nothing depends on
    are filled in afterwards, for the units that were kept.

    Parameters
    ----------
    rng : Generator
        Source of the treatments and of the order of the rows.
    n : int
        Number of units.
    draw : callable
        ``draw(m)`` gives m candidates as an array (k, m), a column each.
    propensity : callable
        Treatment probabilities (m,) of the candidates (k, m).
    balanced : bool
        Whether to draw until both arms are full, n // 2 units each; the odd unit of an odd n goes
        to an arm chosen by a fair coin, so that treatment has probability 1/2 for any n.

    Returns
    -------
    units : (k, n) float64
        The kept candidates, in random order.
    treatment : (n,) int64
        0 or 1.
    """
    units = draw(n)
    treatment = (rng.random(n) < propensity(units)).astype(np.int64)
    if not balanced:
        return units, treatment
    n_treated = n // 2 + (n % 2) * int(rng.integers(2))
    while not n_treated <= treatment.sum() <= len(treatment) - (n - n_treated):
        more = draw(n)
        more_treatment = (rng.random(n) < propensity(more)).astype(np.int64)
        units = np.concatenate([units, more], axis=1)
        treatment = np.concatenate([treatment, more_treatment])
    treated = np.flatnonzero(treatment == 1)[:n_treated]
    controls = np.flatnonzero(treatment == 0)[: n - n_treated]
    kept = rng.permutation(np.concatenate([treated, controls]))
    return units[:, kept], treatment[kept]


def balanced_propensity(propensity: FloatArray, treated_share: float) -> FloatArray:
    """Propensity (n,) once the arms are sampled equally often: odds × P(A=0) / P(A=1).

    `treated_share` is P(A=1) in the population, not in a sample.
    """
    controls: FloatArray = (1 - propensity) * treated_share
    treated: FloatArray = propensity * (1 - treated_share)
    return treated / (treated + controls)


def assemble_frame(
    y: FloatArray,
    treatment: NDArray[np.int64] | FloatArray,
    covariates: FloatArray,
    name: str = "treat",
) -> pd.DataFrame:
    """Frame with columns y, the treatment by its name, x1, …, xp.

    `covariates` is (p, n): pandas stores a column per row, so the frame takes it without a copy.
    """
    names = [f"x{j}" for j in range(1, len(covariates) + 1)]
    frame = pd.DataFrame(covariates.T, columns=names, copy=False)
    frame.insert(0, name, treatment)
    frame.insert(0, "y", y)
    return frame


def frozen(values: FloatArray) -> FloatArray:
    """The same array, no longer writable: truths do not change."""
    values.setflags(write=False)
    return values
