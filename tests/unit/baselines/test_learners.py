"""Learners that peers and baselines share."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

import learners
import peers
import peers_doubleml as dml
from sklearn.base import clone, is_classifier


@pytest.fixture
def few_penalties(monkeypatch):
    """What is tested does not depend on how many there are."""
    monkeypatch.setattr(learners, "PENALTIES", 5)


@pytest.mark.usefixtures("few_penalties")
@pytest.mark.parametrize("share", [0.05, 0.7])
def test_logistic_lasso_leaves_the_constant_alone(share):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(500, 3)), (rng.random(500) < share).astype(float)
    fitted = learners.LogisticLasso(seed=1).fit(X, y)
    penalty, tolerance = fitted.model_.C, fitted.model_.tol
    # At the optimum of |b| / 100 + C Σ losses, 100 C |Σ (p - y)| is at most 1, not 100 as with a
    # constant under the penalty of the slopes. liblinear stops when the violations of all such
    # conditions are a share of those at the start, where p = 1/2.
    columns = np.column_stack([np.full(500, 100.0), (X - X.mean(axis=0)) / X.std(axis=0)])
    start = penalty * np.abs((0.5 - y) @ columns).sum()
    left = tolerance * min(y.mean(), 1 - y.mean()) * start
    distance = abs(fitted.predict_proba(X)[:, 1].mean() - y.mean())
    assert 100 * penalty * distance * len(y) <= 1 + left
    assert left < 1


@pytest.mark.usefixtures("few_penalties")
def test_logistic_lasso_selects_and_its_units_do_not_matter():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(200, 8))
    y = (rng.random(200) < 1 / (1 + np.exp(-2 * X[:, 3]))).astype(int)
    plain = learners.LogisticLasso(seed=1).fit(X, y)
    used = plain.model_.coef_[0] != 0
    assert used[3]
    assert used.sum() < 8
    # A power of two changes no digit of what is fitted.
    scaled = learners.LogisticLasso(seed=1).fit(8 * X, y)
    assert (scaled.predict_proba(8 * X) == plain.predict_proba(X)).all()
    constant = np.column_stack([X, np.full(200, 3.0)])
    beside = learners.LogisticLasso(seed=1).fit(constant, y)
    assert beside.model_.coef_[0, -1] == 0


@pytest.mark.usefixtures("few_penalties")
def test_logistic_lasso_is_a_classifier_of_any_two_values():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, 7.0, -1.0)
    fitted = clone(learners.LogisticLasso(threads=1, seed=4)).fit(X, y)
    assert is_classifier(fitted)
    assert fitted.get_params() == {"threads": 1, "seed": 4}
    assert fitted.classes_.tolist() == [-1.0, 7.0]
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(200))
    assert (fitted.predict(X) == np.where(fitted.predict_proba(X)[:, 1] > 0.5, 7.0, -1.0)).all()
    with pytest.raises(ValueError, match="two values, not 1"):
        fitted.fit(X, np.ones(200))


def test_paths_end_as_those_of_glmnet():
    assert learners.path_length(100, 100) == 1e-3
    assert learners.path_length(99, 100) == 1e-2
    assert learners.path_length(150, 100) == 1e-3


def test_boosting_stops_where_nothing_is_to_be_learnt():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(13)
    X = rng.normal(size=(400, 5))
    noise = rng.normal(size=400)
    stopped = learners.stopped_boosting(False, 1, 1)
    after_noise = clone(stopped).fit(X, noise).best_iteration_
    after_signal = clone(stopped).fit(X, 5 * X[:, 0] + 0.1 * noise).best_iteration_
    assert after_noise < after_signal <= 300
    classifier = learners.stopped_boosting(True, 1, 1).fit(X, (noise > 0).astype(int))
    assert classifier.predict_proba(X).shape == (400, 2)


# What DoubleML is given of them ------------------------------------------------------------------


def task(covariates: int = 20, binary: bool = False) -> dml.Task:
    return dml.Task(binary, covariates, 1, 1)


@pytest.mark.parametrize(("covariates", "share"), [(5, 1.0), (20, 1.0), (21, 1 / 3), (6000, 1 / 3)])
def test_forests_see_all_of_few_covariates_and_a_third_of_many(covariates, share):
    for made in (dml.forest(task(covariates)), dml.forest(task(covariates, binary=True))):
        assert made.outcome.max_features == share
        assert made.treatment.max_features == share
    assert dml.lasso_forest(task(covariates)).treatment.max_features == share


def test_lassos_of_0_and_1_are_the_shared_one():
    made = dml.lasso(task(binary=True))
    assert isinstance(made.outcome, learners.LogisticLasso)
    assert isinstance(made.treatment, learners.LogisticLasso)
    assert isinstance(dml.lasso_forest(task(binary=True)).outcome, learners.LogisticLasso)


def test_slow_boosting_has_the_published_settings():
    pytest.importorskip("lightgbm")
    import field_peers

    # github.com/DoubleML/doubleml-coverage, scripts/irm/irm_ate_config.yml and apos_config.yml
    published = {"n_estimators": 500, "learning_rate": 0.01, "min_child_samples": 20}
    for choices, rows_of_a_leaf in ((peers.DOUBLEML, 20), (field_peers.ARMS_DOUBLEML, 10)):
        made = choices["doubleml-lightgbm-slow"].learners(task())
        for learner in (made.outcome, made.treatment):
            settings = learner.get_params()
            expected = published | {"min_child_samples": rows_of_a_leaf}
            assert {name: settings[name] for name in expected} == expected
