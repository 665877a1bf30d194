"""Parquet and Arrow files and tables: the same design as from the frame that they were made of."""

from __future__ import annotations

import mmap
import sys

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.data import arrow, storage
from cstonet.errors import (
    DataError,
    DuplicateColumnError,
    MissingPackageError,
    NotEnoughSpaceError,
    UnknownColumnError,
)

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

N = 300


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """Numbers of several kinds, categories, text, an index with labels."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N, 4)).astype(np.float32)
    return pd.DataFrame(numbers, columns=list("abcd"), index=[f"row{i}" for i in range(N)]).assign(
        id=np.arange(N),
        y=rng.normal(size=N),
        treat=rng.integers(0, 2, N),
        g=pd.Categorical(rng.choice(list("uvw"), N), categories=list("wvu")),
        s=rng.choice(["p", "q"], N),
        k=rng.integers(0, 9, N).astype(np.int16),
        flag=rng.random(N) < 0.5,
    )


@pytest.fixture(params=["parquet", "folder", "feather", "table", "dataset", "reader"])
def source(request, wide, tmp_path):
    if request.param in ("parquet", "dataset"):
        wide.to_parquet(tmp_path / "x.parquet", row_group_size=64)
        path = tmp_path / "x.parquet"
        return str(path) if request.param == "parquet" else ds.dataset(path)
    if request.param == "folder":
        (tmp_path / "parts").mkdir()
        for i in range(3):
            part = wide.iloc[i * 100 : (i + 1) * 100]
            part.to_parquet(tmp_path / "parts" / f"{i}.parquet")
        return tmp_path / "parts"
    table = pa.Table.from_pandas(wide)
    if request.param == "feather":
        feather.write_feather(table, tmp_path / "x.feather")
        return tmp_path / "x.feather"
    return table if request.param == "table" else table.to_reader()


@pytest.mark.parametrize(
    "formula", ["y ~ treat | . - id", "np.exp(y) ~ treat | a + g + np.log(k + 1)"]
)
def test_the_design_is_that_of_the_frame(formula, source, wide, monkeypatch):
    monkeypatch.setattr(arrow, "_VALUES_AT_ONCE", 500)  # many batches
    expected = CausalStoNet.from_formula(formula, wide).design
    found = CausalStoNet.from_formula(formula, source).design
    assert found.covariates == expected.covariates
    assert found.X.dtype == expected.X.dtype
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)
    np.testing.assert_array_equal(found.treatment.codes, expected.treatment.codes)


def test_only_the_columns_named_are_read(wide, tmp_path, monkeypatch):
    wide.to_parquet(tmp_path / "x.parquet")
    table = arrow.open_table(tmp_path / "x.parquet")
    asked = []

    def batches(names, rows):
        asked.append(set(names))
        return table.batches(names, rows)

    spy = arrow.ArrowTable(table.schema, table.n, batches)
    monkeypatch.setattr("cstonet.data.opened.open_table", lambda _: spy)
    CausalStoNet.from_formula("y ~ treat | a + np.log(k + 1)", "x", weights="flag")
    assert asked == [{"y", "treat", "a", "k", "flag"}]


def test_gaps_stay_gaps(wide, tmp_path):
    wide = wide.assign(a=wide["a"].where(wide["a"] > 0), k=wide["k"].astype("Int16"))
    wide.loc["row3", "k"] = pd.NA
    wide.to_parquet(tmp_path / "x.parquet")
    found, expected = (
        CausalStoNet.from_formula("y ~ treat | a + k", data, missing="drop").design
        for data in (tmp_path / "x.parquet", wide)
    )
    assert found.n_dropped == expected.n_dropped > 0
    np.testing.assert_array_equal(found.X, expected.X)


def test_what_does_not_fit_in_memory_goes_to_a_file(wide, tmp_path, monkeypatch):
    wide.to_parquet(tmp_path / "x.parquet")
    expected = CausalStoNet.from_formula("y ~ treat | a + b + g", wide).design.X
    monkeypatch.setattr(storage, "available_bytes", lambda: 0)
    monkeypatch.setattr(storage.tempfile, "tempdir", str(tmp_path))
    design = CausalStoNet.from_formula("y ~ treat | a + b + g", tmp_path / "x.parquet").design
    base = design.X
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)  # a memory view stands between them
    np.testing.assert_array_equal(design.X, expected)
    # The file has no name: nothing is left behind, however the process ends.
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_a_disk_without_room_is_an_error_with_a_name(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "available_bytes", lambda: 0)
    monkeypatch.setattr(storage.os, "posix_fallocate", full, raising=False)
    with pytest.raises(NotEnoughSpaceError, match=r"1000 rows x 10 columns are 40.0 kB.*TMPDIR"):
        storage.room_for((1000, 10), np.float32)


def test_predictions_of_files(wide, tmp_path):
    wide.to_parquet(tmp_path / "x.parquet")
    results = cs.fit(
        "y ~ treat | a + g", wide, folds=2, repeats=1, starts=1, updates=20, search=None
    )
    for ask in (results.cate, results.predict, results.propensity):
        np.testing.assert_array_equal(ask(tmp_path / "x.parquet"), ask(wide))
    with pytest.raises(UnknownColumnError, match="no column 'a'"):
        results.cate(pa.Table.from_pandas(wide.drop(columns="a")))


def test_errors(tmp_path, monkeypatch, wide):
    with pytest.raises(DataError, match="there is no file"):
        CausalStoNet.from_formula("y ~ treat | .", tmp_path / "none.parquet")
    (tmp_path / "x.csv").write_text("y,treat\n1,2\n")
    with pytest.raises(DataError, match="neither a Parquet nor an Arrow"):
        CausalStoNet.from_formula("y ~ treat | .", tmp_path / "x.csv")
    with pytest.raises(UnknownColumnError, match="'treatment'"):
        CausalStoNet.from_formula("y ~ treatment | .", pa.Table.from_pandas(wide))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"cstonet\[arrow\]"):
        CausalStoNet.from_formula("y ~ treat | .", tmp_path / "x.csv")


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("keep", [8, 0.5, 0.9])
def test_damaged_files_are_named(kind, keep, tmp_path):
    path = tmp_path / f"rows.{kind}"
    frame = pd.DataFrame({"y": np.arange(999.0), "t": np.arange(999) % 2, "x": np.arange(999) % 7})
    getattr(frame, f"to_{kind}")(path)
    content = path.read_bytes()
    path.write_bytes(content[: keep if keep > 1 else int(keep * len(content))])
    with pytest.raises(DataError, match=f"rows.{kind}' cannot be read"):
        CausalStoNet.from_formula("y ~ t | x", path)


def test_names_that_stand_twice_in_a_file_are_refused(tmp_path):
    path = tmp_path / "twice.parquet"
    columns = [pa.array(range(9))] * 4
    pq.write_table(pa.Table.from_arrays(columns, ["y", "t", "x", "x"]), path)
    with pytest.raises(DuplicateColumnError, match="'x'"):
        CausalStoNet.from_formula("y ~ t | x", path)


def test_identifiers_beside_gaps_are_exact():
    ids = [2**53, 2**53 + 1, None]
    table = pa.table({"id": pa.array(ids), "x": [1.0, 2.0, 3.0]})
    frame = arrow.open_table(table).frame(("x",), ("id",))
    assert frame["id"].dropna().tolist() == ids[:2]
