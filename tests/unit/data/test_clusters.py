"""Clusters as users name them, and rows that are copies of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import cstonet as cs
from cstonet.data.copies import count_copies
from cstonet.data.matrix import Rows
from cstonet.errors import (
    ColumnTypeError,
    DataError,
    LengthMismatchError,
    MissingValuesError,
    OneArmedError,
    OptionError,
    TooFewClustersError,
    UnknownColumnError,
)

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "treat": np.arange(N) % 2,
            "x1": rng.normal(size=N),
            "x2": rng.normal(size=N),
            "village": [f"v{k}" for k in rng.permutation(np.arange(N) // 5)],
        }
    )


def design_of(frame, formula="y ~ treat | .", **options):
    return cs.CausalStoNet.from_formula(formula, frame, **options).design


def test_a_column_is_set_aside_and_coded_by_first_appearance(frame):
    design = design_of(frame, cluster="village")
    assert design.covariates == ("x1", "x2")
    assert design.cluster_name == "village"
    assert design.n_clusters == 12
    assert design.clusters.dtype == np.int64
    expected = pd.factorize(frame["village"])[0]
    np.testing.assert_array_equal(design.clusters, expected)
    assert design_of(frame.drop(columns="village")).clusters is None


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, pd.Categorical])
def test_values_of_any_kind(frame, kind):
    labels = kind(frame["village"].to_numpy())
    design = design_of(frame.drop(columns="village"), cluster=labels)
    np.testing.assert_array_equal(design.clusters, design_of(frame, cluster="village").clusters)
    arrays = cs.CausalStoNet(frame["y"], frame["treat"], frame[["x1", "x2"]], cluster=labels)
    np.testing.assert_array_equal(arrays.design.clusters, design.clusters)
    assert arrays.design.cluster_name == "cluster"


def test_mediators_do_not_take_the_column(frame):
    design = design_of(frame, "y ~ treat | x1 | .", cluster="village")
    assert design.mediators.names == ("x2",)
    assert design.n_clusters == 12


def test_a_table_of_arrow_is_read_alike(frame):
    arrow = pytest.importorskip("pyarrow")
    design = design_of(arrow.Table.from_pandas(frame), "y ~ treat | x1", cluster="village")
    np.testing.assert_array_equal(design.clusters, design_of(frame, cluster="village").clusters)


def test_rows_with_gaps_are_left_out_together(frame):
    frame.loc[3, "x1"] = np.nan
    frame.loc[5, "village"] = None
    design = design_of(frame, cluster="village", missing="drop")
    assert len(design.clusters) == design.n_dropped + N - 4 == N - 2
    expected = pd.factorize(frame["village"].drop([3, 5]))[0]
    np.testing.assert_array_equal(design.clusters, expected)


@pytest.mark.parametrize("missing", ["raise", "mar"])
def test_gaps_in_the_cluster_are_refused(frame, missing):
    frame.loc[[5, 9], "village"] = None
    with pytest.raises(MissingValuesError, match=r"village.*2[\s\S]*dropna") as error:
        design_of(frame, cluster="village", missing=missing)
    assert "missing='drop'" in str(error.value)


@pytest.mark.parametrize(
    ("cluster", "error", "said"),
    [
        ("vilage", UnknownColumnError, "village"),
        ("y", OptionError, "is the outcome"),
        ("treat", OptionError, "is the treatment"),
        (np.arange(N - 1), LengthMismatchError, "cluster has 59 values but there are 60 rows"),
        (np.ones(N), TooFewClustersError, "one and the same in all 60 rows"),
        (np.ones((N, 2)), DataError, "one value per row"),
        ([[k] * (k % 3) for k in range(N)], DataError, "cluster"),
        (pd.Series(range(N), index=range(1, N + 1)), DataError, "row labels"),
    ],
)
def test_bad_clusters_are_refused(frame, cluster, error, said):
    with pytest.raises(error, match=said):
        design_of(frame, cluster=cluster)


def test_labels_that_cannot_be_compared_are_refused(frame):
    frame["village"] = [{"name": k} for k in range(N)]
    with pytest.raises(ColumnTypeError, match=r"'village' .*not labels"):
        design_of(frame, "y ~ treat | x1", cluster="village")


def test_arrays_have_no_columns_to_name(frame):
    with pytest.raises(OptionError, match="cluster='village' names a column"):
        cs.CausalStoNet(frame["y"], frame["treat"], frame[["x1"]], cluster="village")


def test_clusters_of_weight_zero_do_not_count(frame):
    weights = np.where(frame["village"] == "v3", 0.0, 1.0)
    assert design_of(frame, cluster="village", weights=weights).n_clusters == 11
    alone = np.where(frame["village"] == "v3", 1.0, 0.0)
    with pytest.raises(TooFewClustersError, match="rows with positive weight"):
        design_of(frame, cluster="village", weights=alone)


def test_fewer_clusters_than_folds(frame):
    model = cs.CausalStoNet.from_formula(
        "y ~ treat | x1 + x2", frame, cluster=np.arange(N) % 4 // 2 + 2 * (np.arange(N) > 30)
    )
    with pytest.raises(TooFewClustersError, match=r"5 folds .* 'cluster' has 4.*folds=4"):
        model.fit(folds=5)


def test_an_arm_in_one_cluster_cannot_be_trained_on(frame, quick_options):
    frame["treat"] = (frame["village"] == "v3").astype(int)
    model = cs.CausalStoNet.from_formula("y ~ treat | x1", frame, cluster="village")
    with pytest.raises(OneArmedError, match=r"arm 1 is in so few clusters of 'village'"):
        model.fit(options=quick_options("search"), seed=1, n_jobs=1)


# Copies ------------------------------------------------------------------------------------------


def test_copies_are_counted(frame):
    plain = frame.drop(columns="village")
    assert design_of(plain).n_copies == 0
    twice = pd.concat([plain, plain.iloc[[3, 4, 4]]], ignore_index=True)
    assert design_of(twice).n_copies == 3
    assert design_of(twice, cluster=np.arange(N + 3) // 2).n_copies == 0
    changed = twice.assign(x2=twice["x2"].where(np.arange(N + 3) < N, 7.0))
    assert design_of(changed).n_copies == 1  # the two copies of row 4 are copies of each other
    weights = np.repeat([1.0, 0.0], [N, 3])
    assert design_of(twice, weights=weights).n_copies == 0


def test_every_row_repeated_still_counts(frame):
    often = pd.concat([frame.drop(columns="village")] * 10, ignore_index=True)
    assert design_of(often).n_copies == 9 * N


def test_discrete_rows_may_be_equal_by_chance():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(500, 3)).astype(float)
    y, treat = rng.integers(2, size=500).astype(float), rng.integers(2, size=500)
    assert count_copies(y, treat, Rows(X)) == 0
    X[:, 1] = rng.normal(size=500)
    X[7] = X[8]
    y[7], treat[7] = y[8], treat[8]
    assert count_copies(y, treat, Rows(X)) == 1
    assert count_copies(y, treat, Rows(sparse.csc_array(X))) == 1


def test_counting_agrees_with_pandas():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40))
    X[:, :20] = rng.integers(2, size=(300, 20))
    X[:, 5] *= -1.0  # zeros of both signs
    X = np.concatenate([X, np.abs(X[:90]) * np.sign(X[:90]), X[50:60]])
    y, treat = np.zeros(400), np.zeros(400)
    expected = pd.DataFrame(X).duplicated().sum()
    assert expected > 50
    assert count_copies(y, treat, Rows(X)) == expected
