"""What results ask of a fit: a plan to describe, networks to predict with. Protocols only."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.estimators.nuisances import FloatArray


class Prediction(Protocol):
    """What networks say about m units and L treatment levels."""

    @property
    def mu(self) -> FloatArray:
        """Outcome regressions μ̂_a(x), shape (m, L)."""

    @property
    def propensity(self) -> FloatArray:
        """Treatment probabilities p̂_a(x), shape (m, L)."""


class Plan(Protocol):
    """What the results need of a resolved plan."""

    @property
    def preset(self) -> str:
        """Name of the preset."""

    @property
    def folds(self) -> int:
        """Number of folds; 1 is the in-sample fit."""

    @property
    def repeats(self) -> int:
        """Repetitions of the cross-fitting."""

    @property
    def starts(self) -> int:
        """Number of starts per fold."""

    @property
    def seed(self) -> int:
        """Seed of everything random."""

    @property
    def network_label(self) -> str:
        """Widths of the layers, such as "100-8-6-5-1"."""

    @property
    def screen(self) -> int | None:
        """How many covariates took part in the search, if they were screened."""

    @property
    def unites_supports(self) -> bool:
        """Whether both models adjust for the covariates found for either."""

    @property
    def adjusts_linearly(self) -> bool:
        """Whether covariates found for the treatment alone are adjusted for by linear terms."""


class Networks(Protocol):
    """What the results need of the fitted networks."""

    @property
    def n_nonzero(self) -> int:
        """Weights that were kept."""

    @property
    def n_weights(self) -> int:
        """Weights there were."""

    @property
    def trace(self) -> pd.DataFrame:
        """Training history."""

    def predict(self, X: NDArray[np.floating]) -> Prediction:
        """Nuisances of new units, X of shape (m, p) in the units of the data."""


class ImputingNetworks(Networks, Protocol):
    """Networks that were fitted to covariates with gaps."""

    def predict_incomplete(self, X: NDArray[np.floating], missing: NDArray[np.bool_]) -> Prediction:
        """The same for units with missing covariates."""

    def with_imputed(
        self, X: NDArray[np.floating], values: NDArray[np.float32]
    ) -> NDArray[np.floating]:
        """Covariates (n, p) of the training rows with the means of imputed values."""
