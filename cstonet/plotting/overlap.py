"""Can units be compared? Propensities by arm, and how much units count at each dose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cstonet.estimators.nuisances import FloatArray, IntArray
from cstonet.plotting.style import (
    COLOURS,
    COLUMN,
    DASHES,
    INK,
    LINE,
    MUTED,
    SMALL,
    THIN,
    canvas,
    heading,
    label,
    legend_above,
    panels,
    reference_line,
    shortened,
)
from cstonet.reporting.numbers import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

_BINS = 40
# Propensities so near to zero or one make the axis begin or end there.
_NEAR = 0.15
# Opacity of filled histograms, and of points.
_FILL, _POINT = 0.85, 0.45


def propensity_histograms(
    propensity: FloatArray,
    treatment: IntArray,
    weights: FloatArray,
    *,
    levels: Sequence[object],
    shown: Sequence[int],
    bounds: Sequence[tuple[float, float]],
    treatment_name: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw the propensity of levels: those who received it above, the others mirrored below.

    Parameters
    ----------
    propensity : (n, L)
        Estimated probabilities of the levels, not clipped.
    treatment : (n,)
        Codes of the levels received.
    weights : (n,)
        Weights of the units. Every arm's histogram has area one, by weight.
    levels
        Labels of the L levels.
    shown
        Codes of the levels that have a panel each.
    bounds
        For each of these, the least and the largest propensity that the estimator uses.
    treatment_name
        Name of the treatment.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.4 if len(shown) == 1 else 1.5 * len(shown) + 0.5)
    parts = [ax] if len(shown) == 1 else panels(ax, len(shown), 1, gap=(0.0, 0.45))
    edges = _edges(propensity[:, list(shown)])
    for part, code, limits in zip(parts, shown, bounds, strict=True):
        _mirrored(part, propensity[:, code], edges, treatment, weights, levels, code, limits)
        what = f"P({shortened(treatment_name, 14)} = {shortened(levels[code], 14)} | x)"
        if len(shown) == 1:
            label(part, x=f"propensity {what}", y="density")
            legend_above(part)
        else:
            heading(part, what)
            label(part, y="density")
    if len(shown) > 1:
        label(parts[-1], x="propensity")
        legend_above(ax, handles=_arm_patches(treatment, levels), lifted=True)
    return ax


def _edges(propensity: FloatArray) -> FloatArray:
    """Bins of the propensities, up to zero and one where they come near."""
    low, high = float(propensity.min()), float(propensity.max())
    low, high = 0.0 if low < _NEAR else low, 1.0 if high > 1 - _NEAR else high
    return np.linspace(low, high if high > low else low + 1e-3, _BINS + 1)


def _arm_patches(treatment: IntArray, levels: Sequence[object]) -> list[Patch]:
    """Colours of the arms, for a legend of all panels."""
    from matplotlib.patches import Patch

    sizes = np.bincount(treatment, minlength=len(levels))
    return [
        Patch(color=COLOURS[arm % len(COLOURS)], label=_arm(level, sizes[arm]))
        for arm, level in enumerate(levels)
    ]


def _arm(level: object, size: int) -> str:
    return f"{shortened(level, 20)} (n = {count(int(size))})"


def _mirrored(
    ax: Axes,
    propensity: FloatArray,
    edges: FloatArray,
    treatment: IntArray,
    weights: FloatArray,
    levels: Sequence[object],
    code: int,
    bounds: tuple[float, float],
) -> None:
    """One panel: the arm itself upwards, every other one downwards."""
    others = [arm for arm in range(len(levels)) if arm != code]
    for arm in (code, *others):
        own = treatment == arm
        density, _ = np.histogram(propensity[own], edges, weights=weights[own], density=True)
        signed = density if arm == code else -density
        colour = COLOURS[arm % len(COLOURS)]
        filled = arm == code or len(others) == 1
        ax.stairs(
            signed,
            edges,
            fill=filled,
            color=colour,
            alpha=_FILL if filled else 1.0,
            linewidth=THIN if filled else LINE,
            linestyle="-" if filled else DASHES[others.index(arm) % len(DASHES)],
            label=_arm(levels[arm], own.sum()),
        )
    ax.axhline(0.0, color=INK, linewidth=THIN)
    ax.set_xlim(edges[0], edges[-1])
    for bound in bounds:
        if edges[0] <= bound <= edges[-1]:
            reference_line(ax, bound, dashed=True)
    # Both directions count upwards.
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.locator_params(axis="y", nbins=5)


def dose_weights(
    dose: FloatArray,
    weight: FloatArray,
    bounded: NDArray[np.bool_],
    fifths: pd.DataFrame,
    *,
    dose_name: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw by how much units count at their dose, and how many units that leaves in each fifth.

    Parameters
    ----------
    dose, weight : (n,)
        Doses received, and stabilised weights f̄(A)/f̂(A | x).
    bounded : (n,)
        Units whose density was raised to the bound.
    fifths
        Rows of the overlap table, with `n`, `from`, `to` and `effective`.
    dose_name
        Name of the dose.
    ax
        Where to draw; None: a new figure.
    """
    ax = canvas(ax, COLUMN, 2.6)
    reference_line(ax, 1.0, vertical=False)
    for chosen, colour, mark, name in (
        (~bounded, COLOURS[0], "o", None),
        (bounded, COLOURS[1], "s", "density at its bound"),
    ):
        if chosen.any():
            ax.plot(
                dose[chosen],
                weight[chosen],
                mark,
                color=colour,
                markersize=2.2,
                markeredgewidth=0,
                alpha=_POINT,
                label=name,
                rasterized=True,
            )
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    edges = [*fifths["from"], fifths["to"].iloc[-1]]
    for edge in edges[1:-1]:
        reference_line(ax, edge, dashed=True)
    n = round(fifths["n"].mean())
    for middle, effective in zip(
        (fifths["from"] + fifths["to"]) / 2, fifths["effective"], strict=True
    ):
        ax.annotate(
            f"{effective:.0f}",
            (middle, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=MUTED,
            annotation_clip=False,
        )
    ax.margins(x=0.02)
    label(ax, x=dose_name, y="weight of a unit")
    heading(ax, f"effective number of units, of {n} in each fifth", lifted=True, size=SMALL)
    if bounded.any():
        ax.legend(loc="lower right", frameon=False, fontsize=SMALL)
    return ax
