"""Predictors of a model as score tests see them: what they leave, where covariates could enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cstonet.network.covariates import FoldCovariates
from cstonet.network.products import Kind, Products, SlopeNetwork
from cstonet.search.projection import OwnDirections

# A direction whose size is below this share of a typical one carries no information.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class FirstLayerSlopes:
    """Directions of weights into the first layer: slopes of a predictor in its units.

    Attributes
    ----------
    network
        Whose slopes.
    treatment : (m, L-1) float32
        Of the rows, as dummies or a dose, to which its units are clamped.
    which : (u,)
        Numbers of the slopes that do not vanish, see :class:`cstonet.network.products.Products`.
    scale : (u,)
        What gives them a mean square of one.
    """

    network: SlopeNetwork
    treatment: NDArray[np.float32]
    which: NDArray[np.int64]
    scale: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        network: SlopeNetwork,
        treatment: NDArray[np.float32],
        visible_unit: int,
        covariates: FoldCovariates,
    ) -> FirstLayerSlopes:
        """Slopes of the predictor of a visible unit, on the rows of a fold."""
        units, rows = network.spec.units[0], len(covariates.rows)
        which = visible_unit * units + np.arange(units)
        table = np.column_stack([np.zeros_like(which), np.full_like(which, Kind.SLOPE), which])
        one, scale = np.ones((rows, 1), dtype=np.float32), np.ones(units, dtype=np.float32)
        mean, variance = covariates.moments(
            Products(one, one[:, :0], treatment, network, table, scale)
        )
        size = np.sqrt(variance + mean**2)
        kept = size > NEGLIGIBLE
        return cls(network, treatment, which[kept], (1 / size[kept]).astype(np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A predictor of a model, and where covariates could enter it.

    Directions are what a new weight's contribution is multiplied by: 1 for a main effect, the
    centred treatment for effect modification, which are simple effects; a hidden unit's slope for
    a weight into that unit; another covariate for a product with it.

    Parameters
    ----------
    residual : (m,)
        Derivative of the log-likelihood with respect to the predictor.
    modifiers : (m, e), optional
        Directions of simple effects beside 1.
    slopes
        Those of hidden units; None: there are none.
    members
        Covariates whose products with new ones are tested.
    own
        Directions of the fitted model, which scores of simple effects are taken off; None: scores
        are those of the residuals as they are.
    """

    residual: NDArray[np.float64]
    modifiers: NDArray[np.float32] | None = None
    slopes: FirstLayerSlopes | None = None
    members: tuple[int, ...] = ()
    own: OwnDirections | None = None

    def weighted(self, weights: NDArray[np.float64]) -> Scored:
        """The same where rows count with weights (m,)."""
        own = self.own
        if own is not None:
            own = replace(own, information=own.information * weights)
        return replace(self, residual=self.residual * weights, own=own)

    @property
    def main(self) -> int:
        """How many directions, from the first, are those of simple effects."""
        return 1 if self.modifiers is None else 1 + self.modifiers.shape[1]

    @property
    def simple(self) -> NDArray[np.float32]:
        """The directions of simple effects, (m, main)."""
        one = np.ones((len(self.residual), 1), dtype=np.float32)
        return one if self.modifiers is None else np.hstack([one, self.modifiers])


def products_of(predictors: Sequence[Scored]) -> Products:
    """All directions of some predictors, those of each together: simple ones, slopes, members."""
    given: list[NDArray[np.float32]] = []
    table: list[tuple[int, Kind, int]] = []
    scale: list[float] = []
    slopes = next((p.slopes for p in predictors if p.slopes is not None), None)
    for number, predictor in enumerate(predictors):
        table.append((number, Kind.ONE, 0))
        if predictor.modifiers is not None:
            width = predictor.modifiers.shape[1]
            first = next(
                (k * width for k, known in enumerate(given) if known is predictor.modifiers), None
            )
            if first is None:
                first = sum(known.shape[1] for known in given)
                given.append(predictor.modifiers)
            table += [(number, Kind.GIVEN, first + k) for k in range(width)]
        scale += [1.0] * predictor.main
        if predictor.slopes is not None:
            table += [(number, Kind.SLOPE, int(k)) for k in predictor.slopes.which]
            scale += predictor.slopes.scale.tolist()
        table += [(number, Kind.MEMBER, j) for j in predictor.members]
        scale += [1.0] * len(predictor.members)
    residuals = np.column_stack([p.residual for p in predictors]).astype(np.float32)
    none = np.empty((len(residuals), 0), dtype=np.float32)
    return Products(
        residuals=residuals,
        given=np.hstack([none, *given]).astype(np.float32),
        treatment=none if slopes is None else slopes.treatment,
        network=None if slopes is None else slopes.network,
        table=np.array(table, dtype=np.int64).reshape(-1, 3),
        scale=np.array(scale, dtype=np.float32),
    )
