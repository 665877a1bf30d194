"""Estimates with their intervals, one below the other: a forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    INK,
    LINE,
    MARKERS,
    PAGE,
    SMALL,
    TEXT,
    THICK,
    THIN,
    canvas,
    label,
    legend_above,
    names_width,
    reference_line,
    rows_height,
    rows_named,
)
from cstonet.reporting.numbers import with_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Characters of a number beside its row.
_WIDTH = 12
# Characters of a name: those of groups are conditions, whose middle matters.
_LONGEST = 44
# Distance of the marks that share a row, in rows, and rows between two parts of a picture.
_STEP, _BREAK = 0.28, 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One estimate of a forest plot.

    Attributes
    ----------
    name
        What stands at its left; rows of one name share a line.
    estimate, lower, upper
        The mark and its interval.
    series
        Which of several fits it comes from.
    outer
        A wider interval, such as a simultaneous one, drawn thinner.
    apart
        Whether some room is left above it.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    series: int = 0
    outer: tuple[float, float] | None = None
    apart: bool = False


def forest(
    rows: Sequence[Row],
    *,
    xlabel: str,
    series: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot, with a line at zero and the numbers at the right.

    Parameters
    ----------
    rows
        From top to bottom.
    xlabel
        What the estimates are.
    series
        Names of the fits, if there are several.
    ax
        Where to draw; None: a new figure.
    """
    names = list(dict.fromkeys(row.name for row in rows))
    first = {name: next(row for row in rows if row.name == name) for name in names}
    lines = max(len(series), 1)
    height = max(1.0, _STEP * lines + 0.3)
    steps = np.array([height + _BREAK * first[name].apart for name in names])
    places = dict(zip(names, (np.cumsum(steps) - steps[0]).tolist(), strict=True))
    width = min(COLUMN + names_width(names, _LONGEST) + (1.0 if series else 0.0), PAGE)
    above = 0.25 if series else 0.0
    ax = canvas(ax, width, rows_height(round(steps.sum()) + 1) + above)
    reference_line(ax, 0.0)
    for row, text in zip(rows, _numbers(rows), strict=True):
        y = places[row.name] + _STEP * (row.series - (lines - 1) / 2)
        colour = COLOURS[row.series % len(COLOURS)]
        if row.outer is not None:
            ax.plot(row.outer, (y, y), color=colour, linewidth=THIN, solid_capstyle="butt")
        limits, wide = (row.lower, row.upper), LINE if row.outer is None else THICK
        ax.plot(limits, (y, y), color=colour, linewidth=wide, solid_capstyle="butt")
        mark = MARKERS[row.series % len(MARKERS)]
        ax.plot(row.estimate, y, mark, color=colour, markersize=4.0)
        ax.annotate(
            text,
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL if lines > 1 else TEXT,
            color=INK,
            annotation_clip=False,
        )
    rows_named(ax, [places[name] for name in names], names, _LONGEST)
    ax.set_ylim(max(places.values()) + height / 2 + 0.1, -height / 2 - 0.1)
    label(ax, x=xlabel)
    if series:
        for k, name in enumerate(series):
            colour, mark = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
            ax.plot([], [], mark, color=colour, markersize=4.0, linestyle="-", label=name)
        legend_above(ax, room=width)
    return ax


def _numbers(rows: Sequence[Row]) -> list[str]:
    """Estimate and interval of each row, with the digits that its interval supports."""
    values = np.array([[row.estimate, row.lower, row.upper] for row in rows])
    errors = (values[:, 2] - values[:, 1]) / 4
    cells = with_errors(values, errors, [_WIDTH] * 3)
    return [f"{estimate} [{lower}, {upper}]" for estimate, lower, upper in cells]
