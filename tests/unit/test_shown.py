"""Values of users in messages: short, on one line, printable, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.errors import OptionError
from cstonet.settings.checks import as_whole
from cstonet.settings.options import FitOptions, check_seed
from cstonet.shown import shown


class Broken:
    def __repr__(self):
        raise RuntimeError("no")


def test_short_values_are_written_as_they_are():
    assert shown("a\tb") == r"'a\tb'"
    assert shown(None) == "None"


def test_long_ones_are_cut_and_lines_joined():
    text = shown(np.arange(10_000.0).reshape(100, 100))
    assert "\n" not in text
    assert len(text) <= 201


@pytest.mark.parametrize("value", [10**5000, Broken()], ids=["digits", "broken"])
def test_what_cannot_be_written_has_its_type(value):
    assert shown(value) == f"an object of type {type(value).__name__}"
    with pytest.raises(OptionError, match="an object of type"):
        FitOptions(folds=value)
    with pytest.raises(OptionError, match="an object of type"):
        check_seed(value)


def test_lone_surrogates_can_be_printed():
    class Odd:
        def __repr__(self):
            return "\ud800"

    assert shown(Odd()) == r"\ud800"


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (3, 3),
        (np.uint64(2**63), 2**63),
        (np.array(4), 4),
        *[(other, None) for other in (True, np.True_, 2.0, "2", np.array([1, 2]), None)],
    ],
)
def test_whole_numbers(value, whole):
    assert as_whole(value) == whole
