"""The linear backbone against direct formulas, with many covariates and many rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from cstonet.network import backbone
from cstonet.network.backbone import Backbone, LinearPredictor, fit_backbone
from cstonet.network.scaling import column_scaling
from cstonet.network.structure import Structure
from cstonet.network.training_data import Deal, Split, TrainingData, Workplace

N, HELD_OUT = 300, 60
# Float32 arithmetic on numbers of order one, as elsewhere in these tests.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


class Setting:
    """A treatment that x0 moves, an outcome that x1, and x2 in arms but the first, move too."""

    def __init__(self, levels=2, family="gaussian", p=6, n=N) -> None:
        rng = np.random.default_rng(11)
        x = rng.normal(size=(n, p))
        odds = np.column_stack([np.zeros(n), *(0.9 * x[:, 0] - 0.2 * k for k in range(1, levels))])
        uniform = rng.random(n)
        cumulated = np.cumsum(np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True), axis=1)
        self.codes = (uniform[:, None] > cumulated).sum(axis=1).clip(0, levels - 1)
        dummies = np.eye(levels)[self.codes][:, 1:]
        eta = 0.5 + dummies @ np.arange(1, levels) + x[:, 1] + (self.codes > 0) * x[:, 2]
        y = {
            "gaussian": eta + rng.normal(size=n),
            "binomial": rng.random(n) < expit(2 * eta),
            "poisson": (counts := rng.poisson(np.exp(0.8 * eta))) / counts.mean(),
        }[family]
        self.x, self.levels = x, levels
        self.data = TrainingData(
            column_scaling(x, 1e6).dataset(x, 0),
            np.column_stack([dummies, y]).astype(np.float32),
            rng.uniform(0.5, 1.5, n).astype(np.float32),
            (family,),
        )
        labels = (np.arange(n) < HELD_OUT).astype(np.uint8)
        self.place = Workplace(Split(0, 0, 1, Deal(labels, folds=2)), 7, 0, 1)
        self.used = Structure(treatment=(0,), outcome=(1, 2))

    @property
    def known(self):
        return self.place.split.known

    def fit(self, data=None, used=None):
        used = self.used if used is None else used
        return fit_backbone(data or self.data, self.place, used, used)

    def standardised(self, rows, columns):
        return self.data.covariates.gather(rows, columns).astype(np.float64)


@pytest.fixture(params=[(2, "gaussian"), (2, "binomial"), (3, "gaussian"), (2, "poisson")], ids=str)
def setting(request) -> Setting:
    return Setting(*request.param)


# Predictions by given coefficients ----------------------------------------------------------------


def random_backbone(levels) -> Backbone:
    """Any coefficients; units of the treatment know nothing of the treatment."""
    rng, width = np.random.default_rng(3), levels - 1

    def predictor(columns, *, arms) -> LinearPredictor:
        q = len(columns)
        return LinearPredictor(
            np.array(columns),
            float(rng.normal()),
            arms * rng.normal(size=width),
            rng.normal(size=q),
            arms * rng.normal(size=(width, q)),
        )

    return Backbone(
        tuple(predictor([0, k], arms=0.0) for k in range(1, levels)),
        predictor([1, 2, 4], arms=1.0),
        tuple(predictor([0, 3, 5, k], arms=0.0) for k in range(1, levels)),
    )


@pytest.mark.parametrize("levels", [2, 3])
def test_offsets_at_levels_are_those_of_the_formula(levels):
    setting, made = Setting(levels), random_backbone(levels)
    rows = np.array([3, 5, 70, 71, 299])
    offsets = made.at_levels(setting.data.covariates, rows)
    assert offsets.shape == (levels, len(rows), levels)
    for level in range(levels):
        for m, row in enumerate(rows):
            for unit, one in enumerate(made.treatment):
                x = setting.standardised(np.array([row]), one.columns)[0]
                expected = one.constant + x @ one.slopes
                np.testing.assert_allclose(offsets[level, m, unit], expected, **CLOSE)
            one = made.outcome
            x = setting.standardised(np.array([row]), one.columns)[0]
            expected = one.constant + x @ one.slopes
            if level > 0:
                expected += one.arms[level - 1] + x @ one.by_arm[level - 1]
            np.testing.assert_allclose(offsets[level, m, -1], expected, **CLOSE)


@pytest.mark.parametrize("levels", [2, 3])
def test_assignment_odds_are_those_of_the_formula(levels):
    setting, made = Setting(levels), random_backbone(levels)
    rows = np.array([0, 9, 250])
    odds = made.assignment_odds(setting.data.covariates, rows)
    assert odds.shape == (len(rows), levels - 1)
    for unit, one in enumerate(made.assignment):
        x = setting.standardised(rows, one.columns)
        np.testing.assert_allclose(odds[:, unit], one.constant + x @ one.slopes, **CLOSE)


# Fits ---------------------------------------------------------------------------------------------


def log_likelihood_gradient(setting, eta, response, weights, x):
    """Mean over rows of weight times residual times 1 and x."""
    mean = {"gaussian": eta, "binomial": expit(eta), "poisson": np.exp(eta)}[
        setting.data.families[0]
    ]
    left = weights * (response - mean)
    return np.column_stack([np.ones(len(x)), x]).T @ left / weights.sum()


def test_every_arm_has_the_mean_that_the_outcome_predicts(setting):
    """Arms have no penalty worth the name: their residuals sum to zero, in any ridge."""
    fitted = setting.fit()
    rows, own = setting.known, setting.codes[setting.known]
    eta = fitted.backbone.at_levels(setting.data.covariates, rows)[own, np.arange(len(rows)), -1]
    response, weights = setting.data.outcome[rows, 0], setting.data.weights[rows]
    for level in range(setting.levels):
        arm = (own == level).astype(float)[:, None]
        gradient = log_likelihood_gradient(setting, eta, response, weights, arm)
        np.testing.assert_allclose(gradient, 0, atol=2e-5)


def test_effects_and_slopes_are_found(setting):
    fitted = setting.fit().backbone
    outcome = fitted.outcome
    assert sorted(outcome.columns) == list(range(6))
    place = {int(c): k for k, c in enumerate(outcome.columns)}
    assert (np.diff(outcome.arms, prepend=0.0) > 0.3).all()
    assert outcome.slopes[place[1]] > 0.5
    # Slopes of x2 differ from those of the first arm by one; their standard error is below 0.2.
    assert (outcome.slopes[place[2]] + outcome.by_arm[:, place[2]] > 0.5).all()
    assert np.abs(outcome.slopes[place[5]]) < 0.4
    for unit in fitted.treatment:
        assert list(unit.columns) == [0]
        assert unit.slopes[0] > 0.4
        assert not unit.arms.any()
        assert not unit.by_arm.any()
    for unit in fitted.assignment:
        assert sorted(unit.columns) == list(range(6))
        assert list(unit.columns[:1]) == [0]
        assert unit.slopes[0] == np.abs(unit.slopes).max()


def test_levels_are_compared_with_the_reference_among_the_two():
    """What the third arm does is nothing to the log-odds of the second."""
    setting = Setting(3)
    before = setting.fit().backbone.treatment[0]
    visible = setting.data.visible.copy()
    visible[:, 2] += 5 * visible[:, 1]  # outcomes of the third arm
    after = setting.fit(replace(setting.data, visible=visible)).backbone
    assert after.treatment[0].slopes == pytest.approx(before.slopes, rel=1e-12)
    rows = setting.known
    two = rows[setting.codes[rows] < 2]
    eta = setting.fit().backbone.at_levels(setting.data.covariates, two)[0, :, 0]
    left = setting.data.weights[two] * (setting.data.visible[two, 0] - expit(eta))
    # The constant is all but free; other arms have no weight.
    assert left.mean() == pytest.approx(0, abs=2e-5)


def test_held_out_rows_are_not_looked_at(setting):
    before = setting.fit()
    visible = setting.data.visible.copy()
    visible[:HELD_OUT, -1] = 1 - visible[:HELD_OUT, -1]
    after = setting.fit(replace(setting.data, visible=visible))
    assert_same(before, after)
    np.testing.assert_array_equal(before.offset[:HELD_OUT], 0)
    assert (before.offset[setting.known] != 0).all()


def test_offsets_of_training_do_not_know_their_row(setting):
    """Held-out predictions: they follow the outcome less closely than the fit itself."""
    fitted, rows = setting.fit(), setting.known
    own = setting.codes[rows]
    inside = fitted.backbone.at_levels(setting.data.covariates, rows)[own, np.arange(len(rows)), -1]
    y, w = setting.data.outcome[rows, 0], setting.data.weights[rows]

    def loss(eta):
        if setting.data.families == ("binomial",):
            return np.average(np.logaddexp(0, eta) - y * eta, weights=w)
        if setting.data.families == ("poisson",):
            return np.average(np.exp(eta) - y * eta, weights=w)
        return np.average((y - eta) ** 2, weights=w)

    outside = fitted.offset[rows, -1].astype(float)
    assert loss(inside) < loss(outside) < loss(np.full(len(y), y.mean()))
    assert np.corrcoef(inside, outside)[0, 1] > 0.95


def assert_same(one, other):
    np.testing.assert_array_equal(one.offset, other.offset)
    left, right = one.backbone, other.backbone
    for a, b in zip(
        (*left.treatment, left.outcome, *left.assignment),
        (*right.treatment, right.outcome, *right.assignment),
        strict=True,
    ):
        assert a.constant == b.constant
        for part in ("columns", "arms", "slopes", "by_arm"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


def test_fits_are_the_same_bit_by_bit(setting):
    first = setting.fit()
    assert_same(first, setting.fit())
    place = setting.place
    more = Workplace(place.split, place.seed, place.network_id, 2)
    assert_same(first, fit_backbone(setting.data, more, setting.used, setting.used))


# Many covariates, many rows -----------------------------------------------------------------------


def test_of_many_covariates_those_with_the_largest_scores_enter(monkeypatch):
    """Found ones always do; of forty others the four that matter most of what is left."""
    monkeypatch.setattr(backbone, "MOST_OTHERS", 4)
    setting = Setting(p=43)
    used = Structure(treatment=(0,), outcome=(2,))
    outcome = setting.fit(used=used).backbone.outcome
    assert len(outcome.columns) == 5
    assert outcome.columns[0] == 2
    assert 1 in outcome.columns[1:]
    assert (np.diff(outcome.columns[1:]) > 0).all()
    # Twin: scores of what arms and the found covariate leave, on all known rows.
    rows = setting.known
    w, y = setting.data.weights[rows].astype(float), setting.data.outcome[rows, 0]
    x = setting.standardised(rows, np.arange(43))
    arms = setting.data.treatment[rows]
    basis = np.column_stack([np.ones(len(rows)), arms, x[:, 2]])
    root = np.sqrt(w)
    left = y - basis @ np.linalg.lstsq(root[:, None] * basis, root * y, rcond=None)[0]
    products = (w * left)[:, None] * x
    scores = np.abs(products.sum(axis=0) / np.sqrt((products**2).sum(axis=0)))
    scores[2] = 0
    assert sorted(np.argsort(-scores)[:4]) == list(outcome.columns[1:])


def test_scores_of_a_part_do_not_know_its_rows(monkeypatch):
    """Outcomes of a part decide which covariates the others learn from, not its own."""
    monkeypatch.setattr(backbone, "MOST_OTHERS", 3)
    setting = Setting(p=40)
    fitter, found = backbone._Fitter(setting.data, setting.place), np.array([2])
    response = setting.data.outcome[setting.known, 0]
    arms = setting.data.treatment[setting.known]
    before = fitter._others(found, response, arms)
    assert before.shape == (6, 3)  # five parts, and all rows
    for part in range(5):
        noise = np.random.default_rng(part).normal(size=len(response))
        changed = np.where(fitter._parts == part, 10 * noise, response)
        after = fitter._others(found, changed, arms)
        np.testing.assert_array_equal(after[part], before[part])
        assert (np.delete(after, part, axis=0) != np.delete(before, part, axis=0)).any(axis=1).all()


def test_slopes_by_arm_are_of_those_found_where_covariates_are_many(monkeypatch):
    monkeypatch.setattr(backbone, "_MOST_BY_ARM", 5)
    outcome = Setting().fit().backbone.outcome
    assert list(outcome.columns[:2]) == [1, 2]
    assert (outcome.by_arm[:, :2] != 0).all()
    np.testing.assert_array_equal(outcome.by_arm[:, 2:], 0)


def test_of_many_rows_some_are_learned_from_and_all_have_offsets(monkeypatch):
    """Rows beyond are predicted by a fit that does not know them: no need to hold them out."""
    monkeypatch.setattr(backbone, "MOST_ROWS", 120)
    setting = Setting()
    fitted, rows = setting.fit(), setting.known
    assert len(rows) == N - HELD_OUT
    own = setting.codes[rows]
    every = fitted.backbone.at_levels(setting.data.covariates, rows)
    direct = every[own, np.arange(len(rows)), -1]
    same = np.isclose(fitted.offset[rows, -1], direct, **CLOSE)
    assert same.sum() == pytest.approx(len(rows) - 120, abs=5)  # by chance others, too
    unseen = rows[same]
    np.testing.assert_allclose(
        fitted.offset[unseen, 0], every[0, same, 0], **CLOSE, err_msg="treatment"
    )
    # What unseen rows received and had as outcome is nothing to the fit.
    visible = setting.data.visible.copy()
    visible[unseen[:10], -1] += 3.0
    again = setting.fit(replace(setting.data, visible=visible)).backbone.outcome
    np.testing.assert_array_equal(again.slopes, fitted.backbone.outcome.slopes)
    assert_same(fitted, setting.fit())
