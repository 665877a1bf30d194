"""A sparse network with the paths it kept: layers as columns, weights as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstonet.estimators.nuisances import FloatArray
from cstonet.plotting.style import (
    COLOURS,
    FAINT,
    INK,
    MUTED,
    PAGE,
    SMALL,
    TEXT,
    canvas,
    legend_above,
    literal,
    shortened,
)
from cstonet.reporting.numbers import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths of the thickest line, and the radius of a unit's dot, in points.
_WIDEST, _DOT = 2.6, 4.0
# Without a wish: share of its layer's largest that a weight must have, and most lines of a layer.
_LEAST, _MOST = 0.1, 60
# Rounds in which units are moved towards what they are joined with.
_ROUNDS = 12
# Room at both sides, in distances between layers.
_ROOM = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Diagram:
    """A network to be drawn.

    Attributes
    ----------
    inputs
        Names of the connected covariates.
    weights
        Per layer: kept weights (inputs, units), zero where there is none.
    visible
        Per layer: names of its visible units, which are the last.
    """

    inputs: tuple[str, ...]
    weights: tuple[FloatArray, ...]
    visible: tuple[tuple[str, ...], ...]

    def drawn(self, least: float | None) -> tuple[NDArray[np.bool_], ...]:
        """Weights to be drawn, those that lie on a whole path from a covariate to a visible unit.

        The treatment is observed: paths end there, and new ones begin.

        Parameters
        ----------
        least
            Share of the largest weight of its layer that a weight must have. None: a tenth, or
            more where lines would be too many; the strongest path of every covariate to the
            treatment, and to the outcome, is drawn in any case.
        """
        large = [self._large(np.abs(weights), least) for weights in self.weights]
        masks = self._whole_paths(large)
        if least is None:
            for layer, names in enumerate(self.visible):
                if names:
                    for mask, strongest in zip(masks, self._strongest_paths(layer), strict=False):
                        mask |= strongest
        return tuple(masks)

    def _large(self, sizes: FloatArray, least: float | None) -> NDArray[np.bool_]:
        """Weights of one layer that are large enough."""
        threshold = (_LEAST if least is None else least) * sizes.max(initial=0.0)
        if least is None and sizes.size > _MOST:
            threshold = max(threshold, np.partition(sizes, -_MOST, axis=None)[-_MOST])
        large: NDArray[np.bool_] = (sizes > 0) & (sizes >= threshold)
        return large

    def _whole_paths(self, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Of these weights, those that are reached, and lead on."""
        reached: NDArray[np.bool_] = np.ones(len(self.inputs), dtype=bool)
        for mask, names in zip(masks, self.visible, strict=True):
            mask &= reached[:, None]
            reached = np.asarray(mask.any(axis=0))
            reached[len(reached) - len(names) :] = True
        needed: NDArray[np.bool_] = np.ones(masks[-1].shape[1], dtype=bool)
        for mask, names in zip(reversed(masks), reversed(self.visible), strict=True):
            needed[len(needed) - len(names) :] = True
            mask &= needed
            needed = np.asarray(mask.any(axis=1))
        return masks

    def _strongest_paths(self, last: int) -> list[NDArray[np.bool_]]:
        """For every covariate the path of largest product to a visible unit of layer `last`.

        Paths pass through latent units only.
        """
        sizes = [np.abs(weights) for weights in self.weights[: last + 1]]
        # What a unit's best way onwards weighs; that of a visible one at the end is one.
        onwards = np.zeros(sizes[-1].shape[1])
        onwards[len(onwards) - len(self.visible[last]) :] = 1.0
        steps: list[NDArray[np.int64]] = []
        for layer in range(last, -1, -1):
            ways = sizes[layer] * onwards
            steps.append(ways.argmax(axis=1))
            onwards = ways.max(axis=1)
            if layer > 0:
                onwards[len(onwards) - len(self.visible[layer - 1]) :] = 0.0
        paths = [np.zeros(size.shape, dtype=bool) for size in sizes]
        at = np.flatnonzero(onwards > 0)
        for path, step in zip(paths, reversed(steps), strict=True):
            path[at, step[at]] = True
            at = step[at]
        return paths


def network_diagram(
    diagram: Diagram, *, least: float | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw a network: covariates at the left, the outcome at the right, the treatment on its way.

    Parameters
    ----------
    diagram
        The network.
    least
        Which weights are large enough, see :meth:`Diagram.drawn`.
    title
        Which network it is.
    ax
        Where to draw; None: a new figure.
    """
    lines = diagram.drawn(least)
    shown = _shown_units(diagram, lines)
    tallest = max(len(units) for units in shown)
    ax = canvas(ax, PAGE, min(max(2.4, 0.6 + 0.19 * tallest), 8.0))
    ax.set_axis_off()
    places = _heights(diagram, lines, shown)
    for layer, (mask, weights) in enumerate(zip(lines, diagram.weights, strict=True)):
        _draw_weights(ax, layer, mask, weights, places)
    for layer, units in enumerate(shown):
        _draw_units(ax, diagram, layer, units, places[layer])
    ax.set_xlim(-_ROOM, len(lines) + _ROOM)
    ax.set_ylim(-0.06, 1.06)
    _explain(ax, diagram, lines, title)
    return ax


def _shown_units(diagram: Diagram, lines: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int64]]:
    """Covariates and units of each layer that a line begins or ends at, and all visible ones."""
    shown = [np.flatnonzero(lines[0].any(axis=1))]
    for layer, mask in enumerate(lines):
        used = np.asarray(mask.any(axis=0))
        if layer + 1 < len(lines):
            used |= lines[layer + 1].any(axis=1)
        used[len(used) - len(diagram.visible[layer]) :] = True
        shown.append(np.flatnonzero(used))
    return shown


def _heights(
    diagram: Diagram, lines: Sequence[NDArray[np.bool_]], shown: Sequence[NDArray[np.int64]]
) -> list[dict[int, float]]:
    """Height of every shown unit in [0, 1], ordered so that few lines cross.

    Units move to the mean height of those they are joined with, by |weight|, forth and back.
    """
    sizes = [np.abs(w) * mask for w, mask in zip(diagram.weights, lines, strict=True)]
    orders = [list(map(int, units)) for units in shown]
    for turn in range(_ROUNDS):
        forth = turn % 2 == 0
        layers = range(1, len(orders)) if forth else range(len(orders) - 2, -1, -1)
        for layer in layers:
            other = orders[layer - 1] if forth else orders[layer + 1]
            joined = sizes[layer - 1].T if forth else sizes[layer]
            height = dict(zip(other, _spread(len(other)), strict=True))
            own = dict(zip(orders[layer], _spread(len(orders[layer])), strict=True))

            def aim(
                unit: int,
                joined: FloatArray = joined,
                other: list[int] = other,
                height: dict[int, float] = height,
                own: dict[int, float] = own,
            ) -> float:
                pull = joined[unit, other]
                if not pull.any():
                    return own[unit]
                return float(np.average([height[o] for o in other], weights=pull))

            orders[layer].sort(key=aim)
    return [dict(zip(order, _spread(len(order)), strict=True)) for order in orders]


def _spread(units: int) -> list[float]:
    """Heights of so many units of a layer, in the middle if it is one."""
    return [0.5] if units == 1 else np.linspace(0.0, 1.0, units).tolist()


def _draw_weights(
    ax: Axes,
    layer: int,
    mask: NDArray[np.bool_],
    weights: FloatArray,
    places: Sequence[dict[int, float]],
) -> None:
    """Lines between two layers; width by size, colour and dash by sign."""
    from matplotlib.collections import LineCollection

    largest = np.abs(weights).max(initial=0.0)
    for negative in (False, True):
        chosen = np.argwhere(mask & ((weights < 0) == negative))
        # The thin ones first, so that they do not cut the thick ones.
        chosen = chosen[np.argsort([abs(weights[i, j]) for i, j in chosen], kind="stable")]
        shares = np.array([abs(weights[i, j]) / largest for i, j in chosen])
        ax.add_collection(
            LineCollection(
                [[(layer, places[layer][i]), (layer + 1, places[layer + 1][j])] for i, j in chosen],
                linewidths=np.maximum(_WIDEST * shares, 0.3),
                colors=COLOURS[1] if negative else COLOURS[0],
                linestyles=(0, (3, 1)) if negative else "solid",
                alpha=0.75,
                zorder=1,
            )
        )


def _draw_units(
    ax: Axes,
    diagram: Diagram,
    layer: int,
    units: NDArray[np.int64],
    places: dict[int, float],
) -> None:
    """Dots of a layer's units, squares where they are visible, and their names."""
    if layer == 0:
        visible = {int(unit): diagram.inputs[unit] for unit in units}
    else:
        names, width = diagram.visible[layer - 1], diagram.weights[layer - 1].shape[1]
        visible = {width - len(names) + k: name for k, name in enumerate(names)}
    latent = [places[int(unit)] for unit in units if int(unit) not in visible]
    for heights, mark, fill, edge in (
        (latent, "o", "white", MUTED),
        ([places[unit] for unit in visible], "s", INK, INK),
    ):
        ax.plot(
            [layer] * len(heights),
            heights,
            mark,
            color=fill,
            markeredgecolor=edge,
            markersize=_DOT,
            zorder=2,
        )
    last = layer == len(diagram.weights)
    for unit, name in visible.items():
        inside = layer > 0 and not last
        text = ax.annotate(
            shortened(name, 24),
            (layer, places[unit]),
            xytext=(0, -5) if inside else (6 if last else -6, 0),
            textcoords="offset points",
            ha="center" if inside else ("left" if last else "right"),
            va="top" if inside else "center",
            fontsize=TEXT,
            color=INK,
            annotation_clip=False,
            zorder=3,
        )
        literal(text)
        if inside:
            text.set_bbox({"facecolor": "white", "edgecolor": FAINT, "pad": 1.0, "linewidth": 0.5})


def _explain(ax: Axes, diagram: Diagram, lines: Sequence[NDArray[np.bool_]], title: str) -> None:
    """Which lines are drawn, and what they mean."""
    from matplotlib.lines import Line2D

    drawn = sum(int(mask.sum()) for mask in lines)
    kept = sum(int(np.count_nonzero(weights)) for weights in diagram.weights)
    positive = Line2D([], [], color=COLOURS[0], label="positive weight")
    negative = Line2D([], [], color=COLOURS[1], linestyle=(0, (3, 1)), label="negative weight")
    legend_above(ax, handles=[positive, negative])
    said = f"{title}; " if title else ""
    literal(
        ax.annotate(
            f"{said}{count(drawn)} of {count(kept)} kept weights are drawn",
            (0.0, 0.0),
            xycoords="axes fraction",
            xytext=(0, -4),
            textcoords="offset points",
            va="top",
            fontsize=SMALL,
            color=MUTED,
            annotation_clip=False,
        )
    )
