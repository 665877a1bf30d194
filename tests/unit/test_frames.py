"""Frames of other libraries: the same fit as from pandas, answers in the kind that was given."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.data.frames import in_kind
from cstonet.errors import DataError, LengthMismatchError, MissingPackageError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FORMULA = "y ~ treat | . + C(g)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    treat = (rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    columns = pd.DataFrame(x, columns=["x1", "x2", "x3"])
    group = rng.choice(["u", "v"], 200)
    return columns.assign(treat=treat, y=x[:, 0] + treat + rng.normal(size=200), g=group)


KINDS = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "dictionary": lambda frame: {name: frame[name].to_numpy() for name in frame.columns},
}


@pytest.fixture(params=KINDS)
def given(request, frame):
    return KINDS[request.param](frame)


@pytest.fixture(scope="module")
def fit(quick_options):
    def quickly(data):
        return cs.fit(FORMULA, data, options=quick_options(starts=1), seed=1, n_jobs=1)

    return quickly


@pytest.fixture(scope="module")
def fitted(frame, fit):
    return fit(frame)


def test_the_kind_of_frame_does_not_matter(given, fitted, fit):
    assert fit(given).params.equals(fitted.params)


@pytest.mark.parametrize("method", ["cate", "propensity", "predict"])
def test_answers_come_in_the_kind_given(method, given, fitted, frame):
    expected = getattr(fitted, method)(frame)
    answer = getattr(fitted, method)(given)
    kinds = {pl.DataFrame: pl.Series, pl.LazyFrame: pl.Series, pa.Table: pa.ChunkedArray}
    assert type(answer) is kinds.get(type(given), np.ndarray)
    np.testing.assert_array_equal(np.asarray(answer), expected.to_numpy())


def test_frames_of_answers_come_in_the_kind_given(given, fitted, frame):
    expected = fitted.potential_outcomes(frame)
    answer = fitted.potential_outcomes(given)
    kinds = {pl.LazyFrame: pl.DataFrame}
    assert type(answer) is kinds.get(type(given), type(given))
    for level in (0, 1):
        np.testing.assert_array_equal(np.asarray(answer[str(level)]), expected[level].to_numpy())


def test_answers_about_training_rows_are_of_pandas(fitted):
    assert isinstance(fitted.cate(), pd.Series)
    assert isinstance(fitted.cate(data=None), pd.Series)


def test_gaps_of_polars_are_gaps(frame):
    holed = pl.from_pandas(frame).with_columns(
        x2=pl.when(pl.col("x1") > 1).then(None).otherwise(pl.col("x2"))
    )
    with pytest.raises(cs.errors.MissingValuesError, match="x2"):
        cs.CausalStoNet.from_formula(FORMULA, holed)


def test_arrays_may_be_series_and_frames_of_polars(frame):
    data = pl.from_pandas(frame)
    model = cs.CausalStoNet(data["y"], data["treat"], data.select("x1", "x2", "g"))
    plain = cs.CausalStoNet(frame["y"], frame["treat"], frame[["x1", "x2", "g"]])
    assert model.design.covariates == plain.design.covariates == ("x1", "x2", "g[T.v]")
    np.testing.assert_array_equal(model.design.X, plain.design.X)
    np.testing.assert_array_equal(model.design.y, plain.design.y)


def test_labels_of_series_in_a_dictionary_do_not_move_rows(frame):
    turned = {name: frame[name].iloc[::-1] for name in ("y", "treat", "x1")}
    model = cs.CausalStoNet.from_formula("y ~ treat | .", turned)
    np.testing.assert_array_equal(model.design.y, frame["y"].to_numpy()[::-1])


def test_columns_of_a_dictionary_must_agree_in_length(frame):
    with pytest.raises(LengthMismatchError, match=r"'x1'.* has 5 rows but 'y' has 200"):
        cs.fit("y ~ treat | .", {"y": frame["y"], "treat": frame["treat"], "x1": np.zeros(5)})


@pytest.mark.parametrize("column", [3.0, np.zeros((200, 2))])
def test_columns_of_a_dictionary_are_one_dimensional(column, frame):
    with pytest.raises(DataError, match="'x1' of the dictionary must hold one value per row"):
        cs.fit("y ~ treat | .", {"y": frame["y"], "treat": frame["treat"], "x1": column})


def test_without_pyarrow_polars_is_told_what_to_do(frame, monkeypatch):
    data = pl.from_pandas(frame)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"cstonet\[arrow\].*to_pandas"):
        cs.CausalStoNet.from_formula(FORMULA, data)


def test_what_cannot_hold_an_answer_gets_one_of_pandas(frame):
    answer = pd.Series([1.0, 2.0], name="CATE")
    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), iter([]))
    assert in_kind(answer, reader) is answer
    assert in_kind(answer, np.zeros((2, 1))) is answer


def test_a_sparse_matrix_that_looks_like_a_dictionary_is_a_matrix(frame, fit):
    sparse = pytest.importorskip("scipy.sparse")
    X = frame[["x1", "x2"]].to_numpy()
    model = cs.CausalStoNet(frame["y"], frame["treat"], sparse.dok_array(X))
    assert model.design.X.shape == (200, 2)
