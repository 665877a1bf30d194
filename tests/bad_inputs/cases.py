"""All bad inputs, by class."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bad_inputs import arguments, commands, formulas, options, questions, roles
from tests.bad_inputs.outcome import Case

_SOURCES = (
    roles.cases,
    arguments.cases,
    options.cases,
    formulas.cases,
    commands.cases,
    questions.cases,
)


def all_cases() -> Iterator[Case]:
    """Every case of every class, in a fixed order."""
    for cases in _SOURCES:
        yield from cases()
