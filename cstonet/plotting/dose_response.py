"""A dose-response curve with its intervals and its uniform band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cstonet.plotting.style import COLOURS, COLUMN, LINE, band, canvas, label, legend_above
from cstonet.reporting.numbers import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Doses that make a curve; fewer are marked.
_CURVE = 10


def dose_response_curve(
    table: pd.DataFrame,
    *,
    alpha: float,
    dose_name: str,
    outcome_name: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw the curve, its pointwise intervals (dark) and its uniform band (light).

    Parameters
    ----------
    table
        That of :class:`cstonet.analyses.doses.response.DoseResponse`.
    alpha
        One minus the level of intervals and band.
    dose_name, outcome_name
        Names for the axes.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.6)
    doses, confidence = table["dose"], level(alpha)
    for limits, opacity, name in (
        (("uniform_lower", "uniform_upper"), 0.15, f"{confidence} band"),
        (("lower", "upper"), 0.3, f"{confidence} pointwise"),
    ):
        lower, upper = (table[column] for column in limits)
        band(ax, doses, lower, upper, name=name, opacity=opacity)
    (curve,) = ax.plot(doses, table["estimate"], color=COLOURS[0], linewidth=LINE, label="estimate")
    few = len(table) < _CURVE
    curve.set_marker("o" if few else "none")
    ax.margins(x=0.05 if few else 0.0)
    label(ax, x=dose_name, y=f"mean of {outcome_name}")
    legend_above(ax)
    return ax
