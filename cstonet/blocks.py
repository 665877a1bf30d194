"""Rows in blocks: what is computed row by row needs memory for a block of rows, not for all."""

from __future__ import annotations

from collections.abc import Iterator

# Rows handled at a time. Large enough for numpy to work at full speed, small enough that some
# dozens of float64 columns of them are nothing beside the data.
ROWS_AT_ONCE = 65_536
# Values handled at a time where columns are more, in at least so many rows.
_VALUES_AT_ONCE, _FEWEST_ROWS = 2**20, 256


def row_blocks(n: int, columns: int = 1) -> Iterator[slice]:
    """Neighbouring rows of 0, …, n - 1, block after block; fewer at a time of many columns."""
    size = min(ROWS_AT_ONCE, max(_VALUES_AT_ONCE // max(columns, 1), _FEWEST_ROWS))
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))
