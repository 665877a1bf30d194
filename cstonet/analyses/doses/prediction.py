"""What networks say about a continuous treatment: μ(a, x) at any dose, its slope, and m(x).

Everything is in float64, and the derivative in the dose is the network's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import Fold, out_of_fold
from cstonet.data.units import Units
from cstonet.estimators.nuisances import FloatArray
from cstonet.network.covariates import Covariates
from cstonet.network.forward import DosePrediction, ForwardPass
from cstonet.network.prediction import averaged
from cstonet.network.trained import TrainedNetwork


def predict_doses(
    fitted: FittedNetworks, units: Units, X: NDArray[np.floating], dose: FloatArray
) -> DosePrediction:
    """New units X (m, p) at doses (m, k), averaged over the chosen networks of all folds."""
    at = _AtDoses(fitted, units, fitted.x_scaling.dataset(X, 0))
    return fitted.over_folds(
        X.shape[0], lambda fold, rows: at.rows(fold.networks, rows, dose[rows])
    )


def predict_doses_out_of_fold(
    fitted: FittedNetworks, units: Units, data: Covariates, dose: FloatArray
) -> list[DosePrediction]:
    """The training rows at doses (n, k), each from networks that did not train on it.

    One prediction per repetition of the cross-fitting.
    """
    at = _AtDoses(fitted, units, data)

    def of_fold(fold: Fold, test: NDArray[np.int64]) -> DosePrediction:
        return at.rows(fold.networks, test, dose[test])

    return out_of_fold(fitted.folds, of_fold)


class _AtDoses:
    """Networks averaged, in the units of the data."""

    def __init__(self, fitted: FittedNetworks, units: Units, data: Covariates) -> None:
        self._outcome = fitted.y_units
        self._dose = units
        self._data = data

    def rows(
        self, networks: Sequence[TrainedNetwork], rows: NDArray[np.int64], dose: FloatArray
    ) -> DosePrediction:
        """Rows (m,) at doses (m, k)."""
        standardised = self._dose.standardise(dose)
        mean = averaged(
            [ForwardPass(net, self._data, rows).at_doses(standardised) for net in networks]
        )
        return DosePrediction(
            mu=self._outcome.restore(mean.mu),
            slope=mean.slope * (self._outcome.scale / self._dose.scale),
            mean=self._dose.restore(mean.mean),
        )
