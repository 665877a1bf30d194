"""Targeted maximum likelihood: its equations, its stacking, and a published analysis."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[3]
# The benchmarks are scripts: they find each other beside themselves.
sys.path.insert(0, str(ROOT / "benchmarks"))

from baselines import targeted  # noqa: E402

DATA = Path(os.environ.get("CSTONET_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    y: np.ndarray
    treat: np.ndarray
    X: np.ndarray
    binary: bool = False


def simulated(seed: int, n: int = 400, p: int = 10, binary: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    treat = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.int64)
    y = treat + 2 * X[:, 0] + X[:, 1] + rng.normal(size=n)
    return Rows((y > 0).astype(float) if binary else y, treat, X, binary)


def initial(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Means that are wrong everywhere, and the true propensities."""
    low = rows.y.min() + 0.3 * np.ptp(rows.y)
    means = np.column_stack([low + 0.1 * np.tanh(rows.X[:, 2]), low + 0.2 * np.tanh(rows.X[:, 3])])
    return means, 1 / (1 + np.exp(-rows.X[:, 0]))


def limits(rows: Rows) -> tuple[float, float]:
    return float(rows.y.min()), float(rows.y.max())


def test_bound_of_propensities_by_hand():
    assert targeted.propensity_bound(100) == pytest.approx(5 / (10 * math.log(100)))
    assert targeted.propensity_bound(9) == 0.5


@pytest.mark.parametrize("binary", [False, True])
def test_score_equations_are_solved(binary):
    rows = simulated(1, binary=binary)
    means, propensity = initial(rows)
    done = targeted.target(rows.y, rows.treat, means, propensity, limits(rows))
    assert abs(done.influence.mean()) < 1e-8
    bound = targeted.propensity_bound(len(rows.y))
    clipped = np.clip(propensity, bound, 1 - bound)
    for a, probability in enumerate((1 - clipped, clipped)):
        mine = rows.treat == a
        assert abs(np.sum((rows.y - done.means[:, a])[mine] / probability[mine])) < 1e-8
    assert done.ate == pytest.approx(np.mean(done.means[:, 1] - done.means[:, 0]))
    assert done.se == pytest.approx(done.influence.std(ddof=1) / math.sqrt(len(rows.y)))


@pytest.mark.parametrize("binary", [False, True])
def test_propensities_repair_wrong_means(binary):
    rows = simulated(12, n=20_000, p=4, binary=binary)
    means, propensity = initial(rows)
    done = targeted.target(rows.y, rows.treat, means, propensity, limits(rows))
    # The effect is 1, or the mean over x of Φ(1 + 2x₁ + x₂) - Φ(2x₁ + x₂) = Φ(1/√6) - 1/2.
    truth = 0.5 * math.erf(1 / math.sqrt(6) / math.sqrt(2)) if binary else 1.0
    assert abs(done.ate - truth) < 4 * done.se
    assert abs(np.mean(means[:, 1] - means[:, 0]) - truth) > 4 * done.se


def test_fluctuation_is_a_logistic_regression_with_an_offset():
    rng = np.random.default_rng(2)
    offset, clever = rng.normal(size=200), 1 / rng.uniform(0.2, 0.9, size=200)
    y = rng.random(200)
    model = sm.GLM(y, clever[:, None], family=sm.families.Binomial(), offset=offset)
    expected = model.fit(tol=1e-14).params[0]
    assert targeted.fluctuation(y, offset, clever) == pytest.approx(expected, abs=1e-10)


def test_constant_nuisances_give_the_difference_of_means():
    rows = simulated(3)
    half = np.full(len(rows.y), 0.5)
    flat = np.full((len(rows.y), 2), rows.y.mean())
    done = targeted.target(rows.y, rows.treat, flat, half, limits(rows))
    treated = rows.treat == 1
    means = rows.y[~treated].mean(), rows.y[treated].mean()
    assert done.ate == pytest.approx(means[1] - means[0], abs=1e-10)
    influence = 2 * np.where(treated, rows.y - means[1], means[0] - rows.y)
    assert done.se == pytest.approx(influence.std(ddof=1) / math.sqrt(len(rows.y)), rel=1e-8)


def test_units_of_the_outcome_do_not_matter():
    rows = simulated(4)
    means, propensity = initial(rows)
    here = targeted.target(rows.y, rows.treat, means, propensity, limits(rows))
    low, high = limits(rows)
    there = targeted.target(
        7 - 3 * rows.y, rows.treat, 7 - 3 * means, propensity, (7 - 3 * high, 7 - 3 * low)
    )
    assert there.ate == pytest.approx(-3 * here.ate, rel=1e-8)
    assert there.se == pytest.approx(3 * here.se, rel=1e-8)


def test_an_arm_of_equal_outcomes_is_pulled_to_them():
    rows = simulated(5, binary=True)
    y = np.where(rows.treat == 1, rows.y, 0.0)
    half = np.full(len(y), 0.5)
    done = targeted.target(y, rows.treat, np.full((len(y), 2), 0.4), half, (0.0, 1.0))
    assert done.means[:, 0].max() < 1e-12
    assert done.ate == pytest.approx(y[rows.treat == 1].mean(), abs=1e-10)


def test_what_cannot_be_targeted_is_said():
    rows = simulated(6)
    means, propensity = initial(rows)
    with pytest.raises(ValueError, match="every outcome is 2"):
        targeted.target(np.full(400, 2.0), rows.treat, means, propensity, (2.0, 2.0))
    with pytest.raises(ValueError, match="arms has no row"):
        targeted.target(rows.y, np.ones_like(rows.treat), means, propensity, limits(rows))


def test_stacking_weights():
    rng = np.random.default_rng(7)
    predictions = rng.normal(size=(50, 2))
    # Proportions 1 : 3, whatever their sum.
    assert targeted.stacking_weights(predictions, predictions @ [0.2, 0.6]) == pytest.approx(
        [0.25, 0.75]
    )
    # A useless member gets nothing; if all are useless, all get the same.
    y = rng.uniform(1, 2, size=50)
    assert targeted.stacking_weights(np.column_stack([y, -y]), y) == pytest.approx([1, 0])
    assert targeted.stacking_weights(np.column_stack([-y, -2 * y]), y).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("binary", [False, True])
def test_lasso_fits_training_and_new_rows(binary):
    train, new = simulated(8, binary=binary), simulated(9, n=300, binary=binary)
    fitted = targeted.TMLE_LASSO.learn(train, 1, 2)
    inside, outside = fitted.on(train), fitted.on(new)
    again = targeted.TMLE_LASSO.learn(train, 1, 2).on(train)
    assert (inside.ate, inside.se) == (again.ate, again.se)
    truth = 0.5 * math.erf(1 / math.sqrt(6) / math.sqrt(2)) if binary else 1.0
    for estimate, rows in ((inside, train), (outside, new)):
        assert abs(estimate.ate - truth) < 4 * estimate.se
        # The rows' effects are the initial ones: no row's outcome changes them.
        means = [fitted.outcome(np.column_stack([np.full(len(rows.y), a), rows.X])) for a in (0, 1)]
        assert estimate.cate == pytest.approx(means[1] - means[0], abs=1e-12)
    noise = np.random.default_rng(1).permutation(new.y)
    other = fitted.on(Rows(noise, new.treat, new.X, binary))
    assert (other.cate == outside.cate).all()
    assert other.ate != outside.ate
    if binary:
        assert np.abs(outside.cate).max() <= 1


def test_lasso_of_probabilities_keeps_their_mean():
    # Few ones and no covariate that matters: a penalised constant would be pulled to one half.
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(500, 5)), (rng.random(500) < 0.05).astype(float)
    fitted = targeted.fit_lasso(X, y, True, 1, 0)(X)
    assert fitted.mean() == pytest.approx(y.mean(), abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_ensemble_prefers_what_predicts(binary):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(11)
    X = rng.normal(size=(800, 4))
    # A product of covariates, of which a linear model knows nothing.
    signal = 3 * X[:, 0] * X[:, 1]
    y = signal + rng.normal(size=800)
    if binary:
        y = (y > 0).astype(float)
    ensemble, lasso = (
        fit(X, y, binary, 1, 0)(X) for fit in (targeted.fit_ensemble, targeted.fit_lasso)
    )
    assert np.corrcoef(ensemble, signal)[0, 1] > 0.7
    assert abs(np.corrcoef(lasso, signal)[0, 1]) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lasso", "ensemble"])
def test_birth_weights_and_smoking_of_the_published_example(name):
    """Birth weight and smoking (Cattaneo 2010), as in the help of Stata's eltmle 2.2.8.

    With the super learner of R's tmle and the mother's age, education, first visit and marriage,
    it prints -229.9 g with a standard error of 24.6 g, and 0.0510 (0.0122) for the probability of
    less than 2500 g. Estimates from the same rows, with other consistent initial fits, have the
    same influence function: they differ by much less than that error, of which half is allowed.
    """
    path = DATA / "cattaneo_birthweight" / "cataneo2.csv.gz"
    if not path.exists():
        pytest.skip("the birth weights are not here; set CSTONET_DATA to their folder")
    baseline = {"lasso": targeted.TMLE_LASSO, "ensemble": targeted.TMLE_ENSEMBLE}[name]
    for module in baseline.modules:
        pytest.importorskip(module)
    births = pd.read_csv(path)
    X = births[["mage", "medu", "prenatal", "mmarried_"]].to_numpy(np.float64)
    treat, weight = births["mbsmoke_"].to_numpy(np.int64), births["bweight"].to_numpy(np.float64)
    grams = baseline.estimate(Rows(weight, treat, X), threads=1, seed=1)
    light = baseline.estimate(
        Rows((weight < 2500).astype(float), treat, X, binary=True), threads=1, seed=1
    )
    assert len(births) == 4642
    assert grams.ate == pytest.approx(-229.9, abs=24.6 / 2)
    assert light.ate == pytest.approx(0.0510, abs=0.0122 / 2)
