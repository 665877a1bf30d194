"""Double selection: least squares on the covariates that predict the outcome or the treatment.

Belloni, Chernozhukov and Hansen (2014). Two lassos select, one of the outcome and one of the
treatment, with the penalty of the authors' software (R package hdm, function rlasso): it follows
from the sample size, the number of covariates and the residuals, without cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from least_squares import adjust
from numpy.typing import NDArray
from scipy.special import ndtri

from baselines.base import Baseline

# The slack of the penalty over the noise, and the defaults of the iteration, as in rlasso.
SLACK = 1.1
MAX_ITERATIONS = 15
TOLERANCE = 1e-5
FIRST_COVARIATES = 5


def penalty_level(n: int, p: int) -> float:
    r"""λ = 2 c √n Φ⁻¹(1 - γ / 2p) with c = 1.1 and γ = 0.1 / log n.

    Half of it, λ / 2, exceeds every \|Σ_i x_ij ε_i\| / ψ_j by the factor c with probability about
    1 - γ: covariates that matter to nothing stay out.
    """
    gamma = 0.1 / np.log(n)
    return float(2 * SLACK * np.sqrt(n) * ndtri(1 - gamma / (2 * p)))


def loadings(X: FloatArray, residuals: FloatArray) -> FloatArray:
    """ψ_j = √(mean of x_ij² e_i²), (p,): the penalty of a covariate, whatever its noise.

    Parameters
    ----------
    X : (n, p) float64
        Centred covariates.
    residuals : (n,) float64
        What is left of the outcome.
    """
    return np.sqrt((residuals**2) @ (X**2) / len(X))


def rigorous_lasso(X: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    """Covariates (p,) that the lasso selects with the penalty of Belloni et al.

    The residuals that the penalty depends on are first those of least squares on the five
    covariates with the largest correlations, then those of least squares on what was selected,
    until their spread no longer changes.

    Parameters
    ----------
    X : (n, p) float64
        Covariates; constant ones are never selected.
    y : (n,) float64
        Outcome, or treatment.
    """
    from sklearn.linear_model import Lasso

    varies = X.std(axis=0) > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    selected = np.zeros(X.shape[1], np.bool_)
    x, centred = X[:, varies] - X[:, varies].mean(axis=0), y - y.mean()
    if not varies.any() or not centred.any():
        return selected
    alpha = penalty_level(len(x), X.shape[1]) / (2 * len(x))
    correlations = np.abs(centred @ x) / np.sqrt((x**2).sum(axis=0))
    chosen = np.zeros(x.shape[1], np.bool_)
    chosen[np.argsort(-correlations, kind="stable")[:FIRST_COVARIATES]] = True
    residuals, spread = _left_over(centred, x[:, chosen]), centred.std(ddof=1)
    for iteration in range(MAX_ITERATIONS):
        # Without residuals there is no noise to protect from: what is chosen explains all.
        if residuals.std() < 1e-10 * centred.std():
            break
        # The first residuals are those of too few covariates, so rlasso halves their penalty.
        share = 0.5 if iteration == 0 else 1.0
        lasso = Lasso(alpha=share * alpha, fit_intercept=False, tol=1e-7, max_iter=100_000)
        chosen = lasso.fit(x / loadings(x, residuals), centred).coef_ != 0
        if not chosen.any():
            break
        residuals = _left_over(centred, x[:, chosen])
        before, spread = spread, residuals.std(ddof=1)
        if abs(before - spread) < TOLERANCE:
            break
    selected[varies] = chosen
    return selected


def _left_over(y: FloatArray, X: FloatArray) -> FloatArray:
    """Residuals (n,) of least squares of y (n,) on X (n, k)."""
    return y - X @ np.linalg.lstsq(X, y, rcond=None)[0]


@dataclass(frozen=True, slots=True, eq=False)
class SelectedCovariates:
    """The covariates selected from the training rows.

    Parameters
    ----------
    selected : (p,) bool
        Whether a covariate predicts the outcome or the treatment.
    """

    selected: NDArray[np.bool_]

    def on(self, rows: Variables) -> Estimate:
        """Least squares of these rows' outcomes on their treatments and selected covariates.

        With HC1 errors.
        """
        controls = np.asarray(rows.X, np.float64)[:, self.selected]
        found = adjust(rows.y, rows.treat[:, None].astype(np.float64), controls)
        ate, se = float(found.coefficients[0]), float(found.errors[0])
        return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se)


def learn(rows: Variables, threads: int, seed: int) -> SelectedCovariates:  # noqa: ARG001
    """Select from training rows; nothing is random, and one thread is enough."""
    X = np.asarray(rows.X, np.float64)
    treat = rows.treat.astype(np.float64)
    return SelectedCovariates(rigorous_lasso(X, rows.y) | rigorous_lasso(X, treat))


DOUBLE_SELECTION = Baseline(
    name="dse",
    modules=("sklearn.linear_model",),
    learn=learn,
    source="Belloni, Chernozhukov and Hansen (2014), Review of Economic Studies 81, 608-650",
)
