"""Effects on the scale of ratios: of means, risks or odds, and the number needed to treat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cstonet.reporting.inference import Effect
from cstonet.reporting.numbers import plain


@dataclass(frozen=True, slots=True)
class Ratio(Effect):
    """A ratio with its inference, which is that of its log.

    Parameters
    ----------
    name, alpha
        See :class:`~cstonet.reporting.inference.Effect`.
    estimate, se : float
        The ratio, and its standard error by the delta method: that of the log times the ratio.
    lower, upper : float
        Exponentials of the limits of the log.
    pvalue : float
        Two-sided p-value of the hypothesis that the ratio is one.
    """

    @classmethod
    def from_log(cls, log: Effect) -> Ratio:
        """The ratio whose log is this effect."""
        # What extrapolation could hide may be infinite, and so may the limits.
        with np.errstate(over="ignore"):
            estimate, lower, upper = map(float, np.exp([log.estimate, log.lower, log.upper]))
        return cls(
            name=log.name,
            estimate=estimate,
            se=estimate * log.se,
            lower=lower,
            upper=upper,
            pvalue=log.pvalue,
            alpha=log.alpha,
        )


@dataclass(frozen=True, slots=True)
class NumberNeeded(Effect):
    """Number needed to treat: the inverse of a risk difference.

    So many units have to be treated for one more of them to have the outcome; if it is negative,
    for one fewer. Which of the two is a benefit depends on the outcome: Altman's NNTB and NNTH
    (BMJ 1998, 317: 1309-1312) are one and the other.

    Parameters
    ----------
    name, alpha
        See :class:`~cstonet.reporting.inference.Effect`.
    estimate, se : float
        The number, infinite if the risks are equal, and its standard error by the delta method.
    lower, upper : float
        Inverses of the upper and the lower limit of the risk difference. Where the interval of the
        difference holds zero, that of the number runs through infinity: from `lower`, which is
        positive, up to infinity and on from minus infinity up to `upper`, which is negative.
    pvalue : float
        Two-sided p-value of the hypothesis that the risk difference is zero.
    """

    @classmethod
    def from_difference(cls, difference: Effect, name: str) -> NumberNeeded:
        """The number that belongs to a risk difference."""
        estimate = _inverse(difference.estimate)
        # A limit of zero is approached from within the interval.
        return cls(
            name=name,
            estimate=estimate,
            se=difference.se * estimate**2,
            lower=_inverse(difference.upper, at_zero=-math.inf),
            upper=_inverse(difference.lower, at_zero=math.inf),
            pvalue=difference.pvalue,
            alpha=difference.alpha,
        )

    @property
    def through_infinity(self) -> bool:
        """Whether the interval holds infinity, i.e. a treatment that changes nothing."""
        return self.lower > self.upper

    def __str__(self) -> str:
        level = f"{100 * (1 - self.alpha):g}%"
        estimate, lower, upper = (
            plain(abs(value), 3) for value in (self.estimate, self.lower, self.upper)
        )
        if self.through_infinity:
            limits = f"{lower} to inf for one more and {upper} to inf for one fewer"
        else:
            limits = " to ".join((lower, upper) if self.lower > 0 else (upper, lower))
        side = "more" if self.estimate > 0 else "fewer"
        return f"{self.name} = {estimate} for one {side} ({level} CI {limits})"


def _inverse(value: float, at_zero: float = math.inf) -> float:
    """One over a value; of zero, what the caller says."""
    return 1 / value if value != 0 else at_zero
