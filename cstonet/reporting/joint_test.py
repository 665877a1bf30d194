"""One test of several hypotheses together, which knows what extrapolation could hide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from cstonet.estimators import Effects, joint_freedom
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.numbers import pvalue, statistic

# Below this share of the largest, an eigenvalue is the rounding error of a zero.
_ZERO = 1e-12


@dataclass(frozen=True, slots=True)
class JointTest:
    """A Wald test.

    Parameters
    ----------
    hypothesis : str
        What is tested, in words.
    statistic : float
        Chi-squared; where the estimates have few degrees of freedom, F: the same over `df`.
    df : int
        Number of hypotheses.
    df_denom : float or None
        Second degrees of freedom of F; None: chi-squared.
    pvalue : float
        Probability of a larger statistic if all hypotheses hold.
    """

    hypothesis: str
    statistic: float
    df: int
    df_denom: float | None
    pvalue: float

    @classmethod
    def of(cls, effects: Effects, matrix: FloatArray, hypothesis: str) -> JointTest:
        """Test that combinations of effects are all zero.

        Where support is lost, the effects may be off by as much as `Effects.bias` says, and the
        statistic is the smallest that such effects could have.

        Parameters
        ----------
        effects : Effects
            k effects.
        matrix : (q, k) float64
            The combinations.
        hypothesis : str
            What they say.
        """
        covariance = matrix @ effects.covariance @ matrix.T
        # In units of their errors: a slope of a covariate in millions has a tiny variance, too.
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        matrix = matrix / np.where(errors > 0, errors, 1.0)[:, None]
        values, vectors = np.linalg.eigh(matrix @ effects.covariance @ matrix.T)
        there = values > _ZERO * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        # Uncorrelated combinations of variance one; those without variance cannot be tested.
        whitened = (vectors[:, there] / np.sqrt(values[there])).T @ matrix
        df = int(there.sum())
        if df == 0:
            return cls(hypothesis, math.nan, 0, None, math.nan)
        square = _smallest(whitened, effects)
        freedom = joint_freedom(effects, matrix)
        if freedom is None or math.isinf(freedom):
            return cls(hypothesis, square, df, None, float(chdtrc(df, square)))
        return cls(hypothesis, square / df, df, freedom, float(fdtrc(df, freedom, square / df)))

    def __str__(self) -> str:
        name = f"chi2({self.df})"
        if self.df_denom is not None:
            name = f"F({self.df}, {self.df_denom:.0f})"
        value = pvalue(self.pvalue)
        said = f"p {value}" if value.startswith("<") else f"p = {value}"
        return f"{self.hypothesis}: {name} = {statistic(self.statistic)}, {said}"


def _smallest(whitened: FloatArray, effects: Effects) -> float:
    """The least squared length of combinations (q, k) of effects that may be off by their bias."""
    start = whitened @ effects.estimates
    bias = effects.bias
    if bias is None or not np.any(bias > 0):
        return float(start @ start)
    from scipy.optimize import lsq_linear  # not at the top: only lost support pays for loading it

    unsure = bias > 0
    limits = bias[unsure]
    moved = lsq_linear(whitened[:, unsure], -start, bounds=(-limits, limits))
    return float(2 * moved.cost)
