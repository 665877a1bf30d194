"""How strong the selected covariates are as confounders: benchmarks for those that are omitted.

The gain of a covariate is what outcome and treatment models lose without it, see
:class:`cstonet.estimators.omitted_variables.Gains`. Refitting the networks without each covariate
would answer that, at the price of a fit each. Penalised regressions answer it in a moment: the
outcome on arms (or dose), on the selected covariates, their squares and products, and on products
with the treatment; the treatment, by logistic regressions (least squares for a dose), on
covariates, squares and products. Penalties are chosen, and σ² and ν² measured, on rows that a
regression has not seen, so that a covariate without influence gains nothing by chance. What the
outcome loses is held against the residual variance of the fit, which knows more of the outcome than
a regression does. ν² is what the propensities expect of α² given the covariates: the treatments
received would add more noise than most covariates gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.analyses.refits import recipe_of, without
from cstonet.analyses.results import CausalResults
from cstonet.crossfit.progress import progress_reporter
from cstonet.crossfit.workforce import Workforce, thread_count
from cstonet.data.covariates import CovariateSpec
from cstonet.data.matrix import dense_part
from cstonet.data.omission import terms_of
from cstonet.data.units import Footing
from cstonet.errors import OptionError
from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.estimators.omitted_variables import Gains
from cstonet.network.linear_part import Terms, regress
from cstonet.network.links import Link, mean_of
from cstonet.reporting.sensitivity import BenchmarksBy
from cstonet.streams import Stream

if TYPE_CHECKING:
    from cstonet.data.matrix import Matrix

Benchmarks: TypeAlias = bool | Literal["refit"]

# Rows behind a benchmark, at most, and terms that are one, the strongest first.
_MOST_ROWS, _MOST_TERMS = 10_000, 30
# Parts in which rows are held out where the fit has no folds.
_PARTS = 5
_FREE, _LINEAR, _SQUARES, _PAIRS, _BY_TREATMENT = -1, 0, 1, 2, 3
# Covariates from which on there are too many pairs of them for a regression.
_MANY = 15


def check_benchmarks(benchmarks: object) -> bool:
    """Whether benchmarks are wanted, or OptionError for what is no such wish."""
    if benchmarks not in (True, False, "refit"):
        raise OptionError(f"benchmarks must be True, False or 'refit', not {benchmarks!r}")
    return bool(benchmarks)


def benchmarks_by(benchmarks: Benchmarks) -> BenchmarksBy | None:
    """In which way benchmarks are found."""
    if benchmarks == "refit":
        return "refits"
    return "regressions" if benchmarks else None


def strengths_of(
    results: CausalResults,
    benchmarks: Benchmarks,
    *,
    refitted: Callable[[CausalResults], tuple[float, float]],
    regressed: Callable[[Mapping[str, tuple[int, ...]]], dict[str, Gains]],
    n_jobs: int,
    progress: object,
) -> pd.DataFrame:
    """How strong the covariates of a fit are: `r2_outcome` and `r2_treatment` of each.

    Parameters
    ----------
    results
        The fit.
    benchmarks
        In which way they are found, if at all.
    refitted
        σ² and ν² of a fit.
    regressed
        What each of some terms gains, by penalised regressions.
    n_jobs, progress
        Of refits, as for a fit.
    """
    if not check_benchmarks(benchmarks):
        return strengths_table({})
    results._check_in_memory("sensitivity(benchmarks=...)")
    terms = benchmark_terms(results.selection, results.design.spec)
    if benchmarks == "refit":
        return strengths_table(gains_by_refits(results, terms, refitted, n_jobs, progress))
    return strengths_table(regressed(terms))


def benchmark_terms(selection: pd.DataFrame, spec: CovariateSpec) -> dict[str, tuple[int, ...]]:
    """Terms with a covariate that was selected or kept, strongest first; their covariates.

    The indicators of a column with levels are one term.
    """
    chosen = selection["treatment"] | selection["outcome"]
    if "kept" in selection:
        chosen |= selection["kept"]
    strength = selection["strength"].to_numpy()
    terms = terms_of(spec, set(selection.index[chosen]))
    order = sorted(terms, key=lambda term: -max(strength[list(terms[term])]))
    return {term: terms[term] for term in order[:_MOST_TERMS]}


def strengths_table(gains: Mapping[str, Gains]) -> pd.DataFrame:
    """Gains as a frame: `r2_outcome` and `r2_treatment` by covariate."""
    return pd.DataFrame(
        {
            "r2_outcome": [gain.r2_outcome for gain in gains.values()],
            "r2_treatment": [gain.r2_treatment for gain in gains.values()],
        },
        index=pd.Index(list(gains), name="covariate", dtype=object),
        dtype=np.float64,
    )


def gains_of(
    terms: Iterable[str],
    variances: Callable[[str | None], tuple[float, float]],
    residual_variance: float | None = None,
) -> dict[str, Gains]:
    """Gains of terms, from σ² and ν² with all of them (None) and without each.

    Parameters
    ----------
    terms : iterable of str
        The terms.
    variances : callable
        σ² and ν² of models without a term.
    residual_variance : float, optional
        σ² of the fit, if the models are poorer than that: what they lose is held against it.
    """
    with_all = variances(None)
    own = with_all[0] if residual_variance is None else residual_variance
    gains = {}
    for term in terms:
        residual, representer = variances(term)
        lost = residual - with_all[0]
        gains[term] = Gains.of((own, with_all[1]), (own + lost, representer))
    return gains


def gains_by_refits(
    results: CausalResults,
    terms: Mapping[str, tuple[int, ...]],
    variances: Callable[[CausalResults], tuple[float, float]],
    n_jobs: int,
    progress: object,
) -> dict[str, Gains]:
    """Gains of terms, from fits without each of them, with the seed of the fit that has all.

    Parameters
    ----------
    results
        The fit with all covariates.
    terms
        The covariates of each term, by number.
    variances
        σ² and ν² of a fit.
    n_jobs, progress
        As for a fit.
    """
    recipe, threads = recipe_of(results, "sensitivity(benchmarks='refit')"), thread_count(n_jobs)
    order = list(terms)
    with progress_reporter(progress) as report:
        workforce = Workforce(threads, report)

        def refitted(term: str | None) -> tuple[float, float]:
            if term is None:
                return variances(results)
            own, design = without(recipe, results.design, terms[term])
            part = workforce.part(order.index(term), len(order))
            return variances(own.fit(design, results.plan.seed, part))

        return gains_of(order, refitted)


@dataclass(frozen=True, slots=True, eq=False)
class Yardsticks:
    """Regressions of outcome and treatment on a few covariates, with and without some of them.

    Attributes
    ----------
    rows : (m,) int
        The rows that they rest on.
    covariates : (m, k) float64
        Columns of the terms, standardised.
    columns : dict
        Per term: its columns.
    treatment : (m, t) float64
        Indicators of the arms but the first, or the standardised dose.
    weights : (m,) float64
        Of the rows.
    parts : (m,) int
        The part, from 0, in which a row is held out.
    """

    rows: NDArray[np.int64]
    covariates: FloatArray
    columns: Mapping[str, tuple[int, ...]]
    treatment: FloatArray
    weights: FloatArray
    parts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        X: Matrix,
        terms: Mapping[str, tuple[int, ...]],
        treatment: FloatArray,
        weights: FloatArray,
        fold: IntArray,
        seed: int,
    ) -> Yardsticks:
        """Regressions on terms of all rows, or of a sample of many.

        Parameters
        ----------
        X : (n, p)
            Covariates without gaps.
        terms : mapping
            The covariates of each term, by number.
        treatment, weights : (n, t) and (n,) float64
            Treatment in numbers, and weights of the rows.
        fold : (n,) int
            Folds of the fit: rows that belong together are held out together.
        seed : int
            Governs which rows are drawn.
        """
        n = len(weights)
        rows = np.arange(n)
        if n > _MOST_ROWS:
            rows = np.sort(Stream.YARDSTICKS.generator(seed).choice(n, _MOST_ROWS, replace=False))
        _, parts = np.unique(fold[rows], return_inverse=True)
        if parts.max() == 0:
            parts = rows % _PARTS
        columns, first = {}, 0
        for term, places in terms.items():
            columns[term] = tuple(range(first, first + len(places)))
            first += len(places)
        chosen = np.array([j for places in terms.values() for j in places], dtype=np.int64)
        values = dense_part(X, rows, chosen).astype(np.float64)
        counted = weights[rows]
        footing = Footing.of(values.min(axis=0), values.max(axis=0))
        return cls(
            rows=rows,
            covariates=_standardised(footing.seen(values), counted),
            columns=columns,
            treatment=treatment[rows],
            weights=counted,
            parts=parts.astype(np.int64),
        )

    def outcome(self, response: FloatArray, link: Link, without: str | None) -> FloatArray:
        """Expected outcome (m,) of held-out rows, from treatment and all terms but one."""
        parts = self._parts(without)
        centred = self.treatment - np.average(self.treatment, axis=0, weights=self.weights)
        parts.insert(1, (self.treatment, _FREE))
        linear = parts[2][0]
        parts += [(linear * column[:, None], _BY_TREATMENT) for column in centred.T]
        return self._held_out(parts, response, link)

    def treated(self, response: FloatArray, link: Link, without: str | None) -> FloatArray:
        """Expected treatment (m,) of held-out rows: of one arm, or the dose."""
        return self._held_out(self._parts(without), response, link)

    def _parts(self, without: str | None) -> list[tuple[FloatArray, int]]:
        """A constant, covariates, squares and products, each with the group of its penalty."""
        left = [j for term, own in self.columns.items() if term != without for j in own]
        linear = self.covariates[:, left]
        squares = linear[:, [len(np.unique(column)) > 2 for column in linear.T]] ** 2
        first, second = np.triu_indices(len(left) if len(left) < _MANY else 0, k=1)
        return [
            (np.ones((len(self.rows), 1)), _FREE),
            (linear, _LINEAR),
            (_standardised(squares, self.weights), _SQUARES),
            (_standardised(linear[:, first] * linear[:, second], self.weights), _PAIRS),
        ]

    def _held_out(
        self, parts: list[tuple[FloatArray, int]], response: FloatArray, link: Link
    ) -> FloatArray:
        values = np.hstack([values for values, _ in parts])
        group = np.concatenate([np.full(values.shape[1], number) for values, number in parts])
        terms = Terms(values, group.astype(np.int64))
        copies = [terms] * (int(self.parts.max()) + 2)
        # Counts are in units of their mean, as in the networks.
        unit = float(np.average(response, weights=self.weights)) if link == "log" else 1.0
        found = regress(copies, response / unit, self.weights, self.parts, link).held_out
        return unit * mean_of(link, found)


def _standardised(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Columns (m, k) with weighted mean zero and variance one; constant ones are zero."""
    if not values.shape[1]:
        return values
    centred = values - np.average(values, axis=0, weights=weights)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    scaled: FloatArray = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return scaled
