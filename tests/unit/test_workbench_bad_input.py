"""Questions after a fit that make no sense: each is refused by name, and nothing is written."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import errors as e
from cstonet.settings.options import FitOptions

N = 240
COVARIATES = "age + income + x3 + x4"


@dataclass(frozen=True)
class Bench:
    """Quick fits of every analysis to the same rows."""

    data: pd.DataFrame
    options: FitOptions
    arms: Any
    binary: Any
    doses: Any
    mediation: Any
    loaded: Any

    def fit(self, outcome: str = "y", **changes: Any) -> Any:
        return cs.fit(
            f"{outcome} ~ treat | {COVARIATES}",
            self.data,
            seed=1,
            n_jobs=1,
            **({"options": self.options} | changes),
        )


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    treat = rng.binomial(1, 1 / (1 + np.exp(-X[:, 0])))
    y = X[:, 0] + X[:, 1] + treat * (1 + X[:, 0]) + rng.normal(size=N)
    frame = pd.DataFrame(X, columns=["age", "income", "x3", "x4"])
    return frame.assign(
        y=y,
        treat=treat,
        low=y - 100,
        yes=(y > 0).astype(int),
        infinite=np.where(np.arange(N) == 3, np.inf, np.abs(y)),
        other_units=2 * y + 1,
        same_treat=1 - treat,
        dose=X[:, 0] + rng.normal(size=N),
        m=treat + rng.normal(size=N),
        region=rng.choice(["north", "south", "west"], N),
        same=1.0,
        hole=np.where(np.arange(N) % 9 == 0, np.nan, X[:, 2]),
        one_arm=np.where(treat == 1, "a", "b"),
        village=np.arange(N) // 8,
        village_hole=np.where(np.arange(N) < 5, np.nan, np.arange(N) // 8),
        half=np.arange(N) // 120,
    )


@pytest.fixture(scope="module")
def bench(
    quick_options: Callable[..., FitOptions], tmp_path_factory: pytest.TempPathFactory
) -> Bench:
    data, options = rows(), quick_options()

    def fit(formula: str) -> Any:
        return cs.fit(formula, data, seed=1, n_jobs=1, options=options)

    arms = fit(f"y ~ treat | {COVARIATES}")
    path = tmp_path_factory.mktemp("saved") / "fit.cst"
    arms.save(path)
    return Bench(
        data,
        options,
        arms,
        binary=fit(f"yes ~ treat | {COVARIATES}"),
        doses=fit(f"y ~ dose | {COVARIATES}"),
        mediation=fit(f"y ~ treat | {COVARIATES} | m"),
        loaded=cs.load(path),
    )


@pytest.fixture(scope="module")
def folder(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are not what they should be."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "sub").mkdir()
    (folder / "text").write_text("hello\nworld\n")
    (folder / "empty").write_text("")
    bench.arms.save(folder / "fit.cst")
    whole = (folder / "fit.cst").read_bytes()
    (folder / "cut.cst").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(folder / "bomb.cst", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("arrays.safetensors", bytes(20_000_000))
    with zipfile.ZipFile(folder / "up.cst", "w") as archive:
        archive.writestr("../../up", "x")
    bench.arms.certify(draws=2, n_jobs=1, path=folder / "draws.jsonl")
    lines = (folder / "draws.jsonl").read_text().splitlines(keepends=True)
    (folder / "cut.jsonl").write_text("".join(lines)[:-40])
    draw = json.loads(lines[1])
    for name, result in (("renamed", {"estimat": [1.0]}), ("short", {"truth": []}), ("five", 5)):
        line = json.dumps(draw | {"result": result}) + "\n"
        (folder / f"{name}.jsonl").write_text("".join([lines[0], line, *lines[2:]]))
    return folder


@pytest.fixture(autouse=True)
def _nothing_written(folder: Path) -> Iterator[None]:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    yield
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def shuffled(column: pd.Series) -> pd.Series:
    return column.sample(frac=1, random_state=0)


HOSTILE = "__import__('os').system('x')"
QUESTIONS: list[tuple[type[Exception], str, Callable[[Bench], Any]]] = [
    # groups
    (e.UnknownColumnError, "Did you mean 'region'", lambda b: b.arms.gate("regoin")),
    (e.NotAvailableError, "0 of its", lambda b: b.arms.gate("one_arm")),
    (e.MissingValuesError, "'hole'", lambda b: b.arms.gate("hole", cuts=2)),
    (e.OptionError, "one group", lambda b: b.arms.gate("same")),
    (e.OptionError, "nothing to cut", lambda b: b.arms.gate("same", cuts=3)),
    (e.OptionError, "cuts=4", lambda b: b.arms.gate("age")),
    (e.OptionError, "must ascend", lambda b: b.arms.gate("age", cuts=[1, 0])),
    (e.OptionError, "cuts", lambda b: b.arms.gate("age", cuts=[0, np.nan])),
    (e.OptionError, "cuts", lambda b: b.arms.gate("age", cuts=[])),
    (e.OptionError, "cuts", lambda b: b.arms.gate("age", cuts="4")),
    (e.OptionError, "at least 2", lambda b: b.arms.gate("age", cuts=0)),
    (e.OptionError, "at most 50", lambda b: b.arms.gate("age", cuts=10**9)),
    (e.OptionError, "one group", lambda b: b.arms.gate("age", cuts=[100])),
    (e.ColumnTypeError, "no numbers", lambda b: b.arms.gate("region", cuts=3)),
    (e.ColumnTypeError, "different kinds", lambda b: b.arms.gate(["a", 1] * (N // 2))),
    (e.LengthMismatchError, "240 labels", lambda b: b.arms.gate(["a"] * 3)),
    (e.LengthMismatchError, "NoneType", lambda b: b.arms.gate(None)),
    (e.DataError, "another order", lambda b: b.arms.gate(shuffled(b.data["region"]))),
    (e.OptionError, "alpha", lambda b: b.arms.gate("region", alpha="a")),
    (e.UnknownLevelError, "level 5", lambda b: b.arms.gate("region", contrast=(1, 5))),
    (e.NotAvailableError, "is the treatment", lambda b: b.arms.gate("treat")),
    # where
    (e.OptionError, "blank", lambda b: b.arms.effect("ATE", where=" ")),
    (e.UnknownColumnError, "'agee'", lambda b: b.arms.effect("ATE", where="agee > 1")),
    (e.UnknownLevelError, "'nort'", lambda b: b.arms.effect("ATE", where="region == 'nort'")),
    (e.OptionError, "truth values", lambda b: b.arms.effect("ATE", where=[True] * 3)),
    (e.OptionError, "none of the", lambda b: b.arms.effect("ATE", where=[False] * N)),
    (e.OptionError, "none of the", lambda b: b.arms.effect("ATE", where="age > 99")),
    (e.OptionError, "cannot read", lambda b: b.arms.effect("ATE", where=HOSTILE)),
    (e.OptionError, "cannot read", lambda b: b.arms.effect("ATE", where="(" * 5000)),
    (e.OptionError, "cannot read", lambda b: b.arms.effect("ATE", where="not " * 5000 + "age>0")),
    (e.OptionError, "is no value", lambda b: b.arms.effect("ATE", where="age > 9**9**9")),
    (e.OptionError, "cannot read", lambda b: b.arms.effect("ATE", where="age > " + "9" * 5000)),
    (e.DataError, "order", lambda b: b.arms.effect("ATE", where=shuffled(b.data["age"] > 0))),
    # projections
    (e.UnknownColumnError, "'agee'", lambda b: b.arms.projection("agee")),
    (e.FormulaError, "must be a text", lambda b: b.arms.projection("")),
    (e.FormulaError, "must be a text", lambda b: b.arms.projection(None)),
    (e.FormulaError, "must be a text", lambda b: b.arms.projection(["age"])),
    (e.FormulaError, "'same'", lambda b: b.arms.projection("same")),
    (e.FormulaError, "I\\(2 \\* age\\)", lambda b: b.arms.projection("age + I(2 * age)")),
    (e.MissingValuesError, "'hole'", lambda b: b.arms.projection("hole")),
    (e.MissingValuesError, "np.log", lambda b: b.arms.projection("np.log(age)")),
    (e.FormulaError, "without '~'", lambda b: b.arms.projection("y ~ age")),
    (e.FormulaError, "no column", lambda b: b.arms.projection(HOSTILE)),
    (e.TooFewRowsError, "240 coefficients", lambda b: b.arms.projection("C(age)")),
    # effects of units
    (e.OptionError, "intervals", lambda b: b.arms.cate(intervals=2)),
    (e.OptionError, "intervals", lambda b: b.arms.cate(intervals="a")),
    (e.OptionError, "intervals", lambda b: b.arms.cate(simultaneous=True)),
    (e.UnknownColumnError, "'income'", lambda b: b.arms.cate(b.data[["age"]])),
    # rules
    (e.UnknownColumnError, "'agee'", lambda b: b.arms.policy(covariates=["agee"])),
    (e.OptionError, "list of names", lambda b: b.arms.policy(covariates=5)),
    (e.OptionError, "depth", lambda b: b.arms.policy(depth=9)),
    (e.OptionError, "cost", lambda b: b.arms.policy(cost=np.nan)),
    (e.DataError, "got int", lambda b: b.arms.policy(depth=1).assign(5)),
    (e.UnknownColumnError, "age", lambda b: b.arms.policy(depth=1).assign(b.data[["x4"]])),
    # omitted confounders
    (e.OptionError, "r2_outcome", lambda b: b.arms.sensitivity().bounds(-0.1, 0.1)),
    (e.OptionError, "r2_treatment", lambda b: b.arms.sensitivity().bounds(0.1, 1.1)),
    (e.OptionError, "r2_outcome", lambda b: b.arms.sensitivity().bounds("a", 0.1)),
    (e.OptionError, "shapes", lambda b: b.arms.sensitivity().bounds([0.1] * 2, [0.1] * 3)),
    (e.NotAvailableError, "is a mean", lambda b: b.arms.sensitivity("POM[0]")),
    (e.OptionError, "benchmarks", lambda b: b.arms.sensitivity(benchmarks=["age"])),
    # placebos
    (e.OptionError, "is the outcome", lambda b: b.arms.placebo(outcome="y")),
    (e.OptionError, "is the treatment", lambda b: b.arms.placebo(outcome="treat")),
    (e.OptionError, "holds the outcome", lambda b: b.arms.placebo(outcome="other_units")),
    (e.OptionError, "holds the treatment", lambda b: b.arms.placebo(outcome="same_treat")),
    (e.DataError, "'age'", lambda b: b.arms.placebo(outcome=b.data["age"])),
    (e.MissingValuesError, "hole", lambda b: b.arms.placebo(outcome="hole")),
    (e.ConstantOutcomeError, "same", lambda b: b.arms.placebo(outcome="same")),
    # twins
    (e.OptionError, "draws", lambda b: b.arms.certify(draws=0)),
    (e.OptionError, "draws", lambda b: b.arms.certify(draws="a")),
    (e.OptionError, "effects", lambda b: b.arms.certify(2, effects=[np.nan])),
    (e.OptionError, "n_jobs", lambda b: b.arms.certify(2, n_jobs=0)),
    (e.NotAvailableError, "'ATX'", lambda b: b.arms.certify(2, name="ATX")),
    # ratios
    (e.NotAvailableError, "0 or 1", lambda b: b.arms.effect("RR")),
    (e.NotAvailableError, "means above 0", lambda b: b.fit("low").effect("ratio")),
    (e.NotAvailableError, "it has RR", lambda b: b.binary.effect("RR[1-7]")),
    # clusters and counts
    (e.TooFewClustersError, "one and the same", lambda b: b.fit(cluster="same")),
    (e.TooFewClustersError, "5 folds", lambda b: b.fit(cluster="half", options=None, folds=5)),
    (e.MissingValuesError, "village_hole", lambda b: b.fit(cluster="village_hole")),
    (e.UnknownColumnError, "Did you mean 'village'", lambda b: b.fit(cluster="vilage")),
    (e.OneArmedError, "one_arm", lambda b: b.fit(cluster="one_arm")),
    (e.OutcomeTypeError, "negative", lambda b: b.fit(family="poisson")),
    (e.InfiniteValuesError, "infinite", lambda b: b.fit("infinite", family="poisson")),
    # side by side
    (e.OptionError, "by name", lambda b: cs.compare({})),
    (e.OptionError, "by name", lambda b: cs.compare([b.arms])),
    (e.OptionError, "'a' holds int", lambda b: cs.compare({"a": 1})),
    # what only other analyses have
    *(
        (e.NotOfThisFitError, "levels", ask)
        for ask in (
            lambda b: b.doses.gate("region"),
            lambda b: b.doses.projection("age"),
            lambda b: b.doses.heterogeneity(),
            lambda b: b.doses.policy(),
            lambda b: b.doses.effect_along("age"),
            lambda b: b.doses.support(),
            lambda b: b.doses.effect(where="age > 0"),
            lambda b: b.doses.cate(intervals=0.9),
            lambda b: b.arms.dose_response(),
        )
    ),
    *(
        (e.NotAvailableError, "mediators", ask)
        for ask in (
            lambda b: b.mediation.effect(where="age > 0"),
            lambda b: b.mediation.cate(intervals=0.9),
            lambda b: b.mediation.certify(2),
            lambda b: b.mediation.heterogeneity(),
            lambda b: b.mediation.policy(),
            lambda b: b.mediation.placebo(),
            lambda b: b.mediation.sensitivity(),
            lambda b: b.mediation.support(),
            lambda b: b.arms.proportion_mediated(),
            lambda b: b.mediation.effect("ATT"),
        )
    ),
    (e.NotOfThisFitError, "third part", lambda b: b.mediation.gate("region")),
    (e.NotOfThisFitError, "third part", lambda b: b.mediation.effect_along("age")),
    (e.NotOfThisFitError, "no mediation", lambda b: b.doses.mediators),
    # fits that were saved without their rows
    *(
        (e.RowsNotSavedError, "with_data=True", ask)
        for ask in (
            lambda b: b.loaded.gate("region"),
            lambda b: b.loaded.projection("age"),
            lambda b: b.loaded.effect("ATE", where="age > 0"),
            lambda b: b.loaded.effect("ATT"),
            lambda b: b.loaded.heterogeneity(),
            lambda b: b.loaded.policy(),
            lambda b: b.loaded.sensitivity(),
            lambda b: b.loaded.placebo(),
            lambda b: b.loaded.certify(2),
            lambda b: b.loaded.cate(),
            lambda b: b.loaded.cate(b.data, intervals=0.9),
            lambda b: b.loaded.overlap(),
            lambda b: b.loaded.balance(),
            lambda b: b.loaded.support(),
            lambda b: b.loaded.effect_along("age"),
            lambda b: b.loaded.influence,
            lambda b: b.loaded.propensity(),
            lambda b: b.loaded.save("never.cst", with_data=True),
        )
    ),
]


@pytest.mark.parametrize(("error", "says", "ask"), QUESTIONS)
def test_question_is_refused_by_name(
    error: type[Exception], says: str, ask: Callable[[Bench], Any], bench: Bench
) -> None:
    with pytest.raises(error, match=says) as raised:
        ask(bench)
    assert isinstance(raised.value, e.CStoNetError)
    assert len(str(raised.value)) < 600


FILES: list[tuple[type[Exception], str, Callable[[Bench, Path], Any]]] = [
    (e.FilePathError, "no folder", lambda b, f: b.arms.certify(2, path=f / "no" / "x.jsonl")),
    (e.FilePathError, "no path", lambda b, f: b.arms.certify(2, path="")),
    (e.FilePathError, "no path", lambda b, f: b.arms.certify(2, path=5)),
    (e.ForeignFileError, "another fit", lambda b, f: b.binary.certify(2, path=f / "draws.jsonl")),
    (e.ForeignFileError, "stays", lambda b, f: b.arms.certify(2, path=f / "cut.jsonl")),
    (e.ForeignFileError, "stays", lambda b, f: b.arms.certify(2, path=f / "text")),
    (e.ForeignFileError, "damaged", lambda b, f: b.arms.certify(2, path=f / "renamed.jsonl")),
    (e.ForeignFileError, "damaged", lambda b, f: b.arms.certify(2, path=f / "short.jsonl")),
    (e.ForeignFileError, "damaged", lambda b, f: b.arms.certify(2, path=f / "five.jsonl")),
    (e.FilePathError, "a folder", lambda b, f: b.arms.save(f / "sub")),
    (e.FilePathError, "no folder", lambda b, f: b.arms.save(f / "no" / "x.cst")),
    (e.FilePathError, "no folder", lambda b, f: b.arms.save(f / "text" / "x.cst")),
    (e.FilePathError, "cannot be written", lambda b, f: b.arms.save(f / ("x" * 300))),
    (e.FilePathError, "cannot be written", lambda b, f: b.arms.save("/proc/x.cst")),
    (e.FilePathError, "no path", lambda b, f: b.arms.save(None)),
    (e.FilePathError, "no path", lambda b, f: b.arms.save("a\0b")),
    (e.OptionError, "with_data", lambda b, f: b.arms.save(f / "x.cst", with_data="a")),
    (e.FilePathError, "is no file", lambda b, f: cs.load(f / "sub")),
    (e.FilePathError, "does not exist", lambda b, f: cs.load(f / "sub" / ".." / "no.cst")),
    (e.FilePathError, "no path", lambda b, f: cs.load(None)),
    (e.FileFormatError, "damaged", lambda b, f: cs.load(f / "text")),
    (e.FileFormatError, "damaged", lambda b, f: cs.load(f / "empty")),
    (e.FileFormatError, "damaged", lambda b, f: cs.load(f / "cut.cst")),
    (e.FileFormatError, "out of proportion", lambda b, f: cs.load(f / "bomb.cst")),
    (e.FileFormatError, "no fit", lambda b, f: cs.load(f / "up.cst")),
    (e.FilePathError, "no folder", lambda b, f: b.arms.report(f / "no" / "x.html")),
    (e.FilePathError, "a folder", lambda b, f: b.arms.report(f / "sub")),
    (e.FilePathError, "no path", lambda b, f: b.arms.report(5)),
    (e.OptionError, "alpha", lambda b, f: b.arms.report(f / "x.html", alpha=3)),
]


@pytest.mark.parametrize(("error", "says", "ask"), FILES)
def test_file_is_refused_by_name(
    error: type[Exception],
    says: str,
    ask: Callable[[Bench, Path], Any],
    bench: Bench,
    folder: Path,
) -> None:
    with pytest.raises(error, match=says) as raised:
        ask(bench, folder)
    assert isinstance(raised.value, e.CStoNetError)


def test_pipe_is_not_replaced_by_a_file(bench: Bench, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(e.FilePathError, match="device or a pipe"):
        bench.arms.save(pipe)
    assert pipe.is_fifo()


def test_scikit_learn_is_told_by_name(bench: Bench) -> None:
    pytest.importorskip("sklearn")
    from cstonet.sklearn import CausalStoNetRegressor

    X, y, a = bench.data[["age", "income"]], bench.data["y"], bench.data["treat"]
    quick = {"hidden": (4, 3), "ensemble": 1}

    def model(**changes: Any) -> Any:
        given = {"starts": 1, "folds": 2, "repeats": 1, "n_jobs": 1, "options": quick} | changes
        return CausalStoNetRegressor(**given)

    with pytest.raises(e.LengthMismatchError, match="5 values"):
        model().fit(X, y, treatment=a[:5])
    with pytest.raises(e.MissingValuesError, match="treat"):
        model().fit(X, y, treatment=a.where(a.index > 3))
    with pytest.raises(e.OptionError, match="options"):
        model(options=5).fit(X, y, treatment=a)
    fitted = model().fit(X, y, treatment=a)
    with pytest.raises(e.LengthMismatchError, match=r"\(4,\)"):
        fitted.predict(X, treatment=a[:4])
    with pytest.raises(e.LengthMismatchError, match=r"\(\)"):
        fitted.predict(X, treatment=1)
    with pytest.raises(e.UnknownLevelError, match="level 9"):
        fitted.predict(X, treatment=np.full(N, 9))
    with pytest.raises(e.OptionError, match="alpha"):
        fitted.effect_interval(X, alpha="a")
