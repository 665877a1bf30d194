"""The kernel against NumPy: the twins stand beside the tests that use them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cstonet import _core

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=_core.levels())
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction-set level this machine can run, one after the other."""
    before = _core.level()
    _core.use_level(request.param)
    yield request.param
    _core.use_level(before)
