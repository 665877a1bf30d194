"""Probabilities of inclusion against closed forms, and on data where the truth is plain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet.errors import NumericalError
from cstonet.search.inclusion import (
    Inclusion,
    Weighed,
    mean_inclusion,
    prior_log_odds,
    pruned_inclusion,
)
from cstonet.search.scores import Largest
from cstonet.search.search import StructureSearch

ROWS = 400


@dataclass(frozen=True)
class FakeFold:
    """What the average asks of a fold."""

    inclusion: Inclusion | None = None


def weighed(overall, main, log_odds, tests=20, main_tests=4):
    scores = Largest(np.array(overall, dtype=float), np.array(main, dtype=float))
    return Weighed(scores, tests, main_tests, ROWS, np.array(log_odds, dtype=float))


def test_prior_odds_are_those_of_as_many_as_were_found():
    # Of ten covariates the other model holds 0, 1, 2; found are 1 and, among the rest, 5 and 6.
    odds = np.exp(prior_log_odds(10, own=(1, 5, 6), other=(0, 1, 2)))
    np.testing.assert_allclose(odds, [1 / 3] * 3 + [2 / 7] * 7)
    np.testing.assert_allclose(np.exp(prior_log_odds(10, (), ())), 1 / 10)
    np.testing.assert_allclose(np.exp(prior_log_odds(2, (0, 1), (0, 1))), 1 / 2)


def test_posterior_odds_are_prior_odds_times_the_factor_of_the_bic():
    """Half of the prior is on 4 simple effects, half on all 20."""
    z, simple, prior = 5.0, 3.0, 1 / 50
    probability = weighed([z], [simple], [math.log(prior)]).probabilities({})
    factor = 0.5 * (math.exp(z**2 / 2) / 20 + math.exp(simple**2 / 2) / 4) / math.sqrt(ROWS)
    np.testing.assert_allclose(probability, prior * factor / (1 + prior * factor), rtol=1e-6)


def test_scores_as_large_as_chance_makes_them_say_no():
    """z² = 2 log m, the largest of m, leaves the price of a weight in the BIC to be paid."""
    p, tests = 100, 20
    z = math.sqrt(2 * math.log(p * tests))
    probability = weighed([z], [0.0], [-math.log(p)], tests=tests).probabilities({})
    assert probability[0] < 1 / math.sqrt(ROWS)


def test_a_covariate_shares_its_effect_with_those_that_could_stand_in_for_it():
    """Two with equal scores and odds are equally likely, though one was found; the third is in."""
    evidence = weighed([0.0, 9.0, 12.0], [0.0, 9.0, 12.0], [-3.0] * 3, tests=4)
    alone = {1: np.array([0.0, 8.0, 50.0]), 2: np.array([0.0, 0.0, 11.0])}
    twins = {1: np.array([8.0, 8.0, 50.0]), 2: np.array([0.0, 0.0, 11.0])}
    assert evidence.probabilities(alone)[1] > 0.99
    shared = evidence.probabilities(twins)
    # Scores with the effect put back are smaller, those of all of them.
    np.testing.assert_allclose(shared, [0.5, 0.5, 1], atol=1e-3)


def test_what_is_no_simple_effect_is_its_own():
    """Others' scores are known for simple effects only."""
    evidence = weighed([0.0, 9.0], [0.0, 1.0], [-3.0] * 2)
    assert evidence.probabilities({1: np.array([2.0, 1.0])})[1] > 0.99


def test_larger_scores_are_never_less_probable():
    z = np.linspace(0, 12, 50)
    probability = weighed(z, z, np.full(50, -4.0)).probabilities({})
    assert np.all(np.diff(probability) >= 0)
    assert probability[0] < 1e-3
    assert probability[-1] > 0.999


@dataclass(frozen=True)
class FakeNetwork:
    """What a pruned network has to say."""

    inputs: np.ndarray
    slab_paths: list[np.ndarray]


def test_pruned_networks_speak_by_their_most_probable_paths():
    two = [np.array([0.1, 0.9, 0.0]), np.array([0.2, 0.0, 0.0]), np.array([0.0, 0.4, 0.0])]
    nets = [FakeNetwork(np.array([1]), two), FakeNetwork(np.array([]), [np.zeros(3)] * 3)]
    inclusion = pruned_inclusion(nets, 3)
    np.testing.assert_allclose(inclusion.treatment, [0.05, 0.45, 0], rtol=1e-6)
    # Of several outcomes the one that is reached best counts.
    np.testing.assert_allclose(inclusion.outcome, [0.1, 0.2, 0], rtol=1e-6)


def test_networks_that_keep_most_covariates_say_nothing():
    paths = [np.ones(3)] * 2
    assert pruned_inclusion([FakeNetwork(np.arange(1), paths)], 3) is not None
    assert pruned_inclusion([FakeNetwork(np.arange(2), paths)], 3) is None
    assert pruned_inclusion([FakeNetwork(np.arange(1), [])], 3) is None


def test_folds_are_averaged():
    searched = [
        FakeFold(inclusion=Inclusion(np.float32([0, a]), np.float32([a, 1]))) for a in (0.2, 0.6)
    ]
    np.testing.assert_allclose(mean_inclusion(searched, "treatment"), [0, 0.4], rtol=1e-6)
    np.testing.assert_allclose(mean_inclusion(searched, "outcome"), [0.4, 1], rtol=1e-6)
    assert mean_inclusion([*searched, FakeFold()], "outcome") is None


@pytest.fixture(scope="module")
def proxies() -> pd.DataFrame:
    """x1 confounds, x2 is nearly x1; x3 moves the outcome, x4 the treatment; the rest is noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 30))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=400)
    treat = rng.binomial(1, expit(1.5 * X[:, 0] + 1.5 * X[:, 3]))
    y = 2 * X[:, 0] - 2 * X[:, 2] + 2 * treat + 0.5 * rng.normal(size=400)
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(30)])
    return frame.assign(y=y, treat=treat)


def test_a_search_tells_what_it_knows_from_what_it_cannot_know(proxies, quick_options):
    table = cs.fit("y ~ treat | .", proxies, options=quick_options(epochs=60)).selection
    assert table.loc["x3", "outcome_probability"] > 0.99
    assert table.loc["x4", "treatment_probability"] > 0.99
    noise = table.iloc[4:]
    assert noise["outcome_probability"].max() < 0.5
    assert noise["treatment_probability"].max() < 0.5
    # One of the pair is certain to matter. Which, the treatment does not show: it is the one that
    # the outcome's model holds.
    pair = table.loc[["x1", "x2"], "treatment_probability"]
    assert pair.idxmax() == table.loc[["x1", "x2"], "outcome_probability"].idxmax()
    assert pair.sum() > 0.3


@pytest.fixture(scope="module")
def annealed(quick_options):
    """A network on all covariates, which a spike that narrows prunes."""
    base = quick_options(hidden=(6, 4))
    stages = (
        cs.options.StageOptions(epochs=20),
        cs.options.StageOptions(epochs=60, prior="mixture", prune=True),
        cs.options.StageOptions(epochs=20),
    )
    training = replace(base.training, stages=stages, prior=cs.options.PriorOptions())
    return base.replace(search=None, training=training)


def test_pruning_tells_what_it_has_kept(proxies, annealed):
    res = cs.fit("y ~ treat | .", proxies, options=annealed)
    table = res.selection
    assert table.loc["x3", "outcome_probability"] > 0.9
    assert table["outcome_probability"].iloc[4:].max() < 0.5
    # What every network keeps has a path of weights that are each more probable than not.
    kept = table["outcome_count"] == res.n_supports
    assert kept["x3"]
    assert (table.loc[kept, "outcome_probability"] > 0.5**3).all()
    assert res.expected_false_selections.isna().all()


def test_networks_that_are_not_pruned_have_no_probabilities(proxies, quick_options):
    res = cs.fit("y ~ treat | .", proxies, options=quick_options().replace(search=None))
    assert "outcome_probability" not in res.selection
    assert res.expected_false_selections.isna().all()


def test_imputed_covariates_have_no_probabilities(proxies, quick_options):
    holes = proxies.assign(x9=proxies["x9"].where(np.arange(400) % 10 > 0))
    res = cs.fit("y ~ treat | .", holes, missing="mar", options=quick_options(imputations=2))
    assert "outcome_probability" not in res.selection


def test_a_fit_survives_a_network_that_only_the_probabilities_need(
    proxies, quick_options, monkeypatch
):
    def diverges(*_):
        raise NumericalError("diverged")

    monkeypatch.setattr(StructureSearch, "inclusion", diverges)
    res = cs.fit("y ~ treat | .", proxies, options=quick_options())
    assert "outcome_probability" not in res.selection
