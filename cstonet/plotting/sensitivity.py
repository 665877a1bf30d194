"""What a hidden confounder could do: the bound of the effect over its strength."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    INK,
    LINE,
    MUTED,
    SMALL,
    THIN,
    canvas,
    label,
    literal,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bounds = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

_POINTS = 80
# The axes end so much beyond the farthest point, but within these.
_ROOM, _LEAST, _MOST = 1.25, 0.05, 0.9


def confounding_contours(
    bounds: Bounds,
    estimate: float,
    robustness: float,
    benchmarks: pd.DataFrame | None,
    *,
    what: str,
    most: int = 5,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect that a confounder of given strength could leave, and where that is zero.

    Parameters
    ----------
    bounds
        Gives the least and largest effect for arrays (r2_outcome, r2_treatment).
    estimate
        The estimate, for a confounder that explains nothing.
    robustness
        Strength in both models that takes the estimate to zero.
    benchmarks
        Strengths of observed covariates: `r2_outcome`, `r2_treatment`, indexed by covariate.
    what
        Name of the effect.
    most
        Benchmarks to show, the strongest.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 3.0)
    points = _strongest(benchmarks, most)
    end = _end([robustness, *points["r2_treatment"], *points["r2_outcome"]])
    axis = np.linspace(0.0, end, _POINTS)
    treatment, outcome = np.meshgrid(axis, axis)
    lower, upper = bounds(outcome.ravel(), treatment.ravel())
    # The bound on the side of zero is the one that matters.
    nearer = np.asarray(lower if estimate >= 0 else upper).reshape(treatment.shape)
    lines = ax.contour(
        treatment, outcome, nearer, levels=8, colors=MUTED, linewidths=THIN, linestyles="solid"
    )
    ax.clabel(lines, fontsize=SMALL, fmt="%g", inline_spacing=2)
    if nearer.min() <= 0 <= nearer.max():
        zero = ax.contour(
            treatment, outcome, nearer, levels=[0.0], colors=COLOURS[1], linewidths=LINE
        )
        ax.clabel(zero, fontsize=SMALL, fmt="0")
    if robustness <= end:
        ax.plot(robustness, robustness, "s", color=COLOURS[1], markersize=4.0)
        _name(ax, f"robustness value {robustness:.2f}", robustness, robustness)
    for covariate, row in points.iterrows():
        x, y = float(row["r2_treatment"]), float(row["r2_outcome"])
        ax.plot(x, y, "o", color=COLOURS[0], markersize=4.0)
        _name(ax, shortened(covariate, 18), x, y)
    ax.set_xlim(0.0, end)
    ax.set_ylim(0.0, end)
    label(
        ax,
        x="share of the treatment's variation a confounder explains",
        y="share of the outcome's variation",
    )
    literal(
        ax.set_title(f"{what} that it could leave; {estimate:.3g} without it", loc="left",
                     fontsize=SMALL, color=INK)
    )
    return ax


def _strongest(benchmarks: pd.DataFrame | None, most: int) -> pd.DataFrame:
    """The benchmarks that would do most: of largest product of the two shares."""
    if benchmarks is None:
        return pd.DataFrame({"r2_treatment": [], "r2_outcome": []})
    product = benchmarks["r2_treatment"] * benchmarks["r2_outcome"]
    return benchmarks.loc[product.sort_values(ascending=False, kind="stable").index[:most]]


def _end(strengths: list[float]) -> float:
    """Where the axes end: beyond all points, as far as shares go."""
    farthest = max((s for s in strengths if np.isfinite(s)), default=0.0)
    return float(np.clip(_ROOM * farthest, _LEAST, _MOST))


def _name(ax: Axes, text: str, x: float, y: float) -> None:
    """A name beside a point."""
    literal(
        ax.annotate(
            text,
            (x, y),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=SMALL,
            color=INK,
        )
    )
