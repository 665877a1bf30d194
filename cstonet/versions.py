"""Versions of this package and of those that compute with it."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version_of(package: str) -> str:
    """The version that is installed, looked up once.

    Every look-up of the standard library keeps a table of the folders that it has seen.
    """
    return metadata.version(package)
