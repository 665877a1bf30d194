"""The benchmarks' own arithmetic and their files."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import common  # noqa: E402
import effects  # noqa: E402
import loaders  # noqa: E402
import metrics  # noqa: E402
import own  # noqa: E402
import peers  # noqa: E402
import runner  # noqa: E402


def record(seed: int, estimate: float, **changes: object) -> common.Record:
    """A result with an interval of ± 0.2 around the estimate, truths 1.0 (rows) and 1.1."""
    return {
        "group": "g",
        "seed": seed,
        "method": "m",
        "seconds": float(seed),
        "estimate": estimate,
        "se": 0.1,
        "lower": estimate - 0.2,
        "upper": estimate + 0.2,
        "sample_ate": 1.0,
        "ate": 1.1,
        "oracle": [1.05, 0.1],
        "y_sd": 2.0,
        "selection": None,
        "pehe": 0.5 * seed,
    } | changes


def counts(selected: int, false: int, missed: int, true: int) -> dict[str, int]:
    return {"selected": selected, "false": false, "missed": missed, "true": true}


def test_selection_counts():
    truth, selected = frozenset({"x1", "x2", "x3"}), frozenset({"x2", "x3", "x8", "x9"})
    assert common.selection_counts(truth, selected) == counts(4, 2, 1, 3)


def test_selection_rates_are_ratios_of_sums_not_means_of_ratios():
    outcome = [counts(6, 1, 0, 5), counts(2, 1, 4, 5)]
    treatment = [counts(0, 0, 3, 3), counts(0, 0, 3, 3)]
    records = [
        record(i, 1.0, selection={"outcome": o, "treatment": t})
        for i, (o, t) in enumerate(zip(outcome, treatment, strict=True))
    ]
    # Means of the data sets' own rates would be (1/6 + 1/2) / 2 = 1/3 and 0.4.
    assert metrics.selection_rates(records, "outcome") == (2 / 8, 4 / 10)
    assert metrics.selection_rates(records, "treatment") == (0.0, 1.0)


def test_selection_rates_of_a_method_that_selects_nothing_by_design():
    assert all(math.isnan(rate) for rate in metrics.selection_rates([record(1, 1.0)], "outcome"))


def test_coverage_error_by_hand():
    # 19 of 20: p = 21/24, so √(21/24 · 3/24 / 24) = √(63 / 13824).
    assert metrics.coverage_error(19, 20) == pytest.approx(math.sqrt(63 / 13824))
    assert metrics.coverage_error(20, 20) > 0


def test_summary_by_hand(tmp_path):
    # Errors against 1.0: 0.2, -0.1, 0.3. Intervals: [1.0, 1.4], [0.7, 1.1 + ε], [1.1 + ε, 1.5]
    # hold the population's 1.1 twice.
    written = [
        record(1, 1.2),
        record(2, 0.9, upper=1.10001),
        record(3, 1.3, lower=1.10001),
        {"group": "g", "seed": 4, "method": "m", "seconds": 9.0, "error": "TimeoutError: 9 s"},
    ]
    path = tmp_path / "accuracy.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in written), encoding="utf-8")
    summary = metrics.summarize(runner.read_records(path))
    assert (summary.n_sets, summary.n_failed) == (3, 1)
    assert summary.mae == pytest.approx(0.2)
    assert summary.mae_error == pytest.approx(0.1 / math.sqrt(3))
    assert summary.bias == pytest.approx(0.4 / 3)
    assert summary.bias_error == pytest.approx(np.std([0.2, -0.1, 0.3], ddof=1) / np.sqrt(3))
    assert summary.rmse == pytest.approx(math.sqrt(0.14 / 3))
    # Delta method: the mean square's error over twice its root.
    square_error = np.std([0.04, 0.01, 0.09], ddof=1) / math.sqrt(3)
    assert summary.rmse_error == pytest.approx(square_error / (2 * math.sqrt(0.14 / 3)))
    assert summary.oracle_ratio == pytest.approx(0.2 / 0.05)
    # The oracle errs by the same on all three.
    assert summary.oracle_ratio_error == pytest.approx(4 * 0.1 / 0.2 / math.sqrt(3))
    assert summary.coverage == 2 / 3
    assert summary.width == pytest.approx((0.4 + 0.40001 + 0.39999) / 3)
    assert summary.pehe == pytest.approx(1.0)
    assert summary.seconds == 2.0


def test_methods_without_intervals_have_no_coverage():
    alone = record(1, 1.2, se=math.nan, lower=math.nan, upper=math.nan)
    summary = metrics.summarize([alone, alone | {"seed": 2}])
    assert math.isnan(summary.coverage)
    assert summary.mae == pytest.approx(0.2)


def test_processor_time_counts_where_all_have_it():
    timed = [record(1, 1.0, seconds=9.0, cpu=3.0), record(2, 1.0, seconds=5.0, cpu=2.0)]
    summary = metrics.summarize(timed)
    assert (summary.seconds, summary.by_clock) == (2.5, False)
    # Of one kind or the other: a median over both would be of neither.
    mixed = metrics.summarize([timed[0], record(2, 1.0, seconds=5.0)])
    assert (mixed.seconds, mixed.by_clock) == (7.0, True)
    assert [metrics.cpu_of(r) for r in (timed[0], record(2, 1.0))] == [3.0, None]


def test_a_newer_recipe_replaces_the_older(tmp_path):
    path = tmp_path / "accuracy.jsonl"
    written = [record(1, 1.0, recipe="old"), record(2, 1.0, recipe="old"), record(1, 1.4)]
    path.write_text("".join(json.dumps(r) + "\n" for r in written), encoding="utf-8")
    read = runner.read_records(path)
    assert [(r["seed"], r["estimate"]) for r in read] == [(1, 1.4), (2, 1.0)]


def test_errors_against_the_population_and_in_standard_deviations():
    records = [record(1, 1.2), record(2, 0.9, y_sd=1.0)]
    summary = metrics.summarize(records, errors="population", scaled=True)
    assert summary.mae == pytest.approx((0.1 / 2 + 0.2) / 2)
    assert summary.width == pytest.approx((0.4 / 2 + 0.4) / 2)
    assert summary.pehe == pytest.approx((0.5 / 2 + 1.0) / 2)


def test_population_falls_back_to_the_rows_where_it_is_unknown():
    assert metrics.truth_of(record(1, 1.0, ate=None), "population") == 1.0
    assert metrics.truth_of(record(1, 1.0), "population") == 1.1


def test_oracle_counts_once_per_data_set():
    records = [record(1, 1.0), record(1, 1.4, method="other"), record(2, 1.0, oracle=[0.9, 0.1])]
    methods = metrics.by_method(records)
    assert list(methods) == ["oracle", "m", "other"]
    oracle = metrics.summarize(methods["oracle"])
    assert oracle.n_sets == 2
    assert oracle.mae == pytest.approx((0.05 + 0.1) / 2)
    assert oracle.width == pytest.approx(2 * common.Z95 * 0.1)


def test_the_default_comes_after_the_oracle():
    records = [record(1, 1.0, method="other"), record(1, 1.0, method=metrics.REFERENCE)]
    assert list(metrics.by_method(records)) == ["oracle", metrics.REFERENCE, "other"]


def test_every_fit_failed():
    failed = {"group": "g", "seed": 1, "method": "m", "seconds": 1.0, "error": "E: x"}
    summary = metrics.summarize([failed])
    assert (summary.n_sets, summary.n_failed) == (0, 1)
    assert math.isnan(summary.mae)


def test_interrupted_line_is_dropped_and_the_last_result_counts(tmp_path):
    path = tmp_path / "accuracy.jsonl"
    lines = [json.dumps(record(1, 1.0)), json.dumps(record(1, 2.0)), '{"group": "g", "se']
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [r["estimate"] for r in runner.read_records(path)] == [2.0]
    with runner.open_for_append(path) as file:
        file.write(json.dumps(record(2, 3.0)) + "\n")
    assert [r["estimate"] for r in runner.read_records(path)] == [2.0, 3.0]


def test_damage_within_a_file_is_named(tmp_path):
    path = tmp_path / "accuracy.jsonl"
    path.write_text("nonsense\n" + json.dumps(record(1, 1.0)) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1"):
        runner.read_records(path)


def test_measure_by_hand():
    frame = pd.DataFrame({"y": [0.0, 2.0], "treat": [0, 1], "x1": [1.0, 2.0], "x2": [0.0, 1.0]})
    problem = common.Problem(
        frame,
        sample_ate=1.5,
        tau=np.array([1.0, 2.0]),
        supports={"outcome": frozenset({"x1"}), "treatment": frozenset({"x2"})},
    )
    selected = {"outcome": frozenset({"x1", "x2"}), "treatment": frozenset()}
    estimate = common.Estimate(1.0, 0.1, 0.8, 1.2, np.array([4.0, 6.0]), selected)
    result = common.measure(problem, estimate)
    assert result["pehe"] == pytest.approx(math.sqrt((9 + 16) / 2))
    assert result["selection"] == {"outcome": counts(2, 1, 0, 1), "treatment": counts(0, 0, 1, 1)}
    assert (result["n"], result["p"], result["y_sd"]) == (2, 2, 1.0)
    assert result["ate"] is None
    assert result["oracle"] is None
    assert json.loads(json.dumps(result)) == result


class Fixed:
    """A method that gives the mean of the outcomes, or takes too long."""

    name = "fixed"
    recipe = ""

    def prepare(self) -> None:
        pass

    def estimate(self, problem, *, threads, seed):
        if seed == 2:
            while True:
                math.sqrt(threads)
        return common.Estimate(float(problem.y.mean()), 0.1, -1.0, 1.0)


def test_a_fit_that_takes_too_long_is_a_result():
    case = loaders.SimulationCase("2-null", 50, 5, 1)
    done = runner.run_one(case, Fixed(), threads=1, limit=5.0)
    assert done["estimate"] == case.load().y.mean()
    assert done["ate"] == 0.0
    late = runner.run_one(loaders.SimulationCase("1", 50, 5, 2), Fixed(), threads=1, limit=0.05)
    assert late["error"] == "TimeoutError: stopped after 0.05 s"
    assert "estimate" not in late


def test_factors_become_dummies_for_the_peers():
    group = pd.Series(["b", "a", "c"], dtype="category")
    frame = pd.DataFrame({"y": [0.0, 1.0, 1.0], "treat": [0, 1, 0], "g": group, "x": [3.0, 4, 5]})
    problem = common.Problem(frame, sample_ate=0.0)
    assert problem.X.tolist() == [[3, 1, 0], [4, 0, 0], [5, 0, 1]]
    assert problem.binary


def test_ranges_and_methods_of_the_command_line():
    assert common.number_range("101:103,7") == [101, 102, 103, 7]
    with pytest.raises(argparse.ArgumentTypeError):
        common.number_range("5:4")
    assert [m.name for m in peers.parse_methods("paper:twins,bart")] == ["paper:twins", "bart"]
    (two,) = peers.parse_methods("calibrated/folds=2")
    assert (two.preset, two.changes) == ("calibrated", {"folds": 2})
    assert two.recipe == own.recipe_of("calibrated")
    (cold,) = peers.parse_methods("calibrated/temperature=0/starts=1")
    assert cold.changes["starts"] == 1
    assert cold.changes["training"].sampler.temperature == 0
    assert cold.changes["search"].training.sampler.temperature == 0
    names = ("mar@stonet/starts=1", "stonet", "paper:acic/folds=2", "mnar", "bart")
    presets = ["stonet", "stonet", "paper:acic", "calibrated", "calibrated"]
    assert [own.preset_of(name) for name in names] == presets
    for wrong in ("calibrated/folds=two", "calibrated/folds=-1", "calibrated/seed=1"):
        with pytest.raises(argparse.ArgumentTypeError, match="no peer"):
            peers.parse_methods(wrong)
    with pytest.raises(argparse.ArgumentTypeError, match="bert"):
        peers.parse_methods("bert")


def test_missing_peer_is_reported_and_skipped(capsys):
    absent = peers.Peer("absent", ("no_such_module",), peers.bart)
    present = own.Preset("calibrated")
    assert runner.available([absent, present]) == [present]
    assert "absent: skipped" in capsys.readouterr().err


# Several effects ---------------------------------------------------------------------------------


def effects_record(seed: int, error: float) -> common.Record:
    """A result whose effects all err by the same, with intervals of ± 0.2."""
    effect = {
        "estimate": 1.0 + error,
        "se": 0.1,
        "lower": 0.8 + error,
        "upper": 1.2 + error,
        "truth": 1.0,
        "oracle": 1.1,
        "oracle_se": 0.1,
    }
    counts = common.selection_counts(frozenset("ab"), frozenset("bc"))
    return {
        "group": "g",
        "seed": seed,
        "seconds": 2.0,
        "effects": dict.fromkeys(("TE", "NDE", "NIE"), effect),
        "selection": dict.fromkeys(("treatment", "mediator", "outcome"), counts),
    }


def test_report_of_several_effects():
    records = [effects_record(seed, error) for seed, error in enumerate((0.1, -0.1, 0.1, 0.3))]
    text = effects.report([*records, {"group": "g", "seed": 9, "seconds": 2.0, "error": "x"}])
    assert "g: 4 of 5 fits, median 2 s" in text
    assert "NIE  coverage 0.750" in text
    assert "bias +0.1000" in text
    # Mean squares 0.03 and 0.01.
    assert f"over the oracle's {3**0.5:.2f}" in text
    assert "mediator support: 4 of 8 missed, 4 false among 8 selected" in text
