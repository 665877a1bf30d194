"""When covariates are copied: up to a size, and a large copy only where there is memory for it."""

from __future__ import annotations

import numpy as np
import pytest

from cstonet.network import scaling
from cstonet.network.scaling import column_scaling

X = np.random.default_rng(0).normal(size=(50, 32))
SIZE = X.size * 4  # of a copy in float32


@pytest.mark.parametrize(
    ("pack_bytes", "left", "small", "packed"),
    [
        (SIZE, None, 0, True),
        (SIZE - 1, None, 0, False),
        (SIZE, 4 * SIZE, 0, True),
        (SIZE, 4 * SIZE - 4, 0, False),
        (SIZE, 0, SIZE, True),  # small enough: if there is no room, the user is told
    ],
)
def test_a_large_copy_needs_four_times_its_size(pack_bytes, left, small, packed, monkeypatch):
    monkeypatch.setattr(scaling, "available_bytes", lambda: left)
    monkeypatch.setattr(scaling, "SMALL_COPY", small)
    data = column_scaling(X, 6.0).dataset(X, pack_bytes)
    assert data.is_packed == packed
    inside = column_scaling(X, 6.0).dataset(X, 0)
    rows, columns = np.arange(50), np.arange(32)
    np.testing.assert_array_equal(data.gather(rows, columns), inside.gather(rows, columns))
