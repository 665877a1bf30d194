"""Plans: numbers for everything, from the data's shape alone."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace

import pytest

import cstonet as cs
from cstonet import CausalStoNet
from cstonet.errors import OptionError
from cstonet.network.spec import causal_network
from cstonet.settings.options import SamplerOptions, StageOptions
from cstonet.settings.plan import Problem, make_plan
from cstonet.settings.presets import PRESETS, preset


def model_of(n=120, p=6, **options):
    data = cs.datasets.simulation2(n=n, p=p, seed=1, **options).data
    return CausalStoNet.from_formula("y ~ treat | .", data)


def plan_of(model, options=None, **changes):
    base = preset("calibrated") if options is None else options
    options = base.replace(**changes)
    return model.analysis.plan(model.design, options, preset="calibrated", seed=1)


def network_of(model, **changes):
    """The network that is planned for a model."""
    return causal_network(plan_of(model, **changes).network)


def test_a_plan_tells_what_is_fitted():
    """Other families of outcome or treatment on the same numbers are other plans."""
    data = cs.datasets.simulation2(n=200, p=5, seed=1).data
    data = data.assign(y=(data["y"] > data["y"].median()).astype(int))
    families = [
        CausalStoNet.from_formula("y ~ treat | .", data, family=family).plan()
        for family in ("gaussian", "binomial")
    ]
    assert families[0] != families[1]
    dose = data.assign(treat=data["treat"] + data["x1"])
    assert CausalStoNet.from_formula("y ~ treat | .", dose).plan() != families[1]


@pytest.mark.parametrize(("outcome", "weight"), [("gaussian", 1.0), ("binomial", 4.0)])
def test_a_temperature_is_for_outcomes_without_a_variance(outcome, weight):
    model = model_of(outcome=outcome)
    (block,) = network_of(model, outcome_temperature=0.25).layers[-1]
    assert block.weight == weight
    (block,) = network_of(model).layers[-1]
    assert block.weight == 1
    assert plan_of(model, outcome_temperature=0.25).search_network.outcome_temperature == 0.25


@pytest.mark.parametrize("name", PRESETS)
def test_nothing_is_left_automatic(name):
    plan = model_of().plan(name)
    assert "auto" not in json.dumps(plan.to_dict())
    depth = len(plan.network.hidden)
    assert len(plan.training.sampler.variance) == depth
    for stage in plan.training.stages:
        assert len(stage.rate) == depth + 1
        assert len(stage.step) == depth
        assert all(0 < number < 1 for number in (*stage.rate, *stage.step))


def test_json_is_the_plan():
    plan = plan_of(model_of())
    stored = json.loads(plan.to_json())
    assert set(stored) == {field.name for field in dataclasses.fields(plan)}
    assert stored == json.loads(json.dumps(plan.to_dict()))
    assert stored["network"]["inputs"] == 6


def test_what_was_given_stays():
    model = model_of()
    plan = plan_of(model, hidden=(7, 5), treatment_layer=1, starts=4, folds=2, clip=0.03)
    assert plan.network_label == "6-7-5-1"
    assert (plan.starts, plan.folds, plan.clip, plan.seed) == (4, 2, 0.03, 1)
    treatment = network_of(model, hidden=(7, 5), treatment_layer=1).layers[0][-1]
    assert (treatment.family, treatment.size, treatment.visible, treatment.feeds) == (
        "bernoulli",
        1,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("hidden", "layer"), [((2,), 1), ((4, 3), 1), ((8, 4, 2), 2), ((8, 8, 4, 4), 2)]
)
def test_treatment_sits_in_the_middle(hidden, layer):
    network = network_of(model_of(), hidden=hidden)
    visible = [
        number
        for number, blocks in enumerate(network.layers, start=1)
        if any(block.visible for block in blocks)
    ]
    assert visible == [layer, len(hidden) + 1]


def test_family_of_the_outcome():
    assert network_of(model_of()).layers[-1][0].family == "gaussian"
    assert network_of(model_of(outcome="binomial")).layers[-1][0].family == "bernoulli"


def test_variance_ladder_rises_towards_the_outcome():
    """σ_1² ≪ σ_2² ≪ … ≪ 1, a hundred times from layer to layer."""
    variance = plan_of(model_of(), hidden=(8, 6, 4)).training.sampler.variance
    for below, above in zip(variance, (*variance[1:], 1.0), strict=True):
        assert below * 99 < above


def test_a_batch_is_never_larger_than_the_training_rows():
    options = preset("calibrated")
    large = options.replace(training=replace(options.training, batch_size=5000))
    plan = plan_of(model_of(n=100), large, folds=2, validation_fraction=0.2)
    assert plan.training.batch_size <= 100 / 2 * 0.8


def test_small_samples_get_more_passes():
    options = preset("calibrated")
    options = options.replace(
        training=replace(options.training, stages=(StageOptions(epochs="auto"),))
    )
    small, large = (
        plan_of(model_of(n=n), options).training.stages[0].epochs for n in (200, 20_000)
    )
    assert small > large


def test_equal_plans_are_equal_and_others_are_not():
    model = model_of()
    assert plan_of(model) == plan_of(model)
    assert plan_of(model) != plan_of(model, clip=0.02)


def test_lengths_must_match_the_layers():
    options = preset("calibrated")
    with_two = replace(options.training, sampler=SamplerOptions(variance=(1e-3, 1e-2)))
    with pytest.raises(OptionError, match=r"variance needs one number per hidden layer: 3 .*got 2"):
        plan_of(model_of(), options.replace(training=with_two, hidden=(8, 4, 3)))
    short_rate = replace(options.training, stages=(StageOptions(epochs=1, rate=(0.1,)),))
    with pytest.raises(OptionError, match=r"rate needs one number per layer.*: 3 .*got 1"):
        plan_of(model_of(), options.replace(training=short_rate, hidden=(8, 4)))
    long_step = replace(options.training, stages=(StageOptions(epochs=1, step=(0.1,) * 3),))
    with pytest.raises(OptionError, match=r"step needs one number per hidden layer: 2 .*got 3"):
        plan_of(model_of(), options.replace(training=long_step, hidden=(8, 4)))


def test_step_is_the_root_of_the_variance():
    plan = plan_of(model_of())
    expected = [math.sqrt(v) for v in plan.training.sampler.variance]
    assert list(plan.training.stages[0].step) == pytest.approx(expected)


def test_treatment_needs_company_in_its_layer():
    with pytest.raises(OptionError, match="Hidden layer 2 holds the treatment"):
        plan_of(model_of(), hidden=(4, 1), treatment_layer=2)


COMPLETE = "y ~ treat | ."
INCOMPLETE = "missing covariates"


@pytest.mark.parametrize(
    ("what", "formula"),
    [
        ("a continuous treatment", "y ~ x1 | x2 + x3"),
        ("mediators", "y ~ treat | x2 + x3 | x4"),
        (INCOMPLETE, COMPLETE),
    ],
)
def test_weights_leave_covariates_out_only_where_the_estimator_makes_up_for_it(what, formula):
    data = cs.datasets.simulation2(n=120, p=6, seed=1).data
    complete = CausalStoNet.from_formula(COMPLETE, data)
    assert plan_of(complete).search.adjust == "linear"
    asked = replace(preset("calibrated").search, adjust="linear")
    assert plan_of(complete, search=asked).adjusts_linearly
    if what == INCOMPLETE:
        data.loc[:9, "x1"] = math.nan
    model = CausalStoNet.from_formula(
        formula, data, missing="mar" if what == INCOMPLETE else "raise"
    )
    plan = plan_of(model)
    assert plan.search.adjust == "union"
    assert plan.unites_supports
    assert not plan.adjusts_linearly
    with pytest.raises(OptionError, match=f"adjust='linear' is not available with {what}"):
        plan_of(model, search=asked)


def test_the_prior_is_set_from_rows_and_weights():
    small, large = (model_of(n=n).plan("stonet").training.prior for n in (300, 3000))
    assert large.spike_start < small.spike_start
    assert large.spike_end < small.spike_end
    wide = model_of(n=300, p=60).plan("stonet").training.prior
    assert wide.inclusion < small.inclusion


def test_weights_are_those_of_the_unpruned_network():
    model = model_of()
    plan = plan_of(model, hidden=(7, 5), treatment_layer=1)
    assert plan.network.weights(6) == network_of(model, hidden=(7, 5), treatment_layer=1).n_weights
    assert plan.network.weights(2) == 2 * 7 + 7 * 5 + 5


def test_the_cost_of_training_is_bounded_whatever_the_rows():
    """Row visits grow much more slowly than rows, and so do the rows held out."""
    options = preset("calibrated")
    visits, held_out = [], []
    for n in (20_000, 2_000_000):
        problem = Problem(n, 10, "bernoulli", "gaussian", 1)
        plan = make_plan(problem, options, preset="calibrated", seed=0)
        for training in (plan.training, plan.search.training, plan.refitting):
            assert training.epoch_rows <= 64 * training.batch_size
        rows = min(plan.training.epoch_rows, n)
        visits.append(plan.training.stages[0].epochs * rows)
        held_out.append(plan.validation_fraction * n * (plan.folds - 1) / plan.folds)
        assert plan.refitting.stages[0].epochs < plan.search.training.stages[0].epochs
    assert 2 < visits[1] / visits[0] < 4  # (100)^(1/4), and what rounding adds
    assert max(held_out) <= 2000 + 1e-6
    assert plan_of(model_of(n=200), validation_fraction=0.3).validation_fraction == 0.3


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("n", [1000, 4000, 5000, 10_000, 12_000, 30_000])
def test_a_budget_of_updates_is_spent_where_an_epoch_is_a_part_of_the_rows(n, more):
    """Folds may have a row more or less than the plan counts."""
    options = preset("calibrated")
    plan = make_plan(
        Problem(n, 10, "bernoulli", "gaussian", 1), options, preset="calibrated", seed=0
    )
    training, rows = plan.training, int(n * 0.8 * (1 - plan.validation_fraction))
    rows += more
    # Cut as the trainer does it.
    part = math.ceil(rows / max(1, math.floor(rows / training.epoch_rows + 0.5)))
    epochs = training.stages[0].epochs
    updates = epochs * math.ceil(part / training.batch_size)
    budget = options.updates * max(1, rows / 10_000) ** 0.25
    # A row too many may make an incomplete minibatch of its own in every epoch.
    assert budget - 1 <= updates < budget + 64 + epochs * (more > 0)


@pytest.mark.parametrize(("n", "size"), [(20_000, 512), (20_001, 64)])
def test_the_covariates_of_few_rows_may_be_copied_where_they_are_many(n, size):
    problem = Problem(n, 10, "bernoulli", "gaussian", 1)
    plan = make_plan(problem, preset("calibrated"), preset="calibrated", seed=0)
    assert plan.pack_bytes == size * 2**20
    options = preset("calibrated").replace(pack_bytes=7)
    assert make_plan(problem, options, preset="calibrated", seed=0).pack_bytes == 7


@pytest.mark.parametrize(
    ("n", "folds", "margin"), [(1874, 5, -0.4), (1875, 5, 0.1), (1500, 1, 0.1)]
)
def test_few_rows_ask_less_of_a_covariate(n, folds, margin):
    problem = Problem(n, 10, "bernoulli", "gaussian", 1)
    options = preset("calibrated").replace(folds=folds)
    assert make_plan(problem, options, preset="calibrated", seed=0).search.outcome_margin == margin
    given = options.replace(search=replace(options.search, outcome_margin=2.0))
    assert make_plan(problem, given, preset="calibrated", seed=0).search.outcome_margin == 2.0
