"""Simulated data sets on the command line: files and printed truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.cli import USAGE_ERROR, main
from cstonet.cli.reading import read_data

# All digits are written; the reader of pandas before 3 loses the last ones.
LAST_DIGITS = 1e-15 if int(pd.__version__.split(".")[0]) >= 3 else 1e-13

PRINTED = {
    "simulation2": """\
formula              y ~ treat | .
ATE, these rows      3.060044
ATE, population      3.159267
oracle estimate      3.182332 (standard error 0.229495)
treatment depends on x1 x2 x3 x5
outcome depends on   x1 x2 x3 x4 x5
""",
    "dose_curve": """\
formula              y ~ dose | .
AME, these rows      0.534758
AME, population      0.509801
oracle estimate      0.520743 (standard error 0.049419)
treatment depends on x1 x3 x5
outcome depends on   x1 x2 x3 x4
""",
    "one_mediator": """\
formula              y ~ treat | . | m1
TE, these rows       1.353482
TE, population       1.335329
TE, oracle           1.170727 (standard error 0.219476)
NDE, these rows      0.502741
NDE, population      0.500000
NDE, oracle          0.365846 (standard error 0.167923)
NIE, these rows      0.850741
NIE, population      0.835329
NIE, oracle          0.804880 (standard error 0.185581)
treatment depends on x1 x2 x3
mediators depend on  x1 x2 x4
outcome depends on   x1 x3 x5 m1
""",
}


def run(*words):
    return main([str(word) for word in words])


@pytest.mark.parametrize("name", ["simulation1", "simulation2"])
def test_simulate_writes_data_and_truths(name, tmp_path, capsys):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    assert run("simulate", name, data, "--n", 50, "--p", 6, "--seed", 9, "--truth", truth) == 0
    simulation = getattr(cs.datasets, name)(n=50, p=6, seed=9)
    pd.testing.assert_frame_equal(read_data(data), simulation.data, rtol=LAST_DIGITS)
    truths = read_data(truth)
    assert list(truths) == ["mu0", "mu1", "tau", "propensity"]
    np.testing.assert_allclose(truths["tau"], simulation.tau, rtol=LAST_DIGITS)
    text = capsys.readouterr().out
    assert f"{simulation.sample_ate:.6f}" in text
    assert simulation.formula in text


@pytest.mark.parametrize("name", ["one_mediator", "three_mediators", "linear_mediation"])
def test_simulate_mediations(name, tmp_path, capsys):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    assert run("simulate", name, data, "--n", 50, "--p", 6, "--seed", 9, "--truth", truth) == 0
    simulation = getattr(cs.datasets, name)(n=50, p=6, seed=9)
    pd.testing.assert_frame_equal(read_data(data), simulation.data, rtol=LAST_DIGITS)
    np.testing.assert_allclose(read_data(truth)["eta10"], simulation.eta[:, 1, 0], rtol=LAST_DIGITS)
    text = capsys.readouterr().out
    for value in (*simulation.effects.values(), *simulation.oracle().estimates):
        assert f"{value:.6f}" in text
    assert simulation.formula in text


def test_simulate_three_arms_with_all_contrasts(tmp_path, capsys):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    words = ["--n", 50, "--p", 6, "--seed", 9, "--noise", 0.5, "--truth", truth]
    assert run("simulate", "three_arms", data, *words) == 0
    simulation = cs.datasets.three_arms(n=50, p=6, seed=9, noise=0.5)
    written = read_data(data)
    assert list(written["treat"]) == list(simulation.data["treat"])
    np.testing.assert_allclose(written["y"], simulation.data["y"], rtol=LAST_DIGITS)
    truths = read_data(truth)
    for k, arm in enumerate(simulation.levels):
        np.testing.assert_allclose(truths[f"mu_{arm}"], simulation.mu[:, k], rtol=LAST_DIGITS)
        shares = truths[f"propensity_{arm}"]
        np.testing.assert_allclose(shares, simulation.propensity[:, k], rtol=LAST_DIGITS)
    lines = capsys.readouterr().out.splitlines()
    oracle = simulation.oracle()
    for k, (name, effect) in enumerate(simulation.contrasts.items()):
        assert f"{name}, these rows".ljust(30) + f"{simulation.sample_contrasts[name]:.6f}" in lines
        assert f"{name}, population".ljust(30) + f"{effect:.6f}" in lines
        estimate, error = oracle.estimates[k], oracle.standard_errors[k]
        says = f"{estimate:.6f} (standard error {error:.6f})"
        assert f"{name}, oracle".ljust(30) + says in lines
    assert lines[:2] == [
        "formula".ljust(30) + simulation.formula,
        "reference".ljust(30) + "placebo",
    ]


def test_what_simulate_prints(tmp_path, capsys):
    """One line per truth, in two columns."""
    for name, expected in PRINTED.items():
        assert run("simulate", name, tmp_path / "d.csv", "--n", 200, "--p", 12, "--seed", 3) == 0
        assert capsys.readouterr().out == expected


def test_simulate_takes_the_options_of_the_function(tmp_path):
    path = tmp_path / "data.csv"
    words = ["--n", 40, "--p", 5, "--outcome", "binomial", "--null-effect", "--no-balanced"]
    assert run("simulate", "simulation2", path, *words) == 0
    expected = cs.datasets.simulation2(
        n=40, p=5, outcome="binomial", null_effect=True, balanced=False
    )
    np.testing.assert_array_equal(pd.read_csv(path)["y"], expected.data["y"])


def test_simulate_refuses_impossible_sizes(tmp_path, capsys):
    path = tmp_path / "data.csv"
    assert run("simulate", "simulation1", path, "--p", 2) == USAGE_ERROR
    assert "p must be an integer of at least 5" in capsys.readouterr().err
    assert not path.exists()
