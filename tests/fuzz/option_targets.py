"""Options of plain values: a named error, or options that are what they were made of."""

from __future__ import annotations

import json
import random
from dataclasses import fields
from typing import Any

from cstonet.errors import CStoNetError
from cstonet.settings import options

from .chance import often, plain_value, several
from .targets import as_json

CLASSES = (
    options.FitOptions,
    options.SearchOptions,
    options.TrainingOptions,
    options.StageOptions,
    options.SamplerOptions,
    options.PriorOptions,
    options.OptimizerOptions,
)
# Fields without a default.
_REQUIRED: dict[type, dict[str, Any]] = {
    options.StageOptions: {"epochs": 3},
    options.TrainingOptions: {"stages": (options.StageOptions(epochs=3),)},
}
_DEFAULTS = {(cls, field.name): field.default for cls in CLASSES for field in fields(cls)}


class Options:
    """Some fields of a class of options, with values that are theirs or anything.

    The input is JSON: the name of the class, and pairs of a field and its value.
    """

    def draw(self, chance: random.Random) -> bytes:
        cls = chance.choice(CLASSES)
        names = [field.name for field in fields(cls)] + ["stars", ""]

        def change() -> tuple[str, Any]:
            name = chance.choice(names)
            known = _DEFAULTS.get((cls, name))
            near = isinstance(known, int | float | str) and often(chance, 0.3)
            return name, self._near(chance, known) if near else plain_value(chance)

        return as_json([cls.__name__, several(chance, change, 3, least=1)])

    def _near(self, chance: random.Random, known: Any) -> Any:
        if isinstance(known, str):
            return chance.choice((known, known.upper(), known[:-1], known.encode().hex()))
        return chance.choice((known, -known, known + 1, known * 10**6, str(known), [known, known]))

    def run(self, content: bytes) -> str:
        name, changes = json.loads(content)
        changes = dict(changes)
        cls = getattr(options, name)
        if cls is not options.FitOptions:
            known = {field.name for field in fields(cls)}
            changes = {field: value for field, value in changes.items() if field in known}
        try:
            whole = cls is options.FitOptions
            made = cls().replace(**changes) if whole else cls(**_REQUIRED.get(cls, {}) | changes)
        except CStoNetError as error:
            return type(error).__name__
        # What is accepted is a value: made again of its own fields it is the same.
        assert cls(**{field.name: getattr(made, field.name) for field in fields(cls)}) == made
        hash(made)
        return "accepted"

    def close(self) -> None:
        pass
