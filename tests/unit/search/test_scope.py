"""What a search may do, and which covariates count as selected for a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cstonet.network.structure import Structure
from cstonet.network.trained import OUTCOME, TREATMENT
from cstonet.search.scope import Adjustment, SearchScope


@pytest.fixture
def dense(network):
    """A network in which all three covariates reach both models; they are columns 4, 5, 9."""
    net = network(first=np.ones((3, 2)), second=np.ones((2, 2)))
    assert net.reaches_treatment.all()
    assert net.reaches_outcome.all()
    return replace(net, inputs=np.array([4, 5, 9]))


def test_without_a_search_paths_decide(network, dense):
    net = network()  # x1 reaches the outcome, x2 the treatment
    assert Adjustment().selects(net, OUTCOME).tolist() == [True, False, False]
    assert Adjustment().selects(net, TREATMENT).tolist() == [False, True, False]
    for block in (TREATMENT, OUTCOME):
        assert Adjustment().selects(dense, block).all()


def test_a_search_must_have_found_the_covariate_for_the_model(dense):
    """Networks on united supports have paths of covariates that were found for the other model."""
    adjustment = Adjustment(found=Structure(treatment=(9,), outcome=(5, 4)))
    assert adjustment.selects(dense, OUTCOME).tolist() == [True, True, False]
    assert adjustment.selects(dense, TREATMENT).tolist() == [False, False, True]


def test_what_was_found_needs_a_path(network):
    adjustment = Adjustment(found=Structure(treatment=(0, 1, 2), outcome=(0, 1, 2)))
    assert adjustment.selects(network(), OUTCOME).tolist() == [True, False, False]
    assert adjustment.selects(network(), TREATMENT).tolist() == [False, True, False]


def test_nothing_found_is_nothing_selected(dense):
    for block in (TREATMENT, OUTCOME):
        assert not Adjustment(found=Structure()).selects(dense, block).any()


def test_linear_terms_need_no_path_to_the_treatment(network):
    """x1 was found for the treatment and left to a linear term: no weight of its model holds it."""
    found = Structure(treatment=(0, 1), outcome=(2,))
    with_terms, without = Adjustment(found, linear=(0,)), Adjustment(found)
    assert with_terms.selects(network(), TREATMENT).tolist() == [True, True, False]
    assert without.selects(network(), TREATMENT).tolist() == [False, True, False]
    # They are no excuse in the outcome model.
    assert with_terms.selects(network(), OUTCOME).tolist() == [False, False, False]


def test_levels_are_selected_one_by_one(network, dense):
    net = network()
    for adjustment in (Adjustment(), Adjustment(Structure(treatment=(0, 1)), linear=(0,))):
        of_levels = adjustment.selects_levels(net)
        assert of_levels.shape == (3, 1)
        np.testing.assert_array_equal(of_levels[:, 0], adjustment.selects(net, TREATMENT))


def test_united_supports_stay_within_the_scope():
    found = Structure(treatment=(1, 2), outcome=(3, 1))
    everything = SearchScope()
    assert everything.united(found) == found.united == Structure((3, 1, 2), (3, 1, 2))
    more = SearchScope(adjust=(7, 3), barred=(1,))
    assert more.united(found) == Structure(treatment=(3, 2, 7), outcome=(3, 1, 2, 7))
    outcome_alone = SearchScope(models=("outcome",), adjust=(7,))
    assert outcome_alone.united(found) == Structure(treatment=(), outcome=(3, 1, 2, 7))
