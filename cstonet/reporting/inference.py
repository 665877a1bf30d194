"""Inference on estimated effects: intervals, tests, and what statsmodels needs to join in."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from cstonet.data.caller import caller_stacklevel
from cstonet.errors import LostSupportWarning, NotAvailableError, OptionError
from cstonet.estimators import Effects, contrast_freedom, joint_freedom
from cstonet.estimators.nuisances import FloatArray
from cstonet.reporting.numbers import with_error
from cstonet.reporting.simultaneous import largest_quantile
from cstonet.settings.checks import check_truth, is_choice, is_real
from cstonet.shown import shown

# Below this share of what its terms would give, the variance of a contrast is rounding error; so
# is the smallest eigenvalue of the correlation of several contrasts. Rounding leaves about 1e-15.
_SINGULAR = 1e-11


def check_alpha(alpha: float) -> None:
    """Raise OptionError unless 1 - alpha is a confidence level."""
    if not is_real(alpha) or not 0 < alpha < 1:
        raise OptionError(f"alpha must lie between 0 and 1 (0.05 for 95 %), not {shown(alpha)}")


def critical_values(effects: Effects, alpha: float) -> FloatArray:
    """Quantiles 1 - alpha/2 of |estimate - truth| / error, shape (k,): normal, or Student's t.

    Effects from imputations, or decided by few units, have degrees of freedom.
    """
    if effects.freedom is None:
        return np.full(len(effects.names), -ndtri(alpha / 2))
    quantiles: FloatArray = -stdtrit(effects.freedom, alpha / 2)
    return quantiles


def half_widths(effects: Effects, critical: FloatArray) -> FloatArray:
    """Half the lengths of confidence intervals, shape (k,): error, and what extrapolation hides.

    Parameters
    ----------
    effects : Effects
        k effects.
    critical : (k,) float64
        Critical values, see `critical_values`.
    """
    half: FloatArray = critical * effects.standard_errors
    return half if effects.bias is None else half + effects.bias


def studentised(effects: Effects) -> FloatArray:
    """Estimates over their errors, shape (k,), less what extrapolation could have added."""
    bias = np.zeros(len(effects.names)) if effects.bias is None else effects.bias
    least = np.sign(effects.estimates) * np.maximum(np.abs(effects.estimates) - bias, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z: FloatArray = np.divide(least, effects.standard_errors)
    return z


def two_sided(effects: Effects, z: FloatArray) -> FloatArray:
    """Two-sided p-values of studentised estimates, shape (k,)."""
    if effects.freedom is None:
        normal: FloatArray = 2 * ndtr(-np.abs(z))
        return normal
    student: FloatArray = 2 * stdtr(effects.freedom, -np.abs(z))
    return student


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect with its inference.

    Parameters
    ----------
    name : str
        Name of the effect.
    estimate, se : float
        Point estimate and standard error.
    lower, upper : float
        Confidence limits.
    pvalue : float
        Two-sided p-value of the hypothesis that the effect is zero.
    alpha : float
        One minus the confidence level.
    """

    name: str
    estimate: float
    se: float
    lower: float
    upper: float
    pvalue: float
    alpha: float

    @classmethod
    def of(cls, effects: Effects, name: str, alpha: float) -> Effect:
        """The effect of that name among estimated ones."""
        check_alpha(alpha)
        position = effects.names.index(name)
        estimate = float(effects.estimates[position])
        se = float(effects.standard_errors[position])
        half = float(half_widths(effects, critical_values(effects, alpha))[position])
        z = studentised(effects)
        return cls(
            name=name,
            estimate=estimate,
            se=se,
            lower=estimate - half,
            upper=estimate + half,
            pvalue=float(two_sided(effects, z)[position]),
            alpha=alpha,
        )

    def __str__(self) -> str:
        estimate, se, lower, upper = with_error(self.estimate, self.se, self.lower, self.upper)
        level = f"{100 * (1 - self.alpha):g}%"
        return f"{self.name} = {estimate} (SE {se}, {level} CI {lower} to {upper})"


@dataclass(frozen=True, slots=True)
class EffectModel:
    """The names statsmodels asks of a model, for its tables and tests.

    Parameters
    ----------
    endog_names : str
        Name of the outcome.
    exog_names : list of str
        Names of the effects.
    """

    endog_names: str
    exog_names: list[str]

    @property
    def data(self) -> EffectModel:
        """The object itself: statsmodels looks for parameter names under ``model.data``."""
        return self

    @property
    def param_names(self) -> list[str]:
        """Names of the effects."""
        return self.exog_names

    @property
    def cov_names(self) -> list[str]:
        """Names of the effects."""
        return self.exog_names


class EffectInference:
    """Inference on effects with a joint covariance, under statsmodels' names.

    Estimates are taken for normal; for Student's t where covariates were imputed, with degrees of
    freedom by Barnard and Rubin, or where few units decide, by Satterthwaite.

    Parameters
    ----------
    effects : Effects
        Estimates with their covariance.
    outcome_name : str
        Name of the outcome, the heading of a column in `summary_col`.
    seed : int
        Seed of the draws behind simultaneous intervals.
    """

    def __init__(self, effects: Effects, outcome_name: str, seed: int = 0) -> None:
        self.effects = effects
        self._seed = seed
        self.use_t = effects.freedom is not None
        self.model = EffectModel(outcome_name, list(effects.names))

    @property
    def params(self) -> pd.Series[float]:
        """Estimates: "ATE" or "ATE[b-a]", and the potential-outcome means "POM[level]".

        What ``estimand=`` asked for comes first.
        """
        return self._series(self.effects.estimates)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors."""
        return self._series(self.effects.standard_errors)

    @property
    def tvalues(self) -> pd.Series[float]:
        """Estimates over standard errors (standard normal or, if imputed, t without an effect)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._series(self.effects.estimates / self.effects.standard_errors)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of the hypotheses that each effect is zero."""
        return self._series(two_sided(self.effects, studentised(self.effects)))

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence limits, normal, or Student's t where values were imputed or few units decide.

        Where support is lost, they include what extrapolation could hide.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.
        simultaneous : bool
            Whether the level is that of all contrasts together, and of all means together, rather
            than of each: with probability 1 - alpha none of a family misses its truth. The
            critical values are quantiles of the largest of the family's studentised estimates,
            drawn as a normal vector with their covariance; where values were imputed, as a
            multivariate t.

        Returns
        -------
        DataFrame
            Lower limits in column 0, upper limits in column 1.
        """
        check_alpha(alpha)
        check_truth(simultaneous, "simultaneous")
        critical = critical_values(self.effects, alpha)
        if simultaneous:
            first_mean = self.effects.n_contrasts
            for family in (slice(0, first_mean), slice(first_mean, None)):
                if critical[family].size:
                    critical[family] = self._largest(family, alpha)
        half = half_widths(self.effects, critical)
        limits = np.column_stack([self.effects.estimates - half, self.effects.estimates + half])
        return pd.DataFrame(limits, index=list(self.effects.names))

    def _largest(self, family: slice, alpha: float) -> float:
        """Critical value that all effects of a family share."""
        effects = self.effects
        freedom = None if effects.freedom is None else effects.freedom[family]
        return largest_quantile(effects.covariance[family, family], freedom, alpha, self._seed)

    def cov_params(self) -> pd.DataFrame:
        """Joint covariance of the estimates, singular because ATEs are differences."""
        names = list(self.effects.names)
        return pd.DataFrame(self.effects.covariance, index=names, columns=names, copy=True)

    def effect(self, name: str | None = None, *, alpha: float = 0.05) -> Effect:
        """One effect by name.

        Parameters
        ----------
        name : str, optional
            One of `params`, by default the first.
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Effect
            Estimate, standard error, confidence limits and p-value.
        """
        name = self.effects.names[0] if name is None else name
        if not is_choice(name, self.effects.names):
            raise NotAvailableError(
                f"this fit has no effect {shown(name)}; available: {', '.join(self.effects.names)}"
            )
        return Effect.of(self.effects, name, alpha)

    def t_test(self, r_matrix: Any) -> Any:
        """Test linear hypotheses one by one: normal, or Student's t where values were imputed.

        Each combination of effects then has degrees of freedom of its own.

        Parameters
        ----------
        r_matrix : str, array or tuple
            Hypotheses as statsmodels takes them: ``"POM[1] - POM[0] = 0"`` (several separated by
            commas), a matrix R with a column per effect, or (R, q).

        Returns
        -------
        statsmodels.stats.contrast.ContrastResults
        """
        matrix, values = self._constraints(r_matrix)
        self._warn_of_bias("t_test")
        self._contrast_variances(matrix)
        freedom = contrast_freedom(self.effects, matrix)
        return self._wald_results(freedom).t_test((matrix, values))

    def wald_test(self, r_matrix: Any) -> Any:
        """Test linear hypotheses jointly: chi-squared, or F where values were imputed.

        The F statistic is the chi-squared one over the number q of hypotheses. Its second degrees
        of freedom are the fewest that any combination of the hypotheses has, which makes the test
        conservative; a single hypothesis is tested as by `t_test`.

        Parameters
        ----------
        r_matrix : str, array or tuple
            See `t_test`.

        Returns
        -------
        statsmodels.stats.contrast.ContrastResults
        """
        matrix, values = self._constraints(r_matrix)
        self._warn_of_bias("wald_test")
        scale = np.sqrt(self._contrast_variances(matrix))
        correlation = matrix @ self.effects.covariance @ matrix.T / np.outer(scale, scale)
        if np.linalg.eigvalsh(correlation)[0] < _SINGULAR:
            raise OptionError(
                "r_matrix: the hypotheses depend on each other, so they cannot be tested jointly. "
                f"{self._identity()}: drop one of them."
            )
        freedom = joint_freedom(self.effects, matrix)
        return self._wald_results(freedom).wald_test((matrix, values), scalar=True)

    def _warn_of_bias(self, test: str) -> None:
        """Say that a test does not know what extrapolation could hide."""
        if self.effects.bias is not None:
            warnings.warn(
                f"{test} takes the estimates as they are. Support is lost, and what extrapolation "
                "could hide is in pvalues and conf_int() only.",
                LostSupportWarning,
                stacklevel=caller_stacklevel(),
            )

    def _series(self, values: FloatArray) -> pd.Series[float]:
        return pd.Series(values, index=list(self.effects.names), copy=True)

    def _constraints(self, hypotheses: Any) -> tuple[FloatArray, FloatArray]:
        """R (q, k) and its values (q,) from a string, a matrix or a pair of them."""
        from patsy import DesignInfo, PatsyError

        try:
            parsed = DesignInfo(list(self.effects.names)).linear_constraint(hypotheses)
        except Exception as error:  # patsy raises many kinds
            reason = shown(error) if not isinstance(error, PatsyError) else error.message
            raise OptionError(
                f"r_matrix: cannot read the hypothesis {shown(hypotheses)} ({reason}); write it in "
                f"terms of {', '.join(self.effects.names)}, or give a matrix with a column for each"
            ) from error
        if not np.isfinite(parsed.coefs).all() or not np.isfinite(parsed.constants).all():
            raise OptionError(f"r_matrix must hold finite numbers; got {shown(hypotheses)}.")
        return parsed.coefs, parsed.constants.ravel()

    def _contrast_variances(self, matrix: FloatArray) -> FloatArray:
        """Variances of R·params, none of which may be zero."""
        covariance = self.effects.covariance
        variances: FloatArray = np.einsum("qk,kl,ql->q", matrix, covariance, matrix)
        size = np.einsum("qk,kl,ql->q", abs(matrix), abs(covariance), abs(matrix))
        void = np.flatnonzero(variances <= _SINGULAR * size)
        if void.size:
            raise OptionError(
                f"r_matrix: hypothesis {void[0] + 1} has no sampling variation, so there is "
                f"nothing to test. {self._identity()}."
            )
        return variances

    def _identity(self) -> str:
        """Why hypotheses may depend on each other; siblings can be more precise."""
        return "Some effects are sums or differences of others"

    def _wald_results(self, freedom: FloatArray | float | None) -> Any:
        """The estimates as statsmodels results, for its tests; t and F if there is a freedom."""
        from statsmodels.base.model import LikelihoodModelResults

        results = LikelihoodModelResults(
            self.model, self.effects.estimates, normalized_cov_params=self.effects.covariance
        )
        results.use_t = freedom is not None
        results.df_resid = np.inf if freedom is None else freedom
        return results
