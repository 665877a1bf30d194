"""What a hidden confounder could do: the bound of the effect over its strength."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    FAINT,
    INK,
    LINE,
    MUTED,
    SMALL,
    THIN,
    canvas,
    heading,
    label,
    legend_above,
    literal,
    shortened,
)
from cstonet.reporting.numbers import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bounds = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

# Points of the grid in each direction, and contours between the estimate and zero, about.
_POINTS, _CONTOURS = 80, 6
# The axes end so much beyond the farthest point, but within these.
_ROOM, _LEAST, _MOST = 1.25, 0.05, 0.9
# Width of a letter, and height of a name, as shares of the axes.
_LETTER, _NAME = 0.023, 0.065


def confounding_contours(
    bounds: Bounds,
    estimate: float,
    robustness: float,
    benchmarks: pd.DataFrame,
    *,
    what: str,
    most: int = 5,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect that a confounder of given strength could leave, and where it is zero.

    Beyond that, the sign could be another: the region is grey.

    Parameters
    ----------
    bounds
        Gives the least and the largest effect for arrays (r2_outcome, r2_treatment).
    estimate
        The estimate, for a confounder that explains nothing.
    robustness
        Strength in both models that takes the estimate to zero.
    benchmarks
        Strengths of observed covariates: `r2_outcome`, `r2_treatment`, indexed by covariate.
    what
        Name of the effect.
    most
        Benchmarks to show, those of largest product; not those that lie beyond the axes, which
        explain nearly everything of the one and hardly anything of the other.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 3.0)
    product = benchmarks["r2_treatment"] * benchmarks["r2_outcome"]
    strongest = benchmarks.loc[product.sort_values(ascending=False, kind="stable").index[:most]]
    points = strongest[["r2_treatment", "r2_outcome"]].to_numpy(dtype=np.float64)
    end = _end([robustness, *points.ravel()])
    axis = np.linspace(0.0, end, _POINTS)
    treatment, outcome = np.meshgrid(axis, axis)
    lower, upper = bounds(outcome.ravel(), treatment.ravel())
    # The bound on the side of zero is the one that matters.
    positive = estimate >= 0
    nearer = np.asarray(lower if positive else upper, dtype=np.float64).reshape(treatment.shape)
    _draw_contours(ax, treatment, outcome, nearer, estimate)
    ax.plot(
        robustness,
        robustness,
        "s",
        color=COLOURS[1],
        markersize=4.0,
        label=f"robustness value {robustness:.2f}",
    )
    inside = np.asarray((points <= end).all(axis=1))
    x, y = points[inside].T
    ax.plot(x, y, "o", color=COLOURS[0], markersize=4.0, clip_on=False, zorder=3)
    names = [shortened(name, 16) for name in strongest.index[inside]]
    _name_points(ax, points[inside] / end, names)
    ax.set_xlim(0.0, end)
    ax.set_ylim(0.0, end)
    label(ax, x="confounder's R² with the treatment", y="confounder's R² with the outcome")
    side = "lower" if positive else "upper"
    heading(ax, f"{side} bound of the {shortened(what, 18)}; estimate {plain(estimate)}")
    legend_above(ax, lifted=True)
    return ax


def _end(strengths: Sequence[float]) -> float:
    """Where the axes end: beyond all points, as far as shares go."""
    farthest = max((s for s in strengths if np.isfinite(s)), default=0.0)
    return float(np.clip(_ROOM * farthest, _LEAST, _MOST))


def _draw_contours(
    ax: Axes, treatment: FloatArray, outcome: FloatArray, bound: FloatArray, estimate: float
) -> None:
    """Lines of equal bounds between the estimate and zero, and what lies beyond zero."""
    from matplotlib.ticker import MaxNLocator

    levels = MaxNLocator(_CONTOURS).tick_values(min(estimate, 0.0), max(estimate, 0.0))
    levels = [x for x in levels if 0 < abs(x) < abs(estimate) and x * estimate > 0]
    levels = [x for x in levels if bound.min() < x < bound.max()]
    if levels:
        lines = ax.contour(
            treatment, outcome, bound, levels, colors=MUTED, linewidths=THIN, linestyles="solid"
        )
        ax.clabel(lines, fontsize=SMALL, fmt="%g", inline_spacing=2)
    if bound.min() < 0 < bound.max():
        beyond = [bound.min(), 0.0] if estimate >= 0 else [0.0, bound.max()]
        ax.contourf(treatment, outcome, bound, beyond, colors=FAINT, alpha=0.5)
        ax.contour(treatment, outcome, bound, [0.0], colors=COLOURS[1], linewidths=LINE)
        ax.plot([], [], color=COLOURS[1], linewidth=LINE, label="bound of zero")


def _name_points(ax: Axes, points: FloatArray, names: Sequence[str]) -> None:
    """Names at the right of points (k, 2), given as shares of the axes, none over another."""
    placed: list[tuple[float, float, float]] = []  # height, and from where to where
    for k in np.argsort(points[:, 1], kind="stable"):
        x, y = map(float, points[k])
        height, end = y, x + 0.05 + _LETTER * len(names[k])
        for taken, first, last in sorted(placed):
            if x < last and first < end and abs(height - taken) < _NAME:
                height = taken + _NAME
        placed.append((height, x, end))
        moved = height > y
        literal(
            ax.annotate(
                names[k],
                (x, y),
                xycoords="axes fraction",
                xytext=(x + 0.025 + 0.02 * moved, height + 0.01),
                textcoords="axes fraction",
                fontsize=SMALL,
                color=INK,
                arrowprops={"arrowstyle": "-", "linewidth": THIN, "color": MUTED}
                if moved
                else None,
            )
        )
