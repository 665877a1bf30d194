"""Pictures of the field page: length and coverage of intervals, and estimates on real data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from field_published import Published
from matplotlib.ticker import MaxNLocator, PercentFormatter
from metrics import NOMINAL, ORACLE, REFERENCE, Summary
from plots import COLOURS, ORACLE_COLOUR, bars_of_share, grid, plain_ticks, save

# Characters of a row's name in a line.
LABEL_WIDTH = 32


@dataclass(frozen=True, slots=True)
class LengthPanel:
    """Our methods and the published ones on one protocol."""

    title: str
    summaries: Sequence[Summary]
    published: Sequence[Published]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its limits, and whose it is: the package's, a peer's or published."""

    label: str
    estimate: float
    lower: float
    upper: float
    published: bool = False


@dataclass(frozen=True, slots=True)
class IntervalPanel:
    """Estimates on one data set; the first row is what the others are compared with."""

    title: str
    unit: str
    intervals: Sequence[Interval]


def plot_lengths(panels: Sequence[LengthPanel], path: Path) -> None:
    """Length and coverage ± 2 errors of the intervals, the shortest first, a row per protocol.

    Published figures are open squares.
    """
    rows = [_length_rows(panel) for panel in panels]
    heights = [1.3 + 0.24 * len(found) for found in rows]
    figure, axes = grid(2 * len(panels), width=5.5, height=heights, columns=2)
    for length, coverage, panel, found in zip(axes[::2], axes[1::2], panels, rows, strict=True):
        for row, each in enumerate(found):
            look = _look(each.label, each.published)
            length.errorbar(each.length, row, **look)
            bars = bars_of_share(each.coverage, each.coverage_error)
            coverage.errorbar(each.coverage, row, xerr=bars, capsize=3, **look)
        coverage.axvline(NOMINAL, color="0.5", linestyle="--", linewidth=1)
        length.set_yticks(range(len(found)), [each.label for each in found])
        coverage.set_yticks(range(len(found)), [""] * len(found))
        length.set(xscale="log", xlabel="mean length of the 95 % intervals", title=panel.title)
        coverage.set(xlabel="coverage (± 2 errors)", title=panel.title)
        plain_ticks(length.xaxis)
        coverage.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        coverage.xaxis.set_major_formatter(PercentFormatter(1.0))
        for axis in (length, coverage):
            axis.set_ylim(len(found) - 0.5, -0.5)
            axis.grid(alpha=0.3)
    save(figure, path)


@dataclass(frozen=True, slots=True)
class _LengthRow:
    """A method's mean length, its coverage and the Monte-Carlo error of that."""

    label: str
    length: float
    coverage: float
    coverage_error: float
    published: bool


def _length_rows(panel: LengthPanel) -> list[_LengthRow]:
    """Ours and the published, the shortest first."""
    rows = [
        _LengthRow(s.method, s.width, s.coverage, s.coverage_error, published=False)
        for s in panel.summaries
        if math.isfinite(s.coverage) and math.isfinite(s.width)
    ]
    rows += [
        _LengthRow(
            f"published: {each.learners}",
            each.length,
            each.coverage,
            each.coverage_error,
            published=True,
        )
        for each in panel.published
    ]
    return sorted(rows, key=lambda row: row.length)


def plot_intervals(panels: Sequence[IntervalPanel], path: Path) -> None:
    """Estimates with their 95 % intervals, a plot per data set, the comparison's as a band."""
    rows = max(len(panel.intervals) for panel in panels)
    figure, axes = grid(len(panels), width=6.4, height=1.2 + 0.28 * rows, columns=2)
    for axis, panel in zip(axes, panels, strict=True):
        first = panel.intervals[0]
        axis.axvspan(first.lower, first.upper, color="0.92", zorder=0)
        axis.axvline(first.estimate, color="0.5", linestyle="--", linewidth=1)
        for row, each in enumerate(panel.intervals):
            bars = [[each.estimate - each.lower], [each.upper - each.estimate]]
            look = _look(each.label, each.published)
            axis.errorbar(each.estimate, row, xerr=bars, capsize=3, **look)
        names = [textwrap.fill(each.label, LABEL_WIDTH) for each in panel.intervals]
        axis.set_yticks(range(len(names)), names)
        axis.set(title=panel.title, xlabel=panel.unit, ylim=(len(panel.intervals) - 0.5, -0.5))
        axis.grid(axis="x", alpha=0.3)
    save(figure, path)


def _look(label: str, published: bool) -> dict[str, Any]:
    """The package stands out, the oracle is black, peers are alike, published figures are open."""
    if published:
        return {"fmt": "s", "fillstyle": "none", "color": "0.4"}
    if label == ORACLE:
        return {"fmt": "D", "color": ORACLE_COLOUR}
    return {"fmt": "o", "color": COLOURS[0] if label == REFERENCE else COLOURS[1]}
