"""Pictures of fits that have effects of units: these, balance, what confounders could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cstonet.analyses.plots import Plots, check_count
from cstonet.errors import OptionError
from cstonet.estimators.effect_curve import smooth
from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.balance import love_plot
from cstonet.plotting.heterogeneity import (
    effects_along,
    effects_by_category,
    is_scale,
    sorted_effects,
)
from cstonet.plotting.sensitivity import confounding_contours
from cstonet.plotting.style import shortened
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.sensitivity import Sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Two levels of the treatment, or two doses.
Contrast = tuple[Any, Any]

# Points of a smooth, between the values below and above which this share of the units lies.
_POINTS, _TRIM = 40, 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A picture of effects along a column: what its averages are of.

    Attributes
    ----------
    name
        Name of the column.
    column : (n,)
        Its values.
    effects : (n,) float64
        Effects of the units.
    contrast
        What they compare.
    alpha
        One minus the confidence level.
    """

    name: str
    column: pd.Series
    effects: FloatArray
    contrast: Contrast | None
    alpha: float


class UnitPlots(Plots):
    """Pictures of fits that have effects of units, and balance. Children say what these are."""

    # What the numbers of `balance` are.
    _balance_measure: ClassVar[str] = "standardised mean difference"

    def balance(self, *, most: int = 30, ax: Axes | None = None) -> Axes:
        """Covariates before and after weighting: differences of arms, or correlations with a dose.

        Between the dashed lines, at 0.1, they are small by a rule of thumb. A multilevel treatment
        has a panel per contrast.

        Parameters
        ----------
        most : int
            Covariates to show, those with the largest differences.
        ax : Axes, optional
            Where to draw.
        """
        check_count(most, "most")
        results: Any = self._results
        return love_plot(results.balance(), measure=self._balance_measure, most=most, ax=ax)

    def cate(
        self,
        by: str | None = None,
        *,
        contrast: Contrast | None = None,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Axes:
        """Effects of the units: sorted, or along a column of the data.

        Along a number, points are the units' predicted effects. The line is their average at that
        value; for a treatment with levels it is that of doubly robust scores, with its pointwise
        band (see `effect_along`). Categories, and numbers with few values, have boxes of the
        units' effects and averages.

        Parameters
        ----------
        by : str, optional
            A column of the data, in the formula or not.
        contrast : (b, a), optional
            Two levels of the treatment, or doses; by default the second level against the first,
            or the slope in the dose.
        alpha : float
            One minus the confidence level.
        ax : Axes, optional
            Where to draw.
        """
        check_alpha(alpha)
        contrast = self._pair(contrast)
        what, weights = self._effect_on(contrast), self._results.design.unit_weights
        if by is None:
            effects = self._unit_effects(contrast, alpha)
            return sorted_effects(effects, weights, what=what, alpha=alpha, ax=ax)
        column = self._results.design.variables([by])[by]
        estimates = self._unit_effects(contrast, None)["estimate"].to_numpy()
        along, names = Along(by, column, estimates, contrast, alpha), {"name": by, "what": what}
        if is_scale(column):
            values = column.to_numpy(dtype=np.float64)
            curve = self._curve(along)
            return effects_along(values, estimates, curve, alpha=alpha, ax=ax, **names)
        groups = self._averages(along)
        return effects_by_category(column, estimates, groups, alpha=alpha, ax=ax, **names)

    def sensitivity(
        self, of: str | Sensitivity | None = None, *, most: int = 5, ax: Axes | None = None
    ) -> Axes:
        """What a hidden confounder could do: the bound of the effect over its strength.

        Points are as strong as observed covariates. On the thick line the bound is zero; beyond
        it, the sign of the effect could be another.

        Parameters
        ----------
        of : str or Sensitivity, optional
            The effect, by default the one that leads; or an answer of `sensitivity`, which is
            then not computed again.
        most : int
            Covariates to show, the strongest.
        ax : Axes, optional
            Where to draw.
        """
        check_count(most, "most")
        results: Any = self._results
        if of is None or isinstance(of, str):
            of = results.sensitivity(of)
        if not isinstance(of, Sensitivity):
            raise OptionError(f"of must name an effect or be a Sensitivity, not {of!r}")
        return confounding_contours(
            of.bounds,
            of.effect.estimate,
            of.robustness_value,
            of.benchmarks,
            what=of.effect.name,
            most=most,
            ax=ax,
        )

    def _pair(self, contrast: Contrast | None) -> Contrast | None:
        """The contrast asked for, or the one meant by None where there are several."""
        return contrast

    def _effect_on(self, contrast: Contrast | None) -> str:
        """The label of an axis of effects."""
        outcome = shortened(self._results.design.outcome_name, 20)
        if contrast is None:
            return f"effect on {outcome}"
        b, a = (shortened(level, 12) for level in contrast)
        return f"effect on {outcome}\n{b} – {a}"

    def _unit_effects(self, contrast: Contrast | None, alpha: float | None) -> pd.DataFrame:  # noqa: ARG002
        """`estimate` of every unit; where there are intervals and a level, `lower` and `upper`."""
        results: Any = self._results
        return pd.DataFrame({"estimate": results.cate(contrast=contrast).to_numpy()})

    def _curve(self, along: Along) -> pd.DataFrame:
        """Average effects `at` values of a column: a smooth of those of the units."""
        known = along.column.notna().to_numpy()
        values = along.column.to_numpy(dtype=np.float64)[known]
        low, high = np.quantile(values, [_TRIM, 1 - _TRIM])
        at = np.linspace(low, high, _POINTS)
        weights = self._results.design.unit_weights[known]
        smoothed = smooth(values, along.effects[known], weights, at)
        return pd.DataFrame({"at": at, "estimate": smoothed})

    def _averages(self, along: Along) -> pd.DataFrame:
        """Average effects in categories, which are the index: means of those of the units."""
        weights = self._results.design.unit_weights
        frame = pd.DataFrame({"mass": weights, "sum": weights * along.effects})
        sums = frame.groupby(along.column.to_numpy(), observed=True).sum()
        return pd.DataFrame({"estimate": sums["sum"] / sums["mass"]})
