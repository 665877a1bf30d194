"""Score tests: which covariates outside a model would raise its likelihood if connected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cstonet.network.covariates import FoldCovariates
from cstonet.network.products import Kind
from cstonet.search.predictors import NEGLIGIBLE, Scored, products_of
from cstonet.search.projection import projected_scores

# Effects that are put back side by side, in one pass over the covariates.
_EFFECTS_AT_ONCE = 8
# Covariates that are scored again after an admission, out of those that stood out before it.
_MOST_LEADERS = 200
# A few covariates are scored off the model's own directions as they are asked for. Of many those
# that stand out a little without, in simple effects or in any of many directions: one below could
# pass a bar of twice as much only if the model explains three quarters of it.
_FEW, _STANDS_OUT, _STANDS_OUT_OF_MANY = 32, 2.0, 3.0


def threshold(tests: int, rows: int, margin: float = 0.0) -> float:
    """Critical value of the largest of ``tests`` scores on ``rows`` rows.

    The largest of m standard normals exceeds sqrt(2 log m) with probability near
    1/sqrt(4π log m); ``margin`` standard deviations more make that rarer. However few the tests, a
    score must pay the least that a consistent criterion asks for one weight, Hannan and Quinn's:
    z² > 2 log log n.
    """
    few = 2 * math.log(max(math.log(max(rows, 2)), 1))
    return math.sqrt(max(2 * math.log(max(tests, 1)), few)) + margin


def _leading(z: NDArray[np.float32], columns: NDArray[np.int64], bar: float) -> NDArray[np.int64]:
    """Places of covariates, of few all, that stand out in some of the columns of |z| (q, k)."""
    if len(columns) == 0 or len(z) <= _FEW:
        return np.arange(len(z) if len(columns) else 0)
    largest = np.maximum.reduce([z[:, k] for k in columns])
    leading = np.flatnonzero(largest > bar)
    return np.sort(leading[np.argsort(-largest[leading], kind="stable")[:_MOST_LEADERS]])


def constant(mean: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns of these moments have one value, but for rounding; shape (k,)."""
    same: NDArray[np.bool_] = np.sqrt(variance) <= NEGLIGIBLE * np.sqrt(variance + mean**2)
    return same


@dataclass(frozen=True, slots=True)
class Candidate:
    """A covariate proposed for a model: its score, what it was held against.

    ``main`` is its largest score among simple effects.
    """

    covariate: int
    score: float
    threshold: float
    main: float


@dataclass(frozen=True, slots=True)
class Largest:
    """Per covariate, shape (q,): the largest over all directions, and over simple effects only."""

    overall: NDArray[np.float64]
    main: NDArray[np.float64]

    def of(self, some: NDArray[np.int64]) -> Largest:
        """Those of some covariates."""
        return Largest(self.overall[some], self.main[some])

    def excess(self, critical: Largest) -> NDArray[np.float64]:
        """By how much either exceeds its critical value, at most; (q,)."""
        return np.maximum(self.overall - critical.overall, self.main - critical.main)


class ScoreTests:
    """Scores of all covariates for one model, given the residuals of its predictors.

    Parameters
    ----------
    covariates
        On the rows to use.
    predictors
        One for the outcome, one per level for the treatment; k directions in all.

    Attributes
    ----------
    outside
        What :meth:`admit` saw before it admitted anything, if it looked at all covariates outside
        the model: largest |z| of each, (p,), zero for those inside. None until then.
    """

    def __init__(self, covariates: FoldCovariates, predictors: Sequence[Scored]) -> None:
        self._covariates = covariates
        self._predictors = tuple(predictors)
        self._admitted: tuple[int, ...] = ()
        self._residuals = [predictor.residual.copy() for predictor in predictors]
        self._products = products_of(predictors)
        # Of every direction: the predictor it belongs to, and whether it is a simple effect's.
        self._owner = self._products.table[:, 0]
        self._main = np.isin(self._products.table[:, 1], (Kind.ONE, Kind.GIVEN))
        self.outside: Largest | None = None

    @property
    def tests_per_covariate(self) -> int:
        """Linear and square, in every direction."""
        return 2 * len(self._owner)

    @property
    def main_tests_per_covariate(self) -> int:
        """Linear and square, in the directions of simple effects."""
        return 2 * int(self._main.sum())

    def statistics(
        self, covariates: NDArray[np.int64], directions: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Scores z of some covariates, shape (2, q, k): of x and of x², in every direction or some.

        As they are: not taken off the directions of the model.
        """
        chosen = self._products if directions is None else self._products.only(directions)
        products = chosen.with_residuals(np.column_stack(self._residuals))
        return self._covariates.statistics(products, covariates)

    def projected(self, covariates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of x of some covariates in the directions of simple effects, (q, main).

        They are taken off the directions of the model, and of what was admitted, where a predictor
        says which these are.
        """
        simple = self._products.only(np.flatnonzero(self._main))
        z = np.zeros((len(covariates), len(simple.table)))
        if any(predictor.own is None for predictor in self._predictors):
            products = simple.with_residuals(np.column_stack(self._residuals))
            z[:] = self._covariates.statistics(products, covariates, squares=False)[0]
        first = 0
        for predictor, residual in zip(self._predictors, self._residuals, strict=True):
            own, end = predictor.own, first + predictor.main
            if own is not None:
                own = replace(own, inside=(*own.inside, *self._admitted))
                z[:, first:end] = projected_scores(
                    self._covariates, covariates, residual, predictor.simple, own
                )
            first = end
        return z

    def _magnitudes(
        self,
        covariates: NDArray[np.int64],
        *,
        simple_only: bool = False,
        raw_others: bool = False,
    ) -> NDArray[np.float32]:
        """|z| of some covariates, (2, q, k), those of x off the model's directions.

        With ``simple_only``, those of directions that are not simple effects' are zero; with
        ``raw_others`` these are as they are.
        """
        simple, others = np.flatnonzero(self._main), np.flatnonzero(~self._main)
        if simple_only:
            z = np.zeros((2, len(covariates), len(self._main)), dtype=np.float32)
            z[:, :, simple] = np.abs(self.statistics(covariates, simple))
        else:
            z = self.statistics(covariates)
            np.abs(z, out=z)  # in place: there are millions at high p
        own = next((p.own for p in self._predictors if p.own is not None), None)
        if own is None:
            return z
        leading = _leading(z[0], simple, _STANDS_OUT)
        if len(leading):
            z[0][np.ix_(leading, simple)] = np.abs(self.projected(covariates[leading]))
        if simple_only or raw_others:
            return z
        leading = _leading(z[0], others, _STANDS_OUT_OF_MANY)
        inside = np.array([*own.inside, *self._admitted], dtype=np.int64)
        if len(leading) and len(inside):
            products = self._products.only(others).with_residuals(np.column_stack(self._residuals))
            beyond = self._covariates.statistics_beyond(
                products, covariates[leading], inside, squares=False
            )
            z[0][np.ix_(leading, others)] = np.abs(beyond[0])
        return z

    def largest(self, covariates: Sequence[int] | NDArray[np.int64] | None = None) -> Largest:
        """Largest |z| of some covariates, by default of all."""
        if covariates is None:
            covariates = np.arange(self._covariates.columns)
        return self._largest(self._magnitudes(np.asarray(covariates, dtype=np.int64)))

    def _largest(self, z: NDArray[np.float32]) -> Largest:
        # Direction by direction: the scores of one stand together.
        best = [np.maximum(z[0, :, k], z[1, :, k]) for k in range(z.shape[2])]
        simple = [values for values, main in zip(best, self._main, strict=True) if main]
        return Largest(
            overall=np.maximum.reduce(best).astype(np.float64),
            main=np.maximum.reduce(simple).astype(np.float64),
        )

    def _spread(self, largest: Largest, covariates: NDArray[np.int64]) -> Largest:
        """Scores of some covariates among all, (p,), where the others have zero."""
        overall, main = np.zeros(self._covariates.columns), np.zeros(self._covariates.columns)
        overall[covariates], main[covariates] = largest.overall, largest.main
        return Largest(overall, main)

    def nothing_asked(self) -> Largest:
        """Critical values that every covariate exceeds whose score is not zero."""
        nothing = np.zeros(self._covariates.columns)
        return Largest(nothing, nothing)

    def admit(
        self,
        critical: Largest,
        *,
        inside: Sequence[int],
        most: int,
        beyond: Sequence[int] = (),
    ) -> list[Candidate]:
        """Up to ``most`` covariates whose scores exceed their critical values, best first.

        After each admission the residual is cleared of the admitted feature, so that a covariate
        which only stands in for an admitted one does not follow it in.

        Parameters
        ----------
        critical
            Critical values of every covariate's scores; exceeding either is enough. Where both are
            infinite nothing is computed.
        inside
            Covariates already in the model.
        most
            How many.
        beyond
            What these explain of a covariate is taken out of it, and it must exceed its critical
            value still. What a network gets wrong about its own covariates is in its residuals, and
            on many rows every covariate that depends on them would score it.
        """
        admitted: list[Candidate] = []
        tested = np.flatnonzero(np.isfinite(np.minimum(critical.overall, critical.main)))
        tested = tested[~np.isin(tested, inside)]
        if len(tested) == 0:
            return admitted
        simple_only = not np.isfinite(critical.overall).any()
        # Where rows are many, what stands out in other directions is looked at beyond the support.
        wanted = {"simple_only": simple_only, "raw_others": len(beyond) > 0}
        z = self._magnitudes(tested, **wanted)
        largest = self._largest(z)
        if not simple_only and len(tested) + len(set(inside)) == self._covariates.columns:
            self.outside = self._spread(largest, tested)
        # What does not stand out now may do so once the admitted are fitted: in another round.
        excess = largest.excess(critical.of(tested))
        leading = np.flatnonzero(excess > 0)
        if len(leading) > _MOST_LEADERS:
            order = np.argsort(-excess[leading], kind="stable")
            leading = np.sort(leading[order[:_MOST_LEADERS]])
        z, tested = z[:, leading], tested[leading]
        while len(tested):
            self._look_beyond(z, tested, np.array(beyond, dtype=np.int64))
            best = self._best(z, tested, critical.of(tested))
            if best is None:
                break
            k, candidate = best
            admitted.append(candidate)
            self._clear(candidate.covariate, z[:, k])
            tested = np.delete(tested, k)
            if len(admitted) == most or len(tested) == 0:
                break
            z = self._magnitudes(tested, **wanted)
        return admitted

    def settle(self) -> None:
        """Clear the residuals of the simple directions alone, as a refit would after an admission.

        Where an admitted covariate is a confounder, what is left depends on the treatment, and a
        covariate that is nearly constant would score that.
        """
        for owner, residual in enumerate(self._residuals):
            simple = self._directions(np.flatnonzero(self._main & (self._owner == owner)))
            residual -= simple @ np.linalg.lstsq(simple, residual, rcond=None)[0]

    def _best(
        self,
        z: NDArray[np.float32],
        tested: NDArray[np.int64],
        critical: Largest,
    ) -> tuple[int, Candidate] | None:
        """The covariate furthest above its critical value, with its position, if any is.

        Scores of features that are empty become zero in `z` (2, q, k) once they stand out.
        """
        while True:
            largest = self._largest(z)
            excess = largest.excess(critical)
            k = int(np.argmax(excess))
            if not excess[k] > 0:
                return None
            empty = self._empty(int(tested[k])) & (z[:, k] > 0)
            if not empty.any():
                main = float(largest.main[k])
                score = max(float(largest.overall[k]), main)
                return k, Candidate(int(tested[k]), score, score - float(excess[k]), main)
            z[:, k][empty] = 0

    def stand_ins(self, scores: Mapping[int, float]) -> dict[int, NDArray[np.float64]]:
        """|z| that all covariates would have if a linear effect of one of them were left out.

        Parameters
        ----------
        scores
            Of every covariate whose effect is put back into the residuals, each by itself: how
            large it is, as its z.

        Returns
        -------
        dict of (p,)
            For each of them, the largest over the simple effects of x. Not of x²: that of a
            balanced dummy is constant, and what is scored there is rounding error.
        """
        largest: dict[int, NDArray[np.float64]] = {}
        columns = np.flatnonzero(self._main)
        everything = np.arange(self._covariates.columns)
        some = list(scores)
        for first in range(0, len(some), _EFFECTS_AT_ONCE):
            part = some[first : first + _EFFECTS_AT_ONCE]
            left = [r for j in part for r in self._with_effect(j, scores[j])]
            simple = self._products.only(columns)
            table = np.tile(simple.table, (len(part), 1))
            table[:, 0] += np.repeat(np.arange(len(part)), len(columns)) * len(self._residuals)
            products = replace(simple, table=table, scale=np.tile(simple.scale, len(part)))
            z = self._covariates.statistics(
                products.with_residuals(np.column_stack(left)), everything, squares=False
            )
            z = np.abs(z[0], out=z[0]).reshape(len(everything), len(part), len(columns))
            largest |= dict(zip(part, z.max(axis=2).T.astype(np.float64), strict=True))
        return largest

    def _with_effect(self, covariate: int, score: float) -> list[NDArray[np.float64]]:
        """The residuals with a linear effect of a covariate put back."""
        x = self._covariates.values(covariate)
        x -= x.mean()
        step = score * x / math.sqrt(np.sum(x**2))  # Σ step x / sqrt(Σ x²) = z
        return [r + step * math.sqrt(np.mean(r**2)) for r in self._residuals]

    def _look_beyond(
        self, z: NDArray[np.float32], tested: NDArray[np.int64], inside: NDArray[np.int64]
    ) -> None:
        """Lower the scores z (2, q, k) to what covariates inside do not explain."""
        if len(inside) == 0 or len(tested) == 0:
            return
        products = self._products.with_residuals(np.column_stack(self._residuals))
        beyond = np.abs(self._covariates.statistics_beyond(products, tested, inside))
        for k, (owner, main) in enumerate(zip(self._owner, self._main, strict=True)):
            if main and self._predictors[owner].own is not None:
                beyond[0, :, k] = np.inf  # off the model's directions already
        np.minimum(z, beyond, out=z)

    def _empty(self, covariate: int) -> NDArray[np.bool_]:
        """Which features of a covariate say nothing about it, shape (2, k).

        A level that only left-out rows have is constant on the others, and so is the square of
        ±1. What is scored is then the direction alone, and in squares rounding error.
        """
        x = self._covariates.values(covariate)
        empty = np.empty((2, len(self._owner)), dtype=bool)
        table = self._products.table.copy()
        table[:, 0] = 0
        directions = replace(self._products, table=table)
        for power, values in enumerate((x, x**2)):
            feature = values if power == 0 else values - values.mean()
            alone = constant(values.mean(), values.var())
            empty[power] = alone | constant(
                *self._covariates.moments(directions.with_residuals(feature[:, None]))
            )
        return empty

    def _directions(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some of the directions, shape (m, columns)."""
        table = self._products.table[columns]
        table[:, 0] = 0
        one = np.ones((len(self._residuals[0]), 1), dtype=np.float32)
        scale = self._products.scale[columns]
        return self._covariates.evaluate(
            replace(self._products, table=table, scale=scale, residuals=one)
        )

    def _clear(self, covariate: int, z: NDArray[np.float32]) -> None:
        """Regress every residual on the strongest feature of a covariate."""
        self._admitted += (covariate,)
        power, direction = np.unravel_index(int(np.argmax(z)), z.shape)
        x = self._covariates.values(covariate)
        feature = x if power == 0 else x**2 - np.mean(x**2)
        feature *= self._directions(np.array([direction]))[:, 0]
        feature -= feature.mean()
        # Plain sums: a threaded dot product would wake threads that this fold does not have.
        size = np.sum(feature**2)
        for residual in self._residuals:
            residual -= feature * (np.sum(feature * residual) / size)
