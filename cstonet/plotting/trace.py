"""Training history: a line for every fold, stage after stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    LINE,
    MUTED,
    SMALL,
    THIN,
    canvas,
    heading,
    label,
    panels,
    reference_line,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of the epochs that may leave the picture, and room around the others.
_FIRST, _ROOM = 0.05, 0.08


def training_trace(
    trace: pd.DataFrame, columns: Mapping[str, str], *, ax: Axes | None = None
) -> Axes:
    """Draw columns of a training history over the epochs: folds thin, their mean thick.

    Parameters
    ----------
    trace
        One row per fold, start, stage and epoch. Starts of a fold are averaged.
    columns
        A panel each: the column, and what it is called.
    ax
        Where to draw; None: a new figure.
    """
    by_epoch = trace.groupby(["stage", "epoch", "fold"])[list(columns)].mean().unstack("fold")
    epochs = np.arange(1, len(by_epoch) + 1)
    stages = by_epoch.index.get_level_values("stage").to_numpy()
    starts = np.flatnonzero(np.diff(stages, prepend=stages[0] - 1))
    ax = canvas(ax, COLUMN, 0.6 + 1.15 * len(columns))
    parts = panels(ax, len(columns), 1, gap=(0.0, 0.35))
    for part, (column, name) in zip(parts, columns.items(), strict=True):
        lines = by_epoch[column].to_numpy()
        part.plot(epochs, lines, color=COLOURS[2], linewidth=THIN)
        part.plot(epochs, np.nanmean(lines, axis=1), color=COLOURS[0], linewidth=LINE)
        for start in starts[1:]:
            reference_line(part, epochs[start] - 0.5, dashed=True)
        _limits(part, lines)
        part.set_xlim(1, max(len(epochs), 2))
        # The names of the stages stand between the first panel and its heading.
        heading(part, name, lifted=part is parts[0] and len(starts) > 1)
        if part is not parts[-1]:
            part.tick_params(labelbottom=False)
    if len(starts) > 1:
        _name_stages(parts[0], epochs, stages, starts)
    label(parts[-1], x="epoch")
    return ax


def _limits(ax: Axes, values: np.ndarray) -> None:
    """Let the first epochs leave the picture where they would squeeze all others."""
    later = values[int(_FIRST * len(values)) :]
    known = later[np.isfinite(later)]
    if known.size == 0:
        return
    low, high = known.min(), known.max()
    room = _ROOM * (high - low) or 0.05 * max(abs(high), 1.0)
    ax.set_ylim(low - room, high + room)


def _name_stages(ax: Axes, epochs: np.ndarray, stages: np.ndarray, starts: np.ndarray) -> None:
    """Number of each stage, above its part."""
    ends = np.append(starts[1:], len(epochs))
    for start, end in zip(starts, ends, strict=True):
        ax.annotate(
            f"stage {stages[start] + 1}",
            (epochs[start:end].mean(), 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 1),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=MUTED,
        )
