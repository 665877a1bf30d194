"""How far an estimate withstands omitted confounders: bounds, robustness values, benchmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cstonet.errors import OptionError
from cstonet.estimators import Effects
from cstonet.estimators.evalues import evalue, evalue_of_limits
from cstonet.estimators.nuisances import FloatArray
from cstonet.estimators.omitted_variables import bias_factor, robustness_value
from cstonet.reporting.inference import Effect, critical_values
from cstonet.reporting.printed import Printed
from cstonet.settings.checks import is_real
from cstonet.shown import shown

if TYPE_CHECKING:
    from cstonet.reporting.ratios import Ratio
    from cstonet.reporting.tables import CausalSummary

BenchmarksBy: TypeAlias = Literal["regressions", "refits"]

# Values of each strength in the contours, by default.
_POINTS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity(Printed):
    """What omitted confounders of a given strength could do to an effect.

    The strength of a confounder is a pair of shares: `r2_outcome` of the outcome's variance that
    treatment and covariates leave, and `r2_treatment`, the share of the long Riesz representer's
    variance that only the confounder explains; in a linear regression both are partial R². The bias
    is at most S √(r2_outcome r2_treatment / (1 - r2_treatment)), see
    :mod:`cstonet.estimators.omitted_variables`.

    Attributes
    ----------
    effect : Effect
        The estimate with its confidence limits.
    residual_variance, representer_variance : float
        σ² and ν²: S = σ ν.
    covariance : (3, 3) float64
        Of the estimate, σ² and ν².
    critical, hidden : float
        Critical value of the intervals, and what extrapolation could hide beside the standard
        error.
    strengths : DataFrame
        `r2_outcome` and `r2_treatment` of an omitted confounder as strong as each covariate, which
        are the index; empty without benchmarks.
    risk_ratio : Ratio or None
        Of a binary outcome, if the effect is an ATE.
    outcome, treatment : str
        Names, for the text.
    benchmarks_by : {"regressions", "refits"} or None
        How the strengths were found; None if nobody asked.
    """

    effect: Effect
    residual_variance: float
    representer_variance: float
    covariance: FloatArray
    critical: float
    hidden: float
    strengths: pd.DataFrame
    risk_ratio: Ratio | None
    outcome: str
    treatment: str
    benchmarks_by: BenchmarksBy | None = None

    @classmethod
    def of(
        cls,
        alone: Effects,
        joint: Effects,
        *,
        strengths: pd.DataFrame,
        outcome: str,
        treatment: str,
        alpha: float,
        risk_ratio: Ratio | None = None,
        benchmarks_by: BenchmarksBy | None = None,
    ) -> Sensitivity:
        """Sensitivity of an effect.

        Parameters
        ----------
        alone : Effects
            The effect as the table has it.
        joint : Effects
            The same with σ² and ν². Its own variance may be made otherwise: that of the table
            counts, with the correlations that these have.
        strengths, outcome, treatment, risk_ratio, benchmarks_by
            See the class.
        alpha : float
            One minus the confidence level.
        """
        ratio = float(alone.standard_errors[0] / joint.standard_errors[0])
        scaling = np.array([ratio, 1.0, 1.0])
        return cls(
            effect=Effect.of(alone, alone.names[0], alpha),
            residual_variance=float(joint.estimates[1]),
            representer_variance=float(joint.estimates[2]),
            covariance=scaling[:, None] * joint.covariance * scaling,
            critical=float(critical_values(alone, alpha)[0]),
            hidden=0.0 if alone.bias is None else float(alone.bias[0]),
            strengths=strengths,
            risk_ratio=risk_ratio,
            outcome=outcome,
            treatment=treatment,
            benchmarks_by=benchmarks_by,
        )

    @property
    def scale(self) -> float:
        """S, the bias of a confounder with C_Y = C_D = 1."""
        return math.sqrt(self.residual_variance * self.representer_variance)

    @property
    def robustness_value(self) -> float:
        """The strength, alike for outcome and treatment, that could explain the whole estimate."""
        if self.scale == 0:  # the models leave nothing of the outcome that could be explained
            return 1.0 if self.effect.estimate else 0.0
        return robustness_value(abs(self.effect.estimate) / self.scale)

    @property
    def robustness_value_ci(self) -> float:
        """The strength from which on the confidence bounds hold zero; 0: they do without any."""
        return robustness_value(self._factor_to_insignificance())

    @property
    def evalue(self) -> float | None:
        """E-value of the risk ratio; None unless the outcome is binary and the effect an ATE."""
        return None if self.risk_ratio is None else evalue(self.risk_ratio.estimate)

    @property
    def evalue_ci(self) -> float | None:
        """E-value of the confidence limit nearer to one; 1 if the interval holds one."""
        ratio = self.risk_ratio
        return None if ratio is None else evalue_of_limits(ratio.lower, ratio.upper)

    def bounds(
        self, r2_outcome: ArrayLike, r2_treatment: ArrayLike, *, rho: float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the effect under an omitted confounder, without sampling error.

        Parameters
        ----------
        r2_outcome, r2_treatment : array_like
            Strengths in [0, 1], of shapes that broadcast.
        rho : float
            Correlation, in [-1, 1], of what it explains of outcome and treatment; 1 is the worst
            case.

        Returns
        -------
        lower, upper : float64 arrays of the common shape

        Raises
        ------
        OptionError
            If a strength is not a share.
        """
        bias = self.scale * self._factor(r2_outcome, r2_treatment, rho)
        return self.effect.estimate - bias, self.effect.estimate + bias

    def confidence_bounds(
        self, r2_outcome: ArrayLike, r2_treatment: ArrayLike, *, rho: float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """The bounds with their sampling error: at strength zero, the confidence limits.

        Each bound goes outwards by the critical value times its standard error, in which that of
        S counts as well.

        Parameters
        ----------
        r2_outcome, r2_treatment, rho
            See `bounds`.
        """
        factor = self._factor(r2_outcome, r2_treatment, rho)
        lower, upper = self.bounds(r2_outcome, r2_treatment, rho=rho)
        below = self.critical * self._error(factor, -1) + self.hidden
        above = self.critical * self._error(factor, 1) + self.hidden
        return lower - below, upper + above

    @property
    def benchmarks(self) -> pd.DataFrame:
        """What an omitted confounder as strong as each covariate could do, strongest first.

        Columns `r2_outcome`, `r2_treatment`; `bias`, `lower` and `upper` bound; `lower_ci` and
        `upper_ci`, the confidence bounds.
        """
        own, treated = (self.strengths[name].to_numpy() for name in self.strengths)
        lower, upper = self.bounds(own, treated)
        lower_ci, upper_ci = self.confidence_bounds(own, treated)
        table = self.strengths.assign(
            bias=self.scale * self._factor(own, treated, 1.0),
            lower=lower,
            upper=upper,
            lower_ci=lower_ci,
            upper_ci=upper_ci,
        )
        return table.sort_values("bias", ascending=False, kind="stable")

    @property
    def table(self) -> pd.DataFrame:
        """One row, the effect: estimate, se, lower, upper, robustness values, E-values, if any."""
        effect = self.effect
        row: dict[str, float | None] = {
            "estimate": effect.estimate,
            "se": effect.se,
            "lower": effect.lower,
            "upper": effect.upper,
            "robustness_value": self.robustness_value,
            "robustness_value_ci": self.robustness_value_ci,
        }
        if self.risk_ratio is not None:
            row["evalue"], row["evalue_ci"] = self.evalue, self.evalue_ci
        return pd.DataFrame([row], index=[effect.name])

    def contour(
        self, r2_outcome: ArrayLike | None = None, r2_treatment: ArrayLike | None = None
    ) -> pd.DataFrame:
        """The estimate that confounders of many strengths would leave, for contour lines.

        Parameters
        ----------
        r2_outcome, r2_treatment : array_like (k,) and (m,), optional
            Strengths; by default 40 of each, from zero to a little beyond whichever is largest:
            the robustness value or a benchmark.

        Returns
        -------
        DataFrame
            k m rows: `r2_outcome`, `r2_treatment`; `adjusted`, the bound on the side of zero, and
            `limit`, the confidence bound on that side.
        """
        own, treated = np.meshgrid(
            self._axis(r2_outcome, "r2_outcome"),
            self._axis(r2_treatment, "r2_treatment"),
            indexing="ij",
        )
        side = 0 if self.effect.estimate >= 0 else 1
        return pd.DataFrame(
            {
                "r2_outcome": own.ravel(),
                "r2_treatment": treated.ravel(),
                "adjusted": self.bounds(own, treated)[side].ravel(),
                "limit": self.confidence_bounds(own, treated)[side].ravel(),
            }
        )

    def summary(self) -> CausalSummary:
        """The table one would put into a paper, with two sentences that say what it means.

        Returns
        -------
        CausalSummary
            A `statsmodels.iolib.summary.Summary`: as_text, as_html, as_latex, as_csv.
        """
        # statsmodels takes a second to import: only those who print pay for it.
        from cstonet.reporting.sensitivity_text import sensitivity_summary

        return sensitivity_summary(self)

    def methods(self) -> str:
        """How the bounds were found, in full: text for a paper's methods section."""
        from cstonet.reporting.sensitivity_text import sensitivity_methods

        return sensitivity_methods(self)

    def _factor(self, r2_outcome: ArrayLike, r2_treatment: ArrayLike, rho: float) -> FloatArray:
        """ρ C_Y C_D, for strengths that are shares."""
        shapes = []
        for name, strength in (("r2_outcome", r2_outcome), ("r2_treatment", r2_treatment)):
            try:
                values = np.asarray(strength, dtype=np.float64)
            except (TypeError, ValueError):
                values = np.array(np.nan)
            if not ((values >= 0) & (values <= 1)).all():
                raise OptionError(f"{name} must lie between 0 and 1, not {shown(strength)}")
            shapes.append(values.shape)
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise OptionError(
                f"r2_outcome and r2_treatment must be as many, or one of them a single number; "
                f"their shapes are {shapes[0]} and {shapes[1]}."
            ) from None
        if not is_real(rho) or not -1 <= rho <= 1:
            raise OptionError(f"rho must lie between -1 and 1, not {shown(rho)}")
        factor = bias_factor(r2_outcome, r2_treatment, rho)
        # Where nothing is left to explain, no confounder does anything, however strong it is.
        return factor if self.scale > 0 else np.zeros_like(factor)

    @property
    def _moments(self) -> tuple[float, float, float]:
        """Variance of the estimate, its covariance with S, and the variance of S."""
        covariance = self.covariance
        if self.scale == 0:
            return float(covariance[0, 0]), 0.0, 0.0
        gradient = np.array([self.representer_variance, self.residual_variance]) / (2 * self.scale)
        with_scale = float(covariance[0, 1:] @ gradient)
        return float(covariance[0, 0]), with_scale, float(gradient @ covariance[1:, 1:] @ gradient)

    def _error(self, factor: FloatArray, side: int) -> FloatArray:
        """Standard error of estimate + side · factor · S."""
        own, shared, scale = self._moments
        with np.errstate(invalid="ignore"):
            variance = own + 2 * side * factor * shared + factor**2 * scale
        error: FloatArray = np.sqrt(np.maximum(np.where(np.isfinite(factor), variance, 0.0), 0.0))
        return error

    def _factor_to_insignificance(self) -> float:
        """The factor at which the confidence bound on the side of zero reaches it.

        With m the distance of the estimate from zero, less what extrapolation could hide, it solves
        m - f S = c √(V - 2 f C + f² W), the standard error being that of the bound.
        """
        own, shared, scale = self._moments
        square = self.critical**2
        distance = abs(self.effect.estimate) - self.hidden
        constant = distance**2 - square * own
        if distance <= 0 or constant <= 0:
            return 0.0
        if self.scale == 0:
            return math.inf
        middle = distance * self.scale - square * self._sign * shared
        leading = self.scale**2 - square * scale
        root = math.sqrt(max(middle**2 - leading * constant, 0.0))
        return constant / (middle + root)

    @property
    def _sign(self) -> float:
        return math.copysign(1.0, self.effect.estimate)

    def _axis(self, values: ArrayLike | None, name: str) -> FloatArray:
        """Strengths along one axis of the contours."""
        if values is not None:
            axis: FloatArray = np.atleast_1d(np.asarray(values, dtype=np.float64))
            return axis
        largest = max([self.robustness_value, *self.strengths[name]])
        return np.linspace(0.0, min(1.2 * largest, 0.99), _POINTS)
