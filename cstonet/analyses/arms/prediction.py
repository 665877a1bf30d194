"""What networks say about a treatment with levels: μ̂_a(x) and p̂_a(x), of training and new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.blocks import row_blocks
from cstonet.crossfit.fitted import FittedNetworks
from cstonet.crossfit.fold import Fold, by_repetition, out_of_fold
from cstonet.imputation.new_rows import CompletedRows
from cstonet.network.covariates import Covariates, at_hand
from cstonet.network.mixture import (
    OutcomeLink,
    log_odds,
    mixed_probabilities,
    probabilities_of,
    sharpened,
    treatment_weights,
)
from cstonet.network.prediction import RowArrays, averaged, with_rows
from cstonet.network.trained import TrainedNetwork


@dataclass(frozen=True, slots=True, eq=False)
class Prediction(RowArrays):
    """Nuisances at given rows: μ̂_a(x), shape (m, levels), and p̂_a(x), shape (m, levels)."""

    mu: NDArray[np.float64]
    propensity: NDArray[np.float64]


def predict(fitted: FittedNetworks, X: NDArray[np.floating]) -> Prediction:
    """Nuisances at new rows, shape (m, p), averaged over the chosen networks of all folds."""
    data = fitted.x_scaling.dataset(X, 0)
    return fitted.over_folds(X.shape[0], lambda fold, rows: at_rows(fitted, fold, data, rows))


def outcomes_by_fold(fitted: FittedNetworks, X: NDArray[np.floating]) -> NDArray[np.float64]:
    """What each fold predicts of the outcomes at rows (m, p), shape (R, K, m, L).

    R repetitions of the cross-fitting have K folds each. Folds are asked about all rows alike,
    whether they trained on them or not.
    """
    data = fitted.x_scaling.dataset(X, 0)
    # Without rows the folds are asked all the same: their answers have the right shapes.
    blocks = list(row_blocks(X.shape[0])) or [slice(0, 0)]

    def of_fold(fold: Fold) -> NDArray[np.float64]:
        parts = [
            at_rows(fitted, fold, data, np.arange(rows.start, rows.stop)).mu for rows in blocks
        ]
        return np.concatenate(parts)

    return np.stack(
        [[of_fold(fold) for fold in repetition] for repetition in by_repetition(fitted.folds)]
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
    everywhere = fitted.over_folds(X.shape[0], lambda fold, rows: at_rows(fitted, fold, data, rows))
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


@dataclass(frozen=True, slots=True, eq=False)
class _Odds(RowArrays):
    """Log-odds of treatments given all covariates, shape (m, L-1)."""

    values: NDArray[np.float64]


def assignment_probabilities(
    fitted: FittedNetworks,
    data: Covariates,
    predictions: Sequence[Prediction],
    treatment: NDArray[np.integer],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Out-of-fold probabilities (n, L) of the treatments given all covariates.

    What the weights' probabilities and the linear parts on all covariates say together, on the
    scale of log-odds, with weights under which the treatments received are most likely, sharpened
    as far as these say. Without linear parts, the weights' alone.

    Parameters
    ----------
    fitted, data
        The networks, and the covariates that they were trained on.
    predictions
        Out of fold, of each repetition.
    treatment : (n,)
        Codes.
    weights : (n,), optional
        Of the units.
    """
    counts = np.ones(len(treatment)) if weights is None else weights
    # In sample, what fits the treatments best is no measure of how well covariates tell them.
    honest = fitted.plan.folds > 1
    if any(fold.backbone is None for fold in fitted.folds):
        odds = log_odds(averaged(predictions).propensity)
        odds = sharpened(odds, treatment, counts) if honest else odds
        return probabilities_of(odds)

    def of_fold(fold: Fold, rows: NDArray[np.int64]) -> _Odds:
        if fold.backbone is None:
            raise ValueError("a fold without linear parts")
        return _Odds(fold.backbone.assignment_odds(data, rows))

    mixed = []
    for linear, own in zip(out_of_fold(fitted.folds, of_fold), predictions, strict=True):
        odds = np.stack([linear.values, log_odds(own.propensity)])
        best = np.tensordot(treatment_weights(odds, treatment, counts), odds, axes=1)
        sharp = sharpened(best, treatment, counts) if honest else best
        mixed.append(probabilities_of(sharp))
    mean: NDArray[np.float64] = np.mean(mixed, axis=0)
    return mean


def at_rows(
    fitted: FittedNetworks, fold: Fold, data: Covariates, rows: NDArray[np.int64]
) -> Prediction:
    """What a fold says of some rows, in the units of the data.

    The average of its chosen networks, mixed with its linear parts if there are any.
    """
    if fold.backbone is None:
        outcome, propensity = _averaged_means(fitted, fold.networks, data, rows)
    else:
        odds, predictors = predictors_at(fitted, fold, data, rows)
        propensity = mixed_probabilities(odds, fitted.mixture.treatment)
        outcome = OutcomeLink.of(fitted.spec).mixed(predictors, fitted.mixture.outcome)
    return Prediction(mu=fitted.y_units.restore(outcome), propensity=propensity)


def predictors_at(
    fitted: FittedNetworks, fold: Fold, data: Covariates, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The predictors that a mixture is made of, of m rows.

    Returns
    -------
    odds : (K, m, L-1)
        Log-odds of the treatment's levels against the first.
    outcome : (K, m, L)
        Linear predictors of the outcome under each level, in network units.
    """
    if fold.backbone is None:
        raise ValueError("only networks with linear parts are mixed")
    offset = fold.backbone.at_levels(data, rows)
    link = OutcomeLink.of(fitted.spec)
    odds, outcome = [offset[0, :, :-1].astype(np.float64)], [offset[:, :, -1].T.astype(np.float64)]
    for networks, own in ((fold.beside, offset), (fold.networks, None)):
        if not networks:  # that beside the linear part diverged: nothing is added to it
            odds.append(odds[0])
            outcome.append(outcome[0])
            continue
        means, probabilities = _averaged_means(fitted, networks, data, rows, own)
        odds.append(log_odds(probabilities))
        outcome.append(link.predictor(means))
    return np.stack(odds), np.stack(outcome)


def _averaged_means(
    fitted: FittedNetworks,
    networks: Sequence[TrainedNetwork],
    data: Covariates,
    rows: NDArray[np.int64],
    offset: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outcome means in network units and probabilities of networks, each (m, L)."""
    levels = fitted.spec.treatment_width + 1
    outcome, treated = np.zeros((len(rows), levels)), np.zeros((len(rows), levels - 1))
    for net in networks:
        mu, probability = net.means(data, rows, fitted.threads, offset)
        outcome += mu / len(networks)
        treated += probability / len(networks)
    # The reference has the rest, which rounding may leave a hair below zero.
    rest = np.maximum(1 - treated.sum(axis=1), 0.0)
    return outcome, np.column_stack([rest, treated])
