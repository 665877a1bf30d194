"""The structure search on data whose supports are known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cstonet as cs
from cstonet.estimators.linear_terms import linear_terms
from cstonet.estimators.targets import total_weights
from cstonet.network.structure import Structure
from cstonet.search.search import StructureSearch

N, P = 400, 600


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    """More covariates than rows; x1 confounds, x2 only moves the outcome, x3 only the treatment."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(N, P))
    treat = rng.binomial(1, 1 / (1 + np.exp(-1.5 * X[:, 0] - 1.5 * X[:, 2])))
    y = 2 * X[:, 0] - 2 * X[:, 1] + 2 * treat + 0.5 * rng.normal(size=N)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(P)])
    return pd.concat([pd.DataFrame({"y": y, "treat": treat}), frame], axis=1)


@pytest.fixture(scope="module")
def options(quick_options):
    return quick_options(epochs=60, hidden=(8, 4))


@pytest.fixture(scope="module")
def results(data, options):
    return cs.fit("y ~ treat | .", data, options=options)


def trained(results):
    """The networks of all folds and starts."""
    return [net for fold in results.networks.folds for net in fold.starts]


def selected(results, model):
    return set(results.selection.index[results.selection[model]])


def test_supports_are_found_among_more_covariates_than_rows(results):
    assert selected(results, "outcome") == {"x1", "x2"}
    assert selected(results, "treatment") == {"x1", "x3"}
    assert abs(results.params["ATE"] - 2) < 4 * results.bse["ATE"]


def test_networks_hold_the_supports_only(results):
    for network in trained(results):
        assert set(network.inputs) <= {0, 1, 2}
        assert network.weights[0].shape[0] == len(network.inputs)


def first_weights(network, covariate):
    """Units of the first layer that a covariate feeds."""
    row = list(network.inputs).index(covariate)
    return int(np.count_nonzero(network.masks[0][row]))


def adjusting(data, options, adjust):
    search = replace(options.search, adjust=adjust)
    return cs.fit("y ~ treat | .", data, options=options, search=search)


def test_final_networks_use_what_the_option_says(data, options, results):
    united, apart = (adjusting(data, options, adjust) for adjust in ("union", "own"))
    fits = (results, united, apart)
    nets = [trained(fit) for fit in fits]
    assert len(nets[0]) > 0
    for linear, both, own in zip(*nets, strict=True):
        units = both.spec.units[0]
        of_treatment = first_weights(own, 2)
        # x1 is in both models by itself; x2 and x3 are in one each.
        assert [first_weights(own, j) for j in (0, 1)] == [units, units - of_treatment]
        assert [first_weights(both, j) for j in (0, 1, 2)] == [units] * 3
        assert [first_weights(linear, j) for j in (0, 1, 2)] == [units, units, units - of_treatment]
    for fit, linear in zip(fits, ((2,), (), ()), strict=True):
        assert [fold.adjustment.linear for fold in fit.networks.folds] == [linear, linear]
    # What was found is the same, whatever the networks adjust for.
    found = ["treatment", "outcome", "treatment_count", "outcome_count"]
    for other in (united, apart):
        pd.testing.assert_frame_equal(results.selection[found], other.selection[found])


def test_covariates_of_the_treatment_alone_are_adjusted_for_by_linear_terms(data, options, results):
    # x1 and x2 have slopes as well: x3 must not stand in for what the outcome model lacks of them.
    # For slopes of all covariates there are not rows enough.
    linear = results.nuisances.linear
    assert linear.shape == (N, 3)
    assert results.nuisances.found.tolist() == [0, 1, 2]
    assert linear_terms(results.nuisances, results.effects.clip).columns is linear
    for column, name in zip(linear[:].T, ("x1", "x2", "x3"), strict=True):
        np.testing.assert_allclose(np.corrcoef(column, data[name])[0, 1], 1, rtol=1e-6)
    united = adjusting(data, options, "union").nuisances.propensity
    assert results.nuisances.propensity.std() < united.std()
    balance = results.balance().loc["x3"]
    assert abs(balance["smd_before"]) > 0.5
    # Free slopes balance x3 exactly; held ones leave of it what the ridge keeps.
    free = replace(results.nuisances, ridge=0.0)
    weights = total_weights(free, "ATE", (1, 0), clip=results.effects.clip)
    np.testing.assert_allclose(linear[:].T @ weights, 0, atol=1e-6)
    assert 1e-6 < abs(balance["smd_after"]) < abs(balance["smd_before"]) / 2
    assert "those found for the treatment alone enter the weights only if" in results.methods()


def test_without_such_covariates_the_adjustment_is_the_union(data, options):
    reduced = data.drop(columns="x3").iloc[:, :40]
    reduced["treat"] = np.random.default_rng(1).permutation(reduced["treat"])
    linear, united = (adjusting(reduced, options, adjust) for adjust in ("linear", "union"))
    assert [fold.adjustment.linear for fold in linear.networks.folds] == [(), ()]
    pd.testing.assert_series_equal(linear.params, united.params, check_exact=True)
    pd.testing.assert_series_equal(linear.bse, united.bse, check_exact=True)


def test_doubtful_covariates_of_the_treatment_stay_in_the_weights(options, monkeypatch):
    """z drives the treatment, and its square may move the outcome, which no linear term removes.

    The test is passed by chance in at most 16 % of the folds: more than 7 of 16 have a probability
    of 0.002. With the square its score has the expectation 0.4 √2 √300 = 10.
    """
    found = Structure(treatment=(0, 1), outcome=(0,))
    monkeypatch.setattr(StructureSearch, "run", lambda _: found)
    monkeypatch.setattr(StructureSearch, "inclusion", lambda *_: None)  # nothing was searched for
    weighed = dict.fromkeys((0.0, 0.4), 0)
    for curvature, seed in itertools.product(weighed, range(8)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 3))
        treat = rng.binomial(1, 1 / (1 + np.exp(-X[:, 0] - 1.5 * X[:, 1])))
        y = treat + 2 * X[:, 0] + curvature * X[:, 1] ** 2 + rng.normal(size=600)
        data = pd.DataFrame(X, columns=["x", "z", "noise"]).assign(y=y, treat=treat)
        fit = cs.fit("y ~ treat | .", data, options=options)
        moves = fit.networks.search.query("move == 'weigh'")
        assert (moves["score"] > moves["threshold"]).all()
        weighed[curvature] += len(moves)
        assert [fold.adjustment.linear for fold in fit.networks.folds] == [(1,), (1,)]
        for net in trained(fit):
            # x feeds all units of the first layer, z those of the outcome at least.
            fed = first_weights(net, 1) == first_weights(net, 0)
            assert fed == (net.fold in set(moves["fold"]))
    assert weighed[0.0] <= 7
    assert weighed[0.4] == 16


def test_every_move_is_on_record(results):
    moves = results.networks.search
    grown = moves[moves["move"] == "grow"]
    assert {"x1", "x2", "x3"} <= set(grown["covariate"])
    assert (grown["score"] > grown["threshold"]).all()
    pruned = moves[moves["move"] == "prune"]
    assert (pruned["score"] <= pruned["threshold"]).all()
    assert set(moves["fold"]) == {0, 1}


def test_a_stand_in_is_dropped_once_those_it_stood_for_are_there(options):
    """It comes in first, with a score below 10 on 400 rows, and three later ones prove needed.

    A noisy mean of four causes has a correlation of 0.45 with the outcome, each of them 0.32.
    """
    rng = np.random.default_rng(4)
    causes = rng.normal(size=(800, 4))
    stand_in = causes.sum(axis=1) / 2 + rng.normal(size=800)
    y = causes.sum(axis=1) + 2.4 * rng.normal(size=800)
    X = np.column_stack([causes, stand_in, rng.normal(size=(800, 3))])
    data = pd.DataFrame(X, columns=["a", "b", "c", "d", "mean", "n1", "n2", "n3"])
    fit = cs.fit(
        "y ~ treat | .", data.assign(y=y, treat=rng.integers(2, size=800)), options=options
    )
    moves = fit.networks.search.query("model == 'outcome'")
    for _, own in moves.groupby("fold"):
        assert own["covariate"].iloc[0] == "mean"
        assert own["score"].iloc[0] < 10
        kept = own.query("move == 'keep'")["covariate"]
        assert set(kept.iloc[:3]) <= {"a", "b", "c", "d"}
        assert own.query("covariate == 'mean'")["move"].tolist() == ["grow", "prune"]
    assert selected(fit, "outcome") == {"a", "b", "c", "d"}


def test_the_treatment_model_waits_and_takes_the_outcomes_covariates_first(results):
    """x1 and x3 move the treatment alike; x1 is in the outcome model by then."""
    grown = results.networks.search.query("move == 'grow'")
    for _, moves in grown.groupby("fold"):
        outcome, treatment = (moves[moves["model"] == m] for m in ("outcome", "treatment"))
        first = treatment["round"].min()
        assert first > outcome["round"].min()
        assert treatment.loc[treatment["round"] == first, "covariate"].tolist() == ["x1"]
        assert "x3" in set(treatment["covariate"])


def test_nothing_is_admitted_where_there_is_nothing(data, options):
    noise = data.assign(
        y=np.random.default_rng(1).normal(size=N),
        treat=np.random.default_rng(2).integers(2, size=N),
    )
    results = cs.fit("y ~ treat | .", noise, options=options)
    assert not selected(results, "outcome") | selected(results, "treatment")
    notes = " ".join(results.warnings)
    assert "In 2 of 2 folds no covariate was found for the outcome model" in notes
    assert "treatment model" not in notes  # as it should be where treatment is by lot
    # What remains is the difference of the arms' means.
    raw = noise.groupby("treat")["y"].mean().diff().iloc[-1]
    assert results.params["ATE"] == pytest.approx(raw, abs=results.bse["ATE"])


def test_screening_bounds_what_takes_part(data, options, results):
    """Three covariates matter; two of them are let in."""
    screened = cs.fit("y ~ treat | .", data, options=options, screen=2)
    for _, moves in screened.networks.search.groupby("fold"):
        survivors = set(moves.query("move == 'screen'")["covariate"])
        assert len(survivors) == 2
        assert survivors < {"x1", "x2", "x3"}
        assert set(moves.query("move == 'grow'")["covariate"]) == survivors
    for _, moves in results.networks.search.groupby("fold"):
        assert {"x1", "x2", "x3"} <= set(moves["covariate"])
        assert not (moves["move"] == "screen").any()
    assert screened.plan.screen == 2
    assert "only the 2 covariates with the largest scores took part" in screened.methods()


NO_MARGINAL_EFFECT = {
    "product": (lambda x, a: 3 * x[:, 0] * x[:, 1], {"x1", "x2"}),
    "square": (lambda x, a: 10 * x[:, 0] ** 2, {"x1"}),
    "modification": (lambda x, a: 2 * (a - 0.5) * x[:, 0], {"x1"}),
    "even modification": (lambda x, a: 2 * (a - 0.5) * (x[:, 0] ** 2 - 1), {"x1"}),
}


@pytest.mark.parametrize("name", NO_MARGINAL_EFFECT)
def test_covariates_without_a_marginal_effect_are_found(name, options):
    """Slopes of zero, on average over everything else, and signals as strong as one likes."""
    signal, truth = NO_MARGINAL_EFFECT[name]
    rng = np.random.default_rng(5)
    X, treat = rng.normal(size=(N, P)), rng.integers(2, size=N)
    y = signal(X, treat) + treat + 0.3 * rng.normal(size=N)
    results = cs.CausalStoNet(y, treat, X).fit(options=options, seed=1)
    assert selected(results, "outcome") == truth


def test_more_margin_admits_less(data, options):
    strict = replace(options.search, treatment_margin=10.0)
    results = cs.fit("y ~ treat | .", data, options=options, search=strict)
    assert "x3" not in selected(results, "treatment")


def test_one_round_admits_few(options):
    """Of four covariates that matter, two come in with the first round, the rest with others."""
    rng = np.random.default_rng(6)
    X, treat = rng.normal(size=(N, 20)), rng.integers(2, size=N)
    y = 2 * X[:, :4].sum(axis=1) + treat + 0.5 * rng.normal(size=N)
    model = cs.CausalStoNet(y, treat, X)
    for rounds, found in ((1, 2), (25, 4)):
        search = replace(options.search, rounds=rounds)
        moves = model.fit(options=options, search=search).networks.search
        grown = moves.query("move == 'grow' and model == 'outcome'")
        assert (grown.groupby("fold")["covariate"].nunique() == found).all()
