"""What fits that compare arms have in common: predictions under each level, overlap, balance."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.analyses.arms.facts import ArmFacts
from cstonet.analyses.arms.prediction import Prediction
from cstonet.analyses.results import CausalResults, Data
from cstonet.data.design import Design
from cstonet.data.frames import answers_in_kind
from cstonet.data.treatment import Arms
from cstonet.errors import NotAvailableError, OptionError, UnseenLevelError
from cstonet.estimators import Nuisances
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting import diagnostics
from cstonet.reporting.balance_note import LargestImbalance
from cstonet.settings.checks import check_truth
from cstonet.shown import shown

if TYPE_CHECKING:
    from cstonet.analyses.arms.plots import ComparedArmsPlots


class ComparedArms(CausalResults):
    """Results of a treatment with levels. Children say how new units are predicted."""

    design: Design[Arms]
    facts: ClassVar[tuple[str, ...]] = (*CausalResults.facts, "arm_facts", "largest_imbalance")

    @property
    @abstractmethod
    def nuisances(self) -> Nuisances:
        """(Out-of-fold) nuisances of the training rows."""

    @abstractmethod
    def _predict(self, data: Data) -> Prediction:
        """Nuisances of new units."""

    @property
    def arms(self) -> Arms:
        """The treatment."""
        return self.design.treatment

    @property
    def plot(self) -> ComparedArmsPlots:
        """Pictures of the fit, see :class:`cstonet.analyses.arms.plots.ComparedArmsPlots`."""
        from cstonet.analyses.arms.plots import ComparedArmsPlots

        return ComparedArmsPlots(self)

    @answers_in_kind
    def potential_outcomes(self, data: Data | None = None) -> pd.DataFrame:
        """Expected outcome under each treatment, as the models see it.

        Networks and their linear parts; the slopes of the estimator are not part of it.

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

    @answers_in_kind
    def cate(
        self,
        data: Data | None = None,
        *,
        contrast: tuple[Any, Any] | None = None,
        intervals: float | None = None,
        simultaneous: bool = False,
    ) -> pd.Series[float] | pd.DataFrame:
        """Conditional average treatment effect μ̂_b(x) - μ̂_a(x) of each unit.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.
        contrast : (b, a), optional
            Two levels of the treatment. By default those of "ATE", or all that a multilevel
            treatment has with its reference.
        intervals : float, optional
            Level of confidence intervals, such as 0.95. They cover on average over units like those
            of the fit, see :mod:`cstonet.estimators.cate_bands`.
        simultaneous : bool
            Whether the level is that of all units asked for together, rather than of each.

        Returns
        -------
        Series, or DataFrame
            A column "CATE[b-a]" per contrast if the treatment is multilevel and no contrast given.
            With `intervals`, the columns estimate, lower and upper.
        """
        if intervals is not None:
            codes = self._one_contrast(contrast, "cate(intervals=...)")
            return self._cate_intervals(data, codes, intervals, simultaneous)
        check_truth(simultaneous, "simultaneous")
        if simultaneous:
            raise OptionError("simultaneous is about intervals: give their level, intervals=0.95.")
        pairs = None if contrast is None else self._contrast_codes(contrast)
        mu, _, index = self._nuisances_of(data)
        return self._labelled_effects(mu, index, pairs)

    @answers_in_kind
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
        return self._labelled_propensity(propensity, index)

    @answers_in_kind
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
        data = self.design.new_units(data)
        codes = self.nuisances.treatment if data is None else self._treatment_codes(data)
        mu, _, index = self._nuisances_of(data)
        expected = np.take_along_axis(mu, codes[:, None], axis=1)[:, 0]
        return pd.Series(expected, index=index, name=self.design.outcome_name)

    @answers_in_kind
    def predictions(
        self, data: Data | None = None, *, intervals: float | None = None
    ) -> pd.DataFrame:
        """All that the models say of each unit, in one frame.

        Parameters
        ----------
        data : DataFrame, array or None
            See `potential_outcomes`.
        intervals : float, optional
            Level of confidence limits of the effects, see `cate`.

        Returns
        -------
        DataFrame
            Columns `POM[level]`, the effect `CATE` or effects `CATE[b-a]`, for a binary treatment
            with `lower` and `upper` on request, and `propensity` or `propensity[level]`.
        """
        data = self.design.new_units(data)
        mu, probabilities, index = self._nuisances_of(data)
        outcomes = pd.DataFrame(mu, index=index, columns=self._level_index())
        propensity = self._labelled_propensity(probabilities, index)
        if isinstance(propensity, pd.DataFrame):
            propensity = propensity.add_prefix("propensity[").add_suffix("]")
        parts = [
            outcomes.add_prefix("POM[").add_suffix("]"),
            self._labelled_effects(mu, index, None),
            propensity,
        ]
        if intervals is not None:
            parts.insert(2, self.cate(data, intervals=intervals)[["lower", "upper"]])
        joined: pd.DataFrame = pd.concat(parts, axis=1)
        return joined

    def overlap(self) -> pd.DataFrame:
        """Distribution of the propensities per arm, see `cstonet.reporting.diagnostics.overlap`."""
        return diagnostics.overlap(
            self.nuisances,
            levels=self.arms.levels,
            clip=self.effects.clip,
            kind=self.arms.kind,
        )

    def balance(self) -> pd.DataFrame:
        """Covariate balance before and after weighting, see `reporting.diagnostics.balance`.

        Weights are those of the estimand that leads the table. Missing values count with the mean
        of their imputations.
        """
        self._check_in_memory("balance()")
        X = self._complete_covariates()
        return diagnostics.balance(
            self.nuisances,
            X,
            covariates=self.design.covariates,
            levels=self.arms.levels,
            clip=self.effects.clip,
            kind=self.arms.kind,
            target=self.plan.estimand,
        )

    @cached_property
    def arm_facts(self) -> ArmFacts:
        """Sizes of the arms, and how likely they were."""
        return ArmFacts.of(self.nuisances)

    @cached_property
    def largest_imbalance(self) -> LargestImbalance | None:
        """The covariate that is balanced least after weighting; None if none is in memory."""
        if not self.in_memory or not self.design.covariates:
            return None
        return LargestImbalance.of(self.balance())

    def _cate_intervals(
        self, data: Data | None, contrast: tuple[int, int], level: float, simultaneous: bool
    ) -> pd.DataFrame:
        """Estimate, lower and upper limit of each unit's effect, where the analysis has them."""
        del data, contrast, level, simultaneous
        raise NotAvailableError(
            "cate(intervals=...) is there for fits without mediators only: leave the third part of "
            "the formula out for intervals of conditional total effects."
        )

    @property
    def _multilevel(self) -> bool:
        return self.arms.kind == "multilevel"

    def _labelled_effects(
        self, mu: FloatArray, index: pd.Index, pair: tuple[int, int] | None
    ) -> pd.Series[float] | pd.DataFrame:
        """Effects of units with regressions mu (m, L): of two levels, or of all that there are."""
        if self._multilevel and pair is None:
            reference, *others = self.arms.levels
            columns = [f"CATE[{other}-{reference}]" for other in others]
            return pd.DataFrame(mu[:, 1:] - mu[:, :1], index=index, columns=columns)
        b, a = (1, 0) if pair is None else pair
        return pd.Series(mu[:, b] - mu[:, a], index=index, name="CATE")

    def _labelled_propensity(
        self, propensity: FloatArray, index: pd.Index
    ) -> pd.Series[float] | pd.DataFrame:
        """Probabilities (m, L) of units: of the second level, or of every one of several."""
        if self._multilevel:
            return pd.DataFrame(propensity, index=index, columns=self._level_index(), copy=True)
        return pd.Series(propensity[:, 1], index=index, name="propensity", copy=True)

    def _level_index(self) -> pd.Index:
        levels: pd.Index = pd.Index(list(self.arms.levels), name=self.arms.name)
        return levels

    def _contrast_codes(self, contrast: tuple[Any, Any]) -> tuple[int, int]:
        """Codes of the two levels of a contrast."""
        if not isinstance(contrast, tuple) or len(contrast) != 2:
            raise self._no_contrast(contrast)
        b, a = (self.arms.code_of(level, "contrast") for level in contrast)
        if b == a:
            raise self._no_contrast(contrast)
        return b, a

    @staticmethod
    def _no_contrast(contrast: object) -> OptionError:
        return OptionError(
            "contrast must be a pair of different levels (b, a), for μ_b - μ_a; got "
            f"{shown(contrast)}"
        )

    def _one_contrast(self, contrast: tuple[Any, Any] | None, question: str) -> tuple[int, int]:
        """Codes of the levels that a question is about; with two levels nobody has to name them."""
        if contrast is not None:
            return self._contrast_codes(contrast)
        if len(self.arms.levels) > 2:
            levels = self.arms.levels
            raise OptionError(
                f"{question} is about two levels of {self.arms.name!r}, which has "
                f"{len(levels)}: say which, for example contrast=({levels[1]!r}, {levels[0]!r})."
            )
        return 1, 0

    def _nuisances_of(self, data: Data | None) -> tuple[FloatArray, FloatArray, pd.Index]:
        """Regressions (m, L), propensities (m, L) and row labels of new or training units."""
        if data is None:
            return self.nuisances.mu, self.nuisances.propensity, self.design.index
        data = self.design.new_units(data)
        prediction = self._predict(data)
        return prediction.mu, prediction.propensity, self._index(data)

    def _complete_covariates(self) -> NDArray[np.floating]:
        """Covariates of the training rows without gaps, shape (n, p)."""
        return self.design.X

    def _treatment_codes(self, data: pd.DataFrame) -> NDArray[np.int64]:
        """Codes of the treatments that new units received, shape (m,)."""
        name, levels = self.arms.name, self.arms.levels
        received = self.design.received.read(
            data,
            "for the outcome under every treatment use potential_outcomes",
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
