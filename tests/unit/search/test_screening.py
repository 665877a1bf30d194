"""Sure independence screening of fits without a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet import _core
from cstonet.network.structure import Structure, Wiring
from cstonet.network.trained import TrainedNetwork
from cstonet.network.training_data import Deal, Split, TrainingData, Workplace
from cstonet.search.screening import screen_rows
from cstonet.search.working import WorkingNetworks, without_covariates
from cstonet.settings.presets import preset

N, P, KEPT = 300, 300, 20


def draw(rng, levels=2):
    """x5 explains the treatment, x9 the outcome."""
    X = rng.normal(size=(N, P))
    treat = np.clip(np.floor(levels * 0.5 + X[:, 4] + 0.5 * rng.normal(size=N)), 0, levels - 1)
    y = 2 * X[:, 8] + treat + 0.5 * rng.normal(size=N)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(P)])
    return pd.concat([pd.DataFrame({"y": y, "treat": treat.astype(int)}), frame], axis=1)


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return draw(np.random.default_rng(8))


@pytest.fixture(scope="module")
def options():
    """The paper's, for few epochs and starts; nothing is pruned after so few."""
    published = preset("paper")
    stages = tuple(replace(stage, epochs=2, prune=False) for stage in published.training.stages)
    training = replace(published.training, stages=stages)
    return published.replace(training=training, starts=2, folds=2, screen=KEPT)


@pytest.fixture(scope="module")
def results(data, options):
    return cs.fit("y ~ treat | .", data, options=options, seed=1, n_jobs=1)


def entered(results):
    """Covariates that entered the networks of each fold."""
    moves = results.networks.search.query("move == 'screen'")
    return [set(group["covariate"]) for _, group in moves.groupby("fold")]


def test_so_many_covariates_enter_the_network(results):
    for covariates in entered(results):
        assert len(covariates) == KEPT
        assert {"x5", "x9"} <= covariates
    assert entered(results)[0] != entered(results)[1]
    assert results.plan.network_label == "20-8-6-5-1"
    assert results.networks.n_weights == 20 * 8 + 8 * 6 + 6 * 5 + 5
    names = results.networks.covariates
    for covariates, fold in zip(entered(results), results.networks.folds, strict=True):
        for net in fold.starts:
            assert {names[j] for j in net.inputs} == covariates


def test_the_methods_say_so(results):
    assert "only the 20 covariates with the largest scores took part" in results.methods()


def test_threads_do_not_change_a_bit(data, options, results):
    again = cs.fit("y ~ treat | .", data, options=options, seed=1, n_jobs=2)
    assert entered(again) == entered(results)
    for one, other in zip(results.networks.folds, again.networks.folds, strict=True):
        for a, b in zip(one.starts, other.starts, strict=True):
            assert np.array_equal(a.inputs, b.inputs)
            assert [w.tobytes() for w in a.weights] == [w.tobytes() for w in b.weights]
    assert results.params.equals(again.params)


def test_held_out_rows_have_no_say(data, options, results):
    """Other outcomes in the held-out rows of a fold leave its covariates as they are."""
    first = results.networks.folds[0]
    changed = data.copy()
    changed.loc[first.split.test, "y"] = 50 * data.loc[first.split.test, "x1"]
    again = cs.fit("y ~ treat | .", changed, options=options, seed=1, n_jobs=1)
    assert np.array_equal(again.networks.folds[0].split.test, first.split.test)
    assert entered(again)[0] == entered(results)[0]
    assert "x1" in entered(again)[1]
    assert "x1" not in entered(results)[0]


def test_what_is_asked_for_may_be_all(data, options):
    few = data[["y", "treat", *(f"x{j}" for j in range(1, 11))]]
    all_of_them = cs.fit("y ~ treat | .", few, options=options, seed=1)
    unscreened = cs.fit("y ~ treat | .", few, options=options, seed=1, screen=None)
    assert all_of_them.plan.network_label == "10-8-6-5-1"
    assert all_of_them.params.equals(unscreened.params)
    assert all_of_them.networks.search.empty
    assert "Screened" not in all_of_them.summary().as_text()


def test_a_dose_is_screened_too(data, options):
    dose = data.assign(treat=data["x5"] + np.random.default_rng(0).normal(size=N))
    results = cs.fit("y ~ treat | .", dose, options=options, seed=1)
    for covariates in entered(results):
        assert len(covariates) == KEPT
        assert {"x5", "x9"} <= covariates


def screened(X, treat, y, size, rows=None):
    """The training data, and what a screening on some rows leaves, best first."""
    n = len(y)
    visible = np.column_stack([treat, (y - y.mean()) / y.std()]).astype(np.float32)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    covariates = _core.Dataset(X, X.mean(axis=0), 1 / scale, np.inf, 2**30)
    data = TrainingData(covariates, visible, np.ones(n, np.float32), ("gaussian",))
    labels = np.zeros(n, dtype=np.uint8)
    labels[slice(None) if rows is None else rows] = 1
    place = Workplace(Split(0, 0, 0, Deal(labels, folds=2)), 1, 0, 1, None)
    return data, screen_rows(data, place, size).chosen.tolist()


def test_strong_covariates_do_not_crowd_out_weak_ones():
    """All share a factor: by their marginal scores, 60 that act on nothing precede x2."""
    rng = np.random.default_rng(4)
    n, p = 600, 61
    X = rng.normal(size=(n, p)) + 1.5 * rng.normal(size=(n, 1))
    y = 3 * X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)
    data, chosen = screened(X, rng.random(n) < 0.5, y, 4)
    residual = without_covariates(data, np.arange(n)).outcome[0].residual
    marginal = np.abs((X - X.mean(axis=0)).T @ residual) / X.std(axis=0)
    assert np.argsort(-marginal).tolist().index(1) > 30
    assert chosen[:2] == [0, 1]


def test_levels_that_no_row_has_take_no_places():
    """x1 confounds strongly: once it leads, what is left must not depend on the treatment alone."""
    rng = np.random.default_rng(6)
    n, absent = 900, 50
    X = rng.normal(size=(n, 100))
    treat = rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))
    y = 2 * X[:, 0] + 0.3 * X[:, 1] + treat + 0.5 * rng.normal(size=n)
    rare = np.zeros((n, absent))
    rare[np.arange(800, 850), np.arange(absent)] = 1  # in rows that the fold holds out
    _, chosen = screened(np.hstack([X, rare]), treat, y, 40, rows=np.arange(800))
    assert chosen[:2] == [0, 1]
    assert max(chosen) < 100


@pytest.mark.parametrize("levels", [2, 3])
def test_scores_are_those_of_a_search_before_its_first_covariate(levels, monkeypatch):
    """A working network without covariates leaves what the arms' means leave, but for its ridge."""
    data = draw(np.random.default_rng(3), levels)
    checked = []

    def trained(networks: WorkingNetworks):
        wiring = Wiring.sparse(networks._network, Structure(), networks._treatment_units)
        result = networks._train(wiring, 0, None, None)
        net = TrainedNetwork.from_task(0, 0, wiring, result)
        return networks._residuals(net, Structure())

    def compare(networks: WorkingNetworks, structure: Structure):
        working = refit(networks, structure)
        if structure == Structure() and not checked:
            learned = trained(networks)
            for model in ("outcome", "treatment"):
                for a, b in zip(getattr(working, model), getattr(learned, model), strict=True):
                    checked.append(np.corrcoef(a.residual, b.residual)[0, 1])
            assert set(screen_rows(networks.data, networks.place, 2).chosen) == {4, 8}
        return working

    refit = WorkingNetworks.refit
    monkeypatch.setattr(WorkingNetworks, "refit", compare)
    options = {"folds": 2, "repeats": 1, "starts": 1, "updates": 100, "screen": KEPT}
    cs.fit("y ~ treat | .", data, seed=1, n_jobs=1, **options)  # one thread: one fold comes first
    assert len(checked) == 1 + (levels if levels > 2 else 1)
    assert min(checked) > 0.95


def test_rows_count_with_their_weights():
    """A row of weight two is two rows."""
    rng = np.random.default_rng(1)
    twice = rng.random(N) < 0.3
    visible = np.column_stack([rng.random(N) < 0.4, rng.normal(size=N)]).astype(np.float32)
    weights = np.where(twice, 2, 1).astype(np.float32)
    weighted = TrainingData(None, visible, weights, ("gaussian",))
    rows = np.concatenate([np.arange(N), np.flatnonzero(twice)])
    repeated = TrainingData(None, visible[rows], np.ones(len(rows), np.float32), ("gaussian",))
    one = without_covariates(weighted, np.arange(N))
    other = without_covariates(repeated, np.arange(len(rows)))
    for a, b in zip(one.outcome + one.treatment, other.outcome + other.treatment, strict=True):
        np.testing.assert_allclose(a.residual, b.residual[:N], atol=1e-12)
