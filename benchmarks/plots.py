"""Pictures of the report: headline, error against n, errors per family, coverage, drifts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter
from metrics import NOMINAL, ORACLE, REFERENCE, Summary
from missing import Drift

ORACLE_COLOUR = "black"
# Okabe and Ito's colours, which most colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "v")
COLUMNS_OF_ROWS = 3
# Inches that the names of rows take.
WIDTH_OF_NAMES = 3.5


@dataclass(frozen=True, slots=True)
class Panel:
    """One group of data sets: its title, the methods' figures, and n where it varies."""

    title: str
    summaries: Sequence[Summary]
    n: int = 0


def plot_error_by_n(panels: Sequence[Panel], path: Path) -> None:
    """Mean absolute error ± 2 errors against n, a plot per simulation and p; the oracle: floor."""
    families: dict[str, list[Panel]] = {}
    for panel in panels:
        families.setdefault(re.sub(r", n=\d+", "", panel.title), []).append(panel)
    # One size alone says nothing about n: it is shown only if nothing else is.
    families = {title: m for title, m in families.items() if len(m) > 1} or families
    styles = _styles([panel for members in families.values() for panel in members])
    figure, axes = grid(len(families), width=4.8, height=4.2, columns=3)
    for axis, (title, members) in zip(axes, families.items(), strict=True):
        shown = [m for m in styles if any(s.method == m for p in members for s in p.summaries)]
        for place, method in enumerate(shown):
            points = sorted(
                (panel.n, s.mae, s.mae_error)
                for panel in members
                for s in panel.summaries
                if s.method == method and math.isfinite(s.mae)
            )
            if not points:
                continue
            n, mae, error = (np.array(column) for column in zip(*points, strict=True))
            # Beside each other, so that bars do not hide each other.
            n = n * 1.025 ** (place - (len(shown) - 1) / 2)
            # A logarithmic axis has no place for a bar down to zero or below.
            bars = np.nan_to_num(2 * error)
            bars = np.vstack([np.minimum(bars, 0.9 * mae), bars])
            look = {"markersize": 5, "capsize": 2, "elinewidth": 1} | styles[method]
            axis.errorbar(n, mae, yerr=bars, label=method, **look)
        axis.set(title=title, xscale="log", yscale="log", xlabel="n")
        sizes = sorted({panel.n for panel in members})
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        plain_ticks(axis.yaxis)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error")
    legend(figure, axes)
    save(figure, path)


def plot_errors(panels: Sequence[Panel], path: Path) -> None:
    """Mean absolute error ± 2 errors of every method, a plot per group of data sets."""
    styles = _styles(panels)
    figure, axes = grid(
        len(panels), width=3.6, height=1.3 + 0.28 * len(styles), columns=COLUMNS_OF_ROWS
    )
    for i, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        # The same rows in all plots, named at the left edge.
        named = i % COLUMNS_OF_ROWS == 0
        axis.set_yticks(range(len(styles)), styles if named else [""] * len(styles))
        axis.set_ylim(len(styles) - 0.5, -0.5)
        for s in panel.summaries:
            if math.isfinite(s.mae):
                row = list(styles).index(s.method)
                below = min(2 * np.nan_to_num(s.mae_error), s.mae)
                bars = [[below], [2 * np.nan_to_num(s.mae_error)]]
                axis.errorbar(s.mae, row, xerr=bars, capsize=3, **styles[s.method])
        axis.set_title(panel.title, fontsize="medium")
        axis.set_xlabel("mean absolute error")
        axis.set_xlim(left=0)
        axis.locator_params(axis="x", nbins=4)
        axis.grid(axis="x", alpha=0.3)
    save(figure, path)


def plot_coverage(panels: Sequence[Panel], path: Path) -> None:
    """Coverage ± 2 errors: a block of rows per group of data sets, a row per method in it."""
    styles = _styles(panels)
    known = [
        (panel.title, [s for s in panel.summaries if math.isfinite(s.coverage)]) for panel in panels
    ]
    blocks = [(title, summaries) for title, summaries in known if summaries]
    rows = sum(len(summaries) for _, summaries in blocks)
    figure, (axis,) = grid(1, width=8.5, height=1.2 + 0.22 * rows, columns=1)
    row, labels, seen = 0, {}, set()
    for number, (title, summaries) in enumerate(blocks):
        if number % 2 == 0:
            axis.axhspan(row - 0.5, row + len(summaries) - 0.5, color="0.95", zorder=0)
        labels[row + (len(summaries) - 1) / 2] = title
        for s in summaries:
            label = None if s.method in seen else s.method
            seen.add(s.method)
            bars = bars_of_share(s.coverage, s.coverage_error)
            axis.errorbar(s.coverage, row, xerr=bars, capsize=3, label=label, **styles[s.method])
            row += 1
    axis.axvline(NOMINAL, color="0.5", linestyle="--", linewidth=1)
    axis.set_yticks(list(labels), labels.values())
    axis.set(xlabel="coverage of the 95 % intervals (± 2 errors)", ylim=(row - 0.5, -0.5))
    axis.set_xlim(right=1.01)
    axis.xaxis.set_major_formatter(PercentFormatter(1.0))
    axis.grid(axis="x", alpha=0.3)
    legend(figure, [axis])
    save(figure, path)


@dataclass(frozen=True, slots=True)
class Point:
    """A figure with its bar, whether it is a miss, and what is written beside it."""

    value: float
    below: float = 0.0
    above: float = 0.0
    miss: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class PointPanel:
    """A column of points, one per row (None: nothing to show), beside a line to compare with.

    Each row may have a band behind its point, from the one to the other value.
    """

    title: str
    x: str
    points: Sequence[Point | None]
    line: float
    logarithmic: bool = False
    percent: bool = False
    bands: Sequence[tuple[float, float]] = ()


def plot_points(rows: Sequence[str], panels: Sequence[PointPanel], path: Path) -> None:
    """Points with bars beside each other, a row per name; misses are diamonds of another colour."""
    height = 1.2 + 0.25 * len(rows)
    width = WIDTH_OF_NAMES / len(panels) + 4.0
    figure, axes = grid(len(panels), width=width, height=height, columns=len(panels))
    for i, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        axis.axvline(panel.line, color="0.5", linestyle="--", linewidth=1)
        for row, (low, high) in enumerate(panel.bands):
            axis.barh(row, high - low, left=low, height=0.7, color="0.88", zorder=0)
        for row, point in enumerate(panel.points):
            if point is None:
                continue
            colour, marker = (COLOURS[1], "D") if point.miss else (COLOURS[0], "o")
            bars = [[point.below], [point.above]] if point.below or point.above else None
            axis.errorbar(
                point.value, row, xerr=bars, fmt=marker, color=colour, capsize=3, markersize=5
            )
            if point.note:
                place = (1.02, row)
                axis.annotate(
                    point.note, place, xycoords=axis.get_yaxis_transform(), va="center", fontsize=8
                )
        axis.set_yticks(range(len(rows)), rows if i == 0 else [""] * len(rows))
        axis.set(title=panel.title, xlabel=panel.x, ylim=(len(rows) - 0.5, -0.5))
        if panel.logarithmic:
            axis.set_xscale("log")
            plain_ticks(axis.xaxis)
        if panel.percent:
            axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axis.grid(alpha=0.3)
    save(figure, path)


def point_of_ratio(value: float, error: float, *, miss: bool, note: str = "") -> Point:
    """A ratio ± 2 errors of its logarithm."""
    factor = math.exp(2 * error / value) if math.isfinite(error) else 1.0
    return Point(value, value - value / factor, value * factor - value, miss, note)


def plot_drifts(drifts: Sequence[Drift], path: Path) -> None:
    """Mean difference to the complete data's estimate against the share of missing values."""
    figure, (axis,) = grid(1, width=5.2, height=3.6, columns=1)
    axis.axhline(0, color=ORACLE_COLOUR, linewidth=1)
    for method, colour in zip(dict.fromkeys(d.method for d in drifts), COLOURS, strict=False):
        mine = [d for d in drifts if d.method == method]
        axis.errorbar(
            [d.percent / 100 for d in mine],
            [d.mean for d in mine],
            yerr=[2 * d.standard_error for d in mine],
            fmt="o-",
            color=colour,
            capsize=3,
            label=method,
        )
    axis.set(xlabel="share of x1 missing", ylabel="difference to complete data (± 2 SE)")
    axis.set_xticks(sorted({d.percent / 100 for d in drifts}))
    axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.grid(alpha=0.3)
    legend(figure, [axis])
    save(figure, path)


def _styles(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for every method, the same in all plots of a picture."""
    found = dict.fromkeys(s.method for panel in panels for s in panel.summaries)
    # The package's default has the first colour, whatever else there is.
    methods = sorted(found, key=lambda method: (method != ORACLE, method != REFERENCE))
    others = [method for method in methods if method != ORACLE]
    return {m: _style(m, others) for m in methods}


def _style(method: str, others: Sequence[str]) -> dict[str, Any]:
    if method == ORACLE:
        return {"color": ORACLE_COLOUR, "marker": "D", "linewidth": 2.0}
    place = others.index(method)
    # Colours that come again come with another marker.
    marker = MARKERS[place // len(COLOURS) % len(MARKERS)]
    return {"color": COLOURS[place % len(COLOURS)], "marker": marker, "linewidth": 1.3}


def bars_of_share(share: float, error: float) -> list[list[float]]:
    """Two errors to either side, as far as a share can go."""
    return [[min(2 * error, share)], [min(2 * error, 1 - share)]]


def plain_ticks(axis: Any) -> None:
    """Label some of each decade of a logarithmic axis, which may show less than one."""
    axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def grid(
    count: int, *, width: float, height: float | Sequence[float], columns: int
) -> tuple[Any, list[Any]]:
    """A figure with so many plots, in rows of at most `columns`.

    Parameters
    ----------
    count : int
        Plots.
    width, height : float
        Inches of a plot; heights may differ by row.
    columns : int
        Plots beside each other.
    """
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    heights = [height] * rows if isinstance(height, int | float) else list(height)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.remove()
    return figure, flat[:count]


def legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all plots, with every method that any of them shows."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    # Room beside the plots, not taken from them: a character is some 0.08 inches wide.
    figure.set_figwidth(figure.get_figwidth() + 0.5 + 0.08 * max(map(len, entries), default=0))
    figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)


def save(figure: Any, path: Path) -> None:
    """Write a figure and forget it."""
    figure.savefig(path, dpi=110)
    plt.close(figure)
