"""How effects differ between units: sorted, along a covariate, by who would be treated first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    LINE,
    THICK,
    band,
    canvas,
    label,
    legend_above,
    literal,
    reference_line,
    shortened,
)
from cstonet.reporting.numbers import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Opacity of what lies behind the averages: the units, and their intervals.
_CLOUD = 0.5
# Points of a cloud: more are drawn as every so-manieth.
_MOST_POINTS = 5000
# Numbers that take no more values than that are drawn as categories.
_FEW_VALUES = 8


def sorted_effects(
    effects: pd.DataFrame,
    weights: FloatArray,
    *,
    what: str,
    alpha: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect of every unit, from the smallest to the largest, and their average.

    Parameters
    ----------
    effects : (n rows)
        `estimate`, and where they are known `lower` and `upper`.
    weights : (n,)
        Weights of the units, which are the shares of the horizontal axis.
    what
        Name of the effect.
    alpha
        One minus the level of the intervals.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.4)
    order = np.argsort(effects["estimate"].to_numpy(), kind="stable")
    ranked, mass = effects.iloc[order], weights[order]
    shares = (np.cumsum(mass) - mass / 2) / mass.sum()
    average = float(np.average(effects["estimate"], weights=weights))
    reference_line(ax, 0.0, vertical=False)
    if "lower" in ranked:
        band(
            ax,
            shares,
            ranked["lower"],
            ranked["upper"],
            name=f"{level(alpha)} interval of a unit",
            colour=COLOURS[2],
            opacity=_CLOUD,
            rasterized=len(ranked) > _MOST_POINTS,
        )
    ax.plot(shares, ranked["estimate"], color=COLOURS[0], linewidth=LINE, label="unit")
    ax.axhline(average, color=COLOURS[1], linewidth=LINE, linestyle="--", label="average")
    ax.set_xlim(0.0, 1.0)
    label(ax, x="share of the units, sorted by effect", y=what)
    legend_above(ax)
    return ax


def is_scale(values: pd.Series) -> bool:
    """Whether values are numbers on a scale, rather than a few categories."""
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return bool(numeric and values.nunique() > _FEW_VALUES)


def effects_along(
    values: FloatArray,
    effects: FloatArray,
    curve: pd.DataFrame,
    *,
    name: str,
    what: str,
    alpha: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw effects along a covariate: units as points, their mean as a line with its band.

    Parameters
    ----------
    values, effects : (n,)
        The covariate, and the effects of the units.
    curve
        `at`, `estimate`, and where they are known `lower` and `upper`.
    name, what
        Names of the covariate and of the effect.
    alpha
        One minus the level of the band.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.6)
    reference_line(ax, 0.0, vertical=False)
    every = slice(None, None, -(-len(values) // _MOST_POINTS))
    ax.plot(
        values[every],
        effects[every],
        "o",
        color=COLOURS[2],
        markersize=2.2,
        markeredgewidth=0,
        alpha=_CLOUD,
        label="unit",
        rasterized=True,
    )
    if "lower" in curve:
        name_of_band = f"{level(alpha)} pointwise"
        band(ax, curve["at"], curve["lower"], curve["upper"], name=name_of_band)
    ax.plot(curve["at"], curve["estimate"], color=COLOURS[0], linewidth=LINE, label="average")
    label(ax, x=name, y=what)
    legend_above(ax)
    return ax


def effects_by_category(
    categories: pd.Series,
    effects: FloatArray,
    groups: pd.DataFrame,
    *,
    name: str,
    what: str,
    alpha: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw effects by category: units as a narrow cloud, the mean of each with its interval.

    Parameters
    ----------
    categories, effects : (n,)
        The category and the effect of every unit.
    groups
        Indexed by category, in the order to be shown: `estimate`, and where they are known `lower`
        and `upper`.
    name, what
        Names of the covariate and of the effect.
    alpha
        One minus the level of the intervals.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.6)
    reference_line(ax, 0.0, vertical=False)
    members = categories.to_numpy()
    for place, (category, row) in enumerate(groups.iterrows()):
        own = effects[members == category]
        quarters = np.quantile(own, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.vlines(place, quarters[0], quarters[4], color=COLOURS[2], linewidth=LINE)
        ax.vlines(place, quarters[1], quarters[3], color=COLOURS[2], linewidth=4 * THICK)
        if "lower" in groups:
            ax.vlines(place, row["lower"], row["upper"], color=COLOURS[0], linewidth=LINE)
        ax.plot(place, row["estimate"], "o", color=COLOURS[0], markersize=4.0)
    ax.set_xticks(range(len(groups)), [shortened(category, 14) for category in groups.index])
    for text in ax.get_xticklabels():
        literal(text)
    ax.set_xlim(-0.6, len(groups) - 0.4)
    label(ax, x=name, y=what)
    _category_legend(ax, alpha if "lower" in groups else None)
    return ax


def _category_legend(ax: Axes, alpha: float | None) -> None:
    """What boxes and points are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mean = "mean" if alpha is None else f"mean, {level(alpha)} interval"
    width = 0.0 if alpha is None else LINE
    legend_above(
        ax,
        handles=[
            Line2D([], [], marker="o", markersize=4, linewidth=width, color=COLOURS[0], label=mean),
            Patch(color=COLOURS[2], label="units: middle half, nine in ten"),
        ],
    )


def targeting_curve(
    table: pd.DataFrame, *, what: str, alpha: float, ax: Axes | None = None
) -> Axes:
    """Draw by how much the effect among those treated first exceeds that in everyone.

    Parameters
    ----------
    table
        `share`, `estimate`, `lower`, `upper`.
    what
        Name of the effect.
    alpha
        One minus the level of the band.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.4)
    reference_line(ax, 0.0, vertical=False)
    name_of_band = f"{level(alpha)} pointwise"
    band(ax, table["share"], table["lower"], table["upper"], name=name_of_band)
    gain = "effect among these, less that of all"
    ax.plot(table["share"], table["estimate"], color=COLOURS[0], linewidth=LINE, label=gain)
    ax.set_xlim(0.0, 1.0)
    label(ax, x="share of the units, largest predicted first", y=f"gain in {what}")
    legend_above(ax)
    return ax
