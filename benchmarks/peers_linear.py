"""Regressions with every covariate: least squares, and AIPW as statsmodels and Stata have it."""

from __future__ import annotations

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from loaders import standardised

# Treatments that the covariates explain up to this share of a variance of one are explained.
_UNEXPLAINED = 1e-10


def ols(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """Least squares on the treatment and every covariate, with heteroskedastic errors (HC1)."""
    return _first_coefficient(problem, np.column_stack([np.ones(len(problem.y)), problem.X]))


def ols_treated(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """The effect among the treated where both arms are linear, with HC1 errors.

    Least squares on the treatment, every covariate, and the products of both, in which covariates
    are centred at the means of the treated: the treatment's own coefficient is then their effect.
    """
    treat, X = problem.treat, problem.X
    products = treat[:, None] * (X - X[treat == 1].mean(axis=0))
    return _first_coefficient(problem, np.column_stack([np.ones(len(X)), X, products]))


def _first_coefficient(problem: Variables, others: FloatArray) -> Estimate:
    """The treatment's coefficient beside other columns (n, k), and its HC1 error."""
    import statsmodels.api as sm

    treat = problem.treat.astype(np.float64)
    left = treat - others @ np.linalg.lstsq(others, treat, rcond=None)[0]
    if left @ left < _UNEXPLAINED * len(left):
        raise ValueError("the treatment is a linear combination of the covariates")
    fit = sm.OLS(problem.y, np.column_stack([treat, others])).fit(cov_type="HC1")
    ate, se = float(fit.params[0]), float(fit.bse[0])
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se)


def statsmodels_aipw(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """AIPW with least squares within arms and logistic regression, nothing penalised.

    Standard errors are those of the joint moment conditions, as Stata's ``teffects aipw``. It
    refuses what such regressions cannot do: as many coefficients as rows of an arm, collinear
    covariates, arms that the covariates separate.
    """
    import statsmodels.api as sm
    from statsmodels.treatment.treatment_effects import TreatmentEffect

    treat = problem.treat
    # A common scale changes no estimate; it keeps the numerical derivatives in order.
    columns = standardised(np.asarray(problem.X, np.float64))
    design = np.column_stack([np.ones(len(treat)), columns])
    coefficients = design.shape[1]
    smallest = int(min(treat.sum(), (1 - treat).sum()))
    if smallest <= coefficients:
        raise ValueError(
            f"{coefficients} coefficients for {smallest} rows of an arm: regressions without a "
            "penalty need fewer covariates"
        )
    if any(np.linalg.matrix_rank(design[treat == a]) < coefficients for a in (0, 1)):
        raise ValueError("covariates are collinear within an arm: drop some")
    propensity = sm.Logit(treat, design).fit(disp=0, maxiter=100)
    if not propensity.mle_retvals["converged"]:
        raise ValueError("the logistic regression does not converge: covariates separate the arms")
    model = TreatmentEffect(sm.OLS(problem.y, design), treat, results_select=propensity)
    effect = model.aipw()
    ate, se = float(effect.effect[0]), float(effect.sd[0])
    if not np.isfinite(se):
        raise ValueError("the joint moment conditions have no covariance: too many covariates")
    cate = model.results1.predict(design) - model.results0.predict(design)
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, cate)
