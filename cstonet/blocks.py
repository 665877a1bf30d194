"""Rows in blocks: what is computed row by row needs memory for a block of rows, not for all."""

from __future__ import annotations

from collections.abc import Iterator

# Rows handled at a time. Large enough for numpy to work at full speed, small enough that some
# dozens of float64 columns of them are nothing beside the data.
ROWS_AT_ONCE = 65_536


def row_blocks(n: int) -> Iterator[slice]:
    """Neighbouring rows of 0, …, n - 1, block after block."""
    for first in range(0, n, ROWS_AT_ONCE):
        yield slice(first, min(first + ROWS_AT_ONCE, n))
