"""The published settings, number by number, from the paper's appendix "Parameters setting"."""

from __future__ import annotations

import dataclasses

import pytest

from cstonet.errors import OptionError
from cstonet.settings.options import FitOptions
from cstonet.settings.presets import EXPERIMENTS, PRESETS, preset

# hidden units, layer of the treatment, σ_1².. σ_{h+1}², σ0², σ1², epochs, α, ε, exponent of ε,
# γ in training, γ in refining, exponent of γ.
PUBLISHED = {
    "simulation1": (
        (32, 16, 8), 2, (1e-3, 1e-5, 1e-7, 1e-9), 1e-5, 1e-2, (50, 200, 200),
        0.1, (3e-3, 3e-4, 5e-7), 1.2,
        (1e-3, 1e-6, 1e-8, 5e-13), (1e-4, 1e-7, 1e-9, 5e-14), 1.4,
    ),
    "simulation2": (
        (8, 6, 5), 2, (1e-3, 1e-5, 1e-7, 1e-9), 3e-3, 0.3, (100, 1500, 200),
        0.1, (3e-3, 3e-4, 1e-6), 1.2,
        (1e-3, 3e-6, 1e-7, 1e-12), (1e-4, 3e-7, 1e-8, 1e-13), 1.2,
    ),
    "acic": (
        (64, 32), 1, (1e-5, 1e-7, 1e-9), 2e-4, 0.1, (100, 500, 1000, 200),
        1.0, (3e-4, 1e-6), 1.0,
        (5e-6, 5e-8, 5e-13), (5e-7, 5e-9, 1e-13), 2.0,
    ),
    "twins": (
        (16, 8, 4), 2, (1e-3, 1e-4, 1e-5, 1e-6), 5e-4, 0.1, (100, 1500, 200),
        1.0, (1e-2, 9e-3, 9e-5), 1.0,
        (1e-3, 1e-4, 1e-5, 1e-9), (1e-4, 1e-5, 1e-6, 1e-10), 1.2,
    ),
    "tcga": (
        (64, 16, 4), 2, (1e-3, 1e-5, 1e-7, 1e-9), 1e-5, 1e-2, (100, 1500, 200),
        1.0, (3e-3, 3e-4, 1e-6), 1.0,
        (1e-3, 5e-5, 5e-7, 1e-12), (1e-4, 1e-6, 1e-8, 1e-13), 1.2,
    ),
}  # fmt: skip
# Of the published computations; for the twins none is known.
TREATMENT_WEIGHT = {
    "simulation1": 1000, "simulation2": 1000, "acic": 2000, "twins": 100.0, "tcga": 200,
}  # fmt: skip


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_published_numbers(experiment):
    (
        hidden, layer, variances, spike, slab, epochs,
        friction, step, step_exponent, rate, refine_rate, rate_exponent,
    ) = PUBLISHED[experiment]  # fmt: skip
    options = preset(f"paper:{experiment}")
    training = options.training
    assert options.hidden == hidden
    assert options.treatment_layer == layer
    assert options.activation == "tanh"
    assert options.starts == 10
    assert (*training.sampler.variance, training.initial_variance) == variances
    assert training.sampler.sweeps == 1
    assert training.sampler.friction == friction
    assert training.sampler.temperature == 1
    assert training.prior.inclusion == 1e-6
    assert training.prior.slab_variance == slab
    assert training.prior.spike_start == training.prior.spike_end == spike
    assert not training.estimate_variance

    pretrain, *train, refine = training.stages
    assert tuple(stage.epochs for stage in training.stages) == epochs
    assert [stage.rate for stage in (pretrain, *train)] == [rate] * (1 + len(train))
    assert refine.rate == refine_rate
    assert all(stage.step == step for stage in training.stages)
    for stage in (*train, refine):
        assert (stage.rate_decay, stage.rate_exponent) == ("polynomial", rate_exponent)
        assert (stage.step_decay, stage.step_exponent) == ("polynomial", step_exponent)
    assert (pretrain.rate_decay, pretrain.step_decay) == ("none", "none")
    assert [stage.prune for stage in training.stages] == [False, *[True] * len(train), False]
    assert {stage.prior for stage in training.stages} == {"mixture"}
    assert training.prior.penalize_bias
    assert options.outcome_temperature == training.initial_variance
    assert options.treatment_weight == TREATMENT_WEIGHT[experiment]


def test_every_experiment_is_checked_above():
    assert set(EXPERIMENTS) == set(PUBLISHED)


def test_paper_is_the_second_simulation():
    assert preset("paper") == preset("paper:simulation2")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_values(name):
    assert isinstance(preset(name), FitOptions)
    assert preset(name) == preset(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset(name).clip = 0.3


def test_calibrated_is_what_the_options_say():
    assert preset("calibrated") == FitOptions()


def test_stonet_is_one_network_that_is_pruned_and_refined():
    options = preset("stonet")
    train, refine = options.training.stages
    assert options.search is None
    assert (options.ensemble, options.training.estimate_variance) == (1, True)
    assert (train.prior, train.prune) == ("mixture", True)
    assert (refine.prior, refine.prune) == ("slab", False)
    prior = options.training.prior
    assert prior.inclusion == prior.spike_start == prior.spike_end == "auto"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_published_fits_have_nothing_of_the_calibrated_recipe(experiment):
    """One network on all covariates, the best of its starts, all rows and values as they are."""
    options = preset(f"paper:{experiment}")
    set_apart = {
        "search": None,
        "starts": 10,
        "ensemble": 1,
        "folds": 3,
        "repeats": 1,
        "validation_fraction": 0.0,
        "outlier_limit": 1e6,
    }
    assert {name: getattr(options, name) for name in set_apart} == set_apart
    same = options.replace(
        training=FitOptions().training,
        hidden="auto",
        treatment_layer="auto",
        treatment_weight=1.0,
        outcome_temperature=1.0,
        **{name: getattr(FitOptions(), name) for name in set_apart},
    )
    assert same == FitOptions()


def test_calibrated_knows_no_data_set():
    """Whatever depends on the data or on its units is left to the plan."""
    options = preset("calibrated")
    assert options.hidden == "auto"
    assert options.training.batch_size == "auto"
    assert options.training.sampler.variance == "auto"
    for stage in options.training.stages:
        assert stage.step == "auto"
        assert stage.rate == "auto" or isinstance(stage.rate, float)  # the same for every layer


@pytest.mark.parametrize("name", ["Paper", "paper:", "paper:ihdp", "", None])
def test_unknown_presets(name):
    with pytest.raises(OptionError, match=r"Unknown preset .*calibrated, stonet, paper, paper:"):
        preset(name)
