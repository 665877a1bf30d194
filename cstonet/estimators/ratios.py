"""Ratios of potential-outcome means, and of their odds, by the delta method on the log scale.

With means m_b and m_a and their joint covariance, log(m_b / m_a) has the gradient (1/m_b, -1/m_a),
and the log odds ratio (1 / (m_b (1 - m_b)), -1 / (m_a (1 - m_a))). The log of a ratio is closer to
normal than the ratio, and its limits never leave the positive numbers. What extrapolation could
hide of the means passes through the same gradient.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from cstonet.errors import NotAvailableError
from cstonet.estimators.aipw import Effects
from cstonet.estimators.combinations import combined


def log_ratio(effects: Effects, pair: tuple[int, int], *, name: str, odds: bool) -> Effects:
    """The log of the ratio of two means, or of their odds, as an effect of its own.

    Parameters
    ----------
    effects : Effects
        k effects with their joint covariance, the means among them.
    pair : (b, a)
        Positions of the means of numerator and denominator.
    name : str
        What to call the ratio.
    odds : bool
        Whether to compare odds m / (1 - m) in place of the means m.

    Returns
    -------
    Effects
        The one effect, on the log scale.

    Raises
    ------
    NotAvailableError
        If a mean is not positive or, for odds, not below one.
    """
    gradient = np.zeros(len(effects.names))
    logs = []
    for position, sign in zip(pair, (1.0, -1.0), strict=True):
        mean = float(effects.estimates[position])
        _check_mean(effects.names[position], mean, name, odds=odds)
        logs.append(math.log(mean / (1 - mean) if odds else mean))
        gradient[position] = sign / (mean * (1 - mean) if odds else mean)
    linear = combined(effects, name, gradient)
    return dataclasses.replace(linear, estimates=np.array([logs[0] - logs[1]]))


def _check_mean(mean_name: str, mean: float, name: str, *, odds: bool) -> None:
    """Raise NotAvailableError if a mean has no log, or no log odds."""
    if mean > 0 and not (odds and mean >= 1):
        return
    bounds = "between 0 and 1" if odds else "above 0"
    raise NotAvailableError(
        f"{name} needs means {bounds}, but {mean_name} is estimated as {mean:.4g}: a ratio of such "
        "means says nothing. Use the difference instead, such as effect('ATE')."
    )
