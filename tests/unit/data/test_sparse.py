"""Sparse covariates: the same design as from dense ones, and never a dense copy of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cstonet import CausalStoNet
from cstonet.data.matrix import Rows, dense_part, parts
from cstonet.errors import (
    ColumnTypeError,
    DataError,
    InfiniteValuesError,
    LengthMismatchError,
    MissingValuesError,
    NotAvailableError,
    TreatmentLeakError,
)

N, P = 120, 7


@pytest.fixture
def dense():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, P)) < 0.1, rng.normal(size=(N, P)), 0.0)
    treat = rng.integers(0, 2, N)
    return rng.normal(size=N), treat, X


FORMS = [sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_the_design_stays_sparse(form, dtype, dense):
    y, treat, X = dense
    X = (3 * X).astype(dtype)
    design = CausalStoNet(y, treat, form(X)).design
    assert isinstance(design.X, sparse.csc_array)
    assert design.X.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert design.covariates == tuple(f"x{j + 1}" for j in range(P))
    np.testing.assert_array_equal(design.X.toarray(), X)


def test_a_matrix_by_columns_is_not_copied(dense):
    y, treat, X = dense
    given = sparse.csc_array(X)
    assert np.shares_memory(CausalStoNet(y, treat, given).design.X.data, given.data)


def test_entries_given_twice_are_added_up_and_the_users_matrix_is_left_alone(dense):
    y, treat, _ = dense
    rows, columns = np.array([0, 0, 5, 7]), np.array([1, 1, 0, 1])
    given = sparse.csc_array(sparse.coo_array((np.ones(4), (rows, columns)), shape=(N, 2)))
    before = sparse.csc_array((np.ones(4), np.array([5, 0, 0, 7]), np.array([0, 1, 4])), (N, 2))
    stored = before.data.copy()
    design = CausalStoNet(y, treat, before).design
    np.testing.assert_array_equal(design.X.toarray(), given.toarray())
    np.testing.assert_array_equal(before.data, stored)


def test_sparse_columns_of_a_frame_beside_others(dense):
    y, treat, X = dense
    plain = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    frame = plain.assign(g=np.resize(["a", "b", "c"], N), z=np.arange(N) % 5, y=y, treat=treat)
    kept = frame.assign(**{c: pd.arrays.SparseArray(plain[c], fill_value=0.0) for c in plain})
    found, expected = (
        CausalStoNet.from_formula("y ~ treat | .", data).design for data in (kept, frame)
    )
    assert isinstance(found.X, sparse.csc_array)
    assert found.covariates == expected.covariates
    np.testing.assert_array_equal(found.X.toarray(), expected.X)
    again = found.spec.transform(kept.iloc[:5])
    np.testing.assert_array_equal(again.toarray(), expected.X[:5])


def test_new_rows_may_be_sparse_or_not(dense):
    y, treat, X = dense
    spec = CausalStoNet(y, treat, sparse.csr_array(X)).design.spec
    np.testing.assert_array_equal(spec.transform(sparse.csr_array(X[:9])).toarray(), X[:9])
    np.testing.assert_array_equal(spec.transform(X[:9]), X[:9])
    with pytest.raises(LengthMismatchError, match="X has 3 columns"):
        spec.transform(sparse.csr_array(X[:, :3]))


def test_copies_are_found(dense):
    y, treat, X = dense
    for column, error in ((2.0 * treat, TreatmentLeakError), (y, DataError)):
        leaking = np.column_stack([X, column])
        with pytest.raises(error, match="'x8'"):
            CausalStoNet(y, treat, sparse.csr_array(leaking))
    with pytest.raises(TreatmentLeakError, match="'x8'"):
        CausalStoNet(
            y,
            X[:, 0] + np.arange(N),
            sparse.csr_array(np.column_stack([X, X[:, 0] + np.arange(N)])),
        )


def test_values_that_are_no_numbers(dense):
    y, treat, X = dense
    X[4, 2] = np.inf
    with pytest.raises(InfiniteValuesError, match="'x3' has infinite values, in 1 of 120"):
        CausalStoNet(y, treat, sparse.csr_array(X))
    X[4, 2] = np.nan
    with pytest.raises(MissingValuesError, match=r"gaps per column: x3 \(1\)"):
        CausalStoNet(y, treat, sparse.csr_array(X))
    with pytest.raises(NotAvailableError, match="sparse covariates are not imputed"):
        CausalStoNet(y, treat, sparse.csr_array(X), missing="mar")
    design = CausalStoNet(y, treat, sparse.csr_array(X), missing="drop").design
    np.testing.assert_array_equal(design.X.toarray(), np.delete(X, 4, axis=0))
    with pytest.raises(ColumnTypeError, match="complex"):
        CausalStoNet(y, treat, sparse.csr_array(X.astype(complex)))


def test_mediation_needs_dense_covariates(dense):
    y, treat, X = dense
    mediator = y + np.random.default_rng(1).normal(size=N)
    with pytest.raises(NotAvailableError, match="Mediation is not available with sparse"):
        CausalStoNet(y, treat, sparse.csr_array(X), mediators=mediator)


@pytest.mark.parametrize("order", ["C", "F", "sparse"])
def test_parts_cover_a_matrix_once_in_its_order(order, dense, monkeypatch):
    monkeypatch.setattr("cstonet.data.matrix._VALUES_AT_ONCE", 50)
    _, _, X = dense
    given = sparse.csc_array(X) if order == "sparse" else np.array(X, order=order)
    seen = np.zeros((N, P), dtype=int)
    for rows, columns in parts(given):
        seen[rows, columns] += 1
        assert seen[rows, columns].size <= 50
        np.testing.assert_array_equal(dense_part(given, rows, columns), X[rows, columns])
    assert (seen == 1).all()
    first = next(iter(parts(given)))
    assert first[1 if order == "C" else 0].stop == (P if order == "C" else 50)


def test_columns_survive_if_something_holds_in_every_row(dense, monkeypatch):
    monkeypatch.setattr("cstonet.data.matrix._VALUES_AT_ONCE", 50)
    _, _, X = dense
    X[:, 3] = 0.0
    X[:-1, 5] = 0.0
    X[-1, 5] = 1.0
    rows = Rows(X)
    zero = rows.surviving(np.arange(P), lambda of, columns: rows.part(of, columns) == 0)
    assert zero.tolist() == [3]
    some = Rows(X, np.arange(N - 1))
    zero = some.surviving(np.arange(P), lambda of, columns: some.part(of, columns) == 0)
    assert zero.tolist() == [3, 5]


def test_a_fit_is_that_of_the_dense_matrix():
    rng = np.random.default_rng(3)
    n = 400
    X = np.where(rng.random((n, 12)) < 0.3, rng.normal(size=(n, 12)), 0.0).astype(np.float32)
    treat = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    y = 2 * X[:, 0] + X[:, 1] + treat + 0.5 * rng.normal(size=n)
    options = {"folds": 2, "repeats": 1, "starts": 1, "updates": 100, "seed": 1}
    kept, full = (
        CausalStoNet(y, treat, given).fit(**options) for given in (sparse.csr_array(X), X)
    )
    # Means and spreads are summed in another order: float32 values may differ in the last bit.
    np.testing.assert_allclose(kept.params, full.params, rtol=0, atol=0.1 * full.bse.max())
    assert (kept.selection["outcome"] == full.selection["outcome"]).all()
    np.testing.assert_allclose(kept.balance(), full.balance(), rtol=0, atol=0.05)
    np.testing.assert_allclose(
        kept.cate(sparse.csr_array(X[:20])), kept.cate(X[:20]), rtol=1e-5, atol=1e-6
    )
