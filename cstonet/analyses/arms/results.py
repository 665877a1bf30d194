"""What a fit of a treatment with levels returns: its effects, and all that can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from cstonet.analyses.arms.cate_intervals import CateIntervals
from cstonet.analyses.arms.cautions import NOT_ESTIMABLE, not_estimable
from cstonet.analyses.arms.curves import EffectCurves
from cstonet.analyses.arms.groups import Groups
from cstonet.analyses.arms.methods import arms_methods
from cstonet.analyses.arms.policy import TreatmentRules
from cstonet.analyses.arms.ratios import Ratios
from cstonet.analyses.arms.sensitivity import SensitivityOfArms
from cstonet.analyses.arms.wording import leading_estimand
from cstonet.analyses.placebo import PlaceboChecks

if TYPE_CHECKING:
    from cstonet.analyses.arms.plots import ArmsPlots
    from cstonet.analyses.twins import World
    from cstonet.reporting.summary import SummaryParts


class ArmsResults(
    EffectCurves, Ratios, SensitivityOfArms, TreatmentRules, PlaceboChecks, Groups, CateIntervals
):
    """A fitted Causal-StoNet of a treatment with two or more levels.

    Parameters
    ----------
    record, effects, nuisances
        See :class:`~cstonet.analyses.arms.effects.ArmsEffects`.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {
        "dose_response": (
            "the treatment {design.treatment.name!r} has levels, not doses: potential_outcomes() "
            "and the POM rows of params are the outcomes at each. For numbers that are amounts, "
            "fit with treatment='continuous'"
        ),
        "proportion_mediated": "the formula names no mediators: add them as its third part",
        "mediators": "the formula names no mediators: add them as its third part",
    }

    @property
    def plot(self) -> ArmsPlots:
        """Pictures of the fit, see :class:`cstonet.analyses.arms.plots.ArmsPlots`."""
        from cstonet.analyses.arms.plots import ArmsPlots

        return ArmsPlots(self)

    def summary_parts(self, alpha: float) -> SummaryParts:
        """Header rows, tables and notes of the summary."""
        from cstonet.analyses.arms.summary import arms_summary

        return arms_summary(self, alpha)

    def _twin_world(self) -> World:
        """Where twins of the data come from."""
        from cstonet.analyses.arms.twins import ArmsWorld

        return ArmsWorld.of(self)

    def methods(self) -> str:
        """How the effects were estimated, in full: text for a paper's methods section."""
        return arms_methods(self)

    def _leading_warnings(self) -> tuple[str, ...]:
        """That the leading effect cannot be estimated comes before everything else."""
        if getattr(self, "estimable", True) or any(NOT_ESTIMABLE in w for w in self.warnings):
            return self.warnings
        return (not_estimable(leading_estimand(self)), *self.warnings)
