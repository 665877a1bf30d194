"""The mixture of linear parts and networks, chosen on rows that a fold did not train on."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.prediction import predictors_at
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import Fold, out_of_fold
from cstonet.network.mixture import Mixture, OutcomeLink, treatment_weights
from cstonet.network.prediction import RowArrays
from cstonet.network.training_data import TrainingData
from cstonet.streams import Stream

# Rows that choose the mixture, where there are more.
_MOST_ROWS = 20_000


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Rows(RowArrays):
    """Predictors of m rows: log-odds (m, K, L-1), outcomes (m, K, L)."""

    odds: NDArray[np.float64]
    outcome: NDArray[np.float64]


def with_mixture(fitted: FittedNetworks, data: TrainingData) -> FittedNetworks:
    """The same networks, mixed with their linear parts; as they are if there are none."""
    if any(fold.backbone is None for fold in fitted.folds):
        return fitted
    rows = np.flatnonzero(data.weights > 0)
    if len(rows) > _MOST_ROWS:
        rng = Stream.MIXTURE.generator(fitted.plan.seed)
        rows = np.sort(rng.choice(rows, _MOST_ROWS, replace=False))

    def of_fold(fold: Fold, some: NDArray[np.int64]) -> _Rows:
        odds, outcome = predictors_at(fitted, fold, data.covariates, some)
        return _Rows(odds.transpose(1, 0, 2), outcome.transpose(1, 0, 2))

    each = out_of_fold(fitted.folds, of_fold, rows)
    odds = np.concatenate([part.odds for part in each]).transpose(1, 0, 2)
    outcomes = np.concatenate([part.outcome for part in each]).transpose(1, 0, 2)
    repeats = len(each)
    codes = data.treatment[rows] @ np.arange(1, data.treatment.shape[1] + 1)
    received = np.tile(codes.astype(np.int64), repeats)
    counts = np.tile(data.weights[rows].astype(np.float64), repeats)
    own = outcomes[:, np.arange(len(received)), received]
    mixture = Mixture(
        treatment=treatment_weights(odds, received, counts),
        outcome=OutcomeLink.of(fitted.spec).weights(
            own, np.tile(data.outcome[rows, 0], repeats), counts
        ),
    )
    return dataclasses.replace(fitted, mixture=mixture)
