"""Figures and tables of the reports, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from metrics import Summary


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


def bias_text(summary: Summary) -> str:
    """Bias ± its Monte-Carlo error, or a dash."""
    if not math.isfinite(summary.bias_error):
        return "–"
    # As many decimals as the error needs for two digits.
    decimals = max(0, 1 - math.floor(math.log10(summary.bias_error or 1)))
    return f"{summary.bias:+.{decimals}f} ± {summary.bias_error:.{decimals}f}"


def coverage_text(summary: Summary) -> str:
    """Coverage ± its Monte-Carlo error, or a dash."""
    if not math.isfinite(summary.coverage):
        return "–"
    return f"{100 * summary.coverage:.1f} ± {100 * summary.coverage_error:.1f} %"
