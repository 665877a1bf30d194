"""The scikit-learn estimator: its effects, its place in pipelines, and the library's checks."""

from __future__ import annotations

import dataclasses
from unittest import SkipTest

import numpy as np
import pytest

import cstonet as cs
from cstonet.errors import LengthMismatchError, NotAvailableError, OptionError

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from cstonet.sklearn import CausalStoNetRegressor


@pytest.fixture(scope="module")
def quick(quick_options):
    """Parameters of an estimator that fits in a moment."""
    options = quick_options(epochs=2, starts=1)
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {"options": values, "n_jobs": 1, "random_state": 3}


@pytest.fixture(scope="module")
def data():
    frame = cs.datasets.simulation2(n=200, p=5, seed=1).data
    return frame.drop(columns=["y", "treat"]), frame["y"].to_numpy(), frame["treat"].to_numpy()


@pytest.fixture(scope="module")
def fitted(quick, data):
    X, y, treat = data
    return CausalStoNetRegressor(**quick).fit(X, y, treatment=treat)


def test_estimates_are_those_of_the_package(fitted, quick, data):
    X, y, treat = data
    results = cs.CausalStoNet(y, treat, X).fit(seed=3, n_jobs=1, **quick["options"])
    assert fitted.ate_ == results.params["ATE"]
    np.testing.assert_array_equal(fitted.effect(X), results.cate(X))
    lower, upper = fitted.effect_interval(X, alpha=0.1)
    band = results.cate(X, intervals=0.9)
    np.testing.assert_array_equal(np.column_stack([lower, upper]), band[["lower", "upper"]])
    assert list(fitted.feature_names_in_) == list(X.columns)


def test_predictions_average_over_treatments_or_take_them(fitted, data):
    X, _, treat = data
    mu, p = fitted.results_.potential_outcomes(X).to_numpy(), fitted.results_.propensity(X)
    np.testing.assert_allclose(fitted.predict(X), mu[:, 0] * (1 - p) + mu[:, 1] * p, rtol=1e-12)
    np.testing.assert_array_equal(
        fitted.predict(X, treat), np.where(treat == 1, mu[:, 1], mu[:, 0])
    )
    with pytest.raises(LengthMismatchError, match="one value per row"):
        fitted.predict(X, [0, 1])


def test_pipelines_pass_the_treatment_on(quick, data):
    X, y, treat = data
    steps = make_pipeline(StandardScaler(), CausalStoNetRegressor(**quick))
    steps.fit(X.to_numpy(), y, causalstonetregressor__treatment=treat)
    effects = steps[-1].effect(steps[:-1].transform(X.to_numpy()))
    assert effects.shape == (200,)
    assert np.isfinite(effects).all()
    assert steps.predict(X.to_numpy()).shape == (200,)


def test_column_transformers_and_categories(quick, data):
    X, y, treat = data
    X = X.assign(region=np.resize(["north", "south", "west"], len(X)))
    columns = ColumnTransformer(
        [("text", OneHotEncoder(drop="first"), ["region"])], remainder="passthrough"
    )
    steps = make_pipeline(columns, CausalStoNetRegressor(**quick))
    steps.fit(X, y, causalstonetregressor__treatment=treat)
    assert steps[-1].n_features_in_ == 7
    alone = CausalStoNetRegressor(**quick).fit(X, y, treatment=treat)
    assert "region[T.south]" in alone.results_.selection.index
    assert alone.effect(X.head(3)).shape == (3,)


def test_searches_over_parameters(quick, data):
    X, y, treat = data
    search = GridSearchCV(CausalStoNetRegressor(**quick), {"repeats": [1, 2]}, cv=2)
    search.fit(X, y, treatment=treat)
    assert search.best_params_["repeats"] in (1, 2)
    assert np.isfinite(search.best_score_)


def test_parameters_and_clones(quick):
    model = CausalStoNetRegressor(folds=3, **quick)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(folds=4).folds == 4


def test_weights_count(quick, data):
    X, y, treat = data
    weights = np.where(np.arange(len(y)) < 100, 2.0, 0.0)
    weighted = CausalStoNetRegressor(**quick).fit(X, y, treatment=treat, sample_weight=weights)
    assert weighted.results_.design.weights is not None


def test_several_levels_and_doses(quick, data):
    X, y, _ = data
    arms = np.resize(["a", "b", "c"], len(y))
    several = CausalStoNetRegressor(**quick).fit(X, y, treatment=arms)
    assert several.effect(X).shape == (200, 2)
    assert several.effect(X, contrast=("c", "b")).shape == (200,)
    dose = CausalStoNetRegressor(**quick).fit(X, y, treatment=X["x1"] + np.sin(np.arange(200)))
    with pytest.raises(NotAvailableError, match="dose="):
        dose.predict(X)


def test_the_treatment_is_asked_for(quick, data):
    X, y, _ = data
    with pytest.raises(OptionError, match="treatment"):
        CausalStoNetRegressor(**quick).fit(X, y)


class Alternating(CausalStoNetRegressor):
    """Rows are treated in turn: scikit-learn's checks know of no treatment."""

    def fit(self, X, y, treatment=None, **more):
        if treatment is None:
            treatment = np.arange(0 if y is None else np.asarray(y).shape[0]) % 2
        return super().fit(X, y, treatment, **more)


# Checks that ask for something else than this estimator is for.
EXPECTED = {
    "check_regressors_no_decision_function": "a covariate that equals the outcome is refused",
}


def test_checks_of_scikit_learn(quick):
    failed, passed = {}, 0
    for estimator, check in estimator_checks_generator(Alternating(**quick), legacy=True):
        try:
            check(estimator)
            passed += 1
        except SkipTest:
            continue  # by that library itself: a package or a setting that is not there
        except Exception as error:
            failed[check.func.__name__] = str(error)
    assert set(failed) <= set(EXPECTED), failed
    assert passed > 40
