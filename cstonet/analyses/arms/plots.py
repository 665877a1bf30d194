"""Pictures of fits that compare arms."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from cstonet.analyses.unit_plots import Along, Contrast, UnitPlots
from cstonet.errors import NotAvailableError, OptionError
from cstonet.plotting.heterogeneity import targeting_curve
from cstonet.plotting.overlap import propensity_histograms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cstonet.analyses.arms.comparisons import ComparedArms
    from cstonet.analyses.arms.results import ArmsResults
    from cstonet.reporting.heterogeneity import Heterogeneity


class ComparedArmsPlots(UnitPlots):
    """Pictures of every fit that compares arms, mediation among them."""

    _results: ComparedArms
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "dose_response": (
            "the treatment {design.treatment.name!r} has levels, not doses: "
            "plot.effects(res.params.index) shows the mean outcome at each"
        ),
        "toc": "a mediation does not rank units: plot.cate() shows their effects, sorted",
    }

    def overlap(self, *, level: object = None, ax: Axes | None = None) -> Axes:
        """Could units have received another treatment? Propensities of each arm, mirrored.

        Those who received the level are above, those who did not below, each with area one;
        dashed lines are the bounds of the propensities. A multilevel treatment has a panel per
        level.

        Parameters
        ----------
        level : optional
            Only the panel of this level; by default the second of two.
        ax : Axes, optional
            Where to draw.
        """
        results = self._results
        arms, clip = results.arms, results.effects.clip
        least = clip if isinstance(clip, tuple) else (clip,) * len(arms.levels)
        shown = tuple(range(len(arms.levels))) if arms.kind == "multilevel" else (1,)
        if level is not None:
            shown = (arms.code_of(level, "level"),)
        return propensity_histograms(
            results.nuisances.propensity,
            results.nuisances.treatment,
            results.nuisances.unit_weights,
            levels=arms.levels,
            shown=shown,
            bounds=[(least[code], 1 - (sum(least) - least[code])) for code in shown],
            treatment_name=arms.name,
            ax=ax,
        )

    def _pair(self, contrast: Contrast | None) -> Contrast | None:
        """Of a multilevel treatment the second level against the first."""
        levels = self._results.arms.levels
        if contrast is None and self._results.arms.kind == "multilevel":
            return (levels[1], levels[0])
        return contrast


class ArmsPlots(ComparedArmsPlots):
    """Pictures of a fit of a treatment with levels."""

    _results: ArmsResults

    def toc(
        self,
        of: Heterogeneity | None = None,
        *,
        contrast: Contrast | None = None,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Axes:
        """How much larger the effect is among those with the largest predicted ones.

        Parameters
        ----------
        of : Heterogeneity, optional
            An answer of `heterogeneity`, which is then not computed again.
        contrast, alpha
            See :meth:`cstonet.analyses.arms.results.ArmsResults.heterogeneity`.
        ax : Axes, optional
            Where to draw.
        """
        if of is None:
            of = self._results.heterogeneity(contrast=contrast, alpha=alpha)
        elif contrast is not None:
            raise OptionError("toc: give an answer of heterogeneity(), or a contrast, not both")
        what = self._effect_on(self._pair(contrast))
        return targeting_curve(of.toc, what=what, alpha=of.alpha, ax=ax)

    def _unit_effects(self, contrast: Contrast | None, alpha: float | None) -> pd.DataFrame:
        """Effects of the units, with intervals where the fit can give them."""
        if alpha is not None:
            # A fit without folds, or to frames on a cluster, has none.
            with contextlib.suppress(NotAvailableError):
                return pd.DataFrame(self._results.cate(contrast=contrast, intervals=1 - alpha))
        return super()._unit_effects(contrast, alpha)

    def _averages(self, along: Along) -> pd.DataFrame:
        """Average effects in groups by doubly robust scores."""
        return self._results.gate(along.name, contrast=along.contrast, alpha=along.alpha).table

    def _curve(self, along: Along) -> pd.DataFrame:
        """Average effects along a column by doubly robust scores."""
        return self._results.effect_along(along.name, contrast=along.contrast, alpha=along.alpha)
