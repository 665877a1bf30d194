"""Doses on the command line: simulated, fitted."""

from __future__ import annotations

import pandas as pd
import pytest

import cstonet as cs
from cstonet.cli import commands as cli

SMALL = ["--hidden", "4,3", "--folds", "2", "--starts", "1", "--n-jobs", "1", "--repeats", "1"]


@pytest.mark.parametrize("flags", [[], ["--heteroscedastic"]])
def test_simulate_writes_data_and_truths(tmp_path, capsys, flags):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    words = ["simulate", "dose_curve", str(data), "--truth", str(truth), "--n", "60", "--p", "5"]
    assert cli.run([*words, "--seed", "4", *flags]) == 0
    simulation = cs.datasets.dose_curve(n=60, p=5, seed=4, heteroscedastic=bool(flags))
    pd.testing.assert_frame_equal(pd.read_csv(data), simulation.data)
    truths = pd.read_csv(truth)
    assert list(truths) == ["mu", "slope", "mean", "variance"]
    pd.testing.assert_series_equal(truths["slope"], pd.Series(simulation.slope, name="slope"))
    text = capsys.readouterr().out
    for value in (simulation.ame, simulation.sample_ame, simulation.oracle().estimates[0]):
        assert f"{value:.6f}" in text
    assert "AME, population" in text
    assert "x1 x3 x5" in text


def test_fit_prints_the_marginal_effect(tmp_path, capsys):
    file = tmp_path / "data.csv"
    cs.datasets.dose_curve(n=120, p=5, seed=3).data.to_csv(file, index=False)
    assert cli.run(["fit", str(file), "y ~ dose | .", "--treatment", "continuous", *SMALL]) == 0
    assert "AME" in capsys.readouterr().out
