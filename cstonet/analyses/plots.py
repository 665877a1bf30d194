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
from cstonet.estimators.effect_curve import smooth
from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.balance import love_plot
from cstonet.plotting.forest import Row, forest
from cstonet.plotting.heterogeneity import (
    effects_along,
    effects_by_category,
    is_scale,
    sorted_effects,
)
from cstonet.plotting.network import network_diagram
from cstonet.plotting.selection import Measure, selection_bars
from cstonet.plotting.sensitivity import confounding_contours
from cstonet.plotting.style import percent, shortened
from cstonet.plotting.trace import training_trace
from cstonet.reporting.inference import check_alpha
from cstonet.reporting.numbers import count
from cstonet.reporting.sensitivity import Sensitivity
from cstonet.settings.checks import is_real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cstonet.analyses.results import CausalResults
    from cstonet.reporting.groups import GroupEffects

# Two levels of the treatment, or two doses.
Contrast = tuple[Any, Any]

_MODELS = ("treatment", "mediator", "outcome")
_MEASURES: tuple[Measure, ...] = ("probability", "frequency", "strength")
# Points of a smooth, between the values below and above which this share of the units lies.
_POINTS, _TRIM = 40, 0.01


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
            xlabel=f"{_estimates_of(rows, fits.values())}, {percent(alpha)} interval",
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
        level = percent(groups.alpha)
        return forest(
            rows,
            xlabel=f"{groups.name} on {shortened(groups.model.endog_names, 20)}\n"
            f"thick: {level} interval; thin: of all groups together",
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
        _check_count(most, "most")
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
        _check_count(most, "most")
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
        effects = self._unit_effects(contrast, None)
        estimates, names = effects["estimate"].to_numpy(), {"name": by, "what": what}
        if is_scale(column):
            curve = self._curve(by, column, estimates, contrast, alpha)
            values = column.to_numpy(dtype=np.float64)
            return effects_along(values, estimates, curve, alpha=alpha, ax=ax, **names)
        groups = self._averages(by, column, estimates, contrast, alpha)
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
        _check_count(most, "most")
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

    def _curve(
        self,
        by: str,  # noqa: ARG002
        column: pd.Series,
        effects: FloatArray,
        contrast: Contrast | None,  # noqa: ARG002
        alpha: float,  # noqa: ARG002
    ) -> pd.DataFrame:
        """Average effects `at` values of a column: a smooth of those of the units."""
        known = column.notna().to_numpy()
        values = column.to_numpy(dtype=np.float64)[known]
        low, high = np.quantile(values, [_TRIM, 1 - _TRIM])
        at = np.linspace(low, high, _POINTS)
        weights = self._results.design.unit_weights[known]
        return pd.DataFrame({"at": at, "estimate": smooth(values, effects[known], weights, at)})

    def _averages(
        self,
        by: str,  # noqa: ARG002
        column: pd.Series,
        effects: FloatArray,
        contrast: Contrast | None,  # noqa: ARG002
        alpha: float,  # noqa: ARG002
    ) -> pd.DataFrame:
        """Average effects in categories, which are the index: means of those of the units."""
        weights = self._results.design.unit_weights
        frame = pd.DataFrame({"mass": weights, "sum": weights * effects})
        sums = frame.groupby(column.to_numpy(), observed=True).sum()
        return pd.DataFrame({"estimate": sums["sum"] / sums["mass"]})


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


def _check_count(number: int, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise OptionError(f"{name} must be a whole number of at least one, not {number!r}")
