"""Figures and tables of the reports, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from metrics import Summary
from pairs import Figure

DASH = "–"
# Behind the coverage of intervals that are of the rows' mean effect, where others' are of another.
OF_ROWS = "§"


def number(value: float, digits: int = 3) -> str:
    """A figure to so many significant digits, or a dash."""
    if not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def with_error(value: float, error: float, *, signed: bool = False) -> str:
    """A figure ± its Monte-Carlo error; alone without one, or a dash.

    There are as many decimals as the error needs for two digits.
    """
    if not math.isfinite(value):
        return DASH
    if not math.isfinite(error) or error == 0:
        return f"{'+' if signed and value > 0 else ''}{number(value)}"
    # Rounded before its digits are counted: 0.0999 has the decimals of 0.10.
    decimals = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    return f"{value:{'+' if signed else ''}.{decimals}f} ± {error:.{decimals}f}"


def figure_text(figure: Figure, *, signed: bool = False) -> str:
    """A figure ± its Monte-Carlo error, or a dash."""
    return with_error(figure.value, figure.error, signed=signed)


def percent_text(figure: Figure, decimals: int = 1) -> str:
    """A share ± its Monte-Carlo error in per cent, or a dash."""
    if not math.isfinite(figure.value):
        return DASH
    share = f"{100 * figure.value:.{decimals}f}"
    known = math.isfinite(figure.error) and figure.error > 0
    return f"{share} ± {100 * figure.error:.{decimals}f} %" if known else f"{share} %"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, the first column of which is text."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def filled_table(columns: dict[str, list[str]]) -> str:
    """A table of columns by name; those that nothing fills are left out."""
    filled = {name: cells for name, cells in columns.items() if set(cells) != {DASH}}
    return markdown_table(list(filled), zip(*filled.values(), strict=True))


def bias_text(summary: Summary) -> str:
    """Bias ± its Monte-Carlo error, or a dash where there is none."""
    if not math.isfinite(summary.bias_error):
        return DASH
    return with_error(summary.bias, summary.bias_error, signed=True)


def coverage_text(summary: Summary) -> str:
    """Coverage ± its Monte-Carlo error, or a dash; marked where it is that of the rows' effect."""
    text = percent_text(Figure(summary.coverage, summary.coverage_error))
    return f"{text} {OF_ROWS}" if summary.covers_rows and text != DASH else text


def seconds_text(seconds: float, by_clock: bool) -> str:
    """Seconds of a processor, or of the clock where no others were measured; or a dash."""
    text = number(seconds)
    return f"{text} (clock)" if by_clock and text != DASH else text
