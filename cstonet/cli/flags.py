"""Command-line flags made from the options' own dataclasses and signatures.

Names, types, choices and help texts have one home, where the options are defined; this module only
translates them for argparse. Ranges are checked by the options themselves.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from cstonet.settings.checks import members

_SECTION = "Parameters"
_LIST, _INTEGER, _NUMBER, _TEXT = "A,B,...", "INTEGER", "NUMBER", "TEXT"
_NAMED_LISTS = "A:B,C;..."
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_NAMES = {
    _NAMED_LISTS: "names with lists of names",
    _LIST: "list of whole numbers",
    _INTEGER: "whole number",
    _NUMBER: "number",
    _TEXT: "text",
}


class Help(argparse.HelpFormatter):
    """Help whose paragraphs are filled, and whose examples stay as they are written."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_flag(
    group: argparse._ActionsContainer, name: str, hint: object, text: str, default: object = None
) -> None:
    """Add ``--name`` to a parser or group.

    Parameters
    ----------
    group
        What to add it to.
    name
        Name of the option; underscores become hyphens.
    hint
        Its type: int, float, str, bool, a tuple of numbers, a mapping from names to lists of
        names, a Literal, or a union of these.
    text
        What it means; `argparse.SUPPRESS` hides the flag from the help.
    default
        Shown in the help if not None. The value of a flag that was not given is always None, so
        that the option's own default counts.
    """
    help_text = text
    if text != argparse.SUPPRESS:
        help_text = text.replace("%", "%%") + ("" if default is None else f" (default: {default})")
    flag = "--" + name.replace("_", "-")
    if hint is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, help=help_text)
        return
    choices = get_args(hint) if get_origin(hint) is Literal else None
    reader = str if choices else _reader(hint)
    group.add_argument(
        flag,
        type=reader,
        choices=choices,
        metavar=None if choices else _metavar(hint),
        help=help_text,
    )


def is_flag(hint: object) -> bool:
    """Whether one word on the command line can express a value of this type."""
    return not any(dataclasses.is_dataclass(kind) for kind in members(hint))


def parameter_docs(documented: object) -> dict[str, str]:
    """Description of each parameter in a numpydoc docstring, on one line each."""
    lines = inspect.cleandoc(documented.__doc__ or "").splitlines()
    docs: dict[str, str] = {}
    names: list[str] = []
    for line in lines[lines.index(_SECTION) + 2 :]:
        if line.startswith("---"):
            break
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
        for name in names if line.startswith(" ") else ():
            docs[name] = " ".join([*filter(None, [docs.get(name)]), line.strip()])
    return {name: text.replace("``", "") for name, text in docs.items()}


def _reader(hint: object) -> Callable[[str], Any]:
    """From the text of a flag to a value of the type."""
    kinds = members(hint)
    if _is_mapping(kinds):
        return named_lists

    def read(text: str) -> Any:
        for kind in kinds:
            if get_origin(kind) is Literal and text in get_args(kind):
                return text
        if bool in kinds and text.lower() in _TRUTHS:
            return _TRUTHS[text.lower()]
        scalar = next((kind for kind in kinds if kind in (int, float)), None)
        if scalar is not None and "," not in text:
            return scalar(text)
        for kind in kinds:
            if get_origin(kind) is tuple:
                return tuple(get_args(kind)[0](part) for part in text.split(","))
        return text

    # argparse names the reader in its message: "invalid whole number value: 'many'".
    read.__name__ = _NAMES[_metavar(hint)]
    return read


def named_lists(text: str) -> dict[str, tuple[str, ...]]:
    """Names with the names that belong to each, from text such as ``x1: x2, x3; x4: x5``.

    Names may hold spaces inside, but no colons, commas or semicolons.
    """
    lists: dict[str, tuple[str, ...]] = {}
    for entry in text.split(";"):
        name, colon, others = (part.strip() for part in entry.partition(":"))
        listed = tuple(other.strip() for other in others.split(","))
        wrong = None
        if not entry.strip():
            wrong = "a part of it is empty"
        elif not colon:
            wrong = f"{name!r} has no colon after its first name"
        elif ":" in others:
            wrong = f"{entry.strip()!r} has two colons; a semicolon may be missing"
        elif not name or not all(listed):
            wrong = f"a name is missing in {entry.strip()!r}"
        elif name in lists:
            wrong = f"{name!r} is there twice"
        if wrong is not None:
            raise argparse.ArgumentTypeError(
                f"{text!r} cannot be read: {wrong}. Write a name, a colon and the names that "
                "belong to it with commas between them, and a semicolon before the next, as in "
                '"x1: x2, x3; x4: x5".'
            )
        lists[name] = listed
    return lists


def _is_mapping(kinds: tuple[object, ...]) -> bool:
    return any(get_origin(kind) is Mapping for kind in kinds)


def _metavar(hint: object) -> str:
    kinds = members(hint)
    if _is_mapping(kinds):
        return _NAMED_LISTS
    if int in kinds:
        return _INTEGER
    if float in kinds:
        return _NUMBER
    return _LIST if any(get_origin(kind) is tuple for kind in kinds) else _TEXT
