"""Inference on estimated effects: intervals, tests, and what statsmodels needs to join in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from cstonet.errors import NotAvailableError, OptionError
from cstonet.estimators import Effects
from cstonet.estimators.nuisances import FloatArray

# Below this share of what its terms would give, the variance of a contrast is rounding error; so
# is the smallest eigenvalue of the correlation of several contrasts. Rounding leaves about 1e-15.
_SINGULAR = 1e-11


def check_alpha(alpha: float) -> None:
    """Raise OptionError unless 1 - alpha is a confidence level."""
    if not 0 < alpha < 1:
        raise OptionError(f"alpha must lie between 0 and 1 (0.05 for 95 %), not {alpha!r}")


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

    def __str__(self) -> str:
        return (
            f"{self.name} = {self.estimate:.4g} (SE {self.se:.2g}, "
            f"{100 * (1 - self.alpha):g}% CI {self.lower:.4g} to {self.upper:.4g})"
        )


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
    """Normal inference on effects with a joint covariance, under statsmodels' names.

    Parameters
    ----------
    effects : Effects
        Estimates with their covariance.
    outcome_name : str
        Name of the outcome, the heading of a column in `summary_col`.
    """

    use_t = False

    def __init__(self, effects: Effects, outcome_name: str) -> None:
        self.effects = effects
        self.model = EffectModel(outcome_name, list(effects.names))

    @property
    def params(self) -> pd.Series[float]:
        """Estimates: "ATE" and the potential-outcome means "POM[level]"."""
        return self._series(self.effects.estimates)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors."""
        return self._series(self.effects.standard_errors)

    @property
    def tvalues(self) -> pd.Series[float]:
        """Estimates over standard errors (standard normal under the hypothesis of no effect)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._series(self.effects.estimates / self.effects.standard_errors)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of the hypotheses that each effect is zero."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Confidence limits, normal approximation.

        Parameters
        ----------
        alpha : float
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Lower limits in column 0, upper limits in column 1.
        """
        check_alpha(alpha)
        half = -ndtri(alpha / 2) * self.effects.standard_errors
        limits = np.column_stack([self.effects.estimates - half, self.effects.estimates + half])
        return pd.DataFrame(limits, index=list(self.effects.names))

    def cov_params(self) -> pd.DataFrame:
        """Joint covariance of the estimates, singular because the ATE is a difference."""
        names = list(self.effects.names)
        return pd.DataFrame(self.effects.covariance, index=names, columns=names, copy=True)

    def effect(self, name: str = "ATE", *, alpha: float = 0.05) -> Effect:
        """One effect by name.

        Parameters
        ----------
        name : str
            "ATE", or "POM[level]".
        alpha : float
            One minus the confidence level.

        Returns
        -------
        Effect
            Estimate, standard error, confidence limits and p-value.
        """
        if name not in self.effects.names:
            raise NotAvailableError(
                f"this fit has no effect {name!r}; available: {', '.join(self.effects.names)}"
            )
        lower, upper = self.conf_int(alpha).to_numpy()[self.effects.names.index(name)]
        return Effect(
            name=name,
            estimate=float(self.params[name]),
            se=float(self.bse[name]),
            lower=float(lower),
            upper=float(upper),
            pvalue=float(self.pvalues[name]),
            alpha=alpha,
        )

    def t_test(self, r_matrix: Any) -> Any:
        """Test linear hypotheses one by one.

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
        self._contrast_variances(matrix)
        return self._wald_results().t_test((matrix, values))

    def wald_test(self, r_matrix: Any) -> Any:
        """Test linear hypotheses jointly (chi-squared).

        Parameters
        ----------
        r_matrix : str, array or tuple
            See `t_test`.

        Returns
        -------
        statsmodels.stats.contrast.ContrastResults
        """
        matrix, values = self._constraints(r_matrix)
        scale = np.sqrt(self._contrast_variances(matrix))
        correlation = matrix @ self.effects.covariance @ matrix.T / np.outer(scale, scale)
        if np.linalg.eigvalsh(correlation)[0] < _SINGULAR:
            raise OptionError(
                "r_matrix: the hypotheses depend on each other, so they cannot be tested jointly. "
                f"{self._identity()}: drop one of them."
            )
        return self._wald_results().wald_test((matrix, values), scalar=True)

    def _series(self, values: FloatArray) -> pd.Series[float]:
        return pd.Series(values, index=list(self.effects.names), copy=True)

    def _constraints(self, hypotheses: Any) -> tuple[FloatArray, FloatArray]:
        """R (q, k) and its values (q,) from a string, a matrix or a pair of them."""
        from patsy import DesignInfo, PatsyError

        try:
            parsed = DesignInfo(list(self.effects.names)).linear_constraint(hypotheses)
        except (PatsyError, ValueError) as error:
            raise OptionError(
                f"r_matrix: cannot read the hypothesis {hypotheses!r} ({error}); write it in terms "
                f"of {', '.join(self.effects.names)}, or give a matrix with a column for each"
            ) from error
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
        ate, control, treated = self.effects.names
        return f"{ate} is {treated} - {control} by definition"

    def _wald_results(self) -> Any:
        """The estimates as statsmodels results, for its tests."""
        from statsmodels.base.model import LikelihoodModelResults

        results = LikelihoodModelResults(
            self.model, self.effects.estimates, normalized_cov_params=self.effects.covariance
        )
        results.df_resid = np.inf
        return results
