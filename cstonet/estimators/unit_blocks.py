"""Units block by block, as estimators look at them: propensities clipped, linear terms added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.estimators.linear_terms import LinearTerms
from cstonet.estimators.nuisances import (
    Clip,
    FloatArray,
    IntArray,
    Nuisances,
    check_possible,
    clip_propensity,
)


@dataclass(frozen=True, slots=True, eq=False)
class UnitBlock:
    """Neighbouring units, m of them.

    Attributes
    ----------
    rows : slice
        Where they are among all.
    y, treatment, unit_weights : (m,)
        Outcomes, codes of their treatments, and weights whose mean over all units is one.
    mu : (m, L) float64
        Outcome regressions, linear terms included.
    propensity : (m, L) float64
        Clipped probabilities.
    n_clipped : int
        Units whose probabilities were clipped.
    """

    rows: slice
    y: FloatArray
    treatment: IntArray
    unit_weights: FloatArray
    mu: FloatArray
    propensity: FloatArray
    n_clipped: int

    @property
    def received(self) -> NDArray[np.bool_]:
        """Indicators 1(A_i = a), shape (m, L)."""
        return np.equal(self.treatment[:, None], np.arange(self.mu.shape[1]))


def unit_blocks(
    nuisances: Nuisances, clip: Clip, linear: LinearTerms | None = None
) -> Iterator[UnitBlock]:
    """The units of nuisances, block after block.

    Parameters
    ----------
    nuisances : Nuisances
        Data and nuisances of n units.
    clip : float, or L of them
        Least propensities, see `clip_propensity`.
    linear : LinearTerms, optional
        What joins the outcome model.

    Raises
    ------
    NumericalError
        If a unit received a treatment to which it is given no chance at all.
    """
    if not np.any(clip):
        check_possible(nuisances.received, nuisances.propensity)
    weights = nuisances.unit_weights
    for rows in row_blocks(nuisances.n, 1 if linear is None else linear.width):
        clipped = clip_propensity(nuisances.propensity[rows], clip)
        mu = nuisances.mu[rows]
        yield UnitBlock(
            rows=rows,
            y=nuisances.y[rows],
            treatment=nuisances.treatment[rows],
            unit_weights=weights[rows],
            mu=mu if linear is None else mu + linear.pull(rows),
            propensity=clipped.values,
            n_clipped=clipped.n_clipped,
        )
