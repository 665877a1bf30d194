"""Pictures of mediation fits: those of arms, and of either of their networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cstonet.analyses.arms.plots import ComparedArmsPlots
from cstonet.analyses.plots import traced
from cstonet.errors import OptionError
from cstonet.plotting.trace import training_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cstonet.analyses.mediation.results import MediationResults

Network = Literal["outcome", "mediator"]


class MediationPlots(ComparedArmsPlots):
    """Pictures of a mediation."""

    _results: MediationResults

    def network(
        self,
        fold: int | None = None,
        *,
        model: Network = "outcome",
        start: int | None = None,
        least: float | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """A fitted network: of treatment and outcome, or of the mediators.

        Parameters
        ----------
        fold, start, least
            See :meth:`cstonet.analyses.plots.Plots.network`.
        model : {"outcome", "mediator"}
            Which one.
        ax : Axes, optional
            Where to draw.
        """
        _check(model)
        networks = self._results.networks
        if model == "outcome":
            return self._network(networks.outcome, fold, start, least, ax)
        names = self._results.design.mediators.names
        held = {
            number: tuple(names[j] for j in models.held)
            for number, models in enumerate(networks.models)
        }
        return self._network(networks.mediator, fold, start, least, ax, held)

    def trace(self, *, model: Network = "outcome", ax: Axes | None = None) -> Axes:
        """Training history of the networks of the outcome, or of the mediators.

        Mediators are numbered as the networks of each fold have them.

        Parameters
        ----------
        model : {"outcome", "mediator"}
            Which networks.
        ax : Axes, optional
            Where to draw.
        """
        _check(model)
        history = getattr(self._results.networks, model).trace
        return training_trace(history, traced(history), ax=ax)


def _check(model: Network) -> None:
    if model not in ("outcome", "mediator"):
        raise OptionError(f"model must be 'outcome' or 'mediator', not {model!r}")
