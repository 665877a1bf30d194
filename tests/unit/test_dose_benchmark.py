"""The arithmetic of the benchmark of doses."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cstonet as cs

# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import common
import dose


def record(seed: int, estimate: float, oracle: float, *, uniform: bool) -> common.Record:
    return {
        "group": "g", "seed": seed, "method": "m", "seconds": 1.0, "estimate": estimate,
        "se": 0.1, "lower": estimate - 0.2, "upper": estimate + 0.2, "ate": 1.0,
        "oracle": [oracle, 0.1], "heteroscedastic": False, "gaussian": True,
        "curve": {"rmse": 0.3, "pointwise": 0.9, "uniform": uniform}, "oracle_curve_rmse": 0.2,
    }  # fmt: skip


def test_case_holds_the_truths():
    case = dose.DoseCase(n=60, p=5, heteroscedastic=True, seed=2)
    simulation = cs.datasets.dose_curve(n=60, p=5, seed=2, heteroscedastic=True)
    problem = case.load()
    assert problem.ate == simulation.ame
    assert problem.sample_ate == simulation.sample_ame
    assert problem.oracle[0] == simulation.oracle().estimates[0]
    assert case.group == "dose, heteroscedastic, n=60, p=5"


def test_curve_figures():
    table = pd.DataFrame(
        {
            "estimate": [1.0, 2.0],
            "lower": [0.5, 2.5],
            "upper": [1.5, 3.0],
            "uniform_lower": [0.0, 1.0],
            "uniform_upper": [2.0, 3.0],
        }
    )
    figures = dose.curve_figures(table, np.array([1.0, 1.0]))
    assert figures == {"rmse": np.sqrt(0.5), "pointwise": 0.5, "uniform": True}
    assert not dose.curve_figures(table, np.array([1.0, 4.0]))["uniform"]


def test_ratio_of_rms():
    errors = np.array([0.3, -0.4])
    ratio, spread = dose.ratio_of_rms(errors, 0.5 * errors)
    assert ratio == pytest.approx(2)
    assert spread == pytest.approx(0, abs=1e-12)


def test_report_counts_what_was_covered():
    records = [record(1, 1.1, 1.05, uniform=True), record(2, 1.5, 0.7, uniform=False)]
    records.append({"group": "g", "seed": 3, "method": "m", "error": "E", "seconds": 1.0})
    text = dose.report(records)
    assert "g: 2 data sets, 1 failed" in text
    assert "cover  0.500" in text
    assert "(oracle 0.500)" in text
    assert "pointwise coverage  0.900" in text
    assert "uniform coverage    0.500" in text
    assert "0 data sets, 1 failed" in dose.report(records[2:])
