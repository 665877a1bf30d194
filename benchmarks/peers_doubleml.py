"""DoubleML's interactive regression model with several learners: cross-fitted AIPW.

The settings of each are those of DoubleML's documentation or of common practice, see the
functions. "Coverage pages" are those that DoubleML publishes of its own simulations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from common import Estimate, Variables

FOLDS = 5
# Covariates of the coverage pages' data.
COVERAGE_COVARIATES = 20
Score: TypeAlias = Literal["ATE", "ATTE"]


@dataclass(frozen=True, slots=True)
class Learners:
    """What predicts the outcome within an arm, and the treatment."""

    outcome: Any
    treatment: Any


@dataclass(frozen=True, slots=True)
class Task:
    """What learners are made for.

    Parameters
    ----------
    binary : bool
        Whether the outcome is 0 or 1.
    covariates : int
        Number of covariates.
    threads, seed : int
        Threads and seed.
    """

    binary: bool
    covariates: int
    threads: int
    seed: int


LearnersOf: TypeAlias = Callable[[Task], Learners]


def lightgbm(task: Task) -> Learners:
    """Gradient boosting, 300 trees at a learning rate of 0.05."""
    return _boosted(task)


def lightgbm_small(task: Task) -> Learners:
    """The same with 100 trees of 8 leaves at the library's learning rate: the cheapest boosting."""
    return _boosted(task, n_estimators=100, num_leaves=8, learning_rate=0.1)


def lightgbm_slow(task: Task) -> Learners:
    """500 trees at a learning rate of 0.01: the boosting of DoubleML's coverage page of the ATE."""
    return _boosted(task, n_estimators=500, learning_rate=0.01)


def lightgbm_slow_arms(task: Task) -> Learners:
    """The same with leaves of 10 rows, not 20: that of the coverage page of several arms."""
    return _boosted(task, n_estimators=500, learning_rate=0.01, min_child_samples=10)


def _boosted(task: Task, **changes: float) -> Learners:
    """LightGBM for both, with the settings of `boosting_settings` but for these."""
    from learners import boosting_settings
    from lightgbm import LGBMClassifier, LGBMRegressor

    settings = boosting_settings(task.threads, task.seed) | changes
    outcome = LGBMClassifier if task.binary else LGBMRegressor
    return Learners(outcome(**settings), LGBMClassifier(**settings))


def lightgbm_stopped(task: Task) -> Learners:
    """At most 300 trees: growth stops when a tenth of the rows no longer gains.

    Where treatment depends weakly on the covariates, all 300 trees give propensities worse than
    a coin's and intervals several times too wide. Held-out rows tell, without any truth.
    """
    from learners import stopped_boosting

    outcome, treatment = (
        stopped_boosting(binary, task.threads, task.seed) for binary in (task.binary, True)
    )
    return Learners(outcome, treatment)


def lasso(task: Task) -> Learners:
    """The lasso and L1 logistic regression, penalties by cross-validation."""
    return Learners(_lasso(task, task.binary), _lasso(task, True))


def forest(task: Task) -> Learners:
    """Random forests of the coverage pages: 200 trees of depth 5, see `_forest`."""
    return Learners(_forest(task, task.binary), _forest(task, True))


def lasso_forest(task: Task) -> Learners:
    """The lasso for the outcome, a forest for the treatment: the coverage pages' best pair."""
    return Learners(_lasso(task, task.binary), _forest(task, True))


def linear(task: Task) -> Learners:
    """Least squares and logistic regression with the library's ridge, as on the coverage pages."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def logistic() -> Any:
        # The columns of real data have units: without scaling the solver does not converge.
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    return Learners(logistic() if task.binary else LinearRegression(), logistic())


def _lasso(task: Task, binary: bool) -> Any:
    from learners import CV_FOLDS, LogisticLasso
    from sklearn.linear_model import LassoCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if binary:
        return LogisticLasso(threads=task.threads, seed=task.seed)
    regression = LassoCV(cv=CV_FOLDS, n_jobs=task.threads, random_state=task.seed)
    return make_pipeline(StandardScaler(), regression)


def _forest(task: Task, binary: bool) -> Any:
    """A random forest, every split of which sees a share of the covariates.

    The coverage pages let it see 20 of 20. That is all of them, and so it is here up to 20. Of
    more it sees a third, the usual share of regressions: 20 of thousands would be almost none.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if binary else RandomForestRegressor
    return kind(
        n_estimators=200,
        max_features=1.0 if task.covariates <= COVERAGE_COVARIATES else 1 / 3,
        max_depth=5,
        min_samples_leaf=2,
        n_jobs=task.threads,
        random_state=task.seed,
    )


def interactive_regression(
    learners_of: LearnersOf, score: Score, problem: Variables, threads: int, seed: int
) -> Estimate:
    """DoubleML's cross-fitted AIPW of the ATE, or of the effect among the treated (ATTE).

    Parameters
    ----------
    learners_of : callable
        One of the functions above.
    score : {"ATE", "ATTE"}
        Which effect.
    problem : Variables, n rows
        The data.
    threads, seed : int
        Threads of the learners; seed of these and of the folds.
    """
    from doubleml import DoubleMLData, DoubleMLIRM

    X = problem.X
    learners = learners_of(Task(problem.binary, X.shape[1], threads, seed))
    np.random.seed(seed)  # noqa: NPY002  DoubleML draws its folds from the global state
    data = DoubleMLData.from_arrays(X, problem.y, problem.treat.astype(np.float64))
    model = DoubleMLIRM(
        data, ml_g=learners.outcome, ml_m=learners.treatment, n_folds=FOLDS, score=score
    )
    model.fit(store_predictions=True)
    lower, upper = model.confint(level=0.95).to_numpy()[0]
    cate = None
    if score == "ATE":  # the score of the treated needs no regression among them
        mu1, mu0 = (model.predictions[name][:, 0, 0] for name in ("ml_g1", "ml_g0"))
        cate = mu1 - mu0
    return Estimate(
        ate=float(model.coef[0]),
        se=float(model.se[0]),
        lower=float(lower),
        upper=float(upper),
        cate=cate,
    )
