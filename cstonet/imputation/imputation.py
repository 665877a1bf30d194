"""Imputation while networks train: candidates from the covariates, weighed by the networks.

Each row with gaps gets candidate completions from the graphical model π(X_mis | X_obs). A network
weighs them by its likelihoods of the row's treatment and outcome (and, for values missing not at
random, of what is missing), which makes them a sample of

    π(X_mis | X_obs, A, Y, R) ∝ π(X_mis | X_obs) p(A | X) p(Y | A, X) p(R | A, X).

While a network trains, rows move among their candidates inside the kernel. Between the networks of
a fold, the graphical model is estimated again from covariates completed by such draws, and gives
new candidates: stochastic EM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstonet import _core
from cstonet.crossfit.splits import Split
from cstonet.data.columns import listing
from cstonet.data.design import Design
from cstonet.data.gaps import CovariateGaps, Mechanism
from cstonet.errors import OptionError
from cstonet.imputation.conditionals import (
    CovariateModel,
    Entries,
    Variable,
    standardised_variables,
)
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.noise import FreshNoise
from cstonet.imputation.regressions import VALUES_PER_FEATURE, FloatArray, Stop
from cstonet.network.scaling import Scaling, column_scaling
from cstonet.network.trained import TrainedNetwork
from cstonet.search.working import TrainingData
from cstonet.settings.plan import Plan
from cstonet.suggestions import did_you_mean

# First word of the seed sequences of folds while they train.
_TRAINING = 4
# Rounds of draw and refit before the first network, which know the covariates only.
_WARM_UP = 3
# For the model of what is missing: completions per row, and rounds per network.
_COMPLETIONS, _ROUNDS = 5, 3


@dataclass(frozen=True, slots=True, eq=False)
class GapData:
    """What the imputation of every fold shares.

    Attributes
    ----------
    mechanism
        ``"mar"`` or ``"mnar"``.
    variables
        The incomplete columns.
    entries
        All missing entries, e of them.
    neighbours
        Covariates that variables, by number, depend on, where the user knows.
    limit
        Bound on standardised covariates.
    candidates
        Candidates per row.
    """

    mechanism: Mechanism
    variables: tuple[Variable, ...]
    entries: Entries
    neighbours: Mapping[int, tuple[int, ...]]
    limit: float
    candidates: int

    def whole(self, inputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Covariates of the incomplete columns to be drawn for a network that reads these.

        All of them if it reads any: a column that it does not read may be missing together with
        one that it reads, and what is known of the one through treatment and outcome then has to
        reach the other. So they are drawn jointly.
        """
        read = any(np.isin(v.columns, inputs).any() for v in self.variables)
        drawn = [v.columns for v in self.variables] if read else []
        return np.concatenate([np.empty(0, dtype=np.int64), *drawn])


def observed_scaling(scaling: Scaling, design: Design) -> Scaling:
    """The scaling of a design with columns that are mostly missing in units of what is there.

    Start values in most of the rows would make the unit so small that observed values lie beyond
    the bound on standardised ones. Of fewer gaps the unit hardly depends.
    """
    center, inverse_scale = scaling.center.copy(), scaling.inverse_scale.copy()
    for variable in () if design.gaps is None else design.gaps.variables:
        there, columns = ~variable.missing, np.array(variable.columns)
        weights = None if design.weights is None else design.weights[there]
        if 2 * there.sum() >= len(there) or (weights is not None and not weights.any()):
            continue
        own = column_scaling(design.X[np.ix_(there, columns)], scaling.limit, weights)
        center[columns], inverse_scale[columns] = own.center, own.inverse_scale
    return Scaling(center, inverse_scale, scaling.limit)


def gap_data(design: Design, plan: Plan, scaling: Scaling) -> GapData | None:
    """The gaps of a design as the networks see them; None if it has none.

    Raises
    ------
    OptionError
        If the plan names neighbours that the design does not have, or too many.
    """
    gaps = design.gaps
    names = [variable.name for variable in gaps.variables] if gaps is not None else []
    columns = design.spec.covariates_of_columns()
    neighbours = {}
    for name, others in plan.neighbours or ():
        unknown = [other for other in (name, *others) if other not in columns]
        if unknown:
            raise OptionError(
                f"neighbours names {unknown[0]!r}, which is no column among the covariates. Choose "
                f"from {listing(columns)}.{did_you_mean(unknown[0], columns)}"
            )
        if name in names:
            chosen = {j for other in others if other != name for j in columns[other]}
            neighbours[names.index(name)] = tuple(sorted(chosen))
            _check_neighbours(name, len(chosen), gaps)
    if gaps is None:
        return None
    variables = standardised_variables(gaps, scaling)
    return GapData(
        mechanism=gaps.mechanism,
        variables=variables,
        entries=Entries.of(variables, np.ones(len(design.y), dtype=bool)),
        neighbours=neighbours,
        limit=scaling.limit,
        candidates=plan.candidates,
    )


def _check_neighbours(name: str, covariates: int, gaps: CovariateGaps | None) -> None:
    """Refuse neighbours that would reproduce the few values of a column, and leave no spread."""
    for variable in () if gaps is None else gaps.variables:
        values = int((~variable.missing).sum())
        if variable.name == name and covariates * VALUES_PER_FEATURE > values:
            raise OptionError(
                f"neighbours gives {name!r} {covariates} covariates, but it has a value in only "
                f"{values} rows. Name columns with at most {values // VALUES_PER_FEATURE} "
                "covariates, or leave it out of neighbours: they are then found from the data."
            )


@dataclass(frozen=True, slots=True, eq=False)
class ImputationModel:
    """All that draws of missing covariates need besides networks."""

    covariates: CovariateModel
    missingness: MissingnessModel | None

    def log_weight(
        self,
        data: _core.Dataset,
        entries: Entries,
        values: NDArray[np.float32],
        stop: Stop | None = None,
    ) -> FloatArray:
        """Log of p(R | A, X) at candidates (e, K), shape (g, K); zero if missing at random."""
        if self.missingness is None:
            return np.zeros((len(entries.rows), values.shape[1]))
        return self.missingness.log_probability(data, entries, values, stop)


class FoldImputer:
    """Imputation while the networks of one fold are searched for and trained.

    Parameters
    ----------
    data
        Shared by all folds, start values in the gaps.
    gaps
        What is missing.
    split
        The fold's rows. Only those trained on are completed here.
    fold, seed, threads
        As for training.
    stop
        Called now and then; may raise to stop.
    """

    def __init__(
        self,
        data: TrainingData,
        gaps: GapData,
        split: Split,
        *,
        fold: int,
        seed: int,
        threads: int,
        stop: Stop | None = None,
    ) -> None:
        self._stop = stop
        self._base = data
        self._gaps = gaps
        self._threads = threads
        self._rng = np.random.default_rng([_TRAINING, seed, fold])
        self._noise = FreshNoise(self._rng)
        self._rows = np.sort(np.concatenate([split.fit, split.validation]))
        trained = np.zeros(data.covariates.rows, dtype=bool)
        trained[self._rows] = True
        self._entries = Entries.of(gaps.variables, trained)
        everything = gaps.entries
        self._here = trained[everything.rows][everything.row]
        self._shared = _core.Gaps(everything.first, everything.column, data.covariates.columns)
        columns = np.unique(everything.column)
        start = data.covariates.gather(everything.rows, columns)
        self._values = start[everything.row, np.searchsorted(columns, everything.column)]
        covariates = CovariateModel.select(
            gaps.variables,
            data.covariates,
            self._rows,
            given=gaps.neighbours,
            limit=gaps.limit,
            threads=threads,
            stop=stop,
        )
        self.data = data
        self.model = ImputationModel(covariates, None)
        everything_here = np.ones(len(self._entries.row), dtype=bool)
        for _ in range(_WARM_UP):
            self._redraw(everything_here)
            self.model = ImputationModel(self._refitted(), None)
        if gaps.mechanism == "mnar":
            missingness = MissingnessModel.start(
                gaps.variables, data.treatment, self.data.covariates, self._rows, stop
            )
            self.model = ImputationModel(self.model.covariates, missingness)

    def candidates(self, inputs: NDArray[np.int64]) -> _core.Candidates:
        """New candidates of the rows trained on, for a network that reads these covariates."""
        covariates = self.data.covariates
        # What the network does not read has no likelihood, and stays as it was last drawn; unless
        # its being missing tells something.
        self._mark = self._entries.marked(self._gaps.whole(inputs))
        if self.model.missingness is not None:
            self._mark[:] = True
        self._pool = self._entries.only(self._mark)
        self._drawn = self.model.covariates.draw(
            covariates, self._pool, self._gaps.candidates, self._noise, self._stop
        )
        self._log_weight = self.model.log_weight(covariates, self._pool, self._drawn, self._stop)
        return _core.Candidates(
            self._pool.first,
            self._pool.column,
            covariates.columns,
            self._drawn,
            self._log_weight.astype(np.float32),
        )

    def update(self, networks: Sequence[TrainedNetwork], *, last: bool = False) -> TrainingData:
        """Complete the covariates as networks see them that were trained on the last candidates.

        Parameters
        ----------
        networks
            Of the structure search, or the fold's own.
        last
            Whether no further network will train.

        Returns
        -------
        TrainingData
            With the completed covariates.
        """
        pool, drawn = self._pool, self._drawn
        likelihood = candidate_likelihood(networks, self.data, pool, drawn, self._threads)
        entry = np.arange(len(drawn))
        if self.model.missingness is not None:
            if last:
                covariates = self.data.covariates
                missingness = self.model.missingness.extended(
                    covariates, self._rows, self._threads, self._stop
                )
                self._missingness_is(missingness)
            for _ in range(_ROUNDS):
                index = choose(likelihood + self._log_weight, _COMPLETIONS, self._rng)
                self._refit_missingness(drawn[entry[:, None], index[pool.row]])
        index = choose(likelihood + self._log_weight, 1, self._rng)[:, 0]
        self._complete(self._mark, drawn[entry, index[pool.row]])
        self._redraw(~self._mark)
        self.model = ImputationModel(self._refitted(), self.model.missingness)
        return self.data

    def _redraw(self, mark: NDArray[np.bool_]) -> None:
        """Draw marked entries of the fold from the covariates alone."""
        if mark.any():
            entries = self._entries.only(mark)
            drawn = self.model.covariates.draw(
                self.data.covariates, entries, 1, self._noise, self._stop
            )
            self._complete(mark, drawn[:, 0])

    def _complete(self, mark: NDArray[np.bool_], values: NDArray[np.float32]) -> None:
        here = np.flatnonzero(self._here)
        self._values[here[mark]] = values
        covariates = _core.completed(self._base.covariates, self._shared, self._values)
        self.data = dataclasses.replace(self._base, covariates=covariates)

    def _refitted(self) -> CovariateModel:
        return self.model.covariates.refit(self.data.covariates, self._rows, self._stop)

    def _refit_missingness(self, completions: NDArray[np.float32]) -> None:
        if self.model.missingness is not None:
            self._missingness_is(
                self.model.missingness.refit(
                    self.data.covariates, self._rows, self._pool, completions, self._stop
                )
            )

    def _missingness_is(self, missingness: MissingnessModel) -> None:
        self.model = ImputationModel(self.model.covariates, missingness)
        self._log_weight = self.model.log_weight(
            self.data.covariates, self._pool, self._drawn, self._stop
        )


def candidate_likelihood(
    networks: Sequence[TrainedNetwork],
    data: TrainingData,
    entries: Entries,
    values: NDArray[np.float32],
    threads: int,
) -> FloatArray:
    """Log-likelihood of treatment and outcome of rows with gaps at candidates (e, K).

    Returns
    -------
    (g, K)
        Of the mixture of the networks.
    """
    candidates = _core.Candidates(
        entries.first,
        entries.column,
        data.covariates.columns,
        values,
        np.zeros((len(entries.rows), values.shape[1]), dtype=np.float32),
    )
    parts = np.stack(
        [
            _core.candidate_log_likelihood(
                net.spec,
                list(net.weights),
                list(net.biases),
                net.inputs,
                data.covariates,
                candidates,
                data.visible,
                [1.0, net.variance],
                threads,
            )
            for net in networks
        ]
    ).astype(np.float64)
    mixture: FloatArray = np.logaddexp.reduce(parts, axis=0) - np.log(len(networks))
    return mixture


def choose(log_weight: FloatArray, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Candidates drawn with these weights, shape (g, draws), from log weights (g, K).

    The draws of a row are spread evenly over its distribution (systematic resampling), in random
    order, so that few of them represent it well.
    """
    rows, candidates = log_weight.shape
    reached = np.cumsum(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), axis=1)
    reached /= reached[:, -1:]
    grid = rng.permuted((np.arange(draws) + rng.random((rows, 1))) / draws, axis=1)
    # Rows end to end on one axis, where one search finds all.
    shift = np.arange(rows)[:, None]
    found = np.searchsorted((reached + shift).ravel(), grid + shift) - shift * candidates
    chosen: NDArray[np.int64] = np.clip(found, 0, candidates - 1)
    return chosen
