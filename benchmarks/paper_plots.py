"""The paper's figure: error of the mean effect by training size, in and out of sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from common import Record
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from paper_report import ORACLE, errors_of, inside, oracle_errors, out
from plots import COLOURS, ORACLE_COLOUR

TITLES = {"in sample": inside, "out of sample": out}


def plot_by_size(sizes: dict[int, dict[str, list[Record]]], path: Path) -> None:
    """Mean absolute errors with two Monte-Carlo standard errors, the oracle as the floor.

    Parameters
    ----------
    sizes : dict
        Results by training size and method.
    path : Path
        Where the picture goes.
    """
    methods = list(dict.fromkeys(method for found in sizes.values() for method in found))
    figure, axes = plt.subplots(
        1, 2, figsize=(11, 4.2), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (title, part) in zip(axes, TITLES.items(), strict=True):
        floor = {
            n: oracle_errors([r for mine in found.values() for r in mine], part)
            for n, found in sizes.items()
        }
        _line(axis, floor, ORACLE, ORACLE_COLOUR, 1.0)
        for k, method in enumerate(methods):
            errors = {
                n: errors_of(found[method], part) for n, found in sizes.items() if method in found
            }
            # Slightly apart, so that bars do not hide each other.
            shift = 1.0 + 0.012 * (k - len(methods) / 2)
            _line(axis, errors, method, COLOURS[k % len(COLOURS)], shift)
        axis.set(title=title, xscale="log", yscale="log", xlabel="training rows")
        axis.set_xticks(list(sizes), [str(n) for n in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean absolute error of the ATE")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(
    axis: plt.Axes, errors: dict[int, Sequence[float]], label: str, colour: str, shift: float
) -> None:
    """Means over data sets; a bar may not reach below a fifth of its mean on this axis."""
    shown = {n: np.asarray(found) for n, found in errors.items() if len(found)}
    means = np.array([found.mean() for found in shown.values()])
    bars = np.array(
        [
            2 * found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0.0
            for found in shown.values()
        ]
    )
    axis.errorbar(
        [n * shift for n in shown],
        means,
        yerr=[np.minimum(bars, 0.8 * means), bars],
        color=colour,
        marker="o",
        markersize=4,
        linewidth=2.5 if label == ORACLE else 1.2,
        capsize=2,
        label=label,
    )
