"""Figures and tables of the reports, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def number(value: float, digits: int = 3) -> str:
    """A figure to so many significant digits, or a dash."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, the first column of which is text."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
