"""What the objects of the kernel show to the linker, and the extension to whoever loads it.

An inline function that two levels share is one weak symbol, of which the linker keeps any: code for
a newer processor would then run on an older one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cstonet import _core

OBJECTS = Path(__file__).parents[2] / "build" / "cpp"
WEAK = {"V", "W", "u"}

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("nm"), reason="needs ELF and nm"
    ),
    pytest.mark.skipif("CSTONET_SEAMS" in os.environ, reason="sanitizers add symbols of their own"),
]


def symbols(*arguments: str | Path) -> set[tuple[str, str]]:
    """Kind and name of what is defined there."""
    command = ["nm", "--defined-only", "--format=posix", *map(str, arguments)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (line.split() for line in listed.splitlines() if not line.endswith(":"))
    return {(fields[1], fields[0]) for fields in lines if fields}


def weak_of(folder: Path) -> set[str]:
    return {name for kind, name in symbols(*folder.rglob("*.o")) if kind in WEAK}


def test_the_extension_exports_itself_alone() -> None:
    assert symbols("--dynamic", _core.__file__) == {("T", "PyInit__core")}


def test_levels_share_no_weak_symbols() -> None:
    levels = {level: weak_of(OBJECTS / level) for level in _core.levels()}
    rest = weak_of(OBJECTS / "csrc")
    assert rest  # weak symbols are found where there are some
    for level, own in levels.items():
        others = set().union(rest, *(weak for name, weak in levels.items() if name != level))
        assert not own & others, f"{level} shares what the linker would merge"


def test_symbols_of_a_level_bear_its_name() -> None:
    for level in _core.levels():
        shown = {name for kind, name in symbols(*(OBJECTS / level).rglob("*.o")) if kind.isupper()}
        kernels = {name for name in shown if f"7cstonet{len(level)}{level}" in name}
        assert kernels
        assert shown == kernels
