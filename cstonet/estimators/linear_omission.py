"""Omitted variables of a linear regression, from three printed numbers.

Estimate, standard error and residual degrees of freedom of a coefficient are all that is needed
(Cinelli and Hazlett 2020, "Making sense of sensitivity: extending omitted variable bias"). With f
Cohen's f of the treatment, |t| / √df,

    |bias| = se √df √(R_Y R_D / (1 - R_D)),    RV = (√(f⁴ + 4f²) - f²) / 2,

R_Y and R_D being the partial R² of the confounder with outcome and treatment. This is what
:mod:`cstonet.estimators.omitted_variables` has for the partially linear model: S = se √df.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cstonet.errors import OptionError
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.omitted_variables import bias_factor, robustness_value


@dataclass(frozen=True, slots=True)
class LinearOmission:
    """How far a coefficient of a linear regression withstands omitted confounders.

    Parameters
    ----------
    estimate, se : float
        The treatment's coefficient and its (homoskedastic) standard error, which is positive.
    freedom : int
        Residual degrees of freedom, at least two.

    Examples
    --------
    >>> darfur = LinearOmission(estimate=0.0973, se=0.0232, freedom=783)
    >>> round(darfur.partial_r2, 4), round(darfur.robustness_value(), 4)
    (0.022, 0.1391)
    """

    estimate: float
    se: float
    freedom: int

    def __post_init__(self) -> None:
        if not (self.se > 0 and self.freedom >= 2 and math.isfinite(self.estimate)):
            raise OptionError(
                "a coefficient needs a finite estimate, a standard error above 0 and at least 2 "
                f"residual degrees of freedom; got {self.estimate!r}, {self.se!r}, "
                f"{self.freedom!r}"
            )

    @property
    def partial_r2(self) -> float:
        """Partial R² of the treatment with the outcome, t² / (t² + df).

        An omitted confounder that explains all the rest of the outcome would have to explain so
        much of the treatment's residual variance to bring the estimate to zero.
        """
        square = (self.estimate / self.se) ** 2
        return square / (square + self.freedom)

    def robustness_value(self, *, share: float = 1.0, alpha: float | None = None) -> float:
        """Partial R² with treatment and outcome, alike, that takes a share off the estimate.

        Parameters
        ----------
        share : float
            1 brings the estimate to zero, 0.5 to its half.
        alpha : float, optional
            Not the estimate but its significance is to go: the level of a two-sided t-test.
        """
        cohens_f = share * abs(self.estimate / self.se) / math.sqrt(self.freedom)
        if alpha is None:
            return robustness_value(cohens_f)
        from scipy.special import stdtrit  # not at the top: others never need it

        needed = -float(stdtrit(self.freedom - 1, alpha / 2)) / math.sqrt(self.freedom - 1)
        if cohens_f <= needed:
            return 0.0
        if cohens_f < 1 / needed:
            return robustness_value(cohens_f - needed)
        # A confounder that explains all of the outcome would leave no standard error: then less
        # than all is worse, and the treatment's R² alone decides.
        return (cohens_f**2 - needed**2) / (1 + cohens_f**2)

    def adjusted_estimate(self, r2_outcome: ArrayLike, r2_treatment: ArrayLike) -> FloatArray:
        """The estimate, had a confounder of this strength been in the regression.

        It is taken to have made the estimate larger in size than it is.
        """
        bias = self.se * math.sqrt(self.freedom) * bias_factor(r2_outcome, r2_treatment)
        adjusted: FloatArray = math.copysign(1.0, self.estimate) * (abs(self.estimate) - bias)
        return adjusted

    def adjusted_se(self, r2_outcome: ArrayLike, r2_treatment: ArrayLike) -> FloatArray:
        """The standard error, had a confounder of this strength (below one) been there."""
        left = (1 - np.asarray(r2_outcome)) / (1 - np.asarray(r2_treatment))
        error: FloatArray = self.se * np.sqrt(left * self.freedom / (self.freedom - 1))
        return error
