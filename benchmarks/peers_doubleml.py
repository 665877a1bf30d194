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
Score: TypeAlias = Literal["ATE", "ATTE"]


@dataclass(frozen=True, slots=True)
class Learners:
    """What predicts the outcome within an arm, and the treatment."""

    outcome: Any
    treatment: Any


# ``make(binary, threads, seed)``, where `binary` says whether the outcome is 0 or 1.
LearnersOf: TypeAlias = Callable[[bool, int, int], Learners]


def lightgbm(binary: bool, threads: int, seed: int) -> Learners:
    """Gradient boosting, 300 trees at a learning rate of 0.05."""
    return _boosted(binary, _boosting(threads, seed))


def lightgbm_small(binary: bool, threads: int, seed: int) -> Learners:
    """The same with 100 trees of 8 leaves at the library's learning rate: the cheapest boosting."""
    small = {"n_estimators": 100, "num_leaves": 8, "learning_rate": 0.1}
    return _boosted(binary, _boosting(threads, seed) | small)


def lightgbm_slow(binary: bool, threads: int, seed: int) -> Learners:
    """500 trees at a learning rate of 0.01: the boosting of DoubleML's coverage pages."""
    return _boosted(binary, _boosting(threads, seed) | {"n_estimators": 500, "learning_rate": 0.01})


def _boosted(binary: bool, boosting: dict[str, Any]) -> Learners:
    """LightGBM of these settings for both."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    outcome = LGBMClassifier if binary else LGBMRegressor
    return Learners(outcome(**boosting), LGBMClassifier(**boosting))


def lightgbm_stopped(binary: bool, threads: int, seed: int) -> Learners:
    """At most 300 trees: growth stops when a tenth of the rows no longer gains.

    Where treatment depends weakly on the covariates, all 300 trees give propensities worse than
    a coin's and intervals several times too wide. Held-out rows tell, without any truth.
    """
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping
    from sklearn.model_selection import train_test_split

    def fit_until_no_gain(fit: Callable[..., Any], X: Any, y: Any, stratify: Any) -> Any:
        train, held_out, y_train, y_held_out = train_test_split(
            X, y, test_size=0.1, random_state=seed, stratify=stratify
        )
        stopping = [early_stopping(20, verbose=False)]
        return fit(train, y_train, eval_set=[(held_out, y_held_out)], callbacks=stopping)

    class Classifier(LGBMClassifier):
        def fit(self, X: Any, y: Any) -> Any:
            return fit_until_no_gain(super().fit, X, y, y)

    class Regressor(LGBMRegressor):
        def fit(self, X: Any, y: Any) -> Any:
            return fit_until_no_gain(super().fit, X, y, None)

    boosting = _boosting(threads, seed)
    outcome = Classifier if binary else Regressor
    return Learners(outcome(**boosting), Classifier(**boosting))


def _boosting(threads: int, seed: int) -> dict[str, Any]:
    """LightGBM's settings; what is not named has the library's default."""
    return {
        "n_estimators": 300,
        "learning_rate": 0.05,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": -1,
    }


def lasso(binary: bool, threads: int, seed: int) -> Learners:
    """The lasso and L1 logistic regression, penalties by cross-validation."""
    outcome = _l1_logistic(threads, seed) if binary else _lasso(threads, seed)
    return Learners(outcome, _l1_logistic(threads, seed))


def forest(binary: bool, threads: int, seed: int) -> Learners:
    """Random forests of the coverage pages: 200 trees of depth 5, at most 20 columns per split."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    settings = _forest(threads, seed)
    outcome = RandomForestClassifier if binary else RandomForestRegressor
    return Learners(outcome(**settings), RandomForestClassifier(**settings))


def lasso_forest(binary: bool, threads: int, seed: int) -> Learners:
    """The lasso for the outcome, a forest for the treatment: the coverage pages' best pair."""
    from sklearn.ensemble import RandomForestClassifier

    outcome = _l1_logistic(threads, seed) if binary else _lasso(threads, seed)
    return Learners(outcome, RandomForestClassifier(**_forest(threads, seed)))


def linear(binary: bool, threads: int, seed: int) -> Learners:  # noqa: ARG001
    """Least squares and logistic regression with the library's ridge, as on the coverage pages."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def logistic() -> Any:
        # The columns of real data have units: without scaling the solver does not converge.
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    return Learners(logistic() if binary else LinearRegression(), logistic())


def _lasso(threads: int, seed: int) -> Any:
    from sklearn.linear_model import LassoCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LassoCV(cv=5, n_jobs=threads, random_state=seed))


def _l1_logistic(threads: int, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # liblinear: coordinate descent, made for this penalty.
    model = LogisticRegressionCV(
        Cs=10,
        cv=5,
        l1_ratios=(1.0,),
        solver="liblinear",
        scoring="neg_log_loss",
        use_legacy_attributes=False,
        n_jobs=threads,
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), model)


def _forest(threads: int, seed: int) -> dict[str, Any]:
    return {
        "n_estimators": 200,
        "max_features": 20,
        "max_depth": 5,
        "min_samples_leaf": 2,
        "n_jobs": threads,
        "random_state": seed,
    }


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

    learners = learners_of(problem.binary, threads, seed)
    np.random.seed(seed)  # noqa: NPY002  DoubleML draws its folds from the global state
    data = DoubleMLData.from_arrays(problem.X, problem.y, problem.treat.astype(np.float64))
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
