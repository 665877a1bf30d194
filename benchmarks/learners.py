"""Learners that peers and baselines share, with the interface of scikit-learn.

Imported where one is made: scikit-learn and LightGBM are optional.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from common import FloatArray
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split

CV_FOLDS = 5
# Penalties that the logistic lasso tries.
PENALTIES = 20

# Trees without gain on the held-out rows after which boosting stops.
PATIENCE = 20


def cross_validation(binary: bool, seed: int) -> Any:
    """Folds of rows, with equal shares of both values of a response of 0 or 1."""
    kind = StratifiedKFold if binary else KFold
    return kind(CV_FOLDS, shuffle=True, random_state=seed)


def path_length(n: int, p: int) -> float:
    """The smallest penalty of a lasso's path over the largest one.

    As glmnet, the path ends earlier where there are more covariates than rows.
    """
    return 1e-2 if n < p else 1e-3


class LogisticLasso(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression of standardised covariates with a cross-validated lasso penalty.

    The path of penalties starts where the first covariate enters, and the constant is as good as
    free of the penalty: the fitted probabilities have the mean of the response.

    Parameters
    ----------
    threads, seed : int
        Threads; seed of the folds and of the solver.
    """

    def __init__(self, threads: int = 1, seed: int = 0):
        self.threads = threads
        self.seed = seed

    def fit(self, X: FloatArray, y: NDArray[Any]) -> LogisticLasso:
        """Fit to covariates (n, p) and a response (n,) of two values."""
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError(
                f"a logistic regression needs a response of two values, not {len(self.classes_)}: "
                "look for an arm or a fold in which all are alike"
            )
        ones = (y == self.classes_[1]).astype(np.int64)
        self.centre_, spread = X.mean(axis=0), X.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        scaled = self._scaled(X)
        first = 1 / np.abs((ones - ones.mean()) @ scaled).max()
        # liblinear is made for this penalty, which it also applies to the constant: a large scale
        # of the constant's column makes that penalty negligible. LogisticRegressionCV forgets the
        # scale.
        search = GridSearchCV(
            LogisticRegression(
                l1_ratio=1.0, solver="liblinear", intercept_scaling=100.0, random_state=self.seed
            ),
            {"C": np.geomspace(first, first / path_length(*X.shape), PENALTIES)},
            scoring="neg_log_loss",
            cv=cross_validation(True, self.seed),
            n_jobs=self.threads,
        )
        self.model_ = search.fit(scaled, ones).best_estimator_
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probabilities (m, 2) of the two values."""
        probabilities: FloatArray = self.model_.predict_proba(self._scaled(X))
        return probabilities

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """The likelier value (m,)."""
        likelier: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return likelier

    def _scaled(self, X: FloatArray) -> FloatArray:
        scaled: FloatArray = (X - self.centre_) / self.spread_
        return scaled


def boosting_settings(threads: int, seed: int) -> dict[str, Any]:
    """LightGBM's settings; what is not named has the library's default."""
    return {
        "n_estimators": 300,
        "learning_rate": 0.05,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": -1,
    }


def stopped_boosting(binary: bool, threads: int, seed: int) -> Any:
    """LightGBM, the growth of which stops when a tenth of the rows no longer gains."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    def fit_until_no_gain(fit: Callable[..., Any], X: Any, y: Any, stratify: Any) -> Any:
        train, held_out, y_train, y_held_out = train_test_split(
            X, y, test_size=0.1, random_state=seed, stratify=stratify
        )
        stopping = [early_stopping(PATIENCE, verbose=False)]
        return fit(train, y_train, eval_set=[(held_out, y_held_out)], callbacks=stopping)

    class Classifier(LGBMClassifier):
        def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
            return fit_until_no_gain(super().fit, X, y, y)

    class Regressor(LGBMRegressor):
        def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
            return fit_until_no_gain(super().fit, X, y, None)

    kind = Classifier if binary else Regressor
    return kind(**boosting_settings(threads, seed))
