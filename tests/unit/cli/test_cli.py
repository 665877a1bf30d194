"""The command line, run in this process: output, files, exit codes, messages."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.cli import INTERRUPTED, demo, main
from cstonet.cli import commands as cli
from cstonet.cli.fitting import as_level
from cstonet.cli.flags import parameter_docs
from cstonet.cli.reading import read_data
from cstonet.files.checkpoint import Checkpoint
from cstonet.settings.options import FitOptions

# Small enough to train in a moment; what is tested is the way in and out.
SMALL = ["--hidden", "4,3", "--folds", "2", "--starts", "1", "--n-jobs", "1"]


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    cs.datasets.simulation2(n=120, p=5, seed=3).data.to_csv(path, index=False)
    return path


def run(*words):
    return main([str(word) for word in words])


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
    treatment, outcome = demo.truth_table(simulation, results).splitlines()[-3:-1]
    assert treatment.split()[0] == "treatment"
    assert treatment.endswith("2 of 4             2")
    assert outcome.endswith("5 of 5             0")


def test_fit_equals_the_python_call(csv, capsys):
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--seed", 5, "--clip", 0.05) == 0
    expected = cs.fit(
        "y ~ treat | .", read_data(csv), hidden=(4, 3), folds=2, starts=1, seed=5, clip=0.05
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
    names = ["out.txt", "out.html", "out.tex", "out.md", "out.csv", "out.json"]
    paths = {Path(name).suffix: tmp_path / name for name in names}
    flags = [word for path in paths.values() for word in ("--out", path)]
    selection = tmp_path / "selection.csv"
    assert run("fit", csv, "y ~ treat | .", *SMALL, *flags, "--selection", selection) == 0
    assert paths[".txt"].read_text() == capsys.readouterr().out
    assert "<table" in paths[".html"].read_text()
    assert r"\begin{tabular}" in paths[".tex"].read_text()
    assert "| ATE |" in paths[".md"].read_text()
    tidy = pd.read_csv(paths[".csv"])
    effects = json.loads(paths[".json"].read_text())["effects"]
    assert tidy["estimate"].iloc[0] == pytest.approx(effects[0]["estimate"], rel=1e-12)
    assert list(pd.read_csv(selection)["covariate"]) == ["x1", "x2", "x3", "x4", "x5"]


def test_json_and_silence(csv, capsys):
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["fit"]["nobs"] == 120
    assert content["effects"][0]["term"] == "ATE"
    csv.write_text(csv.read_text().replace(",", ";"))
    assert run("fit", csv, "y ~ treat | .", *SMALL, "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_effects_by_group(csv, capsys):
    frame = pd.read_csv(csv)
    frame.assign(side=np.where(frame["x5"] > 0, "right", "left")).to_csv(csv, index=False)
    words = ["y ~ treat | . - side", *SMALL, "--by", "side"]
    assert run("fit", csv, *words) == 0
    text = capsys.readouterr().out
    assert "left" in text
    assert "right" in text
    assert run("fit", csv, *words, "--json") == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [group["group"] for group in groups] == ["left", "right"]
    assert run("fit", csv, "y ~ treat | . - side", *SMALL, "--by", "sied") == cli.USAGE_ERROR
    assert "'side'" in capsys.readouterr().err


def test_saved_fits_predict_and_report(csv, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    saved, page = tmp_path / "fit.cst", tmp_path / "page.html"
    words = [*SMALL, "--seed", 5, "--save", saved, "--with-data", "--report", page]
    assert run("fit", csv, "y ~ treat | .", *words) == 0
    assert "<img" in page.read_text()
    capsys.readouterr()
    assert run("predict", saved, csv) == 0
    predictions = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = cs.load(saved).predictions(read_data(csv))
    assert list(predictions) == ["POM[0]", "POM[1]", "CATE", "propensity"]
    np.testing.assert_allclose(predictions, expected, rtol=1e-12)
    assert run("predict", saved, csv, "--out", tmp_path / "p.csv", "--intervals", 0.9) == 0
    limits = pd.read_csv(tmp_path / "p.csv")
    assert (limits["lower"] < limits["upper"]).all()
    assert run("report", saved) == 0
    assert "Causal-StoNet Results" in saved.with_suffix(".html").read_text()
    assert run("predict", csv, csv) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith("cstonet: error: ")


def test_an_interrupted_command_goes_on(csv, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "night"
    words = ["fit", str(csv), "y ~ treat | .", *SMALL, "--checkpoint", str(folder)]
    with monkeypatch.context() as interrupted:
        keep, kept = Checkpoint.keep, []

        def keep_one(self, key, value):
            if kept:
                raise KeyboardInterrupt
            kept.append(keep(self, key, value))

        interrupted.setattr(Checkpoint, "keep", keep_one)
        assert run(*words) == 130
    said = capsys.readouterr().err
    assert "the same call goes on from there" in said
    assert said.count("\n") == 1
    assert len(list(folder.glob("*.part"))) == 1
    assert run(*words) == 0
    resumed = capsys.readouterr().out
    assert run(*words[:-2]) == 0
    assert capsys.readouterr().out == resumed


def test_plan_says_what_a_fit_would_do(csv, capsys):
    assert run("plan", csv, "y ~ treat | .", *SMALL) == 0
    text = capsys.readouterr().out
    assert "5-4-3-1" in text
    assert "networks in all" in text
    assert run("plan", csv, "y ~ treat | .", *SMALL, "--json") == 0
    plan = cs.CausalStoNet.from_formula("y ~ treat | .", read_data(csv)).plan(
        hidden=(4, 3), folds=2, starts=1
    )
    assert json.loads(capsys.readouterr().out) == json.loads(plan.to_json())


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
    assert as_level(word) == level
    assert type(as_level(word)) is type(level)


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
        (["y ~ treat | .", "--out", "no/such/folder.csv"], "no folder"),
        (["y ~ treat | .", "--out", "table.docx"], ".txt, .html, .tex, .md, .csv, .json"),
        (["y ~ treat | .", "--save", "no/such/fit.cst"], "no folder"),
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
    said = capsys.readouterr().err
    assert said.startswith("cstonet: error: ")
    assert said.endswith("--help.\n")
    assert said.count("\n") == 1


def test_message_names_the_type(capsys):
    with pytest.raises(SystemExit):
        run("fit", "f", "g", "--hidden", "a,b")
    assert "invalid list of whole numbers value: 'a,b'" in capsys.readouterr().err


def test_every_scalar_option_has_a_flag(capsys):
    with pytest.raises(SystemExit) as exit_info:
        run("fit", "--help-all")
    assert exit_info.value.code == 0
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
        read_data(csv),
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


@pytest.mark.parametrize("command", ["fit", "plan"])
def test_expert_options_are_behind_another_help(command, capsys):
    with pytest.raises(SystemExit):
        run(command, "--help")
    text = capsys.readouterr().out
    assert "--treatment-layer" not in text
    assert "--estimand" in text
    with pytest.raises(SystemExit):
        run(command, "--help-all")
    assert "--treatment-layer" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_help_teaches_by_examples(command, capsys):
    with pytest.raises(SystemExit):
        run(command, "--help")
    text = capsys.readouterr().out
    assert f"\n  cstonet {command} " in text


def test_help_says_how_neighbours_are_written(capsys):
    with pytest.raises(SystemExit):
        run("fit", "--help-all")
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

    monkeypatch.setattr(demo, "fit", interrupted)
    assert run("demo", "--n", 50) == INTERRUPTED
    assert capsys.readouterr().err == "cstonet: interrupted\n"


def test_interrupt_while_libraries_load_is_one_line(capsys, monkeypatch):
    class Interrupted:
        def __getattr__(self, _):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "cstonet.cli.commands", Interrupted())
    assert main(["demo"]) == INTERRUPTED
    assert capsys.readouterr().err == "cstonet: interrupted\n"
