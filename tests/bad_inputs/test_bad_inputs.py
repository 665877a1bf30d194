"""Bad inputs of all classes end in a named error or in the right answer, none in anything else."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from cstonet.errors import OptionError
from tests.bad_inputs.cases import all_cases
from tests.bad_inputs.outcome import Case, judge
from tests.bad_inputs.run import defects, judged, table

# In the fast tests one case of so many is run, of every class.
_STRIDE = 9


@cache
def by_class() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        found.setdefault(case.kind, []).append(case)
    return found


def test_there_are_thousands_and_no_two_of_one_name():
    counts = Counter((case.kind, case.name) for cases in by_class().values() for case in cases)
    assert counts.total() >= 20_000
    assert sum(len(cases[::_STRIDE]) for cases in by_class().values()) >= 2000
    assert [name for name, times in counts.items() if times > 1] == []


@pytest.mark.parametrize("stride", [_STRIDE, pytest.param(1, marks=pytest.mark.slow)])
def test_bad_inputs_have_named_errors_or_the_right_answer(stride):
    wrong = [one for cases in by_class().values() for one in defects(judged(cases[::stride]))]
    assert not wrong, "\n".join(ascii(str(one)) for one in wrong)


def raising(error: BaseException):
    def run():
        raise error

    return run


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        (Case("k", "n", raising(OptionError("wrong x")), ("x",)), "named"),
        (Case("k", "n", raising(OptionError("wrong")), ("x",)), "unhelpful"),
        (Case("k", "n", raising(OptionError("x" * 9999)), ("x",)), "unhelpful"),
        (Case("k", "n", raising(OptionError("x \ud800")), ("x",)), "unhelpful"),
        (Case("k", "n", raising(OptionError("x")), (), bool), "unhelpful"),
        (Case("k", "n", raising(ValueError("x")), ("x",)), "foreign"),
        (Case("k", "n", raising(SystemExit(2)), ("x",)), "foreign"),
        (Case("k", "n", lambda: 1, ("x",)), "nonsense"),
        (Case("k", "n", lambda: 1, ("x",), lambda answer: answer == 2), "nonsense"),
        (Case("k", "n", lambda: 1, ("x",), lambda answer: answer == 1), "right"),
    ],
)
def test_outcomes(case, outcome):
    assert judge(case).outcome == outcome
    assert table([judge(case)]).loc["all", outcome] == 1


def test_warnings_from_below_are_foreign():
    import warnings

    from cstonet.errors import PointMassWarning

    def warn(category):
        return Case("k", "n", lambda: warnings.warn("x", category, stacklevel=1) or 1, (), bool)

    assert judge(warn(RuntimeWarning)).outcome == "foreign"
    assert judge(warn(PointMassWarning)).outcome == "right"
