"""Regressions with every covariate: least squares, and AIPW as statsmodels and Stata have it."""

from __future__ import annotations

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from least_squares import Adjusted, adjust, adjust_within_arms
from loaders import standardised


def ols(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """Least squares on the treatment and every covariate, with heteroskedastic errors (HC1)."""
    return _adjusted(problem, np.asarray(problem.X, np.float64))


def ols_interacted(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """The same with slopes of each arm's own: products of treatment and centred covariates.

    Lin (2013). Unlike `ols`, it estimates the mean effect where effects are linear in the
    covariates. It refuses data sets with as many coefficients as rows of an arm.
    """
    X = np.asarray(problem.X, np.float64)
    effects, of_rows = adjust_within_arms(problem.y, problem.treat, X)
    return _estimate(effects, of_rows[:, 0])


def ols_treated(problem: Variables, threads: int, seed: int) -> Estimate:  # noqa: ARG001
    """The effect among the treated where both arms are linear, with HC1 errors.

    Least squares on the treatment, every covariate, and the products of both, in which covariates
    are centred at the means of the treated: the treatment's own coefficient is then their effect.
    """
    treat, X = problem.treat, np.asarray(problem.X, np.float64)
    products = treat[:, None] * (X - X[treat == 1].mean(axis=0))
    return _adjusted(problem, np.column_stack([X, products]))


def _adjusted(problem: Variables, controls: FloatArray) -> Estimate:
    """The treatment's coefficient beside controls (n, k), and its HC1 error."""
    return _estimate(adjust(problem.y, problem.treat[:, None].astype(np.float64), controls))


def _estimate(found: Adjusted, cate: FloatArray | None = None) -> Estimate:
    ate, se = float(found.coefficients[0]), float(found.errors[0])
    return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se, cate)


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
