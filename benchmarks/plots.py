"""Pictures of the report: error against n, errors per family, coverage, cost."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter
from metrics import ORACLE, Summary
from missing import Drift

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
    # One size alone says nothing about n: it is shown only if nothing else is.
    families = {title: m for title, m in families.items() if len(m) > 1} or families
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
                axis.plot(
                    n, mae, color=colour, linewidth=2.5, marker="_", markersize=14, label=method
                )
            else:
                axis.plot(n, mae, color=colour, marker="o", markersize=4, label=method)
        axis.set(title=title, xscale="log", yscale="log", xlabel="n")
        sizes = sorted({panel.n for panel in members})
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        # Less than a decade is common: label 1, 2 and 5 of each, as plain numbers.
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error")
    _legend(figure, axes)
    _save(figure, path)


def plot_errors(panels: Sequence[Panel], path: Path) -> None:
    """Mean absolute error of every method, a plot per group of data sets."""
    colours = _colours(panels)
    figure, axes = _grid_of_rows(panels, list(colours))
    for axis, panel in zip(axes, panels, strict=True):
        for s in panel.summaries:
            if math.isfinite(s.mae):
                row = list(colours).index(s.method)
                axis.plot([0, s.mae], [row, row], color=colours[s.method], linewidth=1)
                axis.plot(s.mae, row, "o", color=colours[s.method])
        axis.set_title(panel.title, fontsize="medium")
        axis.set_xlabel("mean absolute error")
        axis.set_xlim(left=0)
        axis.grid(axis="x", alpha=0.3)
    _save(figure, path)


def plot_coverage(panels: Sequence[Panel], path: Path) -> None:
    """Coverage with two Monte-Carlo standard errors, a plot per group of data sets."""
    colours = _colours(panels)
    figure, axes = _grid_of_rows(panels, list(colours))
    for axis, panel in zip(axes, panels, strict=True):
        axis.axvline(NOMINAL, color="0.5", linestyle="--", linewidth=1)
        for s in panel.summaries:
            if not math.isfinite(s.coverage):
                continue
            # A coverage cannot leave [0, 1], so neither does its bar.
            below, above = (min(2 * s.coverage_error, x) for x in (s.coverage, 1 - s.coverage))
            axis.errorbar(
                s.coverage,
                list(colours).index(s.method),
                xerr=[[below], [above]],
                fmt="o",
                color=colours[s.method],
                capsize=3,
            )
        axis.set_title(panel.title, fontsize="medium")
        axis.set(xlabel="coverage", xlim=(-0.03, 1.03))
        axis.xaxis.set_major_formatter(PercentFormatter(1.0))
        axis.grid(axis="x", alpha=0.3)
    _save(figure, path)


def plot_drifts(drifts: Sequence[Drift], path: Path) -> None:
    """Mean difference to the complete data's estimate against the share of missing values."""
    figure, (axis,) = _grid(1, width=5.2, height=3.6, columns=1)
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
    _legend(figure, [axis])
    _save(figure, path)


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one method, and bounds: points of which only is known that they lie higher."""

    method: str
    points: Sequence[tuple[float, float]]
    bounds: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """A plot of curves on two logarithmic axes, perhaps with the line y = x."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    diagonal: bool = False


def plot_curves(panels: Sequence[CurvePanel], path: Path) -> None:
    """Curves side by side, every method in the same colour; bounds are open triangles."""
    methods = list(dict.fromkeys(curve.method for panel in panels for curve in panel.curves))
    colours = {m: COLOURS[i % len(COLOURS)] for i, m in enumerate(methods)}
    figure, axes = _grid(len(panels), width=5.2, height=4.2, columns=2)
    for axis, panel in zip(axes, panels, strict=True):
        for curve in panel.curves:
            style = {"color": colours[curve.method], "markersize": 5}
            axis.plot(*_coordinates(curve.points), "o-", label=curve.method, **style)
            axis.plot(*_coordinates(curve.bounds), "^", fillstyle="none", **style)
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale="log", yscale="log")
        if panel.diagonal:
            ends = axis.get_xlim()
            axis.plot(ends, ends, "--", color="0.5", linewidth=1, scalex=False)
        axis.grid(alpha=0.3)
    _legend(figure, axes)
    _save(figure, path)


def _coordinates(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _colours(panels: Sequence[Panel]) -> dict[str, str]:
    """A colour for every method, the same in all plots of a picture."""
    methods = list(dict.fromkeys(s.method for panel in panels for s in panel.summaries))
    others = [method for method in methods if method != ORACLE]
    colours = {m: COLOURS[i % len(COLOURS)] for i, m in enumerate(others)}
    return {m: ORACLE_COLOUR if m == ORACLE else colours[m] for m in methods}


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


def _grid_of_rows(panels: Sequence[Panel], methods: Sequence[str]) -> tuple[Any, list[Any]]:
    """A plot per panel with a row per method, the same rows in all; named at the left edge."""
    columns = 3
    figure, axes = _grid(len(panels), width=3.6, height=1.3 + 0.28 * len(methods), columns=columns)
    for i, axis in enumerate(axes):
        axis.set_yticks(range(len(methods)), methods if i % columns == 0 else [""] * len(methods))
        axis.set_ylim(len(methods) - 0.5, -0.5)
    return figure, axes


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all plots, with every method that any of them shows."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    # Room beside the plots, not taken from them: a character is some 0.08 inches wide.
    figure.set_figwidth(figure.get_figwidth() + 0.5 + 0.08 * max(map(len, entries), default=0))
    figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)
