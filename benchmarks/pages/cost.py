"""The page of `scale.py`'s results: cost by n and p, memory, error, threads, start."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import Record
from cost_plots import Curve, CurvePanel, plot_curves
from pairs import Figure
from scale_data import DEFAULT, METHODS, PEERS
from tables import DASH, figure_text, markdown_table, number

INTRODUCTION = """\
# Cost

Every figure is of one fit in a fresh process, on float32 arrays of covariates, after libraries and
data are loaded (`benchmarks/scale.py`). Processor seconds are user and system time of all threads
and children, on one thread unless said otherwise; memory is the peak of anonymous memory above what
there was when the fit began, the input included. Where there are several data sets, medians. A cell
that was stopped says what it had used; its method was not tried on data sets with no fewer rows and
columns ("not run"); a dash is a cell that has not been measured. The last column is the default's
figure over that of the fastest peer which finished: below one, the default is the faster. Rows are
drawn by simulation 2 along n and by simulation 1 along p, with seeds that served to choose options,
too; large data are drawn once, so that their errors are those of one draw. ± is one Monte-Carlo
standard error. Peers: DoubleML's interactive regression model, 5 folds, with LightGBM
("small": 100 trees of 8 leaves) or the lasso with cross-validated penalties; EconML's
CausalForestDML, its doubly robust mean effect; stochtree's BART, 10 + 200 sweeps and 1000 draws.
Cells of different methods were measured at different times, on two shared cores that other work
kept busy for some of them: read ratios near one as ties.
"""


@dataclass(frozen=True, slots=True)
class Cells:
    """The results of one method at one size, of all seeds."""

    records: tuple[Record, ...]

    @property
    def done(self) -> tuple[Record, ...]:
        """Those with an estimate."""
        return tuple(r for r in self.records if "error" not in r)

    @property
    def stopped(self) -> Record | None:
        """One that was stopped before it had an estimate, if none was finished."""
        begun = [r for r in self.records if r.get("cpu", 0) > 0]
        return None if self.done or not begun else begun[0]

    def median(self, field: str) -> float:
        """Median of a figure over the seeds that finished; NaN without any."""
        values = [r[field] for r in self.done]
        return statistics.median(values) if values else math.nan

    def mean_error(self, truth: Callable[[Record], float]) -> Figure:
        """Mean distance of the estimates to what `truth` takes from a record."""
        return Figure.mean_of([abs(r["estimate"] - truth(r)) for r in self.done])

    def text(self, field: str) -> str:
        """A figure as a cell of a table; why there is none, where there is none."""
        if self.done:
            return number(self.median(field))
        if self.stopped is not None:
            least = f"> {number(self.stopped[field])}"
            return f"{least} ({reason(self.stopped['error'])})"
        return reason(self.records[0]["error"]) if self.records else DASH


def reason(error: str) -> str:
    """An error of `scale.py` in a word or two."""
    kinds = {"TimeoutError": "time", "MemoryError": "memory", "NotRun": "not run"}
    return kinds.get(error.partition(":")[0], "failed")


Size = tuple[str, int, int]


class Table:
    """Results by size and method."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)

    def cells(self, size: Size, method: str) -> Cells:
        """Those of one method at one size."""
        return Cells(tuple(r for r in self.records if key(r) == size and r["method"] == method))

    def sizes(self) -> list[Size]:
        """Simulations and sizes, the small ones first."""
        return sorted({key(r) for r in self.records}, key=lambda size: (size[1] * size[2], size))

    def fastest_peer(self, size: Size) -> tuple[str, float]:
        """The peer that finished with the fewest processor seconds, and how many these are."""
        times = {peer: self.cells(size, peer).median("cpu") for peer in PEERS}
        finished = {peer: seconds for peer, seconds in times.items() if math.isfinite(seconds)}
        if not finished:
            return "none", math.nan
        peer = min(finished, key=finished.__getitem__)
        return peer, finished[peer]


def key(record: Record) -> Size:
    """Simulation, n and p of a result."""
    return record["simulation"], record["n"], record["p"]


def label(size: Size) -> str:
    """A size as the first cell of a row."""
    simulation, n, p = size
    return f"simulation {simulation}, n = {n:_}, p = {p:_}".replace("_", " ")


def time_table(table: Table) -> str:
    """Processor seconds, and the default's over the fastest peer's."""
    rows = []
    for size in table.sizes():
        own = table.cells(size, DEFAULT).median("cpu")
        peer, seconds = table.fastest_peer(size)
        cells = [table.cells(size, method).text("cpu") for method in METHODS]
        rows.append([label(size), *cells, peer, number(own / seconds)])
    header = ["CPU seconds", *METHODS, "fastest peer", f"{DEFAULT} / fastest peer"]
    return markdown_table(header, rows)


def memory_table(table: Table) -> str:
    """Peak memory above the input, and the default's in multiples of the input."""
    rows = []
    for size in table.sizes():
        megabytes = 4e-6 * size[1] * size[2]
        cells = [table.cells(size, method).text("peak_mb") for method in METHODS]
        own = table.cells(size, DEFAULT).median("peak_mb") / megabytes
        rows.append([label(size), number(megabytes), *cells, number(own)])
    return markdown_table(["MB above the input", "input", *METHODS, f"{DEFAULT} / input"], rows)


def error_table(table: Table) -> str:
    """Mean distance to the rows' mean effect, and in brackets to the oracle's estimate."""
    rows = []
    for size in table.sizes():
        everyone = [table.cells(size, method) for method in METHODS]
        sets = {r["seed"]: r for cells in everyone for r in cells.done}
        oracle = [abs(r["oracle"][0] - r["sample_ate"]) for r in sets.values()]
        texts = [figure_text(Figure.mean_of(oracle))]
        for cells in everyone:
            truth, best = (cells.mean_error(of) for of in (rows_effect, oracle_estimate))
            texts.append(f"{figure_text(truth)} ({number(best.value)})" if cells.done else DASH)
        rows.append([label(size), str(len(sets)), *texts])
    return markdown_table(["mean error", "data sets", "oracle", *METHODS], rows)


def rows_effect(record: Record) -> float:
    """The mean effect of the rows."""
    return float(record["sample_ate"])


def oracle_estimate(record: Record) -> float:
    """The estimate with the true nuisances."""
    return float(record["oracle"][0])


def threads_table(records: Sequence[Record]) -> str:
    """Wall seconds with one thread and two, beside what two busy processes gain on this machine."""
    rows = []
    for size in Table(records).sizes():
        for method in METHODS:
            of_method = [r for r in records if r["method"] == method and key(r) == size]
            one, two = (
                [r for r in of_method if r["jobs"] == jobs and "error" not in r] for jobs in (1, 2)
            )
            if not one or not two:
                continue
            # Whatever else runs can only add to a wall time: the least of each says most.
            walls = [min(r["wall"] for r in cells) for cells in (one, two)]
            cpus = [min(r["cpu"] for r in cells) for cells in (one, two)]
            machine = max(r["machine_scaling"] for r in two)
            gain = walls[0] / walls[1]
            rows.append([label(size), method, *map(number, (*walls, gain, machine, *cpus))])
    header = ["threads", "method", "wall, one", "wall, two", "gain", "two busy processes gain"]
    return markdown_table([*header, "CPU, one", "CPU, two"], rows) if rows else ""


def memmap_table(records: Sequence[Record]) -> str:
    """Fits to a file that is only mapped."""
    rows = []
    for r in records:
        megabytes = Cells((r,)).text("peak_mb")
        figures = [number(r[name]) if name in r else DASH for name in ("cpu", "wall")]
        rows.append([label(key(r)), r["method"], number(r["input_mb"]), *figures, megabytes])
    header = ["mapped file", "method", "file, MB", "CPU seconds", "wall", "anonymous, MB"]
    return markdown_table(header, rows) if rows else ""


def start_table(records: Sequence[Record]) -> str:
    """Import and first fits in fresh processes."""
    rows = [[r["method"], number(r["wall"]), number(r["cpu"])] for r in records]
    header = ["fresh process, fastest of five", "wall seconds", "CPU seconds"]
    return markdown_table(header, rows) if rows else ""


def stopped_list(records: Iterable[Record]) -> list[str]:
    """Every cell without a result, with its reason."""
    lines = sorted(
        {
            f"- {label(key(r))}, {r['method']}, {r['jobs']} thread(s): {r['error']}"
            for r in records
            if "error" in r
        }
    )
    return ["Cells without an estimate:\n", *lines, ""] if lines else []


def curves(
    table: Table, x: Callable[[Size], float], y: Callable[[Cells], float], least: str = ""
) -> list[Curve]:
    """A curve per method; `least` is the figure that stopped cells have reached at least."""
    out = []
    for method in METHODS:
        cells = {size: table.cells(size, method) for size in table.sizes()}
        points = [(x(size), y(c)) for size, c in cells.items() if c.done]
        bounds = [(x(size), c.stopped[least]) for size, c in cells.items() if least and c.stopped]
        if points or bounds:
            out.append(Curve(method, sorted(points), sorted(bounds)))
    return out


def write_pictures(table: Table, folder: Path) -> list[str]:
    """Cost against n and p, memory against the input, error against cost."""
    by_n = Table(r for r in table.records if r["simulation"] == "2" and r["p"] <= 100)
    by_p = Table(r for r in table.records if r["simulation"] == "1")

    def cpu(cells: Cells) -> float:
        return cells.median("cpu")

    seconds = "processor seconds"
    plot_curves(
        [
            CurvePanel("p = 50 (n = 10⁶: 100)", "n", seconds, curves(by_n, _n, cpu, "cpu")),
            CurvePanel("n = 1000", "p", seconds, curves(by_p, _p, cpu, "cpu")),
        ],
        folder / "cost.png",
    )
    memory, panels = [], []
    for title, part in (("p = 50 (n = 10⁶: 100)", by_n), ("n = 1000", by_p)):
        peaks = curves(part, _input, lambda c: c.median("peak_mb"), "peak_mb")
        memory.append(CurvePanel(title, "input, MB", "MB above it", peaks, diagonal=True))
        lines = []
        for method in METHODS:
            cells = [c for size in part.sizes() if (c := part.cells(size, method)).done]
            points = [(cpu(c), c.mean_error(rows_effect).value) for c in cells]
            lines += [Curve(method, sorted(points), [])] if points else []
        # Errors of one to three draws: a line from size to size would show noise.
        panels.append(CurvePanel(title, seconds, "mean |error|", lines, connected=False))
    plot_curves(memory, folder / "cost_memory.png")
    plot_curves(panels, folder / "cost_error.png")
    return [
        "![Processor seconds against n and p; triangles: stopped there](cost.png)\n",
        "![Peak memory above the input; dashed: as large as the input](cost_memory.png)\n",
        "![Error against processor seconds, a point per size](cost_error.png)\n",
    ]


def _n(size: Size) -> float:
    return size[1]


def _p(size: Size) -> float:
    return size[2]


def _input(size: Size) -> float:
    return 4e-6 * size[1] * size[2]


def page(records: Sequence[Record], folder: Path) -> str:
    """Tables and pictures of cost.

    Parameters
    ----------
    records : sequence of dict
        Results of `scale.py`.
    folder : Path
        Where the pictures go.
    """
    starts = [r for r in records if r["group"] == "start"]
    cells = [r for r in records if r["group"] != "start"]
    mapped = [r for r in cells if r["memmap"]]
    arrays = [r for r in cells if not r["memmap"]]
    table = Table(r for r in arrays if r["jobs"] == 1)
    text = [INTRODUCTION]
    if table.records:
        text += [time_table(table), memory_table(table), error_table(table)]
        text += write_pictures(table, folder)
    text += [threads_table(arrays), memmap_table(mapped), start_table(starts)]
    return "\n".join(part for part in (*text, *stopped_list(cells)) if part)
