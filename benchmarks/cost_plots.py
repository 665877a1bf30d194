"""Pictures of the page of cost: curves by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plots import COLOURS, grid, legend, save


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one method, and bounds: points of which only is known that they lie higher."""

    method: str
    points: Sequence[tuple[float, float]]
    bounds: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """A plot of curves, or of their points alone, on two logarithmic axes, maybe with y = x."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    diagonal: bool = False
    connected: bool = True


def plot_curves(panels: Sequence[CurvePanel], path: Path) -> None:
    """Curves side by side, every method in the same colour; bounds are open triangles."""
    methods = list(dict.fromkeys(curve.method for panel in panels for curve in panel.curves))
    colours = {m: COLOURS[i % len(COLOURS)] for i, m in enumerate(methods)}
    figure, axes = grid(len(panels), width=5.2, height=4.2, columns=2)
    for axis, panel in zip(axes, panels, strict=True):
        for curve in panel.curves:
            style = {"color": colours[curve.method], "markersize": 5}
            look = "o-" if panel.connected else "o"
            axis.plot(*_coordinates(curve.points), look, label=curve.method, **style)
            axis.plot(*_coordinates(curve.bounds), "^", fillstyle="none", **style)
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale="log", yscale="log")
        if panel.diagonal:
            ends = axis.get_xlim()
            axis.plot(ends, ends, "--", color="0.5", linewidth=1, scalex=False)
        axis.grid(alpha=0.3)
    legend(figure, axes)
    save(figure, path)


def _coordinates(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
