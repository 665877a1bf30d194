"""What a fit returns: effects and their inference, predictions, diagnostics, the summary."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cstonet.analyses.fitted import ImputingNetworks, Networks, Plan, Prediction
from cstonet.data.roles import level_code
from cstonet.errors import (
    NotAvailableError,
    OptionError,
    UnseenLevelError,
)
from cstonet.estimators import (
    TARGETS,
    CrossFit,
    Effects,
    Imputations,
    Nuisances,
    effects_over_repetitions,
    estimate_target,
)
from cstonet.estimators.dose_curve import TRIM
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting import diagnostics
from cstonet.reporting.inference import Effect, EffectInference

if TYPE_CHECKING:
    from cstonet.analyses.doses.response import DoseResponse
    from cstonet.data.design import Design
    from cstonet.reporting.tables import CausalSummary

Data: TypeAlias = "pd.DataFrame | NDArray[Any]"

_LISTED = 6  # effects named in an error


class CausalResults(EffectInference):
    """A fitted Causal-StoNet, in the manner of a statsmodels results object.

    Parameters
    ----------
    design : Design
        The data.
    plan : Plan
        The resolved options.
    effects : Effects
        Estimates with their covariance.
    nuisances : Nuisances
        (Out-of-fold) nuisances of the training rows.
    selection : DataFrame
        One row per covariate: selected for `treatment`, for `outcome`, how often, how strongly.
        ``selection.attrs["fits"]`` is the number of networks behind the counts.
    networks : Networks
        The fitted networks.
    notes : tuple of str
        What training wants the reader of the summary to know.
    runtime : float
        Seconds spent.
    imputations : Imputations or None
        Nuisances of rows with missing covariates at each imputation.
    repetitions : sequence of CrossFit
        The nuisances of each repetition of the cross-fitting, for the errors of further effects.
    """

    estimator = "AIPW"
    imputations: Imputations | None = None
    _repetitions: tuple[CrossFit, ...] = ()

    def __init__(
        self,
        *,
        design: Design,
        plan: Plan,
        effects: Effects,
        nuisances: Nuisances,
        selection: pd.DataFrame,
        networks: Networks,
        notes: tuple[str, ...],
        runtime: float,
        imputations: Imputations | None = None,
        repetitions: Sequence[CrossFit] = (),
    ) -> None:
        super().__init__(effects, design.outcome_name, plan.seed)
        self.design = design
        self.plan = plan
        self.nuisances = nuisances
        self.selection = selection
        self.networks = networks
        self.notes = notes
        self.runtime = runtime
        self.imputations = imputations
        self._repetitions = tuple(repetitions)

    @property
    def nobs(self) -> int:
        """Number of units."""
        return self.nuisances.n

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

    def effect(self, name: str = "ATE", *, alpha: float = 0.05) -> Effect:
        """One effect by name, in everyone or in a part of the population.

        Parameters
        ----------
        name : str
            One of `params`, or "ATT", "ATC", "ATO": the effect among those who received the
            treatment, among those who did not, and among those who could have received either
            (overlap weights p(1 - p)). A multilevel treatment has them, and the ATE, for any two
            of its levels: "ATT[b-a]" is the effect of b against a among those who received b,
            "ATC[b-a]" among those who received a, "ATO[b-a]" with weights p_a p_b / (p_a + p_b).
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Effect
            Estimate, standard error, confidence limits and p-value. The variance of effects that
            are not in `params` is that of their influence function, in each repetition.
        """
        if name in self.effects.names:
            return super().effect(name, alpha=alpha)
        levels = self.design.treatment_levels
        if self._multilevel:
            pairs = itertools.permutations(range(len(levels)), 2)
            known = {
                f"{target}[{levels[b]}-{levels[a]}]": (target, (b, a))
                for target, (b, a) in itertools.product(TARGETS, pairs)
            }
        else:
            known = {target: (target, (1, 0)) for target in TARGETS}
        if name not in known:
            more = [other for other in known if other not in self.effects.names]
            raise NotAvailableError(
                f"this fit has no effect {name!r}; available: "
                f"{', '.join(self.effects.names)}; also {', '.join(more[:_LISTED])}"
                f"{', ...' if len(more) > _LISTED else ''}"
            )
        target, contrast = known[name]

        def estimate(nuisances: Nuisances) -> Effects:
            clip = self.effects.clip
            return estimate_target(nuisances, target, contrast, clip=clip, name=name)

        return Effect.of(self._effects_by(estimate), name, alpha)

    def _effects_by(self, estimate: Callable[[Nuisances], Effects]) -> Effects:
        """What an estimator makes of the fit: over its imputations, with errors of a repetition.

        Parameters
        ----------
        estimate : callable
            Gives the effects of nuisances, such as `cstonet.estimators.estimate_target`.
        """
        return effects_over_repetitions(
            CrossFit(self.nuisances, self.imputations).effects(estimate),
            [repetition.effects(estimate) for repetition in self._repetitions],
        )

    def potential_outcomes(self, data: Data | None = None) -> pd.DataFrame:
        """Expected outcome under each treatment, as the networks see it.

        The linear terms by which the average effects are adjusted are not part of it.

        Parameters
        ----------
        data : DataFrame, array or None
            New units. None: the training rows, predicted out of fold if the fit is cross-fitted.
            Where the fit imputed missing covariates, those of new units are averaged over draws
            given the unit's observed ones; if values are missing not at random, also given which
            ones are missing. The unit's treatment and outcome are not used. A unit's answer does
            not depend on the other units asked for.

        Returns
        -------
        DataFrame
            One column per treatment level.
        """
        mu, _, index = self._nuisances_of(data)
        return pd.DataFrame(mu, index=index, columns=self._level_index(), copy=True)

    def cate(
        self, data: Data | None = None, *, contrast: tuple[Any, Any] | None = None
    ) -> pd.Series[float] | pd.DataFrame:
        """Conditional average treatment effect μ̂_b(x) - μ̂_a(x) of each unit.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.
        contrast : (b, a), optional
            Two levels of the treatment. By default those of "ATE", or all that a multilevel
            treatment has with its reference.

        Returns
        -------
        Series, or DataFrame
            A column "CATE[b-a]" per contrast if the treatment is multilevel and no contrast given.
        """
        pairs = None if contrast is None else self._contrast_codes(contrast)
        mu, _, index = self._nuisances_of(data)
        if self._multilevel and pairs is None:
            reference, *others = self.design.treatment_levels
            columns = [f"CATE[{other}-{reference}]" for other in others]
            return pd.DataFrame(mu[:, 1:] - mu[:, :1], index=index, columns=columns)
        b, a = (1, 0) if pairs is None else pairs
        return pd.Series(mu[:, b] - mu[:, a], index=index, name="CATE")

    def propensity(self, data: Data | None = None) -> pd.Series[float] | pd.DataFrame:
        """Estimated treatment probabilities, not clipped.

        They are those of the weights: given the outcome's covariates, and others found for the
        treatment if these may matter to the outcome. A model of the treatment alone may predict it
        better.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.

        Returns
        -------
        Series, or DataFrame
            Probability of the second level of a binary treatment; a column per level of a
            multilevel one.
        """
        _, propensity, index = self._nuisances_of(data)
        if self._multilevel:
            return pd.DataFrame(propensity, index=index, columns=self._level_index(), copy=True)
        return pd.Series(propensity[:, 1], index=index, name="propensity", copy=True)

    def dose_response(
        self,
        grid: ArrayLike | None = None,
        *,
        alpha: float = 0.05,
        bandwidth: float | None = None,
        trim: float = TRIM,
    ) -> DoseResponse:
        """The curve of a continuous treatment, see `DoseResults`; others have none."""
        del grid, alpha, bandwidth, trim
        raise NotAvailableError(self._no_curve())

    def _no_curve(self) -> str:
        """Why there is no dose-response curve, and what to use instead."""
        return (
            f"the treatment {self.design.treatment_name!r} has levels, not doses: "
            "potential_outcomes() and the POM rows of params are the outcomes at each. For numbers "
            "that are amounts, fit with treatment='continuous'"
        )

    def predict(self, data: pd.DataFrame | None = None) -> pd.Series[float]:
        """Expected outcome of each unit under the treatment it received.

        Parameters
        ----------
        data : DataFrame or None
            New units with their treatment. None: the training rows, see `potential_outcomes`.

        Returns
        -------
        Series
        """
        codes = self.nuisances.treatment if data is None else self._treatment_codes(data)
        mu, _, index = self._nuisances_of(data)
        expected = np.take_along_axis(mu, codes[:, None], axis=1)[:, 0]
        return pd.Series(expected, index=index, name=self.design.outcome_name)

    def overlap(self) -> pd.DataFrame:
        """Distribution of the propensities per arm, see `cstonet.reporting.diagnostics.overlap`."""
        return diagnostics.overlap(
            self.nuisances,
            levels=self.design.treatment_levels,
            clip=self.effects.clip,
            kind=self.design.treatment_kind,
        )

    def balance(self) -> pd.DataFrame:
        """Covariate balance before and after weighting, see `reporting.diagnostics.balance`.

        Missing values count with the mean of their imputations.
        """
        X = self.design.X
        if self.imputations is not None:
            networks = cast("ImputingNetworks", self.networks)
            X = networks.with_imputed(X, self.imputations.values)
        return diagnostics.balance(
            self.nuisances,
            X,
            covariates=self.design.covariates,
            levels=self.design.treatment_levels,
            clip=self.effects.clip,
            kind=self.design.treatment_kind,
        )

    @property
    def trace(self) -> pd.DataFrame:
        """Training history: one row per fold, start, stage and epoch."""
        return self.networks.trace

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

        return summarize(self, alpha=alpha)

    def __repr__(self) -> str:
        contrasts = self.effects.names[: self.effects.n_contrasts]
        shown = ", ".join(str(self.effect(name)) for name in contrasts)
        return f"<{type(self).__name__}: {shown}, n = {self.nobs}; summary() for more>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    @property
    def _multilevel(self) -> bool:
        return self.design.treatment_kind == "multilevel"

    def _level_index(self) -> pd.Index:
        levels: pd.Index = pd.Index(
            list(self.design.treatment_levels), name=self.design.treatment_name
        )
        return levels

    def _contrast_codes(self, contrast: tuple[Any, Any]) -> tuple[int, int]:
        """Codes of the two levels of a contrast."""
        if not isinstance(contrast, tuple) or len(contrast) != 2 or contrast[0] == contrast[1]:
            raise OptionError(
                f"contrast must be a pair of different levels (b, a), for μ_b - μ_a; got "
                f"{contrast!r}"
            )
        name, levels = self.design.treatment_name, self.design.treatment_levels
        b, a = (level_code(level, levels, name, "contrast") for level in contrast)
        return b, a

    def _nuisances_of(self, data: Data | None) -> tuple[FloatArray, FloatArray, pd.Index]:
        """Regressions (m, L), propensities (m, L) and row labels of new or training units."""
        if data is None:
            return self.nuisances.mu, self.nuisances.propensity, self.design.index
        prediction = self._predict(data)
        index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(len(data))
        return prediction.mu, prediction.propensity, index

    def _predict(self, data: Data) -> Prediction:
        """Nuisances of new units; a fit that imputed its own gaps draws those of new units too."""
        if self.design.gaps is None:
            return self.networks.predict(self.design.spec.transform(data))
        X, missing = self.design.gaps.transform(self.design.spec, data)
        if missing is None:
            return self.networks.predict(X)
        return cast("ImputingNetworks", self.networks).predict_incomplete(X, missing)

    def _treatment_codes(self, data: pd.DataFrame) -> NDArray[np.int64]:
        """Codes of the treatments that new units received, shape (m,)."""
        name, levels = self.design.treatment_name, self.design.treatment_levels
        received = self.design.received.read(
            data, "for the outcome under every treatment use potential_outcomes"
        )
        # A plain dictionary equates 1, 1.0 and True, as the user does.
        lookup = {level: code for code, level in enumerate(levels)}
        values = received.tolist()
        unseen = [value for value in values if value not in lookup]
        if unseen:
            raise UnseenLevelError(
                f"data: column {name!r} holds {unseen[0]!r}, but the fit knows only "
                f"{', '.join(repr(level) for level in levels)}"
            )
        return np.array([lookup[value] for value in values], dtype=np.int64)
