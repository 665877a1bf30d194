"""The command line, run in this process: output, files, exit codes, messages."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.cli import commands as cli
from cstonet.cli.flags import parameter_docs
from cstonet.settings.options import FitOptions

# All digits are written; the reader of pandas before 3 loses the last ones.
LAST_DIGITS = 1e-15 if int(pd.__version__.split(".")[0]) >= 3 else 1e-13
# Small enough to train in a moment; what is tested is the way in and out.
SMALL = ["--hidden", "4,3", "--folds", "2", "--starts", "1", "--n-jobs", "1"]

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


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    cs.datasets.simulation2(n=120, p=5, seed=3).data.to_csv(path, index=False)
    return path


def run(*words):
    return cli.main([str(word) for word in words])


def test_demo_prints_summary_and_truth(capsys):
    assert run("demo", "--n", 200, "--p", 6, "--seed", 4) == 0
    text = capsys.readouterr().out
    simulation = cs.datasets.simulation2(n=200, p=6, seed=4)
    results = cs.fit(simulation.formula, simulation.data, seed=4)
    assert results.summary().as_text() in text
    oracle, oracle_error = simulation.oracle_ate()
    for value in (simulation.sample_ate, simulation.ate, oracle, results.params["ATE"]):
        assert f"{value:.4f}" in text
    assert f"{oracle_error:.3f}" in text
    assert "x1 x2 x3 x5" in text
    assert "x1 x2 x3 x4 x5" in text
    assert max(map(len, text.splitlines())) <= 78


def test_truth_table_counts_what_was_found(make_results):
    simulation = cs.datasets.simulation2(n=100, p=6, seed=1)
    results = make_results(n_covariates=6)
    results.selection["treatment"] = [True, False, True, True, False, True]  # x1 x3 . x4 x6
    results.selection["outcome"] = [True, True, True, True, True, False]
    treatment, outcome = cli.truth_table(simulation, results).splitlines()[-3:-1]
    assert treatment.split()[0] == "treatment"
    assert treatment.endswith("2 of 4             2")
    assert outcome.endswith("5 of 5             0")


def test_fit_equals_the_python_call(csv, capsys):
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--seed", 5, "--clip", 0.05) == 0
    expected = cs.fit(
        "y ~ treat | .", cli.read_data(csv), hidden=(4, 3), folds=2, starts=1, seed=5, clip=0.05
    )
    assert capsys.readouterr().out == f"{expected.summary()}\n"


def test_another_estimand_leads(csv, capsys):
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--estimand", "ATT") == 0
    assert "Estimand: ATT, treat = 1 against 0, among those who received 1" in (
        capsys.readouterr().out
    )


def test_covariates_to_keep_are_a_list_of_names(csv, capsys):
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--keep", "x2,x3") == 0
    rows = [line for line in capsys.readouterr().out.split("\n") if line.startswith(("x2 ", "x3 "))]
    assert [row.count("kept") for row in rows] == [2, 2]
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--keep", "x2 + y") == 2
    assert "keep names 'y'" in capsys.readouterr().err


def test_fit_writes_every_format(csv, tmp_path, capsys):
    paths = {kind: tmp_path / f"out.{kind}" for kind in (*cli.FORMATS, "selection")}
    flags = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    assert run("fit", csv, "y ~ treat | .", *SMALL, *flags) == 0
    assert paths["text"].read_text() == capsys.readouterr().out
    assert "<table" in paths["html"].read_text()
    assert r"\begin{tabular}" in paths["latex"].read_text()
    assert "ATE," in paths["csv"].read_text()
    assert list(pd.read_csv(paths["selection"])["covariate"]) == ["x1", "x2", "x3", "x4", "x5"]


@pytest.mark.parametrize(
    ("levels", "reference"),
    [(["high", "low", "none"], "none"), ([0, 1, 2], "2"), ([0.5, 1.0, 2.5], "2.5")],
)
def test_fit_takes_more_levels_and_a_reference(levels, reference, csv, capsys):
    frame = pd.read_csv(csv)
    frame.assign(treat=np.resize(levels, len(frame))).to_csv(csv, index=False)
    words = ["--treatment", "multilevel", "--reference", reference]
    assert run("fit", csv, "y ~ treat | .", *SMALL, *words) == 0
    text = capsys.readouterr().out
    assert f"{reference} (reference)" in text
    assert f"ATE[{levels[0]}-{reference}]" in text
    assert ("not amounts" in text) == (levels[0] != "high")


@pytest.mark.parametrize(
    ("word", "level"), [("True", True), ("-1", -1), ("0.5", 0.5), ("low", "low"), (None, None)]
)
def test_words_are_read_as_levels(word, level):
    assert cli.as_level(word) == level
    assert type(cli.as_level(word)) is type(level)


def test_fit_passes_data_options_on(csv, capsys):
    frame = pd.read_csv(csv)
    frame["w"] = np.where(np.arange(len(frame)) % 2, 1.0, 2.0)
    frame.loc[0, "x1"] = np.nan
    frame.to_csv(csv, index=False)
    assert (
        run(
            "fit",
            csv,
            "y ~ treat | .",
            *SMALL,
            "--missing",
            "drop",
            "--weights",
            "w",
            "--alpha",
            0.1,
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "1 rows with missing values dropped" in text
    assert "Weighted" in text
    assert "[0.05" in text
    assert "5 covariates selected" in text  # the weights are no covariate


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["y ~ treat | nope"], "no column 'nope'"),
        (["y ~ treat"], "covariates"),
        (["y ~ treat | .", "--clip", "0.7"], "FitOptions.clip must be a number in [0, 0.5)"),
        (["y ~ treat | .", "--alpha", "2"], "alpha must lie between 0 and 1"),
        (["y ~ treat | .", "--seed", "-1"], "seed must be a whole number"),
        (["y ~ treat | .", "--hidden", "1"], "at least one unit besides"),
        (["y ~ treat | .", "--csv", "no/such/folder.csv"], "no such folder"),
    ],
)
def test_errors_are_one_clean_message(csv, capsys, words, message):
    assert run("fit", csv, *words) == cli.USAGE_ERROR
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("cstonet: error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_unreadable_files(tmp_path, capsys):
    missing = tmp_path / "missing.csv"
    assert run("fit", missing, "y ~ treat | .") == cli.USAGE_ERROR
    assert f"{missing}: No such file" in capsys.readouterr().err
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("y,treat\n1,2\n1,2,3\n")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"y,treat\n\xff\xfe,1\n")
    for path in (empty, ragged, binary):
        assert run("fit", path, "y ~ treat | .") == cli.USAGE_ERROR
        assert f"{path} cannot be read as comma-separated values" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["fit"],
        ["fit", "f", "g", "--hidden", "a,b"],
        ["fit", "f", "g", "--starts", "x"],
    ],
)
def test_malformed_command_lines_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as exit_info:
        run(*words)
    assert exit_info.value.code == 2
    assert "usage: cstonet" in capsys.readouterr().err


def test_message_names_the_type(capsys):
    with pytest.raises(SystemExit):
        run("fit", "f", "g", "--hidden", "a,b")
    assert "invalid list of whole numbers value: 'a,b'" in capsys.readouterr().err


def test_every_scalar_option_has_a_flag(capsys):
    with pytest.raises(SystemExit):
        run("fit", "--help")
    text = capsys.readouterr().out
    docs = parameter_docs(FitOptions)
    for field in dataclasses.fields(FitOptions):
        assert field.name in docs
        if field.name not in ("training", "search"):
            assert f"--{field.name.replace('_', '-')} " in text


def test_neighbours_are_written_as_names_with_lists(csv, capsys):
    frame = pd.read_csv(csv).rename(columns={"x2": "body mass"})
    frame.loc[::9, "x1"] = np.nan
    frame.to_csv(csv, index=False)
    words = ["--missing", "mar", "--imputations", 2, "--neighbours", "x1: body mass, x3; x4: x5"]
    assert run("fit", csv, "y ~ treat | .", *SMALL, *words) == 0
    expected = cs.fit(
        "y ~ treat | .",
        cli.read_data(csv),
        missing="mar",
        hidden=(4, 3),
        folds=2,
        starts=1,
        imputations=2,
        neighbours={"x1": ["body mass", "x3"], "x4": ["x5"]},
    )
    assert expected.plan.neighbours == (("x1", ("body mass", "x3")), ("x4", ("x5",)))
    assert capsys.readouterr().out == f"{expected.summary()}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x1 x2", "'x1 x2' has no colon"),
        ("x1: x2 x3: x4", "two colons; a semicolon may be missing"),
        ("x1: x2;", "a part of it is empty"),
        ("", "a part of it is empty"),
        ("x1:", "a name is missing in 'x1:'"),
        (": x2", "a name is missing in ': x2'"),
        ("x1: x2,, x3", "a name is missing in 'x1: x2,, x3'"),
        ("x1: x2; x1: x3", "'x1' is there twice"),
    ],
)
def test_malformed_neighbours(text, says, capsys):
    with pytest.raises(SystemExit) as exit_info:
        run("fit", "f", "g", "--neighbours", text)
    assert exit_info.value.code == 2
    message = capsys.readouterr().err
    assert "argument --neighbours:" in message
    assert says in message
    assert 'as in "x1: x2, x3; x4: x5".' in message


def test_help_says_how_neighbours_are_written(capsys):
    with pytest.raises(SystemExit):
        run("fit", "--help")
    assert '"x1: x2, x3; x4: x5" on the command line' in " ".join(capsys.readouterr().out.split())


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_info:
        run("--version")
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"cstonet {cs.__version__}\n"


def test_auto_is_a_value(csv):
    parsed = cli.build_parser().parse_args(
        ["fit", str(csv), "y ~ treat | .", "--hidden", "auto", "--treatment-layer", "2"]
    )
    assert parsed.hidden == "auto"
    assert parsed.treatment_layer == 2
    assert parsed.clip is None


@pytest.mark.parametrize("name", ["simulation1", "simulation2"])
def test_simulate_writes_data_and_truths(name, tmp_path, capsys):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    assert run("simulate", name, data, "--n", 50, "--p", 6, "--seed", 9, "--truth", truth) == 0
    simulation = getattr(cs.datasets, name)(n=50, p=6, seed=9)
    pd.testing.assert_frame_equal(cli.read_data(data), simulation.data, rtol=LAST_DIGITS)
    truths = cli.read_data(truth)
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
    pd.testing.assert_frame_equal(cli.read_data(data), simulation.data, rtol=LAST_DIGITS)
    np.testing.assert_allclose(
        cli.read_data(truth)["eta10"], simulation.eta[:, 1, 0], rtol=LAST_DIGITS
    )
    text = capsys.readouterr().out
    for value in (*simulation.effects.values(), *simulation.oracle().estimates):
        assert f"{value:.6f}" in text
    assert simulation.formula in text


def test_simulate_three_arms_with_all_contrasts(tmp_path, capsys):
    data, truth = tmp_path / "data.csv", tmp_path / "truth.csv"
    words = ["--n", 50, "--p", 6, "--seed", 9, "--noise", 0.5, "--truth", truth]
    assert run("simulate", "three_arms", data, *words) == 0
    simulation = cs.datasets.three_arms(n=50, p=6, seed=9, noise=0.5)
    written = cli.read_data(data)
    assert list(written["treat"]) == list(simulation.data["treat"])
    np.testing.assert_allclose(written["y"], simulation.data["y"], rtol=LAST_DIGITS)
    truths = cli.read_data(truth)
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
    assert run("simulate", "simulation1", path, "--p", 2) == cli.USAGE_ERROR
    assert "p must be an integer of at least 5" in capsys.readouterr().err
    assert not path.exists()


def test_module_and_interrupt_exit_codes(monkeypatch, capsys):
    done = subprocess.run(
        [sys.executable, "-m", "cstonet", "demo", "--n", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("cstonet: error: n must be")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "fit", interrupted)
    assert run("demo", "--n", 50) == cli.INTERRUPTED
    assert capsys.readouterr().err == "cstonet: interrupted\n"
