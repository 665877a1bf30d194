"""How numbers are written: plainly, with as many digits as their standard errors support."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cstonet.estimators.nuisances import FloatArray

# Rounding moves a standard error by at most this share of it; no digit beyond is shown.
_ROUNDING = 0.02
# A row whose standard error is below this share of the table's largest has decimals of its own.
_COMPARABLE = 0.1
# Beyond these magnitudes plain notation would be a row of zeros.
_MOST_DECIMALS, _PLAIN_BELOW = 7, 1e7
_THOUSANDS_FROM = 10_000


def count(number: int) -> str:
    """An integer with its thousands apart where it has five digits or more."""
    return f"{number:,}".replace(",", " ") if abs(number) >= _THOUSANDS_FROM else str(number)


def plain(value: float, digits: int = 4) -> str:
    """A number with so many significant digits and no exponent, unless it is extreme.

    Whole digits are never rounded away: 12345.6 with four digits is 12346. Zeros at the end go.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) >= _PLAIN_BELOW or decimals > _MOST_DECIMALS + digits - 2:
        return f"{value:.{digits - 1}e}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def exact(value: float) -> str:
    """A number as shortly as it can be written for the same number to be read again."""
    text = plain(float(value))
    return text if float(text) == value else repr(float(value))


def decimals_for(error: float) -> int | None:
    """Decimals that a standard error supports: those that show it to within two per cent.

    None if no plain notation can. An error of zero supports three.
    """
    if not math.isfinite(error) or error <= 0:
        return 3
    # An exact power must not need one more for a rounding error of the logarithm.
    decimals = max(0, math.ceil(-math.log10(2 * _ROUNDING * error) - 1e-9))
    return decimals if decimals <= _MOST_DECIMALS else None


def with_errors(values: FloatArray, errors: FloatArray, widths: Sequence[int]) -> list[list[str]]:
    """Rows of numbers in the unit of their standard errors, with the digits that these support.

    Rows whose errors are of comparable size share their decimals, that the table can be read
    downwards; others have their own. What plain notation cannot show, or the columns cannot hold,
    is written in scientific notation, row by row.

    Parameters
    ----------
    values : (k, c) float64
        Numbers, such as estimates, standard errors and limits.
    errors : (k,) float64
        The standard error that belongs to each row.
    widths : sequence of length c
        Characters that a column holds.

    Returns
    -------
    list of k lists of c str
    """
    known = errors[np.isfinite(errors) & (errors > 0)]
    floor = _COMPARABLE * known.max() if known.size else 0.0
    shared = known[known >= floor].min() if known.size else 0.0
    return [
        _row(row, shared if error >= floor or not error > 0 else float(error), widths)
        for row, error in zip(values, errors, strict=True)
    ]


def _row(values: FloatArray, error: float, widths: Sequence[int]) -> list[str]:
    """Numbers of one row, to the decimals that an error supports."""
    decimals = decimals_for(error)
    if decimals is not None and np.all(np.abs(values[np.isfinite(values)]) < _PLAIN_BELOW):
        cells = [f"{value:.{decimals}f}" for value in values]
        if all(len(cell) <= width for cell, width in zip(cells, widths, strict=True)):
            return cells
    # "-1.234e-100" has eleven characters, and four more than its digits before the exponent.
    return [f"{value:.{min(3, width - 7)}e}" for value, width in zip(values, widths, strict=True)]


def with_error(value: float, error: float, *more: float, width: int = 12) -> list[str]:
    """A number, its standard error and perhaps its limits, with the digits that it supports."""
    values = np.array([[value, error, *more]])
    return with_errors(values, np.array([error]), [width] * values.shape[1])[0]


def statistic(value: float) -> str:
    """A studentised estimate with two decimals."""
    return f"{value:.2e}" if abs(value) >= _THOUSANDS_FROM else f"{value:.2f}"


def pvalue(p: float) -> str:
    """A p-value with three decimals."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def probability(p: float) -> str:
    """A probability with three decimals."""
    if p < 0.001:
        return "<0.001"
    return ">0.999" if p > 0.999 else f"{p:.3f}"


def share(value: float) -> str:
    """A share with two decimals; nothing but zero looks like zero."""
    return "<0.01" if 0 < value < 0.005 else f"{value:.2f}"


def level(alpha: float) -> str:
    """A confidence level in per cent, from one minus it."""
    return f"{100 * (1 - alpha):g} %"
