"""The shares of hidden units in a fit with arms, chosen on rows that its networks did not see."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from cstonet.analyses.arms.prediction import at_rows
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import Fold, out_of_fold
from cstonet.network.prediction import RowArrays
from cstonet.network.shares import OutcomeLink, Shares, treatment_share
from cstonet.network.training_data import TrainingData
from cstonet.streams import Stream

# Rows that choose the shares, where there are more.
_MOST_ROWS = 20_000


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Parts(RowArrays):
    """Linear parts, and what they are together with the whole of what hidden units add."""

    log_odds: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    linear: NDArray[np.float64]
    means: NDArray[np.float64]


def with_shares(fitted: FittedNetworks, data: TrainingData) -> FittedNetworks:
    """The same networks, with the shares of their hidden units; all of them without a backbone."""
    if any(fold.backbone is None for fold in fitted.folds):
        return fitted
    counted = np.flatnonzero(data.weights > 0)
    if len(counted) > _MOST_ROWS:
        rng = Stream.SHARES.generator(fitted.plan.seed)
        counted = np.sort(rng.choice(counted, _MOST_ROWS, replace=False))
    whole = dataclasses.replace(fitted, shares=Shares())
    codes = data.treatment @ np.arange(1, data.treatment.shape[1] + 1)
    received = codes[counted].astype(np.int64)

    def of_fold(fold: Fold, rows: NDArray[np.int64]) -> _Parts:
        if fold.backbone is None:
            raise ValueError("a fold without linear parts has no shares")
        offset = fold.backbone.at_levels(data.covariates, rows).astype(np.float64)
        prediction = at_rows(whole, fold, data.covariates, rows)
        return _Parts(
            log_odds=offset[0, :, :-1],
            probabilities=prediction.propensity,
            linear=offset[:, :, -1].T,
            means=fitted.y_units.standardise(prediction.mu),
        )

    each = out_of_fold(fitted.folds, of_fold, counted)
    log_odds, probabilities, linear, means = (
        np.concatenate([getattr(part, name) for part in each])
        for name in ("log_odds", "probabilities", "linear", "means")
    )
    repeats = len(each)
    received = np.tile(received, repeats)
    weights = np.tile(data.weights[counted].astype(np.float64), repeats)
    outcome = np.tile(data.outcome[counted, 0], repeats)
    own = np.arange(len(received)), received
    shares = Shares(
        treatment=treatment_share(log_odds, probabilities, received, weights),
        outcome=OutcomeLink.of(fitted.spec).share(linear[own], means[own], outcome, weights),
    )
    return dataclasses.replace(fitted, shares=shares)
