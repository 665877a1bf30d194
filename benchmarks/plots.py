"""Pictures of the report: error against n, errors per family, coverage."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter, PercentFormatter, ScalarFormatter
from metrics import ORACLE, Summary

NOMINAL = 0.95
ORACLE_COLOUR = "black"
# Okabe and Ito's colours, which most colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")


@dataclass(frozen=True, slots=True)
class Panel:
    """One group of data sets: its title, the methods' figures, and n where it varies."""

    title: str
    summaries: Sequence[Summary]
    n: int = 0


def plot_error_by_n(panels: Sequence[Panel], path: Path) -> None:
    """Mean absolute error against n, a plot per simulation and p, the oracle as the floor."""
    families: dict[str, list[Panel]] = {}
    for panel in panels:
        families.setdefault(re.sub(r", n=\d+", "", panel.title), []).append(panel)
    colours = _colours(panels)
    figure, axes = _grid(len(families), width=4.6, height=3.6, columns=3)
    for axis, (title, members) in zip(axes, families.items(), strict=True):
        for method, colour in colours.items():
            points = sorted(
                (panel.n, s.mae)
                for panel in members
                for s in panel.summaries
                if s.method == method and math.isfinite(s.mae)
            )
            if not points:
                continue
            n, mae = zip(*points, strict=True)
            if method == ORACLE:
                axis.plot(n, mae, color=colour, linewidth=2.5, marker="_", label=method)
            else:
                axis.plot(n, mae, color=colour, marker="o", markersize=4, label=method)
        axis.set(title=title, xscale="log", yscale="log", xlabel="n")
        sizes = sorted({panel.n for panel in members})
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error")
    _legend(figure, axes)
    _save(figure, path)


def plot_errors(panels: Sequence[Panel], path: Path) -> None:
    """Mean absolute error of every method, a plot per group of data sets."""
    colours = _colours(panels)
    figure, axes = _grid(len(panels), width=4.2, height=_height(panels), columns=2)
    for axis, panel in zip(axes, panels, strict=True):
        summaries = [s for s in panel.summaries if math.isfinite(s.mae)]
        for row, s in enumerate(summaries):
            axis.plot([0, s.mae], [row, row], color=colours[s.method], linewidth=1)
            axis.plot(s.mae, row, "o", color=colours[s.method])
        _name_rows(axis, summaries)
        axis.set(title=panel.title, xlabel="mean absolute error")
        axis.set_xlim(left=0)
        axis.grid(axis="x", alpha=0.3)
    _save(figure, path)


def plot_coverage(panels: Sequence[Panel], path: Path) -> None:
    """Coverage with two Monte-Carlo standard errors, a plot per group of data sets."""
    colours = _colours(panels)
    figure, axes = _grid(len(panels), width=4.2, height=_height(panels), columns=3)
    for axis, panel in zip(axes, panels, strict=True):
        summaries = [s for s in panel.summaries if math.isfinite(s.coverage)]
        axis.axvline(NOMINAL, color="0.5", linestyle="--", linewidth=1)
        for row, s in enumerate(summaries):
            # A coverage cannot leave [0, 1], so neither does its bar.
            bars = [
                [min(2 * s.coverage_error, s.coverage)],
                [min(2 * s.coverage_error, 1 - s.coverage)],
            ]
            axis.errorbar(s.coverage, row, xerr=bars, fmt="o", color=colours[s.method], capsize=3)
        _name_rows(axis, summaries)
        axis.set(title=panel.title, xlabel="coverage", xlim=(-0.03, 1.03))
        axis.xaxis.set_major_formatter(PercentFormatter(1.0))
        axis.grid(axis="x", alpha=0.3)
    _save(figure, path)


def _colours(panels: Sequence[Panel]) -> dict[str, str]:
    """A colour for every method, the same in all plots of a picture."""
    methods = list(dict.fromkeys(s.method for panel in panels for s in panel.summaries))
    others = [method for method in methods if method != ORACLE]
    colours = {m: COLOURS[i % len(COLOURS)] for i, m in enumerate(others)}
    return {m: ORACLE_COLOUR if m == ORACLE else colours[m] for m in methods}


def _height(panels: Sequence[Panel]) -> float:
    return 1.3 + 0.3 * max(len(panel.summaries) for panel in panels)


def _grid(count: int, *, width: float, height: float, columns: int) -> tuple[Any, list[Any]]:
    """A figure with so many plots, in rows of at most `columns`."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        squeeze=False,
        layout="constrained",
    )
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.remove()
    return figure, flat[:count]


def _name_rows(axis: Any, summaries: Sequence[Summary]) -> None:
    axis.set_yticks(range(len(summaries)), [s.method for s in summaries])
    axis.set_ylim(len(summaries) - 0.5, -0.5)


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all plots, with every method that any of them shows."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)
