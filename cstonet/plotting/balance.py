"""Balance of the covariates before and after weighting: a Love plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    FAINT,
    PAGE,
    THIN,
    canvas,
    heading,
    label,
    legend_above,
    names_width,
    panels,
    reference_line,
    rows_height,
    rows_named,
    shortened,
)
from cstonet.reporting.numbers import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Differences beyond it deserve a look, as a rule of thumb.
THRESHOLD = 0.1
# Room beyond the largest difference, as a share of it.
_ROOM = 1.08


def love_plot(table: pd.DataFrame, *, measure: str, most: int = 30, ax: Axes | None = None) -> Axes:
    """Draw differences before and after weighting, the largest before at the top.

    Parameters
    ----------
    table
        Indexed by covariate; two columns, before and after, for every contrast: ``smd_before``,
        ``smd_after``, or the same followed by ``[b-a]``.
    measure
        What the numbers are.
    most
        Covariates to show: those with the largest differences, before or after, in any contrast.
        Infinite ones, of covariates that do not vary within the arms, are drawn at the edge.
    ax
        Where to draw; None: a new figure.
    """
    values = table.to_numpy(dtype=np.float64)
    chosen = np.argsort(-np.abs(values).max(axis=1, initial=0.0), kind="stable")[:most]
    # By the difference before weighting, in the contrast where it is largest.
    before = np.abs(values[chosen, 0::2]).max(axis=1)
    chosen = chosen[np.argsort(-before, kind="stable")]
    values, names = values[chosen], table.index[chosen]
    finite = np.abs(values[np.isfinite(values)])
    edge = _ROOM * max(float(finite.max(initial=0.0)), 1.5 * THRESHOLD)
    contrasts = values.shape[1] // 2
    width = COLUMN + names_width(names) if contrasts == 1 else PAGE
    ax = canvas(ax, width, rows_height(len(names), room=0.9))
    parts = [ax] if contrasts == 1 else panels(ax, 1, contrasts, gap=(0.1, 0.0))
    for k, part in enumerate(parts):
        _panel(part, values[:, 2 * k : 2 * k + 2], edge)
        rows_named(part, range(len(names)), list(names) if k == 0 else [""] * len(names))
        label(part, x=measure)
        if contrasts > 1:
            column = str(table.columns[2 * k])
            heading(part, shortened(column[column.index("[") + 1 : -1], 40))
    legend_above(ax, handles=parts[0].lines[-2:], lifted=contrasts > 1, right=True)
    if len(table) > len(names):
        shown = f"{len(names)} of {count(len(table))} covariates"
        label(parts[0], y=shown)
    return ax


def _panel(ax: Axes, values: FloatArray, edge: float) -> None:
    """Before, hollow, and after, full, joined by a line in each row."""
    ax.axvspan(-THRESHOLD, THRESHOLD, color=FAINT, alpha=0.35, linewidth=0, zorder=0)
    reference_line(ax, 0.0)
    for bound in (-THRESHOLD, THRESHOLD):
        reference_line(ax, bound, dashed=True)
    rows, shown = np.arange(len(values)), np.clip(values, -edge, edge)
    ax.hlines(rows, shown[:, 0], shown[:, 1], color=FAINT, linewidth=THIN, zorder=1)
    for column, colour, inside, name in (
        (0, COLOURS[1], "white", "before"),
        (1, COLOURS[0], COLOURS[0], "after weighting"),
    ):
        ax.plot(
            shown[:, column],
            rows,
            "o",
            color=colour,
            markerfacecolor=inside,
            markersize=4.0,
            label=name,
        )
    ax.set_xlim(-_ROOM * edge, _ROOM * edge)
    ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
