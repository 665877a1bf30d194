"""The benchmark of cost: its data files, limits, order and resumption, and its page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import scale
import scale_cell
import scale_data
import scale_watch
from peers import parse_methods

import cstonet as cs

SMALL = scale_data.Size("2", 60, 5)
(DEFAULT, LIGHTGBM) = parse_methods("calibrated,doubleml-lightgbm-small")


# Data --------------------------------------------------------------------------------------------


def test_blocks_hold_every_row_once_and_are_bounded():
    blocks = scale_data.blocks_of(1_000_000, 1000)
    rows = np.concatenate([np.arange(b.start, b.stop) for b in blocks])
    assert (rows == np.arange(1_000_000)).all()
    assert max(b.stop - b.start for b in blocks) * 1000 <= scale_data.BLOCK_VALUES
    assert scale_data.blocks_of(1000, 100_000) == [slice(0, 1000)]


def test_data_files_are_the_simulations_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(scale_data, "MIN_BLOCK_ROWS", 40)
    monkeypatch.setattr(scale_data, "BLOCK_VALUES", 1)
    folder = scale_data.write_data(SMALL, 3, tmp_path)
    first = cs.datasets.simulation2(n=40, p=5, seed=3)
    second = cs.datasets.simulation2(n=20, p=5, seed=scale_data.block_seed(3, 1))
    data = scale_data.load_arrays(folder, memmap=False)
    expected = np.vstack([sim.data.iloc[:, 2:] for sim in (first, second)])
    assert data.X.dtype == np.float32
    assert (expected.astype(np.float32) == data.X).all()
    assert (data.y == np.r_[first.data["y"], second.data["y"]]).all()
    assert (data.treat == np.r_[first.data["treat"], second.data["treat"]]).all()
    truth = scale_data.read_truth(folder)
    assert truth["sample_ate"] == np.r_[first.tau, second.tau].mean()
    assert truth["ate"] == first.ate
    estimate, error = truth["oracle"]
    assert abs(estimate - truth["ate"]) < 4 * error
    mapped = scale_data.load_arrays(folder, memmap=True)
    assert isinstance(mapped.X, np.memmap)
    assert (mapped.X == data.X).all()


# Cells -------------------------------------------------------------------------------------------


def watched(code: str, **limits: float) -> scale_watch.Watched:
    """What is seen of a process that runs this code."""
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as process:
        return scale_watch.watch(
            process, scale.Limits(**({"seconds": 60, "megabytes": 1e4} | limits))
        )


def test_a_cell_that_computes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(scale_watch, "PATIENCE", 10**6)  # however little of the machine it gets
    seen = watched("while True: pass", seconds=0.2)
    assert seen.stopped == "TimeoutError: stopped after 0.2 CPU s"
    assert seen.cpu >= 0.2


def test_a_cell_that_only_waits_is_stopped():
    seen = watched("import time; time.sleep(60)", seconds=0.1)
    assert seen.stopped.startswith("TimeoutError")
    assert seen.wall >= 0.1 * scale_watch.PATIENCE


def test_a_cell_that_takes_too_much_memory_is_stopped():
    seen = watched("import time; hoard = bytearray(200_000_000); time.sleep(60)", megabytes=100)
    assert seen.stopped == "MemoryError: stopped above 0.1 GB"


def test_memory_of_children_counts():
    child = "import time; hoard = bytearray(100_000_000); time.sleep(1.5)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    seen = watched(code)
    assert seen.stopped == ""
    assert seen.peak_mb >= 100


def test_processor_seconds_count_children_that_live():
    before = scale_cell.processor_seconds()
    code = "total = 0\nfor i in range(10**6): total += i\nprint('done', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        child.stdout.readline()
        alive = scale_watch.seconds_of_process(child.pid)
        assert alive > 0
        # Times of processes come in ticks.
        assert scale_cell.processor_seconds() - before >= alive - 1 / scale_watch.TICKS
        child.communicate("\n")


def test_a_cell_from_data_to_record(tmp_path):
    folder = scale_data.write_data(SMALL, 1, tmp_path)
    (method,) = parse_methods("calibrated/folds=2/repeats=1")
    cell = scale.Cell(SMALL, 1, method)
    record = scale.run_cell(cell, folder, scale.Limits(600, 4000))
    assert "error" not in record
    data = scale_data.load_arrays(folder, memmap=False)
    model = cs.CausalStoNet(data.y, data.treat, data.X)
    estimate = model.fit(seed=1, n_jobs=1, folds=2, repeats=1).effect("ATE").estimate
    # Threads of BLAS, of which a cell has as many as jobs, sum products in another order.
    assert record["estimate"] == pytest.approx(estimate, rel=1e-12)
    assert (record["n"], record["p"], record["jobs"]) == (60, 5, 1)
    assert record["cpu"] > 0
    assert record["recipe"].endswith(scale.code_digest())
    assert json.loads(json.dumps(record)) == record


def test_a_cell_that_breaks_says_why(tmp_path):
    record = scale.run_cell(scale.Cell(SMALL, 1, DEFAULT), tmp_path, scale.Limits(600, 4000))
    assert record["error"].startswith("ProcessError: FileNotFoundError")


# Order and resumption ----------------------------------------------------------------------------


def test_small_cells_first_and_large_data_once():
    cells = list(scale.cells_of(scale.PARTS, [DEFAULT, LIGHTGBM], [1, 2], quick=False))
    of_first = [cell.size.values for cell in cells if cell.seed == 1]
    assert of_first == sorted(of_first)
    assert all(c.size.values <= scale.SINGLE_SEED_VALUES for c in cells if c.seed == 2)
    threads = [(c.method.name, c.jobs) for c in cells if c.size.n == 10**6 and c.size.p == 100]
    for method in ("calibrated", "doubleml-lightgbm-small"):
        assert {jobs for name, jobs in threads if name == method} == {1, 2}
    mapped = [c for c in cells if c.memmap]
    assert [(c.method.name, 4 * c.size.values) for c in mapped] == [("calibrated", 4 * 10**9)]


def failed(n: int, p: int, **changes: object) -> dict[str, object]:
    cell = scale.Cell(scale_data.Size("2", n, p), 1, LIGHTGBM)
    return cell.head() | {"error": "TimeoutError: stopped after 9 CPU s"} | changes


def test_what_was_given_up_is_not_tried_on_more():
    large = scale.Cell(scale_data.Size("1", 2000, 60), 1, LIGHTGBM)
    reason = scale.smaller_failure(large, [failed(1000, 50)])
    assert reason == "NotRun: after its TimeoutError: stopped after 9 CPU s at n=1000, p=50"
    # A reason that is handed on names the cell that it began with.
    handed_on = failed(2000, 50, error=reason)
    assert scale.smaller_failure(large, [handed_on]) == reason
    for other in (
        failed(1000, 70),
        failed(3000, 50),
        failed(1000, 50, jobs=2),
        failed(1000, 50, method="bart"),
        failed(1000, 50, error="ValueError: x"),
    ):
        assert scale.smaller_failure(large, [other]) == ""
    same = scale.Cell(scale_data.Size("2", 1000, 50), 1, LIGHTGBM)
    assert scale.smaller_failure(same, [failed(1000, 50)]) == ""
    next_seed = scale.Cell(scale_data.Size("2", 1000, 50), 2, LIGHTGBM)
    assert scale.smaller_failure(next_seed, [failed(1000, 50)]) == reason


def test_a_run_is_resumed(tmp_path, monkeypatch):
    fitted = []

    def fake_cell(cell, folder, limits):
        fitted.append(cell.method.name)
        broken = {"error": "ValueError: x"} if cell.method is LIGHTGBM else {}
        return cell.head() | {"cpu": 1.0, "wall": 1.0, "peak_mb": 1.0} | broken

    monkeypatch.setattr(scale, "run_cell", fake_cell)
    monkeypatch.setattr(  # in this process, which is quicker
        scale.Runner,
        "make_data",
        lambda self, cell: scale_data.write_data(cell.size, cell.seed, self.data),
    )
    cells = [scale.Cell(SMALL, 1, method) for method in (DEFAULT, LIGHTGBM)]

    def run(**how: bool) -> list[str]:
        fitted.clear()
        limits = scale.Limits(60, 1000)
        runner = scale.Runner(tmp_path / "scale.jsonl", tmp_path / "data", limits)
        runner.run_all([*cells, cells[0]], **({"retry": False, "accept_older": False} | how))
        return list(fitted)

    assert run() == ["calibrated", "doubleml-lightgbm-small"]
    assert not SMALL.folder(tmp_path / "data", 1).exists()
    assert run() == []
    assert run(retry=True) == ["doubleml-lightgbm-small"]
    monkeypatch.setattr(scale, "code_digest", lambda: "changed")
    assert run(accept_older=True) == []
    assert run() == ["calibrated"]


# The page ----------------------------------------------------------------------------------------


def cost_record(
    method: str, n: int, cpu: float, jobs: int = 1, memmap: bool = False, **changes: object
) -> dict[str, object]:
    cell = scale.Cell(scale_data.Size("2", n, 50), 1, DEFAULT, jobs, memmap)
    return (
        cell.head()
        | {"method": method, "cpu": cpu, "wall": cpu, "peak_mb": 10 * cpu, "commit": "abc"}
        | {"estimate": 1.25, "sample_ate": 1.0, "oracle": [1.125, 0.1], "ate": 1.0}
        | changes
    )


def without_estimate(method: str, n: int, cpu: float, error: str) -> dict[str, object]:
    record = cost_record(method, n, cpu, error=error)
    del record["estimate"]
    return record


def test_page_shows_ratios_and_hides_no_failure(tmp_path):
    pytest.importorskip("matplotlib")
    import report

    time, memory = "TimeoutError: stopped after 600 CPU s", "MemoryError: stopped above 8 GB"
    records = [
        cost_record("calibrated", 1000, 3.0),
        cost_record("calibrated", 1000, 5.0, seed=2),
        cost_record("bart", 1000, 8.0),
        cost_record("doubleml-lasso", 1000, 2.0),
        without_estimate("econml-forest-dr", 1000, 601.0, time),
        cost_record("calibrated", 2000, 6.0),
        without_estimate("bart", 2000, 50.0, memory),
        without_estimate("econml-forest-dr", 2000, 0.0, f"NotRun: after its {time} at n=1000"),
        cost_record("calibrated", 2000, 8.0, jobs=2, wall=4.0, machine_scaling=1.9),
        cost_record("calibrated", 9000, 8.0, memmap=True),
        {"group": "start", "seed": 0, "method": "import", "wall": 0.25, "cpu": 0.2, "commit": ""},
    ]
    lines = [json.dumps(r) + "\n" for r in records]
    (tmp_path / "scale.jsonl").write_text("".join(lines), encoding="utf-8")
    report.write_report(tmp_path)
    text = (tmp_path / "cost.md").read_text(encoding="utf-8")
    small, large = "simulation 2, n = 1 000, p = 50", "simulation 2, n = 2 000, p = 50"
    # The median of 3 and 5 over the lasso's 2.
    cells = "4.00 | – | – | 2.00 | > 601 (time) | 8.00 | doubleml-lasso | 2.00"
    assert f"| {small} | {cells} |" in text
    assert f"| {large} | 6.00 | – | – | – | not run | > 50.0 (memory) | none | – |" in text
    # 40 MB above an input of 0.2 MB.
    assert f"| {small} | 0.200 | 40.0 |" in text
    # An eighth from the oracle's estimate, which is an eighth from the rows' effect.
    assert f"| {small} | 2 | 0.125 | 0.250 (0.125) |" in text
    assert f"| {large} | calibrated | 6.00 | 4.00 | 1.50 | 1.90 | 6.00 | 8.00 |" in text
    assert "| simulation 2, n = 9 000, p = 50 | calibrated | 1.80 | 8.00 | 8.00 | 80.0 |" in text
    assert "| import | 0.250 | 0.200 |" in text
    assert f"- {large}, bart, 1 thread(s): {memory}" in text
    for picture in ("cost", "cost_memory", "cost_error"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 1000
