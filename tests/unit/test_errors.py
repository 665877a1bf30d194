"""The exceptions: one root, expected built-in parents, messages that print as written."""

from __future__ import annotations

import inspect
import pickle

import pytest

from cstonet import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]


def test_all_lists_every_class_of_the_module():
    defined = {name for name, cls in inspect.getmembers(errors, inspect.isclass)}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize("cls", CLASSES)
def test_each_is_caught_by_a_root_and_documented(cls):
    assert issubclass(cls, (errors.CStoNetError, errors.CStoNetWarning))
    assert cls.__doc__
    assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("cls", CLASSES)
def test_message_prints_as_written_and_survives_a_process_boundary(cls):
    message = "There is no column 'x1'.\nDid you mean 'x2'?"
    error = pickle.loads(pickle.dumps(cls(message)))
    assert type(error) is cls
    assert str(error) == message


@pytest.mark.parametrize(
    ("cls", "parent"),
    [
        (errors.FormulaError, ValueError),
        (errors.DataError, ValueError),
        (errors.OptionError, ValueError),
        (errors.ColumnTypeError, TypeError),
        (errors.OutcomeTypeError, TypeError),
        (errors.TreatmentTypeError, TypeError),
        (errors.NumericalError, RuntimeError),
        (errors.NotOfThisFitError, errors.NotAvailableError),
        (errors.NotOfThisFitError, AttributeError),
        (errors.CStoNetWarning, UserWarning),
        (errors.UnknownColumnError, errors.DataError),
        (errors.TreatmentLeakError, errors.DataError),
    ],
)
def test_built_in_parents(cls, parent):
    assert issubclass(cls, parent)
