"""Names that a fit does not have: where to go instead, without any surprise on the way."""

from __future__ import annotations

import copy
import pickle

import pytest

from cstonet.analyses.arms.results import ArmsResults
from cstonet.analyses.doses.results import DoseResults
from cstonet.analyses.mediation.results import MediationResults
from cstonet.errors import NotAvailableError, NotOfThisFitError

ANALYSES = (ArmsResults, DoseResults, MediationResults)


def test_names_of_other_analyses_are_answered_with_advice(make_results):
    results = make_results(treatment_name="drug")
    with pytest.raises(NotOfThisFitError, match=r"'drug' has levels, not doses.*potential_outc"):
        results.dose_response()
    with pytest.raises(NotOfThisFitError, match="names no mediators: add them"):
        results.proportion_mediated()


def test_the_error_is_caught_as_either_of_its_parents(make_results):
    for parent in (NotAvailableError, AttributeError):
        with pytest.raises(parent, match="names no mediators"):
            _ = make_results().mediators


def test_unknown_names_are_plain_attribute_errors(make_results):
    with pytest.raises(AttributeError, match="object has no attribute 'parms'") as caught:
        _ = make_results().parms
    assert not isinstance(caught.value, NotAvailableError)


@pytest.mark.parametrize("name", ["dose_response", "proportion_mediated", "parms", "_x", "__len__"])
def test_what_is_not_there_is_not_there(make_results, name):
    results = make_results()
    assert not hasattr(results, name)
    assert getattr(results, name, None) is None


@pytest.mark.parametrize("kind", ANALYSES)
def test_advice_is_only_for_names_that_another_analysis_has(kind):
    """And not for those of its own, of which it would never be asked."""
    others = [other for other in ANALYSES if other is not kind]
    for name in kind._elsewhere:
        assert not hasattr(kind, name)
        public = any(hasattr(other, name) for other in others)
        assert public or name == "mediators"  # set in __init__


def test_results_can_be_copied(make_results):
    results = make_results()
    twin = copy.copy(results)
    assert type(twin) is type(results)
    assert vars(twin) == vars(results)
    assert str(twin.summary()) == str(results.summary())


def test_an_object_that_is_not_filled_yet_asks_for_nothing_endlessly():
    """Copying and unpickling look for names on an object before it has any of its own."""
    empty = ArmsResults.__new__(ArmsResults)
    for name in ("effects", "design", "params", "__setstate__", "__deepcopy__", "anything"):
        assert not hasattr(empty, name)


def test_results_survive_a_process_boundary(fitted):
    twin = pickle.loads(pickle.dumps(fitted))
    assert type(twin) is ArmsResults
    assert twin.params.equals(fitted.params)
    assert str(twin.summary()) == str(fitted.summary())
