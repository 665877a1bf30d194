"""Which covariates belong to which model, and how surely: bars side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    FAINT,
    MUTED,
    PAGE,
    SMALL,
    canvas,
    heading,
    label,
    names_width,
    panels,
    reference_line,
    rows_height,
    rows_named,
)
from cstonet.reporting.numbers import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measure = Literal["probability", "frequency", "strength"]

_MEANING = {
    "probability": "probability",
    "frequency": "share of supports",
    "strength": "share of path weight",
}
# Covariates that are shown however small their bars, and the least bar of the others.
_FEWEST, _LEAST = 5, 0.005


def selection_bars(
    table: pd.DataFrame,
    models: Sequence[str],
    measure: Measure,
    *,
    most: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw how surely, or how strongly, covariates belong to each model; selected ones are dark.

    Parameters
    ----------
    table
        Selection of a fit, one row per covariate, with a column of each model's name (selected or
        not) and one of the measure, such as ``outcome_probability``.
    models
        A panel each, from left to right.
    measure
        What the bars are.
    most
        Covariates to show, those with the longest bars.
    ax
        Where to draw; None: a new figure.
    """
    values = table[[f"{model}_{measure}" for model in models]].to_numpy(dtype=np.float64)
    kept = table["kept"].to_numpy() if "kept" in table else np.zeros(len(table), dtype=bool)
    longest = np.where(kept, 1.0, np.nan_to_num(values).max(axis=1, initial=0.0))
    order = np.lexsort((-table["strength"].to_numpy(), -longest))
    shown = order[: min(most, max(_FEWEST, int((longest >= _LEAST).sum())))]
    names, part_of = table.index[shown], table.iloc[shown]
    width = min(COLUMN * len(models) / 2 + names_width(names), PAGE)
    ax = canvas(ax, width, rows_height(len(names), room=0.85))
    parts = panels(ax, 1, len(models), gap=(0.2, 0.0))
    end = 1.0 if measure != "strength" else max(float(values[shown].max(initial=0.0)), 0.05)
    for k, (part, model) in enumerate(zip(parts, models, strict=True)):
        lengths = np.nan_to_num(values[shown, k])
        dark = part_of[model].to_numpy(dtype=bool)
        colours = [COLOURS[0] if selected else FAINT for selected in dark]
        part.barh(np.arange(len(names)), lengths, height=0.7, color=colours)
        for place in np.flatnonzero(kept[shown] & np.isnan(values[shown, k])).tolist():
            part.text(0.0, place, "kept", va="center", fontsize=SMALL, color=MUTED)
        rows_named(part, range(len(names)), list(names) if k == 0 else [""] * len(names))
        reference_line(part, 0.0)
        part.set_xlim(0.0, 1.02 * end)
        part.locator_params(axis="x", nbins=3)
        part.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        heading(part, model)
        label(part, x=_MEANING[measure])
    if len(table) > len(names):
        label(parts[0], y=f"{len(names)} of {count(len(table))} covariates")
    return ax
