"""The user's call into this package: a formula sees its names, a warning points at its line."""

from __future__ import annotations

import sys
from types import FrameType

_PACKAGE = __name__.partition(".")[0]


def caller_frame() -> FrameType | None:
    """The innermost frame outside the package, or None if the package is the program itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def caller_stacklevel() -> int:
    """The `stacklevel` with which `warnings.warn` points at the line of the user."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
        level += 1
    return level


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE
