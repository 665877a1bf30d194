"""Penalised regressions: the linear parts of treatment and outcome, chosen on held-out rows.

A linear part is a predictor η = B'f of a visible block, in which f are a constant, the treatment's
units, covariates, and their products with the centred treatment. Its coefficients maximise the
log-likelihood of a linear, a logistic or a log-linear model minus ½ Σ λ_g b², with a penalty for
each group g of terms. Penalties are chosen by the squared error on held-out parts of the rows, or
by the deviance of counts, and the predictions of these parts are those that networks train with: no
row is part of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet.network.links import FloatArray, Link, losses, mean_of, slope_of

# Penalties per row and unit of information; infinity leaves the group out.
PENALTIES = (np.inf, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.0003)
# The terms that are always there are all but free.
_FREE = 1e-6
_NEWTON_STEPS = 25
# Penalty of the log-linear fit that the normal equations of counts are taken at.
_FIRST = 0.1
# Least information of a row in Newton's method.
_LEAST_INFORMATION = 1e-6
# Rounds of the search for penalties, group by group.
_ROUNDS = 2
_CONVERGED = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Terms of a linear part on m rows, in groups of one penalty each.

    Attributes
    ----------
    values : (m, k) float64
        The terms, the constant among them.
    group : (k,) int
        The group of each, from 0; -1: without a penalty worth the name.
    """

    values: FloatArray
    group: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        """Number of groups that a penalty is chosen for."""
        return int(self.group.max(initial=-1)) + 1

    def of(self, rows: NDArray[np.int64]) -> Terms:
        """The same on some of the rows."""
        return Terms(self.values[rows], self.group)


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A fitted regression of one response.

    Attributes
    ----------
    coefficients : (k,) float64
        Of the terms; zero where a group was left out.
    held_out : (m,) float64
        The linear predictor of every row, from coefficients that do not know the row; (0,) if
        nobody asked.
    penalties : tuple of float
        Chosen for each group.
    """

    coefficients: FloatArray
    held_out: FloatArray
    penalties: tuple[float, ...]


def regress(
    terms: Sequence[Terms],
    response: FloatArray,
    weights: FloatArray,
    parts: NDArray[np.int64],
    link: Link,
    *,
    predict: bool = True,
    stop: Callable[[int], object] | None = None,
) -> Regression:
    """Fit a linear part, with penalties chosen on held-out rows.

    Parameters
    ----------
    terms : sequence of Terms
        One for every part held out, then one for all rows: which terms there are may have been
        decided by the rows that a fit knows. All on the m rows.
    response, weights : (m,) float64
        Response (0/1 with the logit link, of mean about one with the log) and row weights.
    parts : (m,) int
        The part, from 0, in which a row is held out.
    link : {"identity", "logit", "log"}
        Of the response's mean.
    predict : bool
        Whether predictions of held-out rows are wanted.
    stop
        Called now and then; may raise to stop.
    """
    *inner, final = terms
    known = [np.flatnonzero(parts != k) for k in range(len(inner))]
    left_out = [np.flatnonzero(parts == k) for k in range(len(inner))]
    systems = [
        _System.of(own.of(rows), response[rows], weights[rows], link)
        for own, rows in zip(inner, known, strict=True)
    ]

    unseen = [
        (own.values[rows], response[rows], weights[rows])
        for own, rows in zip(inner, left_out, strict=True)
    ]

    def loss(penalties: tuple[float, ...]) -> float:
        total = 0.0
        for system, (values, truth, counts) in zip(systems, unseen, strict=True):
            if stop is not None:
                stop(0)
            predicted = values @ system.solve(penalties)
            # The systems of binary responses are those of linear probabilities.
            judged: Link = "log" if link == "log" else "identity"
            total += float(counts @ losses(judged, predicted, truth))
        return total

    best = _descend(loss, final.n_groups)
    held_out = np.empty(len(response) if predict else 0)
    for own, system, rows, others in zip(inner, systems, left_out, known, strict=True):
        if not predict:
            break
        found = system.solve(best)
        if link != "identity":
            found = system.maximised(own.of(others), response[others], weights[others], best)
        held_out[rows] = own.values[rows] @ found
    whole = _System.of(final, response, weights, link)
    coefficients = whole.solve(best)
    if link != "identity":
        coefficients = whole.maximised(final, response, weights, best)
    return Regression(coefficients, held_out, best)


def _descend(loss: Callable[[tuple[float, ...]], float], groups: int) -> tuple[float, ...]:
    """Penalties of small loss: one group after the other, from none of them in the model."""
    best: tuple[float, ...] = (np.inf,) * groups
    least = loss(best)
    for _ in range(_ROUNDS):
        before = best
        for group in range(groups):
            for penalty in PENALTIES:
                trial = (*best[:group], penalty, *best[group + 1 :])
                if penalty != best[group] and (found := loss(trial)) < least:
                    best, least = trial, found
        if best == before:
            break
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _System:
    """Normal equations of a least-squares fit, to be solved with several penalties.

    Those of counts are the equations of a step of Newton's method from a first log-linear fit:
    least squares of the counts themselves would be decided by the largest.

    Attributes
    ----------
    link
        Of the response's mean.
    gram, moment, group
        Of the k terms: (k, k), (k,), (k,).
    total
        Sum of the row weights.
    unit
        Penalties of the maximised likelihood are those of these equations times so much.
    """

    link: Link
    gram: FloatArray
    moment: FloatArray
    group: NDArray[np.int64]
    total: float
    unit: float

    @classmethod
    def of(cls, terms: Terms, response: FloatArray, weights: FloatArray, link: Link) -> _System:
        values, total, unit = terms.values, float(weights.sum()), 1.0
        if link == "log":
            each = np.where(terms.group < 0, _FREE, _FIRST)
            eta = values @ _newton(values, response, weights, total * each, link)
            mean = mean_of(link, eta)
            information = np.maximum(mean, _LEAST_INFORMATION)
            response = eta + (response - mean) / information
            weights = weights * information
        elif link == "logit":
            share = float(weights @ response) / total
            # A log-odds coefficient is 1/v of the one of a linear probability, v being the
            # response's variance, so its penalty is v times as large.
            unit = max(float(weights @ (response - share) ** 2) / total, 1e-6)
        weighted = values * weights[:, None]
        return cls(link, weighted.T @ values, weighted.T @ response, terms.group, total, unit)

    def ridge(self, penalties: tuple[float, ...]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Penalty of each term, and which terms take part."""
        each = np.array([*penalties, _FREE])[self.group]
        kept = np.isfinite(each)
        return self.total * each[kept], kept

    def solve(self, penalties: tuple[float, ...]) -> FloatArray:
        """Coefficients of all terms, zero for those left out."""
        ridge, kept = self.ridge(penalties)
        found = np.zeros(len(self.moment))
        matrix = self.gram[np.ix_(kept, kept)]
        matrix[np.diag_indices_from(matrix)] += ridge
        found[kept] = _solved(matrix, self.moment[kept])
        return found

    def maximised(
        self,
        terms: Terms,
        response: FloatArray,
        weights: FloatArray,
        penalties: tuple[float, ...],
    ) -> FloatArray:
        """Coefficients that maximise the penalised likelihood, zero for terms left out."""
        ridge, kept = self.ridge(penalties)
        found = np.zeros(len(kept))
        values = terms.values[:, kept]
        found[kept] = _newton(values, response, weights, self.unit * ridge, self.link)
        return found


def _newton(
    values: FloatArray, response: FloatArray, weights: FloatArray, ridge: FloatArray, link: Link
) -> FloatArray:
    """Coefficients of terms (m, k) with penalties (k,), by Newton's method with halved steps."""
    found, eta = np.zeros(values.shape[1]), np.zeros(len(response))

    def objective(b: FloatArray, at: FloatArray) -> float:
        return float(weights @ losses(link, at, response) + 0.5 * ridge @ b**2)

    value = objective(found, eta)
    for _ in range(_NEWTON_STEPS):
        mean = mean_of(link, eta)
        gradient = values.T @ (weights * (response - mean)) - ridge * found
        information = np.maximum(slope_of(link, mean), _LEAST_INFORMATION)
        hessian = (values * (weights * information)[:, None]).T @ values
        hessian[np.diag_indices_from(hessian)] += ridge
        step = _solved(hessian, gradient)
        size = 1.0
        while True:
            trial = found + size * step
            at = values @ trial
            now = objective(trial, at)
            if now <= value or size < 1e-4:
                break
            size /= 2
        gain, found, eta, value = value - now, trial, at, now
        if gain <= _CONVERGED * (abs(value) + 1.0):
            break
    return found


def _solved(matrix: FloatArray, moment: FloatArray) -> FloatArray:
    """Solution (k,) of a system with a positive definite matrix (k, k)."""
    from scipy.linalg import cho_factor, cho_solve  # not at the top: only linear parts load it

    solution: FloatArray = cho_solve(cho_factor(matrix, check_finite=False), moment)
    return solution
