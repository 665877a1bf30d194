"""Double selection: its penalty, its selections and estimates against those of R's hdm."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import ndtri
from scipy.stats import norm

pytest.importorskip("sklearn")

from baselines import double_selection as ds
from least_squares import adjust


class RandomOfR:
    """R's default generator: the Mersenne Twister, seeded by set.seed; normals by inversion."""

    def __init__(self, seed: int):
        words = []
        for _ in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            words.append(seed)
        # The first word is a position that R overwrites.
        self.bits = np.random.MT19937(0)
        state = self.bits.state
        state["state"] = {"key": np.array(words[51:], np.uint32), "pos": 624}
        self.bits.state = state

    def runif(self, count: int) -> np.ndarray:
        return self.bits.random_raw(count) * 2.3283064365386963e-10

    def rnorm(self, count: int) -> np.ndarray:
        coarse, fine = self.runif(2 * count).reshape(-1, 2).T
        return ndtri((np.floor(2**27 * coarse) + fine) / 2**27)

    def matrix(self, n: int, p: int) -> np.ndarray:
        return self.rnorm(n * p).reshape(p, n).T


def test_generator_is_that_of_r():
    # R: set.seed(1); rnorm(3)
    assert RandomOfR(1).rnorm(3) == pytest.approx([-0.6264538, 0.1836433, -0.8356286], abs=5e-8)


def test_penalty_level_by_its_definition():
    # P(|N| > λ / 2c√n) must be γ / p with γ = 0.1 / log n, shared by the p covariates.
    n, p = 400, 30
    quantile = ds.penalty_level(n, p) / (2 * 1.1 * math.sqrt(n))
    assert p * 2 * norm.sf(quantile) == pytest.approx(0.1 / math.log(n))


def test_loadings_by_hand():
    X, residuals = np.array([[1.0, 2.0], [-1.0, 0.0]]), np.array([3.0, 1.0])
    assert ds.loadings(X, residuals) == pytest.approx([math.sqrt(5), math.sqrt(18)])


def test_nothing_is_selected_from_noise_and_nothing_from_constants():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 500)), rng.normal(size=200)
    assert not ds.rigorous_lasso(X, y).any()
    y += 2 * X[:, 7]  # now there is one that matters, and a constant beside it
    X[:, 8] = 4.0
    assert np.flatnonzero(ds.rigorous_lasso(X, y)).tolist() == [7]
    assert not ds.rigorous_lasso(X, np.ones(200)).any()
    # Without any noise, what explains the outcome is among the five that are tried first.
    explained = ds.rigorous_lasso(X, X[:, 7])
    assert explained[7]
    assert explained.sum() == 5


def test_selection_does_not_depend_on_units(simulated):
    rows = simulated(4, n=300, p=40)
    units = np.geomspace(1e-3, 1e3, rows.X.shape[1])
    assert (ds.rigorous_lasso(rows.X, rows.y) == ds.rigorous_lasso(rows.X * units, rows.y)).all()


def test_everything_selected_is_least_squares(simulated):
    rows = simulated(5, n=300, p=40)
    everything = ds.SelectedCovariates(np.ones(rows.X.shape[1], np.bool_))
    design = np.column_stack([rows.treat, np.ones(len(rows.y)), rows.X])
    fit = sm.OLS(rows.y, design).fit(cov_type="HC1")
    estimate = everything.on(rows)
    assert estimate.ate == pytest.approx(fit.params[0], rel=1e-10)
    assert estimate.se == pytest.approx(fit.bse[0], rel=1e-10)
    assert (estimate.lower, estimate.upper) == pytest.approx(tuple(fit.conf_int()[0]), rel=1e-9)


def test_other_rows_keep_the_training_rows_selection(simulated):
    train, new = simulated(6, n=300, p=40), simulated(7, n=100, p=40)
    fitted = ds.DOUBLE_SELECTION.learn(train, 1, 0)
    assert np.flatnonzero(fitted.selected).tolist() == [0, 1]
    design = np.column_stack([new.treat, np.ones(100), new.X[:, :2]])
    by_hand = sm.OLS(new.y, design).fit(cov_type="HC1")
    estimate = fitted.on(new)
    assert (estimate.ate, estimate.se) == pytest.approx((by_hand.params[0], by_hand.bse[0]))
    assert estimate.selected is None


@pytest.mark.parametrize("binary", [False, True])
def test_estimate_and_error_are_those_of_the_population(simulated, effect_of, binary):
    n, many = 1000, 200_000
    rows = simulated(8, n, p=200, binary=binary)
    fitted = ds.DOUBLE_SELECTION.learn(rows, 1, 0)
    assert fitted.selected[:2].all()
    estimate = fitted.on(rows)
    # The regression on both covariates that matter, in as good as the population. What a row adds
    # to its error also tells how much a standard error from n rows varies.
    population = simulated(9, many, p=2, binary=binary)
    found = adjust(population.y, population.treat[:, None].astype(float), population.X)
    error = found.errors[0] * math.sqrt(many / n)
    squares = found.scores[:, 0] ** 2
    assert abs(estimate.ate - found.coefficients[0]) < 4 * error
    assert abs(estimate.se / error - 1) < 4 * squares.std() / squares.mean() / (2 * math.sqrt(n))
    # That of a linear model is the mean effect where the outcome is linear; of 0 and 1 it is not.
    distance = abs(found.coefficients[0] - effect_of(binary))
    assert (distance < 4 * found.errors[0]) == (not binary)


def test_too_few_rows_are_an_error_that_says_so(simulated):
    rows = simulated(10, n=30, p=40)
    everything = ds.SelectedCovariates(np.ones(rows.X.shape[1], np.bool_))
    with pytest.raises(ValueError, match="ask about more rows"):
        everything.on(rows)


# The vignette of hdm ("High-Dimensional Metrics in R", Chernozhukov, Hansen, Spindler) draws its
# examples with R's generator, so its figures can be had to the digits that it prints.


def test_selection_and_coefficients_of_the_vignettes_first_example():
    random = RandomOfR(12345)
    X = random.matrix(100, 100)
    y = 5 * X[:, :3].sum(axis=1) + random.rnorm(100)
    selected = ds.rigorous_lasso(X, y)
    assert np.flatnonzero(selected).tolist() == [0, 1, 2]
    # "print(post.lasso.reg, all = FALSE)"
    fit = sm.OLS(y, sm.add_constant(X[:, selected])).fit()
    assert fit.params == pytest.approx([0.0341, 4.9241, 4.8579, 4.9644], abs=5e-5)


def test_double_selection_of_the_vignette(rows_of):
    random = RandomOfR(1)
    n = 5000
    X = random.matrix(n, 20)
    y = X.sum(axis=1) + random.rnorm(n)
    # Its treatment is continuous, which changes nothing.
    rows = rows_of(y, X[:, 0], X[:, 1:])
    fitted = ds.learn(rows, 1, 0)
    estimate = fitted.on(rows)
    # rlassoEffect(..., method = "double selection"): 0.97807455, 0.01415624. Its variance divides
    # by n - k - 1 for k selected covariates, HC1 by the n - k - 2 degrees of freedom.
    k = int(fitted.selected.sum())
    assert estimate.ate == pytest.approx(0.97807455, abs=5e-9)
    assert estimate.se * math.sqrt((n - k - 2) / (n - k - 1)) == pytest.approx(0.01415624, abs=5e-9)


def test_residuals_after_selection_of_the_vignette():
    random = RandomOfR(1)
    X = random.matrix(100, 100)
    y = 1 + 3 * X[:, :3].sum(axis=1) + random.rnorm(100)
    coefficients = []
    for j in (0, 1, 2, 49):
        others = np.delete(X, j, axis=1)
        left = [
            sm.OLS(v, sm.add_constant(others[:, ds.rigorous_lasso(others, v)])).fit().resid
            for v in (y, X[:, j])
        ]
        coefficients.append(left[0] @ left[1] / (left[1] @ left[1]))
    # "print(lasso.effect)"
    assert coefficients == pytest.approx([2.94448, 3.04127, 2.97540, 0.07196], abs=5e-6)
