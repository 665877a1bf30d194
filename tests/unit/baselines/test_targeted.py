"""Targeted maximum likelihood: its equations, its stacking, and a published analysis."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm

pytest.importorskip("sklearn")

from baselines import targeted


def initial(rows) -> tuple[np.ndarray, np.ndarray]:
    """Means that are wrong everywhere, and the true propensities."""
    low = rows.y.min() + 0.3 * np.ptp(rows.y)
    means = np.column_stack([low + 0.1 * np.tanh(rows.X[:, 2]), low + 0.2 * np.tanh(rows.X[:, 3])])
    return means, 1 / (1 + np.exp(-rows.X[:, 0]))


def limits(rows) -> tuple[float, float]:
    return float(rows.y.min()), float(rows.y.max())


def test_bound_of_propensities_by_hand():
    assert targeted.propensity_bound(100) == pytest.approx(5 / (10 * math.log(100)))
    assert targeted.propensity_bound(9) == 0.5


@pytest.mark.parametrize("binary", [False, True])
def test_score_equations_are_solved(simulated, binary):
    rows = simulated(1, n=400, p=10, binary=binary)
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
def test_propensities_repair_wrong_means(simulated, effect_of, binary):
    rows = simulated(12, n=20_000, p=4, binary=binary)
    means, propensity = initial(rows)
    done = targeted.target(rows.y, rows.treat, means, propensity, limits(rows))
    truth = effect_of(binary)
    assert abs(done.ate - truth) < 4 * done.se
    assert abs(np.mean(means[:, 1] - means[:, 0]) - truth) > 4 * done.se


def test_fluctuation_is_a_logistic_regression_with_an_offset():
    rng = np.random.default_rng(2)
    offset, clever = rng.normal(size=200), 1 / rng.uniform(0.2, 0.9, size=200)
    y = rng.random(200)
    model = sm.GLM(y, clever[:, None], family=sm.families.Binomial(), offset=offset)
    expected = model.fit(tol=1e-14).params[0]
    assert targeted.fluctuation(y, offset, clever) == pytest.approx(expected, abs=1e-10)


def test_constant_nuisances_give_the_difference_of_means(simulated):
    rows = simulated(3, n=400, p=10)
    half = np.full(len(rows.y), 0.5)
    flat = np.full((len(rows.y), 2), rows.y.mean())
    done = targeted.target(rows.y, rows.treat, flat, half, limits(rows))
    treated = rows.treat == 1
    means = rows.y[~treated].mean(), rows.y[treated].mean()
    assert done.ate == pytest.approx(means[1] - means[0], abs=1e-10)
    influence = 2 * np.where(treated, rows.y - means[1], means[0] - rows.y)
    assert done.se == pytest.approx(influence.std(ddof=1) / math.sqrt(len(rows.y)), rel=1e-8)


def test_units_of_the_outcome_do_not_matter(simulated):
    rows = simulated(4, n=400, p=10)
    means, propensity = initial(rows)
    here = targeted.target(rows.y, rows.treat, means, propensity, limits(rows))
    low, high = limits(rows)
    there = targeted.target(
        7 - 3 * rows.y, rows.treat, 7 - 3 * means, propensity, (7 - 3 * high, 7 - 3 * low)
    )
    assert there.ate == pytest.approx(-3 * here.ate, rel=1e-8)
    assert there.se == pytest.approx(3 * here.se, rel=1e-8)


def test_an_arm_of_equal_outcomes_is_pulled_to_them(simulated):
    rows = simulated(5, n=400, p=10, binary=True)
    y = np.where(rows.treat == 1, rows.y, 0.0)
    half = np.full(len(y), 0.5)
    done = targeted.target(y, rows.treat, np.full((len(y), 2), 0.4), half, (0.0, 1.0))
    assert done.means[:, 0].max() < 1e-12
    assert done.ate == pytest.approx(y[rows.treat == 1].mean(), abs=1e-10)


def test_what_cannot_be_targeted_is_said(simulated):
    rows = simulated(6, n=400, p=10)
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
def test_lasso_fits_training_and_new_rows(simulated, rows_of, effect_of, binary):
    train, new = (simulated(seed, n, p=10, binary=binary) for seed, n in ((8, 400), (9, 300)))
    fitted = targeted.TMLE_LASSO.learn(train, 1, 2)
    inside, outside = fitted.on(train), fitted.on(new)
    again = targeted.TMLE_LASSO.learn(train, 1, 2).on(train)
    assert (inside.ate, inside.se) == (again.ate, again.se)
    for estimate, rows in ((inside, train), (outside, new)):
        assert abs(estimate.ate - effect_of(binary)) < 4 * estimate.se
        # The rows' effects are the initial ones: no row's outcome changes them.
        means = [fitted.outcome(np.column_stack([np.full(len(rows.y), a), rows.X])) for a in (0, 1)]
        assert estimate.cate == pytest.approx(means[1] - means[0], abs=1e-12)
    noise = np.random.default_rng(1).permutation(new.y)
    other = fitted.on(rows_of(noise, new.treat, new.X, binary))
    assert (other.cate == outside.cate).all()
    assert other.ate != outside.ate
    if binary:
        assert np.abs(outside.cate).max() <= 1


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


def with_products(columns: np.ndarray) -> np.ndarray:
    """Columns (n, p) and the products of each two."""
    pairs = combinations(range(columns.shape[1]), 2)
    return np.column_stack([columns, *(columns[:, i] * columns[:, j] for i, j in pairs)])


def by_regressions(rows, terms_of_outcome, terms_of_treatment) -> targeted.Targeted:
    """TMLE whose initial fits are linear or logistic regressions on such terms."""

    def terms_at(treat):
        # A treatment of all rows is a constant, too: add_constant would leave out the other.
        columns = terms_of_outcome(np.column_stack([treat, rows.X]))
        return sm.add_constant(columns, has_constant="add")

    family = sm.families.Binomial() if rows.binary else sm.families.Gaussian()
    outcome = sm.GLM(rows.y, terms_at(rows.treat), family=family).fit()
    shares = sm.add_constant(terms_of_treatment(rows.X))
    treatment = sm.GLM(rows.treat, shares, family=sm.families.Binomial()).fit()
    means = [outcome.predict(terms_at(np.full(len(rows.y), a))) for a in (0.0, 1.0)]
    return targeted.target(
        rows.y, rows.treat, np.column_stack(means), treatment.predict(shares), limits(rows)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lasso", "ensemble"])
@pytest.mark.parametrize(
    ("binary", "published"), [(False, -229.9), (True, 0.0510)], ids=["grams", "light"]
)
def test_birth_weights_and_smoking_of_the_published_example(data, rows_of, name, binary, published):
    """Birth weight and smoking (Cattaneo 2010), as in the help of Stata's eltmle 2.2.8.

    With the mother's age, education, first visit and marriage, it prints -229.9 g, and 0.0510 for
    the probability of less than 2500 g. Its initial fits are mixtures of regressions with and
    without products of two covariates (the super learner of R's tmle). The difference of two
    estimates from the same rows has the variance of the difference of their influence functions:
    at most the largest one over the regressions that were mixed.
    """
    path = data / "cattaneo_birthweight" / "cataneo2.csv.gz"
    if not path.exists():
        pytest.skip("the birth weights are not here; set CSTONET_DATA to their folder")
    baseline = {"lasso": targeted.TMLE_LASSO, "ensemble": targeted.TMLE_ENSEMBLE}[name]
    for module in baseline.modules:
        pytest.importorskip(module)
    births = pd.read_csv(path)
    assert len(births) == 4642
    weights = births["bweight"].to_numpy(np.float64)
    rows = rows_of(
        (weights < 2500).astype(float) if binary else weights,
        births["mbsmoke_"].to_numpy(np.int64),
        births[["mage", "medu", "prenatal", "mmarried_"]].to_numpy(np.float64),
        binary,
    )
    fitted = baseline.learn(rows, 1, 1)
    treatments = (np.full(len(births), a) for a in (0.0, 1.0))
    means = [fitted.outcome(np.column_stack([treat, rows.X])) for treat in treatments]
    ours = targeted.target(
        rows.y, rows.treat, np.column_stack(means), fitted.treatment(rows.X), limits(rows)
    )
    assert fitted.on(rows).ate == ours.ate
    forms = (np.asarray, with_products)
    theirs = [by_regressions(rows, outcome, shares) for outcome in forms for shares in forms]
    apart = max((ours.influence - each.influence).std() for each in theirs) / math.sqrt(4642)
    tolerance = norm.ppf(0.995) * apart
    assert abs(ours.ate - published) < tolerance
    # The difference of means, which smokers' other traits confound, would not pass.
    treated = rows.treat == 1
    assert abs(rows.y[treated].mean() - rows.y[~treated].mean() - published) > tolerance
