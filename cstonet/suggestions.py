"""What a misspelt name was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


def did_you_mean(name: str, known: Iterable[str], *, form: Callable[[str], str] = repr) -> str:
    """A question for a message, such as ``" Did you mean 'x12'?"``; empty if no name is near.

    Parameters
    ----------
    name
        What was typed.
    known
        The names there are. One that differs in nothing but case and outer spaces is the nearest.
    form
        How to write a name.
    """
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(_fold(candidate), candidate)
    near = difflib.get_close_matches(_fold(name), folded, n=1)
    return f" Did you mean {form(folded[near[0]])}?" if near else ""


def _fold(name: str) -> str:
    return name.strip().casefold()
