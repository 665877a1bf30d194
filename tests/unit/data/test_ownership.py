"""What a user does to his arrays after a fit does not change what the fit says."""

from __future__ import annotations

import mmap

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import cstonet as cs
from cstonet import errors
from cstonet.data import design as designs
from cstonet.data import matrix
from cstonet.data.matrix import checksum, may_be_changed


@pytest.fixture(scope="module")
def frame():
    return cs.datasets.simulation2(n=160, p=5, seed=2).data


def answers(results, data):
    """What asks the rows again, in numbers."""
    effects = [results.effect(name).estimate for name in ("ATT", "ATO")]
    return [
        results.balance().to_numpy(float),
        np.array(effects),
        np.asarray(results.cate()),
        results.gate("x1", cuts=[0.0]).table.to_numpy(float),
    ]


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", ["columns", "values", "order"])
def test_a_frame_may_be_overwritten(frame, options, how):
    data = frame.copy()
    results = cs.fit("y ~ treat | .", data, options=options, seed=3)
    before = answers(results, data)
    if how == "columns":
        for name in data:
            data[name] = 0.0
    elif how == "values":
        data.iloc[:, :] = 0
    else:
        data.sort_values("x1", inplace=True, ignore_index=True)
    assert_equal(answers(results, data), before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_may_be_overwritten(frame, options, order):
    X = np.array(frame.drop(columns=["y", "treat"]), order=order)
    y, treat = frame["y"].to_numpy(copy=True), frame["treat"].to_numpy(copy=True)
    weights = np.ones(len(y))
    results = cs.CausalStoNet(y, treat, X, weights=weights).fit(options=options, seed=3)
    before = answers(results, None)
    X[:], y[:], treat[:], weights[:] = 0, 0, 0, 7
    assert_equal(answers(results, None), before)


def test_a_sparse_matrix_may_be_overwritten(frame, options):
    X = sparse.csc_array(frame.drop(columns=["y", "treat"]).to_numpy())
    results = cs.CausalStoNet(frame["y"], frame["treat"], X).fit(options=options, seed=3)
    before = results.balance()
    X.data[:] = 0
    pd.testing.assert_frame_equal(results.balance(), before)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_what_is_too_large_to_copy_is_watched(frame, options, monkeypatch, kind):
    monkeypatch.setattr(matrix, "SMALL_COPY", 0)
    values = frame.drop(columns=["y", "treat"]).to_numpy(copy=True)
    X = values if kind == "dense" else sparse.csc_array(values)
    results = cs.CausalStoNet(frame["y"], frame["treat"], X).fit(options=options, seed=3)
    before = results.balance()
    written = X if kind == "dense" else X.data
    first = written.flat[0]
    written.flat[0] += 1
    for question in (
        results.balance,
        lambda: results.effect("ATT"),
        lambda: results.placebo(outcome="x1"),
    ):
        with pytest.raises(errors.DataChangedError, match="were changed after they were fitted"):
            question()
    written.flat[0] = first
    pd.testing.assert_frame_equal(results.balance(), before)


def test_copies_have_the_bits_of_the_view(frame, options, monkeypatch):
    data = cs.CausalStoNet.from_formula("y ~ treat | .", frame)
    own = data.fit(options=options, seed=3)
    monkeypatch.setattr(designs, "is_small", lambda X: False)
    viewed = data.fit(options=options, seed=3)
    assert not np.shares_memory(own.design.X, frame.to_numpy())
    np.testing.assert_array_equal(own.effects.influence, viewed.effects.influence)


def test_who_may_change_an_array(tmp_path):
    own = np.zeros((4, 3))
    assert not may_be_changed(own)
    assert may_be_changed(own[1:])
    np.ones(12).tofile(tmp_path / "x")
    assert not may_be_changed(np.memmap(tmp_path / "x", mode="r", shape=(4, 3)))
    assert not may_be_changed(np.frombuffer(mmap.mmap(-1, 96)).reshape(4, 3))


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_value_and_its_place_count_in_a_checksum(order):
    X = np.array(np.random.default_rng(0).normal(size=(40, 30)), order=order)
    seen = {checksum(X)}
    for place in [(0, 0), (39, 29), (17, 4)]:
        X[place] = np.nextafter(X[place], 9.0)
        seen.add(checksum(X))
    X[[3, 4]] = X[[4, 3]]
    seen.add(checksum(X))
    assert len(seen) == 5
    assert checksum(X.copy(order="K")) == checksum(X)
