"""Results as frames, dictionaries, JSON and tables side by side."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from statsmodels.iolib.summary2 import summary_col

import cstonet as cs
from cstonet.errors import OptionError
from cstonet.reporting.exports import plain
from cstonet.reporting.formats import Cells


@pytest.fixture
def results(make_results):
    return make_results()


def test_tidy_has_the_numbers_of_the_results(results):
    frame = results.tidy(alpha=0.1).set_index("term")
    np.testing.assert_array_equal(frame["estimate"], results.params)
    np.testing.assert_array_equal(frame["std_error"], results.bse)
    np.testing.assert_array_equal(frame["p_value"], results.pvalues)
    np.testing.assert_array_equal(
        frame[["conf_low", "conf_high"]].to_numpy(), results.conf_int(0.1).to_numpy()
    )
    assert list(frame.index) == list(results.params.index)
    np.testing.assert_array_equal(frame["df"], results.effects.freedom)


def test_normal_estimates_have_infinite_degrees_of_freedom(make_results):
    results = make_results(n=20_000)
    assert results.effects.freedom is None
    assert np.isinf(results.tidy()["df"]).all()
    assert plain(results.tidy())[0]["df"] is None  # JSON has no infinity


def test_glance_is_one_row_about_the_fit(results):
    frame = results.glance()
    assert frame.shape[0] == 1
    row = frame.iloc[0]
    assert row["nobs"] == 500
    assert row["covariates"] == 3
    assert row["selected_outcome"] == 1
    assert row["estimand"] == "ATE"
    assert row["version"] == cs.__version__


def test_json_reads_back(results, monkeypatch):
    monkeypatch.setattr(type(results), "methods", lambda self: "As described.")
    content = json.loads(results.to_json())
    assert content["effects"][0]["estimate"] == results.params["ATE"]
    assert content["selection"][0]["covariate"] == "x1"
    assert content["plan"]["folds"] == 3
    assert content == results.to_dict()


def test_what_json_does_not_know_becomes_plain():
    given = {1: np.float32(0.5), "a": (np.int64(3), float("nan")), "b": np.array([[True]])}
    given["c"] = pd.DataFrame({"x": [np.inf]})
    given["d"] = pd.Timestamp("2020-01-02")
    expected = {"1": 0.5, "a": [3, None], "b": [[True]], "c": [{"x": None}]}
    assert plain(given) == expected | {"d": "2020-01-02 00:00:00"}


def test_others_tables_take_results(results):
    maketables = pytest.importorskip("maketables")
    table = maketables.ETable([results, results])
    assert f"{results.params['ATE']:.3f}" in str(table.df.to_string())
    text = summary_col([results, results], model_names=["a", "b"]).as_text()
    assert f"{results.params['ATE']:.4f}" in text


def test_others_tables_learn_of_clusters(make_results):
    assert make_results().__maketables_vcov_info__["clustervar"] is None
    clustered = make_results(clusters=np.arange(500) // 5, cluster_name="village")
    assert clustered.__maketables_vcov_info__["clustervar"] == "village"


def test_fits_stand_side_by_side(make_results):
    one, other = make_results(), make_results(n=300, treatment_levels=("a", "b"))
    table = cs.compare({"all": one, "some": other}, stars=True)
    lines = table.as_text().splitlines()
    ate = next(line for line in lines if line.startswith("ATE")).split()
    assert ate == ["ATE", "1.962***", f"{other.params['ATE']:.{len(ate[2]) - 5}f}***"]
    pom = next(line for line in lines if line.startswith("POM[a]")).split()
    assert len(pom) == 2  # only the second fit has this level
    assert next(line for line in lines if line.startswith("Observations")).split()[1:] == [
        "500",
        "300",
    ]
    assert all(len(line) <= 78 for line in lines)
    assert list(table.frame["model"].unique()) == ["all", "some"]
    assert table.frame["estimate"].iloc[0] == one.params["ATE"]


@pytest.mark.parametrize("models", [{}, [1, 2], {"a": 3}])
def test_only_results_can_be_compared(models):
    with pytest.raises(OptionError, match="compare"):
        cs.compare(models)


def test_a_summary_in_a_float_has_caption_and_label(results):
    text = results.summary().as_latex(caption="Effects of x_1", label="tab:effects")
    assert r"\caption{Effects of x\_1}" in text
    assert r"\label{tab:effects}" in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert text.index(r"\caption") < text.index(r"\toprule")
    assert r"\begin{table}" not in results.summary().as_latex()


def test_styles_are_those_of_our_own_tables_only(results):
    html = results.summary().as_html()
    style = html[html.index("<style>") + 7 : html.index("</style>")]
    rules = [line for line in style.strip().splitlines() if line]
    assert all(
        part.strip().startswith(".cstonet")
        for rule in rules
        for part in rule.split("{")[0].split(",")
    )
    assert "<style>" not in results.summary().as_html(styled=False)
    ET.fromstring(results.summary().as_html(styled=False))


def test_formats_hold_the_same_cells():
    cells = Cells([["a|b", "<1>"], ["c", "2"]], "lr", ["name", "x & y"], "A_title", rules=[1])
    table = ET.fromstring(cells.as_html())
    rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    assert rows == [["name", "x & y"], ["a|b", "<1>"], ["c", "2"]]
    frame = pd.read_csv(StringIO(cells.as_csv()))
    assert frame.to_numpy().tolist() == [["a|b", "<1>"], ["c", "2"]]
    latex = cells.as_latex()
    assert r"x \& y" in latex
    assert latex.count(r"\midrule") == 2
    assert r"a\textbar{}b & \textless{}1\textgreater{} \\" in latex
    assert cells.as_markdown().splitlines() == [
        "**A_title**",
        "",
        "| name | x & y |",
        "| --- | ---: |",
        "| a\\|b | <1> |",
        "| c | 2 |",
    ]
