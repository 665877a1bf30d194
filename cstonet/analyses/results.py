"""What every fit returns, whatever its analysis: effects with their inference, and a summary."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pandas as pd

from cstonet.analyses.exported import Exported
from cstonet.crossfit.fitted import NetworkSet
from cstonet.data.design import AnyDesign
from cstonet.data.matrix import is_partitioned
from cstonet.errors import DataError, NotAvailableError, NotOfThisFitError
from cstonet.estimators import Effects
from cstonet.places import as_path, check_place, write_text
from cstonet.reporting.inference import check_alpha
from cstonet.search.selection import Selection
from cstonet.search.stability import expected_false
from cstonet.settings.plan import Plan
from cstonet.shown import shown
from cstonet.versions import version_of

if TYPE_CHECKING:
    from cstonet.analyses.plots import Plots
    from cstonet.analyses.recipe import Recipe
    from cstonet.analyses.twins import World
    from cstonet.reporting.certificate import Certificate
    from cstonet.reporting.summary import SummaryParts
    from cstonet.reporting.tables import CausalSummary

# A frame, an array or sparse matrix, an Arrow table or dataset, or the path of a file.
Data: TypeAlias = Any


@dataclass(frozen=True, slots=True, eq=False)
class FitRecord:
    """What a fit leaves behind beside its effects.

    Attributes
    ----------
    design
        The data.
    plan
        The resolved options.
    networks
        The fitted networks.
    selection
        Which covariates were selected for which model.
    notes
        What training wants the reader of the summary to know.
    runtime
        Seconds spent.
    warnings
        What may make the effects wrong, one sentence or more each; shown before all notes.
    version
        That of the package which fitted it.
    """

    design: AnyDesign
    plan: Plan
    networks: NetworkSet
    selection: Selection
    notes: tuple[str, ...]
    runtime: float
    warnings: tuple[str, ...] = ()
    version: str = field(default_factory=lambda: version_of("cstonet"))


class CausalResults(Exported, ABC):
    """A fitted Causal-StoNet, in the manner of a statsmodels results object.

    Each analysis has a child of its own, with the effects, predictions and diagnostics that it can
    give: :class:`~cstonet.analyses.arms.results.ArmsResults`,
    :class:`~cstonet.analyses.doses.results.DoseResults`,
    :class:`~cstonet.analyses.mediation.results.MediationResults`.

    Parameters
    ----------
    record : FitRecord
        What the fit leaves behind.
    effects : Effects
        Estimates with their covariance.

    Attributes
    ----------
    design, plan, networks, notes, warnings, runtime, version
        See :class:`FitRecord`.
    selection : DataFrame
        One row per covariate: selected for `treatment`, for `outcome`, how often, how strongly;
        where the fit can tell, with which probability it belongs to the model at all.
    n_supports : int
        Number of supports behind its counts.
    recipe : Recipe or None
        How the fit was asked for, to do it again on other data; None if nobody knows.
    """

    # Names that other analyses' results have, and what to use here instead.
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    # Cached properties that say of the rows what its texts and predictions ask for: a file that
    # does not hold the rows holds these.
    facts: ClassVar[tuple[str, ...]] = ("in_memory",)

    def __init__(self, record: FitRecord, effects: Effects) -> None:
        super().__init__(effects, record.design.outcome_name, record.plan.seed)
        self._record = record
        self.design = record.design
        self.plan = record.plan
        self.networks = record.networks
        self.selection = record.selection.table
        self.n_supports = record.selection.supports
        self.notes = record.notes
        self.warnings = record.warnings
        self.runtime = record.runtime
        self.version = record.version
        self.recipe: Recipe | None = None

    def __getattr__(self, name: str) -> Any:
        # Called for names that are not there: who looks for another analysis' is told where to go.
        if name in self._elsewhere and "design" in vars(self):
            raise NotOfThisFitError(self._elsewhere[name].format(design=self.design))
        # Raises the original error, which may come from inside a property.
        return object.__getattribute__(self, name)

    @property
    def nobs(self) -> int:
        """Number of units."""
        return len(self.design.y)

    @cached_property
    def in_memory(self) -> bool:
        """Whether the covariates were in memory, not on the workers of a cluster."""
        return not is_partitioned(self.design.X)

    @property
    def call(self) -> str | None:
        """The Python call that made the fit; None if nobody knows."""
        return None if self.recipe is None else self.recipe.call.text(self.plan.seed)

    @property
    def influence(self) -> pd.DataFrame:
        """Influence values of the estimates, one row per unit.

        They are those of nuisances averaged over the repetitions of the cross-fitting. Standard
        errors add what the repetitions differ by, and what imputations add.
        """
        names = list(self.effects.names)
        return pd.DataFrame(
            self.effects.influence, index=self.design.index, columns=names, copy=True
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Covariates that all models hold because the analyst said so (``keep=``)."""
        if "kept" not in self.selection:
            return ()
        return tuple(map(str, self.selection.index[self.selection["kept"]]))

    @property
    def expected_false_selections(self) -> pd.Series:
        """Expected number of false ones among the covariates selected for `treatment`, `outcome`.

        The sum of one minus their probabilities in `selection`, after a search; else NaN.
        """
        numbers = expected_false(self.selection)
        return numbers if self.plan.search is not None else numbers * math.nan

    @property
    def trace(self) -> pd.DataFrame:
        """Training history: one row per fold, start, stage and epoch."""
        return self.networks.trace

    @property
    def plot(self) -> Plots:
        """Pictures of the fit, fit for print: ``res.plot.effects()``, each gives its Axes."""
        from cstonet.analyses.plots import Plots

        return Plots(self)

    @property
    def default_model_infos(self) -> dict[str, Any]:
        """Rows that statsmodels' `summary_col` shows below the estimates."""
        return {
            "No. Observations": lambda results: str(results.nobs),
            "No. Covariates": lambda results: str(len(results.design.covariates)),
        }

    def summary(self, alpha: float = 0.05) -> CausalSummary:
        """Tables of the fit, its effects and its selected covariates, with notes.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.

        Returns
        -------
        CausalSummary
            A `statsmodels.iolib.summary.Summary`: as_text, as_html, as_latex, as_csv.
        """
        # statsmodels takes a second to import: only those who print pay for it.
        from cstonet.reporting.summary import summarize

        return summarize(self.design.formula, self.summary_parts(alpha), self._leading_warnings())

    def save(self, path: str | PathLike[str], *, with_data: bool = False) -> None:
        """Write the fit to a file, from which :func:`cstonet.load` makes it again.

        The file holds no code and, unless asked to, no row of the data. It predicts new units and
        prints its summary with the same bits; what needs the rows raises `RowsNotSavedError`. To
        be small, it has no more than 100 epochs of each start in `trace`.

        Parameters
        ----------
        path : str or path
            By custom it ends in ``.cst``. A file that exists is replaced, at once.
        with_data : bool
            Whether to keep the rows: outcome, treatment, covariates, weights and what the models
            say of them. Then all questions can be asked again, and `trace` is whole. Columns of the
            data that are not in the formula are not kept in any case.

        Raises
        ------
        FilePathError
            If the path cannot be written to.
        NotAvailableError
            If the fit holds what a file cannot, such as a term of the formula that uses a function
            of the session.
        """
        from cstonet.files.saved import save

        save(self, path, with_data=with_data)

    def ingredients(self) -> dict[str, Any]:
        """What it was made of, by the names that its class has for them."""
        return {"record": self._record, "effects": self.effects}

    @abstractmethod
    def summary_parts(self, alpha: float) -> SummaryParts:
        """Header rows, tables and notes of the summary.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.
        """

    @abstractmethod
    def methods(self) -> str:
        """How the effects were estimated, in full: text for a paper's methods section.

        Model, search, training and cross-fitting, estimator, overlap, inference, missing data,
        software version and seed, a paragraph each.
        """

    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        by: Any = None,
        alpha: float = 0.05,
    ) -> str:
        """One page of HTML: summary, overlap, balance, selection, heterogeneity, sensitivity, how.

        Styles and pictures are inside, so that the page can be sent as it is; it loads nothing.
        Pictures need matplotlib (``pip install 'cstonet[plot]'``).

        Parameters
        ----------
        path : path, optional
            File to write.
        by : optional
            Also effects by group: what ``gate`` takes, or what it answered.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        str
            The page.

        Raises
        ------
        FilePathError
            If the path cannot be written to.
        """
        from cstonet.analyses.report import report
        from cstonet.reporting.groups import GroupEffects

        check_alpha(alpha)
        place = None if path is None else as_path(path)
        if place is not None:
            check_place(place)
        known = by is None or isinstance(by, GroupEffects)
        text = report(self, alpha, by if known else self.gate(by, alpha=alpha))
        if place is not None:
            write_text(place, text)
        return text

    def certify(
        self,
        draws: int = 100,
        *,
        name: str | None = None,
        effects: Sequence[float] | None = None,
        alpha: float = 0.05,
        n_jobs: int = -1,
        seed: int = 0,
        path: str | PathLike[str] | None = None,
        progress: object = None,
    ) -> Certificate:
        """Whether the intervals of this fit can be trusted: the same analysis of twins of the data.

        A twin keeps the units, with their covariates, gaps and weights. Its treatments are drawn
        by the fitted propensities, clipped as the estimator has them, and its outcomes by the
        fitted regressions and what these left out of fold. There the effect is known: that of a
        population resampled from the units, so that coverage predicts that of fresh data. Every
        twin is analysed by the recipe of this fit.

        Twins share the blind spots of the models: confounding that was not measured, and what the
        models cannot see.

        Parameters
        ----------
        draws : int
            Number of twins. Each costs a fit; the error of the coverage is 0.02 with 100.
        name : str, optional
            One of `params`, by default the one that leads them.
        effects : sequence of float, optional
            Effects to find the power of; by default zero to four standard errors, and the
            estimate. Estimates are shifted by them: exact for effects that add the same to every
            outcome.
        alpha : float
            One minus the confidence level.
        n_jobs : int
            Threads, which analyse twins side by side; -1 is every core. It does not change a bit.
        seed : int
            Governs the twins.
        path : path, optional
            A file, or a folder, in which finished draws are kept: after an interruption, or with
            more draws, the same call goes on.
        progress
            See :meth:`cstonet.CausalStoNet.fit`.

        Returns
        -------
        Certificate
            `coverage`, `bias_in_se`, `se_ratio`, each with its Monte-Carlo error, `power`,
            `smallest_effect`, `draws`. Print it.

        Raises
        ------
        ForeignFileError
            If the file is that of another fit.
        """
        from cstonet.analyses.certify import certify

        return certify(
            self,
            draws,
            name=name,
            effects=effects,
            alpha=alpha,
            n_jobs=n_jobs,
            seed=seed,
            path=path,
            progress=progress,
        )

    def _twin_world(self) -> World:
        """Where twins of the data come from, if the analysis can draw them."""
        raise NotAvailableError(
            f"certify() is not available for this analysis ({type(self).__name__}): nobody draws "
            "its twins. Certify the total effect, by a fit without mediators."
        )

    def __repr__(self) -> str:
        shown = ", ".join(str(self.effect(name)) for name in self._shown())
        return f"<{type(self).__name__}: {shown}, n = {self.nobs}; summary() for more>"

    def _leading_warnings(self) -> tuple[str, ...]:
        """What the notes of the summary begin with."""
        return self.warnings

    def _shown(self) -> tuple[str, ...]:
        """Names of the effects that the short form of the results shows."""
        return self.effects.names[: self.effects.n_contrasts]

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _check_in_memory(self, wish: str) -> None:
        """Raise an error if the covariates are on the workers of a cluster, or were overwritten."""
        if not self.in_memory:
            raise NotAvailableError(
                f"{wish} is not available for a fit to a Dask DataFrame, whose covariates are not "
                "in memory. Fit again to the columns that matter, with data[[...]].compute()."
            )
        self.design.check_unchanged()

    def _index(self, data: Data | None) -> pd.Index:
        """Row labels of new units, or of the training rows."""
        if data is None:
            return self.design.index
        if isinstance(data, pd.DataFrame):
            return data.index
        try:
            # A sparse matrix has no length.
            return pd.RangeIndex(data.shape[0] if hasattr(data, "shape") else len(data))
        except Exception:  # nothing that has rows
            raise DataError(
                f"data must be a frame or an array, with a row for each unit; got {shown(data)}."
            ) from None
