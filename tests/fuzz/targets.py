"""What is fuzzed: how an input is drawn, and what may come of it.

An input is bytes, so that it can be kept as a file of the corpus: text, JSON, or an archive. A run
says what came of it, the name of an error of the package included; whatever else is raised is a
finding.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

CORPUS = Path(__file__).parent / "corpus"


class Target(Protocol):
    """Something that takes input from others."""

    def draw(self, chance: random.Random) -> bytes:
        """An input."""

    def run(self, content: bytes) -> str:
        """What came of it, in a word; raises what must never happen."""

    def close(self) -> None:
        """Remove what it needed on the disk, and say what must not be there."""


def as_json(value: Any) -> bytes:
    """An input as text that a person can read."""
    return json.dumps(value, indent=1).encode()


def kept(name: str) -> list[Path]:
    """Inputs that found something once, by the name of their target."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())


def make(name: str) -> Target:
    """A target by its name; only its own part of the package is imported."""
    return TARGETS[name]()


def _splitter() -> Target:
    from .formula_targets import Splitter

    return Splitter()


def _terms() -> Target:
    from .formula_targets import Terms

    return Terms()


def _options() -> Target:
    from .option_targets import Options

    return Options()


def _frames() -> Target:
    from .frame_targets import Frames

    return Frames()


def _saves() -> Target:
    from .file_targets import Saves

    return Saves()


def _checkpoints() -> Target:
    from .file_targets import Checkpoints

    return Checkpoints()


TARGETS: Mapping[str, Any] = {
    "splitter": _splitter,
    "terms": _terms,
    "options": _options,
    "frames": _frames,
    "saves": _saves,
    "checkpoints": _checkpoints,
}
