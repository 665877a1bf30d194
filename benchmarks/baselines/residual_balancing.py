"""Approximate residual balancing: a penalised regression per arm, and weights for what it misses.

Athey, Imbens and Wager (2018). The weights of an arm make its covariates' means nearly those of
all rows, without any model of the treatment; they are applied to the residuals of the regression.
Settings are the defaults of the authors' software (R package balanceHD): an elastic net with 0.9
of the lasso's penalty, the largest penalty within one standard error of the best one, and equal
shares for the imbalance and for the weights' squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import Z95, Estimate, FloatArray, Variables
from scipy import sparse

from baselines.base import Baseline

LASSO_SHARE = 0.9
BALANCE_SHARE = 0.5
FOLDS = 10
PENALTIES = 100


@dataclass(frozen=True, slots=True, eq=False)
class ArmRegression:
    """A linear regression fitted to the rows of one arm.

    Parameters
    ----------
    intercept : float
        Constant.
    coefficients : (p,) float64
        Slopes, many of them zero.
    n : int
        Rows of the arm that it was fitted to.
    """

    intercept: float
    coefficients: FloatArray
    n: int

    def predict(self, X: FloatArray) -> FloatArray:
        """Means (m,) at covariates (m, p)."""
        return self.intercept + X @ self.coefficients

    @property
    def inflation(self) -> float:
        """Rows over rows less coefficients: what its own rows' squared residuals lack."""
        fitted = 1 + int(np.count_nonzero(self.coefficients))
        return self.n / max(1, self.n - fitted)


def fit_arm(X: FloatArray, y: FloatArray, threads: int, seed: int) -> ArmRegression:
    """Elastic net of y on standardised covariates, with the penalty of the one-error rule.

    Parameters
    ----------
    X : (n, p) float64
        Covariates of one arm.
    y : (n,) float64
        Outcomes of that arm.
    threads, seed : int
        Threads, and the seed of the folds.
    """
    from learners import path_length
    from sklearn.linear_model import ElasticNet, ElasticNetCV
    from sklearn.model_selection import KFold

    n, p = X.shape
    if n < 3:
        raise ValueError(f"an arm has {n} training rows; residual balancing needs at least 3")
    centre, spread = X.mean(axis=0), X.std(axis=0)
    scaled = (X - centre) / np.where(spread > 0, spread, 1.0)
    if y.std() == 0:
        return ArmRegression(float(y[0]), np.zeros(p), n)
    folds = KFold(min(FOLDS, n), shuffle=True, random_state=seed)
    path = ElasticNetCV(
        l1_ratio=LASSO_SHARE,
        alphas=PENALTIES,
        eps=path_length(n, p),
        cv=folds,
        n_jobs=threads,
    ).fit(scaled, y)
    sizes = np.array([len(held_out) for _, held_out in folds.split(scaled)])
    penalty = one_error_rule(path.alphas_, path.mse_path_, sizes)
    net = ElasticNet(alpha=penalty, l1_ratio=LASSO_SHARE).fit(scaled, y)
    slopes = np.where(spread > 0, net.coef_ / np.where(spread > 0, spread, 1.0), 0.0)
    return ArmRegression(float(net.intercept_ - centre @ slopes), slopes, n)


def one_error_rule(penalties: FloatArray, errors: FloatArray, sizes: FloatArray) -> float:
    """The largest penalty whose error is at most one standard error above the smallest one.

    Parameters
    ----------
    penalties : (k,) float64
        Penalties tried.
    errors : (k, folds) float64
        Mean squared errors on held-out folds.
    sizes : (folds,)
        Rows of the folds, by which they are weighted.
    """
    means = np.average(errors, axis=1, weights=sizes)
    variances = np.average((errors - means[:, None]) ** 2, axis=1, weights=sizes)
    deviations = np.sqrt(variances / (len(sizes) - 1))
    best = int(np.argmin(means))
    return float(penalties[means <= means[best] + deviations[best]].max())


def balancing_weights(
    X: FloatArray, target: FloatArray, *, largest_weight: float = np.inf
) -> FloatArray:
    """Weights γ (n,), non-negative and of sum 1, that bring the means of X near a target.

    They minimise (1 - ζ) |γ|² + ζ max_j (Σ_i γ_i x_ij - target_j)² with ζ = 1/2: a quadratic
    program in γ and the largest imbalance δ.

    Parameters
    ----------
    X : (n, p) float64
        Covariates of one arm.
    target : (p,) float64
        Means to come near to.
    largest_weight : float
        Upper bound of each γ_i, at least 1 / n. The authors' theory asks for n^(-2/3); their
        software has no bound unless it is asked for.
    """
    import osqp

    n, p = X.shape
    # In terms of nγ, whose mean is 1, and with an objective of n times the size, the solver's
    # numbers are about one, whatever the number of rows.
    apart = sparse.csc_matrix((X - target).T / n)
    imbalance = np.ones((p, 1))
    squares = np.append(np.full(n, 2 * (1 - BALANCE_SHARE) / n), 2 * BALANCE_SHARE * n)
    constraints = sparse.vstack(
        [
            np.append(np.full(n, 1 / n), 0.0)[None, :],  # weights of mean 1
            sparse.hstack([apart, imbalance]),  # imbalance + δ ≥ 0
            sparse.hstack([apart, -imbalance]),  # imbalance - δ ≤ 0
            sparse.eye(n, n + 1),  # weights ≥ 0, and not too large
        ],
        format="csc",
    )
    lower = np.concatenate([[1.0], np.zeros(p), np.full(p, -np.inf), np.zeros(n)])
    upper = np.concatenate([[1.0], np.full(p, np.inf), np.zeros(p), np.full(n, n * largest_weight)])
    solver = osqp.OSQP()
    solver.setup(
        sparse.diags(squares, format="csc"),
        np.zeros(n + 1),
        constraints,
        lower,
        upper,
        eps_abs=1e-7,
        eps_rel=1e-7,
        max_iter=100_000,
        polishing=True,
        verbose=False,
    )
    solution = solver.solve(raise_error=False)
    if solution.info.status not in ("solved", "solved inaccurate"):
        raise RuntimeError(
            f"no balancing weights for {n} rows and {p} covariates: the solver says "
            f"{solution.info.status!r}; look for covariates of extreme scale"
        )
    # What the solver leaves below zero is rounding.
    weights: FloatArray = np.maximum(solution.x[:n], 0.0)
    return weights / float(weights.sum())


def balancing_scales(X: FloatArray) -> FloatArray:
    """What each covariate is divided by before balancing, (p,): its spread, or 1 for a 0/1 one."""
    spread = X.std(axis=0, ddof=1)
    binary = np.isin(X, (0.0, 1.0)).all(axis=0)
    return np.where(binary | (spread == 0), 1.0, spread)


@dataclass(frozen=True, slots=True, eq=False)
class ArmRegressions:
    """The regressions of both arms, from the training rows.

    Parameters
    ----------
    arms : (ArmRegression, ArmRegression)
        Of the untreated and of the treated.
    """

    arms: tuple[ArmRegression, ArmRegression]

    def on(self, rows: Variables) -> Estimate:
        """Balance these rows, and correct the regressions' difference by weighted residuals.

        The variance counts the regressions' coefficients as balanceHD does. For rows that the
        regressions have not seen, this makes the interval a little too long.
        """
        X = np.asarray(rows.X, np.float64)
        scaled = X / balancing_scales(X)
        means, variances = np.empty(2), np.empty(2)
        for a, regression in enumerate(self.arms):
            mine = rows.treat == a
            if not mine.any():
                raise ValueError(f"no row has treatment {a}: there is nothing to balance")
            weights = balancing_weights(scaled[mine], scaled.mean(axis=0))
            residuals = rows.y[mine] - regression.predict(X[mine])
            means[a] = regression.predict(X.mean(axis=0, keepdims=True))[0] + weights @ residuals
            variances[a] = (weights**2) @ (residuals**2) * regression.inflation
        ate, se = float(means[1] - means[0]), float(np.sqrt(variances.sum()))
        return Estimate(ate, se, ate - Z95 * se, ate + Z95 * se)


def learn(rows: Variables, threads: int, seed: int) -> ArmRegressions:
    """Fit both arms' regressions to training rows."""
    X = np.asarray(rows.X, np.float64)
    untreated, treated = (
        fit_arm(X[rows.treat == a], rows.y[rows.treat == a], threads, seed) for a in (0, 1)
    )
    return ArmRegressions((untreated, treated))


RESIDUAL_BALANCING = Baseline(
    name="arbe",
    modules=("osqp", "sklearn.linear_model", "sklearn.model_selection"),
    learn=learn,
    source="Athey, Imbens and Wager (2018), JRSS B 80, 597-623",
)
