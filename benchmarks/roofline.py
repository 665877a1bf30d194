"""What each kernel attains against what the processor can do, at every level it has.

The roof is measured in the same run: a loop of nothing but multiply-adds, and copies of a block
that fits the nearest cache and of one that fits none. Writes benchmarks/results/roofline.png and
roofline.json. Needs the tests' seams: run ``make test-cpp`` first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from plots import COLOURS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "seams"))
import cstonet_seams as seams

RESULTS = Path(__file__).parent / "results"
FLOAT = 4  # bytes
CACHED, UNCACHED = 2**11, 2**24  # floats of the copies


@dataclass(frozen=True, slots=True)
class Shape:
    """A layer of a minibatch."""

    name: str
    rows: int
    inputs: int
    units: int
    calls: int


SHAPES = (
    Shape("tiny", rows=50, inputs=16, units=16, calls=20_000),
    Shape("wide", rows=100, inputs=1000, units=32, calls=200),
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel and what one call of it does.

    Parameters
    ----------
    name
        As the seams know it.
    flops
        Floating-point operations per entry; an elementary function counts those of its polynomial.
    numbers
        Floats read and written per entry.
    over
        What an entry is: of the product, of the layer's panel, or of its weights.
    """

    name: str
    flops: int
    numbers: int
    over: str

    def work(self, shape: Shape) -> tuple[float, float]:
        """Operations and bytes of one call."""
        rows, inputs, units = shape.rows, shape.inputs, shape.units
        if self.over == "product":
            return (
                2.0 * rows * inputs * units,
                FLOAT * float(rows * inputs + inputs * units + rows * units),
            )
        entries = rows * units if self.over == "panel" else inputs * units
        return float(self.flops * entries), float(FLOAT * self.numbers * entries)


KERNELS = (
    Kernel("forward product", 2, 0, "product"),
    Kernel("gradient product", 2, 0, "product"),
    Kernel("back product", 2, 0, "product"),
    Kernel("activation", 38, 2, "panel"),
    Kernel("coupled move", 16, 8, "panel"),
    Kernel("adam", 17, 8, "weights"),
    # Integer work aside, which is about as much again.
    Kernel("normals", 30, 1, "panel"),
)


@dataclass(frozen=True, slots=True)
class Attained:
    """One kernel on one shape at one level."""

    level: str
    shape: str
    kernel: str
    microseconds: float
    gflops: float
    flops_per_byte: float
    share_of_roof: float


@dataclass(frozen=True, slots=True)
class Roof:
    """What a level can do: 1e9 operations and bytes per second."""

    level: str
    gflops: float
    cached: float
    uncached: float

    def at(self, flops_per_byte: float) -> float:
        """The most that work of this intensity can attain out of the nearest cache."""
        return min(self.gflops, self.cached * flops_per_byte)


def measure(level: str) -> tuple[Roof, list[Attained]]:
    """The roof and every kernel on every shape, at one level."""
    seams.use_level(level)
    roof = Roof(
        level,
        seams.peak_flops() / 1e9,
        seams.copy_bandwidth(CACHED) / 1e9,
        seams.copy_bandwidth(UNCACHED) / 1e9,
    )
    return roof, list(_attained(roof))


def _attained(roof: Roof) -> Iterator[Attained]:
    for shape in SHAPES:
        for kernel in KERNELS:
            seconds = seams.kernel_seconds(
                kernel.name, shape.rows, shape.inputs, shape.units, shape.calls
            )
            flops, size = kernel.work(shape)
            gflops = flops / seconds / 1e9
            yield Attained(
                roof.level,
                shape.name,
                kernel.name,
                1e6 * seconds,
                gflops,
                flops / size,
                gflops / roof.at(flops / size),
            )


def plot(roofs: list[Roof], points: list[Attained], path: Path) -> None:
    """A panel per level: the roof as lines, kernels as marks, filled where the layer is wide."""
    figure, axes = plt.subplots(
        1, len(roofs), figsize=(4.6 * len(roofs), 4.2), sharey=True, squeeze=False
    )
    intensity = np.geomspace(0.05, 100, 200)
    for axis, roof in zip(axes[0], roofs, strict=True):
        top = np.minimum(roof.gflops, roof.cached * intensity)
        axis.plot(intensity, top, color="black", label="roof, nearest cache")
        memory = np.minimum(roof.gflops, roof.uncached * intensity)
        axis.plot(intensity, memory, color="black", linestyle=":", label="roof, memory")
        for kernel, colour in zip(KERNELS, COLOURS, strict=True):
            for point in points:
                if point.level == roof.level and point.kernel == kernel.name:
                    axis.plot(
                        point.flops_per_byte,
                        point.gflops,
                        marker="o" if point.shape == "wide" else "s",
                        color=colour,
                        fillstyle="full" if point.shape == "wide" else "none",
                        linestyle="",
                        label=f"{kernel.name}, {point.shape}",
                    )
        axis.set(title=roof.level, xscale="log", yscale="log", xlabel="operations per byte")
    axes[0][0].set_ylabel("10⁹ operations per second")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    figure.savefig(path, dpi=130)


def main() -> None:
    before = seams.level()
    roofs, points = [], []
    for level in seams.levels():
        roof, attained = measure(level)
        roofs.append(roof)
        points += attained
        print(
            f"{level}: {roof.gflops:.0f} GF/s, copies {roof.cached:.0f} GB/s cached, "
            f"{roof.uncached:.0f} GB/s not"
        )
        for a in attained:
            print(
                f"  {a.shape:5}{a.kernel:18}{a.microseconds:9.2f} us{a.gflops:8.1f} GF/s"
                f"{100 * a.share_of_roof:6.0f} % of the roof"
            )
    seams.use_level(before)
    report = {"roofs": [asdict(r) for r in roofs], "kernels": [asdict(a) for a in points]}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "roofline.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    plot(roofs, points, RESULTS / "roofline.png")


if __name__ == "__main__":
    main()
