"""What a mediation fit returns: total, direct and indirect effects, and the mediators' paths."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from cstonet.analyses.arms.results import CausalResults, Data
from cstonet.analyses.fitted import Networks, Plan
from cstonet.data.caller import caller_stacklevel
from cstonet.errors import NotAvailableError, UncertainShareWarning
from cstonet.estimators.mediation import PROPORTION, MediationEffects
from cstonet.reporting.inference import Effect

if TYPE_CHECKING:
    from cstonet.data.design import Design
    from cstonet.estimators import MediationNuisances


class MediationResults(CausalResults):
    """A fitted mediation: "TE", "NDE" and "NIE", with what a fit without mediators offers.

    Parameters
    ----------
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
    design, plan, selection, networks, notes, runtime
        See :class:`~cstonet.analyses.arms.results.CausalResults`. The selection has a column
        `mediator` too: covariates that explain the mediators.
    """

    estimator = "EIF"

    def __init__(
        self,
        *,
        design: Design,
        plan: Plan,
        estimated: MediationEffects,
        mediation: MediationNuisances,
        mediators: pd.DataFrame,
        selection: pd.DataFrame,
        networks: Networks,
        notes: tuple[str, ...],
        runtime: float,
    ) -> None:
        super().__init__(
            design=design,
            plan=plan,
            effects=estimated.effects,
            nuisances=mediation.total(),
            selection=selection,
            networks=networks,
            notes=notes,
            runtime=runtime,
        )
        self.estimated = estimated
        self.mediation = mediation
        self.mediators = mediators

    def effect(self, name: str = "TE", *, alpha: float = 0.05) -> Effect:
        """One effect by name: "TE", "NDE", "NIE", or "NIE/TE", the proportion mediated.

        Parameters
        ----------
        name : str
            Which one.
        alpha : float
            One minus the confidence level.
        """
        if name == PROPORTION:
            return self.proportion_mediated(alpha=alpha)
        if name not in self.effects.names:
            raise NotAvailableError(
                f"a mediation fit has no effect {name!r}; available: "
                f"{', '.join(self.effects.names)}, {PROPORTION}. For effects in parts of the "
                "population, such as the ATT, fit the formula without its mediators."
            )
        return Effect.of(self.effects, name, alpha)

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
            warnings.warn(
                f"TE = {self.effects.estimates[0]:.3g} is within three standard errors of zero: "
                "a share of it says little, and its interval is not to be relied on.",
                UncertainShareWarning,
                stacklevel=caller_stacklevel(),
            )
        return Effect.of(self.estimated.proportion(), PROPORTION, alpha)

    def _no_curve(self) -> str:
        return (
            f"a mediation compares two levels of {self.design.treatment_name!r} and has no curve: "
            "potential_outcomes() are the expected outcomes at each, the column effect of "
            "mediators is what the treatment does to each mediator. For the curve of a dose, fit "
            "the formula without its mediators and with treatment='continuous'"
        )

    def test_equal_arms(self) -> NoReturn:
        """Not available: the test of no total effect is ``wald_test("TE = 0")``."""
        raise NotAvailableError(
            "a mediation fit has no arms to compare; wald_test('TE = 0') tests that the treatment "
            "has no effect, wald_test('NDE = 0, NIE = 0') that it has neither kind."
        )

    def cate(
        self, data: Data | None = None, *, contrast: tuple[Any, Any] | None = None
    ) -> pd.Series[float] | pd.DataFrame:
        """Conditional total effect of each unit, the mediators averaged over their law.

        Parameters
        ----------
        data : DataFrame, array or None
            New units (their mediators are not needed). None: the training rows.
        contrast : (b, a), optional
            Two levels of the treatment, by default the second against the first.
        """
        return super().cate(data, contrast=contrast)

    def _identity(self) -> str:
        return "TE is NDE + NIE by definition"
