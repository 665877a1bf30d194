"""The kernel against NumPy: the twins stand beside the tests that use them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import cstonet_seams
import pytest

from cstonet import _core

sys.path.insert(0, str(Path(__file__).parent))

# Each has kernels of its own, and chooses their level for itself.
KERNELS = (_core, cstonet_seams)


@pytest.fixture(params=_core.levels())
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction-set level this machine can run, one after the other."""
    before = _core.level()
    for module in KERNELS:
        module.use_level(request.param)
    yield request.param
    for module in KERNELS:
        module.use_level(before)
