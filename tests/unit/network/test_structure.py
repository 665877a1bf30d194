"""Supports as masks: who may be connected with whom."""

from __future__ import annotations

import cstonet_seams
import numpy as np
import pytest

from cstonet.network.structure import Structure
from cstonet.network.trained import OUTCOME, TREATMENT

STRUCTURE = Structure(treatment=(7, 2), outcome=(4, 2))


@pytest.fixture
def paths(small_network):
    """Covariates that reach treatment and outcome if every allowed weight is kept."""

    def trace(structure, hidden, layer, treatment_units):
        network = small_network(len(structure.inputs), hidden, layer)
        masks = structure.masks(network, treatment_units)
        for mask, inputs, units in zip(
            masks, (network.inputs, *network.units), network.units, strict=False
        ):
            assert mask.shape == (inputs, units)
            assert set(np.unique(mask)) <= {0.0, 1.0}
        biases = [np.zeros(mask.shape[1], np.float32) for mask in masks]
        _, reaches = cstonet_seams.prune_and_trace(network, masks, biases, 0.5)
        return [set(structure.inputs[np.array(reaches[block])]) for block in (TREATMENT, OUTCOME)]

    return trace


def test_inputs_are_the_union_in_order():
    assert STRUCTURE.inputs.tolist() == [2, 4, 7]
    assert Structure().inputs.tolist() == []
    assert Structure().inputs.dtype == np.int64


def test_lean_weights_hold_the_outcomes_covariates():
    assert STRUCTURE.united == Structure(treatment=(4, 2, 7), outcome=(4, 2, 7))
    assert STRUCTURE.of_treatment_alone == (7,)
    assert STRUCTURE.weighing(()) == Structure(treatment=(4, 2), outcome=(4, 2, 7))
    assert STRUCTURE.weighing((7,)) == Structure(treatment=(4, 2, 7), outcome=(4, 2, 7))


@pytest.mark.parametrize(
    ("hidden", "layer", "treatment_units"),
    [((4, 3), 1, 1), ((4, 3), 2, 1), ((6, 5, 4), 2, 2), ((6, 5, 4), 3, 2), ((2, 2, 2), 3, 1)],
)
def test_each_covariate_reaches_its_own_models_only(paths, hidden, layer, treatment_units):
    treatment, outcome = paths(STRUCTURE, hidden, layer, treatment_units)
    assert treatment == {2, 7}
    assert outcome == {2, 4}


def test_a_model_without_covariates_is_reached_by_none(paths):
    treatment, outcome = paths(Structure(outcome=(3,)), (4, 3), 2, 1)
    assert treatment == set()
    assert outcome == {3}


def test_united_models_hold_the_covariates_of_either(paths):
    both = STRUCTURE.united
    assert both.inputs.tolist() == STRUCTURE.inputs.tolist()
    treatment, outcome = paths(both, (6, 5, 4), 2, 2)
    assert treatment == outcome == {2, 4, 7}


def test_changes_make_new_structures():
    grown = STRUCTURE.with_outcome((4, 2, 9)).with_treatment((1,))
    assert (grown.outcome, grown.treatment) == ((4, 2, 9), (1,))
    assert Structure(treatment=(7, 2), outcome=(4, 2)) == STRUCTURE
