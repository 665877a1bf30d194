"""Pictures of fits with a continuous treatment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike

from cstonet.analyses.doses.diagnostics import counting
from cstonet.analyses.unit_plots import UnitPlots
from cstonet.plotting.overlap import dose_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cstonet.analyses.doses.results import DoseResults


class DosePlots(UnitPlots):
    """Pictures of a dose: its curve, and how much units count at their doses."""

    _results: DoseResults
    _balance_measure: ClassVar[str] = "correlation with the dose"
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "toc": "a dose does not rank units: plot.cate() shows their effects, sorted",
    }

    def overlap(self, *, ax: Axes | None = None) -> Axes:
        """Could others have had these doses? How much each unit counts at its dose.

        A point is a unit with its stabilised weight, which makes the dose independent of the
        covariates. Above each fifth of the doses is the number of equally weighted units that
        would give the same variance.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        """
        nuisances, clip = self._results.dose_nuisances, self._results.effects.single_clip
        weights, bounded = counting(nuisances, clip=clip)
        return dose_weights(
            nuisances.dose,
            weights,
            bounded,
            self._results.overlap().drop(index="all"),
            dose_name=self._results.design.treatment_name,
            ax=ax,
        )

    def dose_response(
        self,
        grid: ArrayLike | None = None,
        *,
        alpha: float = 0.05,
        bandwidth: float | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """The mean outcome had every unit received a dose, as a curve.

        Pointwise intervals are dark, the uniform band is light.

        Parameters
        ----------
        grid, alpha, bandwidth
            See :meth:`cstonet.analyses.doses.results.DoseResults.dose_response`.
        ax : Axes, optional
            Where to draw.
        """
        return self._results.dose_response(grid, alpha=alpha, bandwidth=bandwidth).plot(ax)
