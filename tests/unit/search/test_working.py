"""Working networks: the rows they learn from, and the network they go on from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cstonet as cs
from cstonet.network.structure import Structure
from cstonet.network.training import Carried
from cstonet.network.training_data import TrainingData
from cstonet.search import working
from cstonet.settings.options import PriorOptions


def test_a_network_carries_over_the_inputs_that_it_has():
    carried = Carried(np.array([2, 5, 9]), result=None)
    np.testing.assert_array_equal(carried.places(np.array([2, 3, 9, 11])), [0, -1, 2, -1])


def test_what_a_structure_has_beyond_another():
    one, other = Structure((1, 2), (3,)), Structure((2,), (3, 4, 5))
    assert one.beyond(other) == 1
    assert other.beyond(one) == 2
    assert one.beyond(one) == 0


@pytest.fixture(scope="module")
def simulation():
    return cs.datasets.simulation2(n=1500, p=8, seed=2)


def test_a_search_on_few_rows_ends_by_looking_at_all(quick_options):
    """Scores |z| are at most the root of the rows: those of 300 rows cannot reach those of all."""
    rng = np.random.default_rng(4)
    X, treat = rng.choice([-1.0, 1.0], size=(1500, 8)), rng.integers(2, size=1500)
    y = 2 * X[:, 0] + treat + 0.3 * rng.standard_normal(1500)
    options = quick_options(epochs=40, hidden=(8, 4))
    few = replace(options.search, rows=300)
    results = cs.CausalStoNet(y, treat, X).fit(options=options, search=few, seed=1)
    moves = results.networks.search.query("covariate == 'x1' and model == 'outcome'")
    assert (moves.query("move == 'grow'")["score"] <= np.sqrt(300)).all()
    assert (moves.query("move == 'keep'")["score"] > np.sqrt(300)).all()
    assert set(moves["move"]) == {"grow", "keep"}


def test_rows_to_learn_from_are_spread_over_arms_and_outcomes(simulation, quick_options, trainer):
    options = quick_options(epochs=2)
    fits = trainer(simulation, options.replace(search=options.search), rows=200)
    for rows, known in fits:
        assert len(rows) == len(set(rows)) == 200
        assert set(rows) <= set(known)
        data = simulation.data
        share, expected = data["treat"][rows].mean(), data["treat"][known].mean()
        assert abs(share - expected) < 2 / 200  # a systematic sample, not a random one
        for arm in (0, 1):
            some, every = (data["y"][r][data["treat"][r] == arm] for r in (rows, known))
            assert abs(np.median(some) - np.median(every)) < 0.1 * np.std(every)


@pytest.fixture
def trainer(monkeypatch):
    """Rows that the working networks of a fit learn from, and those of their fold to fit."""
    from cstonet.search import working

    def run(simulation, options, rows):
        seen = []
        thinned = working._thinned

        def watched(data, place, most):
            seen.append((thinned(data, place, rows), place.split.fit))
            return seen[-1][0]

        monkeypatch.setattr(working, "_thinned", watched)
        cs.fit(simulation.formula, simulation.data, options=options, seed=1, n_jobs=1)
        return seen

    return run


def test_rounds_used_up_on_few_rows_are_given_again_on_all(simulation, quick_options):
    options = quick_options(epochs=20, hidden=(8, 4), folds=2, repeats=1)
    one = replace(options.search, rows=300, rounds=1)
    results = cs.fit(simulation.formula, simulation.data, options=options, search=one, seed=1)
    moves = results.networks.search.query("move == 'grow' and fold == 0")
    assert set(moves["round"]) == {1, 2}  # one on 300 rows, one on all
    assert results.selection["outcome_probability"].notna().all()


def test_a_network_that_lost_inputs_carries_over_those_that_it_has(simulation, quick_options):
    """Training of the search may prune, too; then covariates are fewer than the support's."""
    options = quick_options(epochs=20, hidden=(8, 4), folds=2, repeats=1)
    pruning = replace(
        options.search.training,
        stages=tuple(
            replace(stage, prior="mixture", prune=True)
            for stage in options.search.training.stages[:1]
        ),
        prior=PriorOptions(inclusion=0.05, slab_variance=1.0, spike_start=1e-2, spike_end=1e-2),
    )
    search = replace(options.search, training=pruning)
    carried = []

    class Watched(Carried):
        def __init__(self, inputs, result):
            carried.append((inputs, result.inputs))
            super().__init__(inputs, result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working, "Carried", Watched)
        cs.fit(simulation.formula, simulation.data, options=options, search=search, n_jobs=1)
    assert carried
    for inputs, of_result in carried:
        np.testing.assert_array_equal(inputs, of_result)


def test_models_say_what_they_depend_on():
    """Binary variables have the variance p (1 - p), others the same on all rows."""
    rng = np.random.default_rng(5)
    structure = Structure(outcome=(3, 1), treatment=(2,))
    families = ("gaussian", "binomial")
    visible = np.zeros((20, 4), dtype=np.float32)
    data = TrainingData(None, visible, np.ones(20, dtype=np.float32), families)
    received = rng.integers(2, size=(20, 2)).astype(np.float32)
    expected = np.column_stack([rng.normal(size=20), rng.uniform(0.1, 0.9, 20)])
    levels = rng.dirichlet([2, 2, 2], 20)
    outcome, treatment = working.own_directions(data, structure, received, expected, levels[:, 1:])
    for own, variance in zip(
        outcome, [np.ones(20), expected[:, 1] * (1 - expected[:, 1])], strict=True
    ):
        np.testing.assert_allclose(own.information, variance)
        np.testing.assert_array_equal(own.received, received)
        assert own.inside == (3, 1)
    for own, p in zip(treatment, (levels[:, 1], levels[:, 2], levels[:, 0]), strict=True):
        np.testing.assert_allclose(own.information, p * (1 - p))
        assert own.received is None
        assert own.inside == (2,)
    same = working.own_directions(data, structure, received[:, :1], expected, None)[1]
    assert [own.information.tolist() for own in same] == [[1.0] * 20]


def test_certain_probabilities_leave_a_row_some_information():
    information = working.binary_information(np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(information, [0.000999, 0.25, 0.000999])
