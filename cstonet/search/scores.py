"""Score tests: which covariates outside a model would raise its likelihood if connected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core

# A direction whose size is below this share of a typical one carries no information.
_NEGLIGIBLE = 1e-6


def threshold(tests: int, rows: int, margin: float = 0.0) -> float:
    """Critical value of the largest of ``tests`` scores on ``rows`` rows.

    The largest of m standard normals exceeds sqrt(2 log m) with probability near
    1/sqrt(4π log m); ``margin`` standard deviations more make that rarer, and leave room for
    scores that are correlated with a true covariate's. However few the tests, a score must pay
    what the BIC asks for one weight: z² > log n.
    """
    return max(math.sqrt(2 * math.log(max(tests, 1))) + margin, math.sqrt(math.log(rows)))


def normalised(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of mean square one, shape (m, k); columns that vanish are left out."""
    size = np.sqrt(np.mean(directions**2, axis=0))
    kept = size > _NEGLIGIBLE
    columns: NDArray[np.float64] = directions[:, kept] / size[kept]
    return columns


def constant(columns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns (m, k) have one value, but for rounding; shape (k,)."""
    size = np.sqrt(np.mean(columns**2, axis=0))
    same: NDArray[np.bool_] = np.std(columns, axis=0) <= _NEGLIGIBLE * size
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


@dataclass(frozen=True, slots=True)
class Scored:
    """A predictor of a model, and where covariates could enter it.

    Parameters
    ----------
    residual : (m,)
        Derivative of the log-likelihood with respect to the predictor.
    directions : (m, k)
        What a new weight's contribution is multiplied by: 1 for a main effect, the centred
        treatment for effect modification, a hidden unit's slope for a weight into that unit.
    main
        How many of the directions, from the first, are those of simple effects.
    """

    residual: NDArray[np.float64]
    directions: NDArray[np.float64]
    main: int


class ScoreTests:
    """Scores of all covariates for one model, given the residuals of its predictors.

    Parameters
    ----------
    data, rows
        The covariates and the rows to use, shape (m,).
    predictors
        One for the outcome, one per level for the treatment; k directions in all.
    threads, stop
        Threads to use; a function called now and then that may raise to stop.
    """

    def __init__(
        self,
        data: _core.Dataset,
        rows: NDArray[np.int64],
        predictors: Sequence[Scored],
        *,
        threads: int,
        stop: Callable[[int], object] | None,
    ) -> None:
        self._data = data
        self._rows = rows
        self._residuals = [predictor.residual.copy() for predictor in predictors]
        self._directions = np.hstack([predictor.directions for predictor in predictors])
        sizes = [predictor.directions.shape[1] for predictor in predictors]
        # Of every direction: the predictor it belongs to, and whether it is a simple effect's.
        self._owner = np.repeat(np.arange(len(predictors)), sizes)
        simple = [np.arange(k) < p.main for k, p in zip(sizes, predictors, strict=True)]
        self._main = np.concatenate(simple)
        self._threads = threads
        self._stop = stop

    @property
    def tests_per_covariate(self) -> int:
        """Linear and square, in every direction."""
        return 2 * int(self._directions.shape[1])

    @property
    def main_tests_per_covariate(self) -> int:
        """Linear and square, in the directions of simple effects."""
        return 2 * int(self._main.sum())

    def statistics(self, covariates: NDArray[np.int64]) -> NDArray[np.float32]:
        """Scores z of some covariates, shape (2, q, k): of x and of x², in every direction."""
        residuals = np.column_stack(self._residuals)[:, self._owner]
        return self._scores(residuals * self._directions, covariates)

    def _scores(
        self, products: NDArray[np.float64], covariates: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        narrow = np.ascontiguousarray(products, np.float32)
        return _core.score_statistics(
            self._data, self._rows, narrow, self._threads, self._stop, covariates
        )

    def _magnitudes(self, covariates: NDArray[np.int64]) -> NDArray[np.float32]:
        z = self.statistics(covariates)
        return np.abs(z, out=z)  # in place: there are millions at high p

    def largest(self, covariates: Sequence[int] | NDArray[np.int64] | None = None) -> Largest:
        """Largest |z| of some covariates, by default of all."""
        if covariates is None:
            covariates = np.arange(self._data.columns)
        return self._largest(self._magnitudes(np.asarray(covariates, dtype=np.int64)))

    def _largest(self, z: NDArray[np.float32]) -> Largest:
        return Largest(
            overall=np.maximum(z[0], z[1]).max(axis=1).astype(np.float64),
            main=z[:, :, self._main].max(axis=(0, 2)).astype(np.float64),
        )

    def nothing_asked(self) -> Largest:
        """Critical values that every covariate exceeds whose score is not zero."""
        nothing = np.zeros(self._data.columns)
        return Largest(nothing, nothing)

    def admit(self, critical: Largest, *, inside: Sequence[int], most: int) -> list[Candidate]:
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
        """
        admitted: list[Candidate] = []
        tested = np.flatnonzero(np.isfinite(np.minimum(critical.overall, critical.main)))
        tested = tested[~np.isin(tested, inside)]
        critical = Largest(critical.overall[tested], critical.main[tested])
        waiting = np.ones(len(tested), dtype=bool)
        while len(admitted) < most and waiting.any():
            z = self._magnitudes(tested)
            best = self._best(z, tested, critical, waiting)
            if best is None:
                break
            k, candidate = best
            waiting[k] = False
            admitted.append(candidate)
            self._clear(candidate.covariate, z[:, k])
        return admitted

    def settle(self) -> None:
        """Clear the residuals of the simple directions alone, as a refit would after an admission.

        Where an admitted covariate is a confounder, what is left depends on the treatment, and a
        covariate that is nearly constant would score that.
        """
        for owner, residual in enumerate(self._residuals):
            simple = self._directions[:, self._main & (self._owner == owner)]
            residual -= simple @ np.linalg.lstsq(simple, residual, rcond=None)[0]

    def _best(
        self,
        z: NDArray[np.float32],
        tested: NDArray[np.int64],
        critical: Largest,
        waiting: NDArray[np.bool_],
    ) -> tuple[int, Candidate] | None:
        """The waiting covariate furthest above its critical value, with its position, if any is.

        Scores of features that are empty become zero in `z` (2, q, k) once they stand out.
        """
        while True:
            largest = self._largest(z)
            excess = np.maximum(largest.overall - critical.overall, largest.main - critical.main)
            excess[~waiting] = -math.inf
            k = int(np.argmax(excess))
            if not excess[k] > 0:
                return None
            empty = self._empty(int(tested[k])) & (z[:, k] > 0)
            if not empty.any():
                main = float(largest.main[k])
                score = max(float(largest.overall[k]), main)
                return k, Candidate(int(tested[k]), score, score - float(excess[k]), main)
            z[:, k][empty] = 0

    def stand_ins(self, covariate: int, score: float) -> NDArray[np.float64]:
        """|z| that all covariates would have if a linear effect of this one were left out.

        Parameters
        ----------
        covariate
            The one whose effect is put back into the residuals.
        score
            How large, as its z.

        Returns
        -------
        (p,)
            The largest over the simple effects of x. Not of x²: that of a balanced dummy is
            constant, and what is scored there is rounding error.
        """
        x = self._values(covariate)
        x -= x.mean()
        step = score * x / math.sqrt(x @ x)  # Σ step x / sqrt(Σ x²) = z
        columns = np.flatnonzero(self._main)
        left = [r + step * math.sqrt(np.mean(r**2)) for r in self._residuals]
        products = np.column_stack([left[self._owner[k]] * self._directions[:, k] for k in columns])
        z = self._scores(products, np.arange(self._data.columns))
        largest: NDArray[np.float64] = np.abs(z[0]).max(axis=1).astype(np.float64)
        return largest

    def _empty(self, covariate: int) -> NDArray[np.bool_]:
        """Which features of a covariate say nothing about it, shape (2, k).

        A level that only left-out rows have is constant on the others, and so is the square of
        ±1. What is scored is then the direction alone, and in squares rounding error.
        """
        x = self._values(covariate)
        empty = np.empty((2, self._directions.shape[1]), dtype=bool)
        for power, values in enumerate((x, x**2)):
            features = (values if power == 0 else values - values.mean())[:, None]
            empty[power] = constant(values[:, None]) | constant(features * self._directions)
        return empty

    def _values(self, covariate: int) -> NDArray[np.float64]:
        """A covariate on the rows, shape (m,)."""
        return self._data.gather(self._rows, np.array([covariate]))[:, 0].astype(np.float64)

    def _clear(self, covariate: int, z: NDArray[np.float32]) -> None:
        """Regress every residual on the strongest feature of a covariate."""
        power, direction = np.unravel_index(int(np.argmax(z)), z.shape)
        x = self._values(covariate)
        feature = (x if power == 0 else x**2 - np.mean(x**2)) * self._directions[:, direction]
        feature -= feature.mean()
        for residual in self._residuals:
            residual -= feature * (feature @ residual) / (feature @ feature)
