"""Pictures of a fit: ``res.plot``, which asks the results for the numbers that are drawn.

What all fits have is here; each analysis adds its own in a child, in its folder's `plots`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cstonet.analyses.diagrams import chosen_network, diagram_of
from cstonet.errors import NotOfThisFitError, OptionError
from cstonet.plotting.forest import Row, forest
from cstonet.plotting.network import network_diagram
from cstonet.plotting.selection import Measure, selection_bars
from cstonet.plotting.style import shortened
from cstonet.plotting.trace import training_trace
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.numbers import count, level
from cstonet.settings.checks import is_real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cstonet.analyses.results import CausalResults
    from cstonet.reporting.groups import GroupEffects

_MODELS = ("treatment", "mediator", "outcome")
_MEASURES: tuple[Measure, ...] = ("probability", "frequency", "strength")


class Plots:
    """Pictures of a fit, each drawn into the Axes given, or a new figure, and returned as Axes.

    ``ax.figure.savefig("effects.pdf")`` writes one. Pictures of several panels are a single Axes
    too, whose `child_axes` are the panels.

    Parameters
    ----------
    results : CausalResults
        The fit.
    """

    # Pictures that other analyses have, and what to use here instead.
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    def __init__(self, results: CausalResults) -> None:
        self._results = results

    def __repr__(self) -> str:
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        return f"<Pictures of the fit: {', '.join(names)}>"

    def __getattr__(self, name: str) -> Any:
        if name in self._elsewhere:
            raise NotOfThisFitError(self._elsewhere[name].format(design=self._results.design))
        return object.__getattribute__(self, name)

    def effects(
        self,
        names: Sequence[str] | None = None,
        *,
        groups: GroupEffects | None = None,
        compare: Mapping[str, CausalResults] | None = None,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Axes:
        """Estimates with their intervals, one below the other.

        Parameters
        ----------
        names : sequence of str, optional
            Effects to show, any that `effect` knows; by default all contrasts of `params`.
        groups : GroupEffects, optional
            Effects in groups, the answer of ``res.gate(...)``, and that in everyone below them.
            Thick lines are intervals of each by itself, thin ones of all groups together, both of
            the level that the groups were asked for.
        compare : mapping of name to results, optional
            Fits to be shown beside each other, in place of this one.
        alpha : float
            One minus the confidence level.
        ax : Axes, optional
            Where to draw.
        """
        check_alpha(alpha)
        if groups is not None:
            if compare is not None or names is not None:
                raise OptionError("effects: groups= goes with neither names nor compare=")
            return self._group_effects(groups, ax)
        fits = {"": self._results} if compare is None else dict(compare)
        if not fits:
            raise OptionError("compare must name at least one fit")
        names = [names] if isinstance(names, str) else names
        rows = [
            _row(results.effect(name, alpha=alpha), series)
            for series, results in enumerate(fits.values())
            for name in (_contrasts(results) if names is None else names)
        ]
        if not rows:
            raise OptionError("names must hold at least one effect")
        return forest(
            rows,
            xlabel=f"{_estimates_of(rows, fits.values())}, {level(alpha)} interval",
            series=() if compare is None else tuple(map(str, fits)),
            ax=ax,
        )

    def _group_effects(self, groups: GroupEffects, ax: Axes | None) -> Axes:
        """Groups from top to bottom, and everyone."""
        rows = [
            Row(
                f"{name} (n = {count(int(row['n']))})",
                row["estimate"],
                row["lower"],
                row["upper"],
                outer=(row["lower_simultaneous"], row["upper_simultaneous"]),
            )
            for name, row in groups.table.iterrows()
        ]
        whole = self._results.effect(groups.name, alpha=groups.alpha)
        everyone = f"everyone (n = {count(self._results.nobs)})"
        rows.append(Row(everyone, whole.estimate, whole.lower, whole.upper, apart=True))
        confidence = level(groups.alpha)
        return forest(
            rows,
            xlabel=f"{groups.name} on {shortened(groups.model.endog_names, 20)}\n"
            f"thick: {confidence} interval; thin: of all groups together",
            ax=ax,
        )

    def selection(
        self, *, measure: Measure | None = None, most: int = 20, ax: Axes | None = None
    ) -> Axes:
        """Which covariates belong to the models of treatment and outcome, side by side.

        Covariates that were selected are dark.

        Parameters
        ----------
        measure : {"probability", "frequency", "strength"}, optional
            That they belong to the model; how many of the supports have them; their share in the
            weight of the paths. By default probabilities, where the fit can tell, else frequencies.
        most : int
            Covariates to show.
        ax : Axes, optional
            Where to draw.
        """
        check_count(most, "most")
        table = self._results.selection
        models = [model for model in _MODELS if model in table]
        known = [m for m in _MEASURES if all(f"{model}_{m}" in table for model in models)]
        if measure is not None and measure not in known:
            raise OptionError(f"measure must be one of {', '.join(known)}, not {measure!r}")
        return selection_bars(table, models, measure or known[0], most=most, ax=ax)

    def network(
        self,
        fold: int | None = None,
        *,
        start: int | None = None,
        least: float | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """A fitted network: covariates, hidden units, treatment and outcome, and its weights.

        Squares are observed, circles are latent units. Lines are as wide as weights are large,
        those of negative ones dashed. Beside the network, fits of arms may use linear parts.

        Parameters
        ----------
        fold : int, optional
            Which fold, as in `trace`; by default the one with the network of smallest BIC.
        start : int, optional
            Which start of it; by default the one of smallest BIC.
        least : float, optional
            Share of the largest weight of its layer that a weight must have to be drawn; 0 draws
            all that were kept. By default a tenth, or more where lines would be too many, and
            always the strongest path of every covariate to the treatment and to the outcome. Units
            without a path of such weights are left out.
        ax : Axes, optional
            Where to draw.
        """
        return self._network(self._results.networks, fold, start, least, ax)

    def _network(
        self,
        networks: Any,
        fold: int | None,
        start: int | None,
        least: float | None,
        ax: Axes | None,
        outcomes: Mapping[int, tuple[str, ...]] | None = None,
    ) -> Axes:
        """Draw one of several networks; `outcomes` are the names of its last units by fold."""
        if least is not None and (not is_real(least) or not 0 <= least <= 1):
            raise OptionError(f"least must lie between 0 and 1, not {least!r}")
        net = chosen_network(networks, fold, start)
        ends = None if outcomes is None else outcomes[net.fold]
        diagram = diagram_of(net, networks.covariates, self._results.design, ends)
        title = f"fold {net.fold}, start {net.start}"
        return network_diagram(diagram, least=least, title=title, ax=ax)

    def trace(self, *, ax: Axes | None = None) -> Axes:
        """Training history: log-likelihood of rows held out, and weights kept where they change.

        A thin line is a fold, averaged over its starts, the thick one their mean; dashed lines
        part the stages.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        """
        history = self._results.trace
        return training_trace(history, traced(history), ax=ax)


def _row(effect: Any, series: int) -> Row:
    return Row(effect.name, effect.estimate, effect.lower, effect.upper, series)


def _contrasts(results: CausalResults) -> tuple[str, ...]:
    """Effects that are differences, before the means."""
    return results.effects.names[: results.effects.n_contrasts]


def _estimates_of(rows: Sequence[Row], fits: Collection[CausalResults]) -> str:
    """The label of an axis of estimates: effects, unless means are among them."""
    outcome = shortened(next(iter(fits)).design.outcome_name, 20)
    means = {name for fit in fits for name in fit.effects.names[fit.effects.n_contrasts :]}
    return f"{'estimate for' if means & {row.name for row in rows} else 'effect on'} {outcome}"


def traced(history: pd.DataFrame) -> dict[str, str]:
    """Columns of a training history to be drawn, and what they are called."""
    names = list(map(str, history.columns))
    columns = {
        name: f"log-likelihood of held-out rows, {_modelled(name)}"
        for name in names
        if name.startswith("held_out_") and history[name].notna().any()
    }
    if not columns:
        last = [name for name in names if name.startswith("log_likelihood_")][-1]
        columns = {last: "log-likelihood of training rows, outcome"}
    if history.groupby(["fold", "start"])["nonzero"].nunique().max() > 1:
        columns["nonzero"] = "kept weights"
    return columns


def _modelled(column: str) -> str:
    """What a column of held-out log-likelihoods is about; the several outcomes are mediators."""
    name = column.removeprefix("held_out_")
    number = name.removeprefix("outcome")
    return f"mediator {number}" if number.isdigit() else name


def check_count(number: int, name: str) -> None:
    """Raise OptionError unless so many can be shown."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise OptionError(f"{name} must be a whole number of at least one, not {number!r}")
