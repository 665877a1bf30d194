"""What a mediation fit returns: total, direct and indirect effects, and the mediators' paths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from cstonet.analyses.arms.comparisons import ComparedArms
from cstonet.analyses.arms.prediction import Prediction
from cstonet.analyses.mediation.methods import mediation_methods
from cstonet.analyses.mediation.networks import MediationNetworks
from cstonet.analyses.mediation.reading import MediationDesign
from cstonet.analyses.results import Data, FitRecord
from cstonet.data.caller import caller_stacklevel
from cstonet.errors import NotAvailableError, NotOfThisFitError, UncertainShareWarning
from cstonet.estimators import Nuisances
from cstonet.estimators.mediation import PROPORTION, MediationEffects, MediationNuisances
from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import with_error
from cstonet.settings.checks import is_choice
from cstonet.shown import shown

if TYPE_CHECKING:
    from cstonet.analyses.mediation.plots import MediationPlots
    from cstonet.reporting.summary import SummaryParts


class MediationResults(ComparedArms):
    """A fitted mediation: "TE", "NDE" and "NIE", with predictions of the total effect.

    Parameters
    ----------
    record : FitRecord
        What the fit leaves behind. The selection has a column `mediator` too: covariates that
        explain the mediators.
    estimated : MediationEffects
        Effects with their covariance, and how many density ratios were bounded.
    mediation : MediationNuisances
        (Out-of-fold) nuisances of the training rows.
    mediators : DataFrame
        One row per mediator: `family`; `level`, of two the one coded 1, whose probability the
        effect on the mediator is about (empty for a number); whether the outcome model holds it
        (`outcome`, with count and frequency over the supports found); `effect` of the treatment on
        it and `indirect`, the interventional indirect effect through it, each with standard error
        and p-value.

    """

    design: MediationDesign
    networks: MediationNetworks
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "dose_response": (
            "a mediation compares two levels of {design.treatment.name!r} and has no curve: "
            "potential_outcomes() are the expected outcomes at each, the column effect of "
            "mediators is what the treatment does to each mediator. For the curve of a dose, fit "
            "the formula without its mediators and with treatment='continuous'"
        ),
        **dict.fromkeys(
            ("gate", "projection", "effect_along"),
            "effects that are split by mediators are those of everyone; fit without the third part "
            "of the formula to ask for whom the total effect is large",
        ),
        **dict.fromkeys(
            ("support", "estimable", "lost_share"),
            "the region where effects are estimable is found for total effects: ask the fit of the "
            "formula without its mediators; overlap() and balance() are here, too",
        ),
        "placebo": (
            "placebo checks are those of a treatment and an outcome: ask the fit of the formula "
            "without its mediators"
        ),
        "heterogeneity": (
            "a mediation tells how an effect comes about, not where it differs. Fit the formula "
            "without its mediators: the total effect has heterogeneity()"
        ),
        "policy": (
            "a rule is learned from total effects. Fit the formula without its mediators: that fit "
            "has policy()"
        ),
        "sensitivity": (
            "the bounds for omitted confounders know a treatment and an outcome, not what "
            "confounds the mediators. Fit the formula without its mediators: its ATE is the total "
            "effect, and has sensitivity()"
        ),
        "test_equal_arms": (
            "a mediation fit has no arms to compare; wald_test('TE = 0') tests that the treatment "
            "has no effect, wald_test('NDE = 0, NIE = 0') that it has neither kind."
        ),
    }

    def __init__(
        self,
        record: FitRecord,
        estimated: MediationEffects,
        mediation: MediationNuisances,
        mediators: pd.DataFrame,
    ) -> None:
        super().__init__(record, estimated.effects)
        self.estimated = estimated
        self.mediation = mediation
        self.mediators = mediators

    @cached_property
    def nuisances(self) -> Nuisances:
        """Nuisances of the total effect."""
        return self.mediation.total()

    def ingredients(self) -> dict[str, Any]:
        """What it was made of, by the names that its class has for them."""
        return {
            "record": self._record,
            "estimated": self.estimated,
            "mediation": self.mediation,
            "mediators": self.mediators,
        }

    @property
    def plot(self) -> MediationPlots:
        """Pictures of the fit, see :class:`cstonet.analyses.mediation.plots.MediationPlots`."""
        from cstonet.analyses.mediation.plots import MediationPlots

        return MediationPlots(self)

    def summary_parts(self, alpha: float) -> SummaryParts:
        """Header rows, tables and notes of the summary."""
        from cstonet.analyses.mediation.summary import mediation_summary

        return mediation_summary(self, alpha)

    def methods(self) -> str:
        """How the effects were estimated, in full: text for a paper's methods section."""
        return mediation_methods(self)

    def effect(
        self, name: str | None = None, *, where: object = None, alpha: float = 0.05
    ) -> Effect:
        """One effect by name: "TE", "NDE", "NIE", or "NIE/TE", the proportion mediated.

        Parameters
        ----------
        name : str, optional
            Which one, by default "TE".
        where
            For fits without mediators only.
        alpha : float
            One minus the confidence level.
        """
        if where is not None:
            raise NotOfThisFitError(
                "effect(where=...) is for fits without mediators: leave the third part of the "
                "formula out for the total effect among some units"
            )
        if isinstance(name, str) and name == PROPORTION:
            return self.proportion_mediated(alpha=alpha)
        if name is not None and not is_choice(name, self.effects.names):
            raise NotAvailableError(
                f"a mediation fit has no effect {shown(name)}; available: "
                f"{', '.join(self.effects.names)}, {PROPORTION}. For ratios, such as the RR, "
                "and effects in parts of the population, such as the ATT, fit the formula without "
                "its mediators."
            )
        return super().effect(name, alpha=alpha)

    def proportion_mediated(self, *, alpha: float = 0.05) -> Effect:
        """Share NIE / TE of the total effect that is mediated, by the delta method.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.

        Warns
        -----
        UncertainShareWarning
            If the total effect is within three standard errors of zero: the share then has no
            normal distribution and may take any value.
        """
        if self.estimated.uncertain_total:
            total = self.effects.estimates[0], self.effects.standard_errors[0]
            warnings.warn(
                f"TE = {with_error(*total)[0]} is within three standard errors of zero: "
                "a share of it says little, and its interval is not to be relied on.",
                UncertainShareWarning,
                stacklevel=caller_stacklevel(),
            )
        return Effect.of(self.estimated.proportion(), PROPORTION, alpha)

    def cate(
        self,
        data: Data | None = None,
        *,
        contrast: tuple[Any, Any] | None = None,
        intervals: float | None = None,
        simultaneous: bool = False,
    ) -> pd.Series[float] | pd.DataFrame:
        """Conditional total effect of each unit, the mediators averaged over their law.

        Parameters
        ----------
        data : DataFrame, array or None
            New units (their mediators are not needed). None: the training rows.
        contrast : (b, a), optional
            Two levels of the treatment, by default the second against the first.
        intervals, simultaneous
            Those of fits without mediators only.
        """
        return super().cate(data, contrast=contrast, intervals=intervals, simultaneous=simultaneous)

    def _identity(self) -> str:
        return "TE is NDE + NIE by definition"

    def _predict(self, data: Data) -> Prediction:
        """Total-effect nuisances of new units."""
        return self.networks.predict(self.design.spec.transform(data))
