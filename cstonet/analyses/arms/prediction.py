"""What networks say about a treatment with levels: μ̂_a(x) and p̂_a(x), of training and new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import Fold, out_of_fold
from cstonet.imputation.new_rows import CompletedRows
from cstonet.network.covariates import Covariates, at_hand
from cstonet.network.prediction import RowArrays, averaged, with_rows
from cstonet.network.shares import OutcomeLink, mixed_probabilities


@dataclass(frozen=True, slots=True, eq=False)
class Prediction(RowArrays):
    """Nuisances at given rows: μ̂_a(x), shape (m, levels), and p̂_a(x), shape (m, levels)."""

    mu: NDArray[np.float64]
    propensity: NDArray[np.float64]


def predict(fitted: FittedNetworks, X: NDArray[np.floating]) -> Prediction:
    """Nuisances at new rows, shape (m, p), averaged over the chosen networks of all folds."""
    data = fitted.x_scaling.dataset(X, 0)
    return fitted.over_folds(
        X.shape[0], lambda fold, rows: at_rows(fitted, fold, data, rows)
    )


def predict_incomplete(
    fitted: FittedNetworks, X: NDArray[np.floating], missing: NDArray[np.bool_]
) -> Prediction:
    """Nuisances at new rows, averaged over draws of their missing covariates.

    Parameters
    ----------
    fitted
        Networks that were fitted to covariates with gaps.
    X : (m, p)
        Covariates, with anything in the gaps.
    missing : (m, number of incomplete variables)
        Where the gaps are. They are drawn given the observed covariates of the row and, if values
        are missing not at random, given what is missing.
    """
    plan = fitted.plan
    data = at_hand(fitted.x_scaling.dataset(X, plan.pack_bytes))
    everywhere = fitted.over_folds(
        X.shape[0], lambda fold, rows: at_rows(fitted, fold, data, rows)
    )
    parts = []
    for fold in fitted.folds:
        if fold.imputation is None:
            raise ValueError("the networks were fitted without imputation")
        # Draws that are to be weighed have to be more.
        equal = fold.imputation.missingness is None
        draws = plan.imputations if equal else plan.candidates
        seed = (plan.seed, fold.split.index)
        new = CompletedRows.draw(fold.imputation, data, missing, draws, seed)
        rows = new.entries.rows
        each = [at_rows(fitted, fold, completed, rows) for completed in new.each()]
        weights = new.weights(np.stack([prediction.propensity for prediction in each]))
        parts.append(averaged(each, weights))
    return with_rows(everywhere, rows, averaged(parts))


def predict_out_of_fold(
    fitted: FittedNetworks, data: Covariates, rows: NDArray[np.int64] | None = None
) -> list[Prediction]:
    """Nuisances at the training rows, each from networks that did not train on it.

    One prediction per repetition of the cross-fitting, of all rows or of some.
    """

    def of_fold(fold: Fold, test: NDArray[np.int64]) -> Prediction:
        return at_rows(fitted, fold, data, test)

    return out_of_fold(fitted.folds, of_fold, rows)


def at_rows(
    fitted: FittedNetworks, fold: Fold, data: Covariates, rows: NDArray[np.int64]
) -> Prediction:
    """The chosen networks of a fold averaged, in the units of the data.

    Beside a linear backbone, what hidden units add counts with their share.
    """
    offset = None if fold.backbone is None else fold.backbone.at_levels(data, rows)
    levels = fitted.spec.treatment_width + 1
    outcome, treated = np.zeros((len(rows), levels)), np.zeros((len(rows), levels - 1))
    for net in fold.networks:
        mu, probability = net.means(data, rows, fitted.threads, offset)
        outcome += mu / len(fold.networks)
        treated += probability / len(fold.networks)
    # The reference has the rest, which rounding may leave a hair below zero.
    rest = np.maximum(1 - treated.sum(axis=1), 0.0)
    propensity = np.column_stack([rest, treated])
    if offset is not None:
        link = OutcomeLink.of(fitted.spec)
        propensity = mixed_probabilities(offset[0, :, :-1], propensity, fitted.shares.treatment)
        outcome = link.mixed(offset[:, :, -1].T, outcome, fitted.shares.outcome)
    return Prediction(mu=fitted.y_units.restore(outcome), propensity=propensity)
