"""The linear backbone: covariates reach treatment and outcome also directly.

In the chain it is a unit of identity activation per layer for every visible unit: what enters the
first of them arrives at the visible one, Z = offset + b + w ψ(Y). Its weights are not left to
stochastic gradients. They solve penalised regressions on the training rows
(:mod:`cstonet.network.linear_part`), with penalties chosen on held-out rows, and hidden units learn
what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.blocks import row_blocks
from cstonet.data.treatment import level_dummies
from cstonet.data.variables import block_family
from cstonet.network.covariates import Covariates
from cstonet.network.linear_part import Regression, Terms, regress
from cstonet.network.links import FloatArray, link_of
from cstonet.network.products import Kind, Products
from cstonet.network.structure import Structure
from cstonet.network.training_data import TrainingData, Workplace
from cstonet.streams import Stream

# Parts of the training rows that are held out one after the other.
_PARTS = 5
# Covariates outside the supports that may enter the outcome's, and rows that are learned from.
MOST_OTHERS, MOST_ROWS = 200, 20_000
# Covariates up to which all may have slopes that differ between arms; beyond, those found may.
_MOST_BY_ARM = 50
# Groups of terms that have a penalty of their own.
_FOUND, _OTHERS, _BY_ARM = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class LinearPredictor:
    """The linear part of one visible unit: c + A'arms + x'(slopes + by_arm'A).

    Attributes
    ----------
    columns : (q,) int
        Covariates x.
    constant : float
        c.
    arms : (L-1,) float64
        Coefficients of the treatment's dummies A; zeros for a unit of the treatment.
    slopes : (q,) float64
        Those of the covariates in the reference arm.
    by_arm : (L-1, q) float64
        By how much they differ in each of the other arms.
    """

    columns: NDArray[np.int64]
    constant: float
    arms: FloatArray
    slopes: FloatArray
    by_arm: FloatArray

    def at(self, x: NDArray[np.floating], treatment: NDArray[np.floating]) -> FloatArray:
        """Predictor (m,) of rows with these covariates (m, q) and dummies (m, L-1)."""
        # Not x @ slopes, which would make a float64 copy of x.
        direct = np.einsum("mq,q->m", x, self.slopes)
        found: FloatArray = self.constant + treatment @ self.arms + direct
        if self.by_arm.any():
            found = found + np.einsum("ma,mq,aq->m", treatment, x, self.by_arm)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Backbone:
    """Linear parts of the units of the treatment and of the outcome.

    Attributes
    ----------
    treatment : tuple of LinearPredictor, length L-1
        Log-odds of the levels against the reference.
    outcome : LinearPredictor
        In network units, or log-odds.
    assignment : tuple of LinearPredictor, length L-1
        Log-odds of the levels given all covariates, as far as they are at hand: not those of the
        weights, but what tells how well covariates separate the arms.
    """

    treatment: tuple[LinearPredictor, ...]
    outcome: LinearPredictor
    assignment: tuple[LinearPredictor, ...]

    def check(self, covariates: int) -> None:
        """Raise ValueError unless its coefficients belong together, on so many covariates."""
        for unit in (*self.treatment, self.outcome, *self.assignment):
            q, arms = len(unit.columns), len(self.treatment)
            shapes = (unit.slopes.shape, unit.by_arm.shape, unit.arms.shape)
            there = np.isin(unit.columns, np.arange(covariates)).all()
            if shapes != ((q,), (arms, q), (arms,)) or not there:
                raise ValueError("a linear part's coefficients are not those of its covariates")

    def assignment_odds(self, data: Covariates, rows: NDArray[np.int64]) -> FloatArray:
        """Log-odds of all levels but the first, given all covariates, of m rows; (m, L-1)."""
        nothing = np.zeros((len(rows), len(self.assignment)))
        return np.column_stack(
            [unit.at(data.gather(rows, unit.columns), nothing) for unit in self.assignment]
        )

    def at_levels(self, data: Covariates, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Offsets of the visible units of m rows under every level, shape (L, m, L)."""
        width = len(self.treatment)
        offsets = np.empty((width + 1, len(rows), width + 1), dtype=np.float32)
        for unit, predictor in enumerate(self.treatment):
            x = data.gather(rows, predictor.columns)
            offsets[:, :, unit] = predictor.at(x, np.zeros((len(rows), width)))
        x = data.gather(rows, self.outcome.columns)
        for level, dummies in enumerate(level_dummies(width + 1)):
            received = np.broadcast_to(dummies, (len(rows), width))
            offsets[level, :, -1] = self.outcome.at(x, received)
        return offsets


@dataclass(frozen=True, slots=True, eq=False)
class FittedBackbone:
    """A backbone, and the offsets that networks train with.

    Attributes
    ----------
    backbone
        From the known rows of a fold.
    offset : (n, L) float32
        Of the visible units of the known rows under the treatment received, from linear parts that
        do not know the row; zero in other rows.
    """

    backbone: Backbone
    offset: NDArray[np.float32]


def fit_backbone(
    data: TrainingData, place: Workplace, used: Structure, found: Structure
) -> FittedBackbone:
    """Fit the linear parts on the known rows of a fold.

    Parameters
    ----------
    data
        Covariates, visible units and row weights; one outcome.
    place
        The fold's rows, and its random streams.
    used
        Covariates that the networks of the fold use. The treatment has slopes of its own alone,
        the outcome also of the others, as far as these are at hand: of those with the largest
        scores, where they are many.
    found
        Those that were found for each model.
    """
    fitter = _Fitter(data, place)
    width = data.visible.shape[1] - 1
    offset = np.zeros(data.visible.shape, dtype=np.float32)
    treatment = tuple(
        fitter.treatment(unit, used.treatment, offset[:, unit]) for unit in range(width)
    )
    outcome = fitter.outcome(used.outcome, offset[:, width])
    assignment = tuple(fitter.assignment(unit, found.treatment) for unit in range(width))
    return FittedBackbone(Backbone(treatment, outcome, assignment), offset)


class _Fitter:
    """Regressions on known rows of a fold."""

    def __init__(self, data: TrainingData, place: Workplace) -> None:
        self._data, self._place = data, place
        known = place.split.known
        rng = Stream.BACKBONE.generator(place.seed, place.network_id, place.split.index)
        self._rows = known
        if len(known) > MOST_ROWS:
            self._rows = np.sort(rng.choice(known, MOST_ROWS, replace=False))
        self._unseen = np.setdiff1d(known, self._rows)
        self._received = data.treatment[self._rows]
        self._weights = data.weights[self._rows].astype(np.float64)
        self._parts = _parts(self._received, rng)

    def treatment(
        self, unit: int, support: tuple[int, ...], offset: NDArray[np.float32]
    ) -> LinearPredictor:
        """Log-odds of a level against the reference, among those who received one of the two.

        Fills in the offsets (n,) of the known rows.
        """
        found = np.array(sorted(support), dtype=np.int64)
        nobody = np.empty((_PARTS + 1, 0), dtype=np.int64)
        predictor, fitted = self._log_odds(unit, found, nobody)
        return self._filled(predictor, fitted, offset)

    def assignment(self, unit: int, support: tuple[int, ...]) -> LinearPredictor:
        """The same given all covariates, those found for the treatment first."""
        found = np.array(sorted(support), dtype=np.int64)
        others = self._others(found, self._received[:, unit], self._received[:, :0])
        return self._log_odds(unit, found, others, predict=False)[0]

    def _log_odds(
        self,
        unit: int,
        found: NDArray[np.int64],
        others: NDArray[np.int64],
        *,
        predict: bool = True,
    ) -> tuple[LinearPredictor, Regression]:
        """Log-odds of a level against the reference on covariates found (f,) and others (6, k)."""
        one, own = np.ones((len(self._rows), 1)), self._gather(found)

        def terms(chosen: NDArray[np.int64]) -> Terms:
            return _terms((one, -1), (own, _FOUND), (self._gather(chosen), _OTHERS))

        elsewhere = np.delete(self._received, unit, axis=1).sum(axis=1)
        fitted = regress(
            _by_part(others, terms),
            self._received[:, unit],
            self._weights * (1 - elsewhere),
            self._parts,
            "logit",
            predict=predict,
            stop=self._place.stop,
        )
        width, columns = self._received.shape[1], np.concatenate([found, others[-1]])
        predictor = LinearPredictor(
            columns,
            float(fitted.coefficients[0]),
            np.zeros(width),
            fitted.coefficients[1:],
            np.zeros((width, len(columns))),
        )
        return predictor, fitted

    def outcome(self, support: tuple[int, ...], offset: NDArray[np.float32]) -> LinearPredictor:
        """The outcome given treatment and covariates. Fills in the offsets (n,) of known rows."""
        link = link_of(block_family(self._data.families[0]))
        response = self._data.outcome[self._rows, 0]
        mean = np.average(self._received, axis=0, weights=self._weights)
        arms = self._received - mean
        found = np.array(sorted(support), dtype=np.int64)
        others = self._others(found, response, arms)
        own = self._gather(found)
        first = np.column_stack([np.ones(len(arms)), arms])
        by_arm_too = own.shape[1] + others.shape[1] <= _MOST_BY_ARM

        def terms(chosen: NDArray[np.int64]) -> Terms:
            x = self._gather(chosen)
            interacting = np.column_stack([own, x]) if by_arm_too else own
            products = [(arm[:, None] * interacting, _BY_ARM) for arm in arms.T]
            return _terms((first, -1), (own, _FOUND), (x, _OTHERS), *products)

        fitted = regress(
            _by_part(others, terms),
            response,
            self._weights,
            self._parts,
            link,
            stop=self._place.stop,
        )
        return self._filled(
            self._predictor(fitted, np.concatenate([found, others[-1]]), mean), fitted, offset
        )

    def _predictor(
        self, fitted: Regression, columns: NDArray[np.int64], mean: FloatArray
    ) -> LinearPredictor:
        """Coefficients of centred arms (L-1,) become those of dummies."""
        width, q = len(mean), len(columns)
        constant, arms, slopes, by_arm = np.split(
            fitted.coefficients, [1, 1 + width, 1 + width + q]
        )
        by_arm = by_arm.reshape(width, -1)
        by_arm = np.pad(by_arm, ((0, 0), (0, q - by_arm.shape[1])))
        return LinearPredictor(
            columns,
            float(constant[0] - mean @ arms),
            arms,
            slopes - mean @ by_arm,
            by_arm,
        )

    def _filled(
        self, predictor: LinearPredictor, fitted: Regression, offset: NDArray[np.float32]
    ) -> LinearPredictor:
        offset[self._rows] = fitted.held_out
        for block in row_blocks(len(self._unseen), len(predictor.columns)):
            rows = self._unseen[block]
            x = self._data.covariates.gather(rows, predictor.columns)
            offset[rows] = predictor.at(x, self._data.treatment[rows])
        return predictor

    def _others(
        self, found: NDArray[np.int64], response: FloatArray, arms: FloatArray
    ) -> NDArray[np.int64]:
        """Covariates outside a support that enter, per part held out and at last of all rows.

        Those of largest score for what arms and support leave of the response, (parts + 1, k).
        """
        covariates = self._data.covariates
        if not isinstance(covariates, _core.Dataset):  # they stay where they are
            return np.empty((_PARTS + 1, 0), dtype=np.int64)
        outside = np.setdiff1d(np.arange(covariates.columns), found)
        if len(outside) <= MOST_OTHERS:
            return np.tile(outside, (_PARTS + 1, 1))
        basis = np.column_stack([np.ones(len(arms)), arms, self._gather(found)])
        left = np.zeros((len(response), _PARTS + 1), dtype=np.float32)
        for part in range(_PARTS + 1):
            rows = np.flatnonzero(self._parts != part)
            root = np.sqrt(self._weights[rows])[:, None]
            slopes = np.linalg.lstsq(root * basis[rows], root[:, 0] * response[rows], rcond=None)[0]
            left[rows, part] = self._weights[rows] * (response[rows] - basis[rows] @ slopes)
        table = np.array([(part, Kind.ONE, 0) for part in range(_PARTS + 1)], dtype=np.int64)
        none = left[:, :0]
        products = Products(left, none, none, None, table, np.ones(len(table), np.float32))
        scores = covariates.score_statistics(
            self._rows, products, None, outside, self._place.threads, self._place.stop
        )[0]
        largest = np.argsort(-np.abs(scores), axis=0, kind="stable")[:MOST_OTHERS]
        return np.sort(outside[largest.T], axis=1)

    def _gather(self, columns: NDArray[np.int64]) -> FloatArray:
        return self._data.covariates.gather(self._rows, columns).astype(np.float64)


def _by_part(others: NDArray[np.int64], terms: Callable[[NDArray[np.int64]], Terms]) -> list[Terms]:
    """Terms with the others (parts + 1, k) of each part; one for all where these are the same."""
    if bool((others == others[:1]).all()):
        return [terms(others[-1])] * len(others)
    return [terms(part) for part in others]


def _terms(*groups: tuple[FloatArray, int]) -> Terms:
    """Terms of several groups; those that have no term have no penalty."""
    group = np.concatenate([np.full(values.shape[1], number) for values, number in groups])
    present = np.unique(group[group >= 0])
    numbered = np.where(group >= 0, np.searchsorted(present, group), -1)
    return Terms(np.column_stack([values for values, _ in groups]), numbered)


def _parts(received: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal rows to the parts that are held out, arm by arm, shape (m,)."""
    arm = received @ np.arange(1, received.shape[1] + 1)
    parts = np.empty(len(received), dtype=np.int64)
    parts[np.lexsort((rng.random(len(arm)), arm))] = np.arange(len(arm)) % _PARTS
    return parts
