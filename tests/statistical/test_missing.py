"""Missing covariates against truths: regressions, draws, Rubin's rules, and whole fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import cstonet as cs
from cstonet import _core
from cstonet.datasets import many_holes, paper_holes, punch_holes, simulation2
from cstonet.datasets.autoregressive import mean_outcome, treatment_probability
from cstonet.estimators import Imputations, Nuisances, estimate_effects, pooled_effects
from cstonet.imputation.candidates import choose
from cstonet.imputation.conditionals import CovariateModel, Entries, Variable
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.noise import FreshNoise
from cstonet.imputation.regressions import fit_linear, fit_softmax, level_probabilities


def dataset(x):
    p = x.shape[1]
    return _core.Dataset(np.ascontiguousarray(x), np.zeros(p), np.ones(p), 1e6, 2**30)


class TestRegressions:
    def test_softmax_recovers_its_coefficients(self):
        rng = np.random.default_rng(0)
        n, truth = 8000, np.array([[0.3, -0.5], [1.0, 0.0], [0.0, -1.0]])
        x = rng.normal(size=(n, 2))
        p = level_probabilities(np.column_stack([np.ones(n), x]) @ truth)
        codes = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        found = fit_softmax(x, codes, 3)
        # A coefficient of a logistic regression has a standard error of about 2.5 / sqrt(n).
        np.testing.assert_allclose(found, truth, atol=4 * 3 / np.sqrt(n))

    @pytest.mark.parametrize("levels", [3, 25])
    def test_softmax_is_stationary(self, levels):
        rng = np.random.default_rng(1)
        x, codes = rng.normal(size=(300, 2)), rng.integers(0, levels, 300)
        theta = fit_softmax(x, codes, levels)

        def objective(value):
            eta = np.column_stack([np.ones(300), x]) @ value
            chosen = np.take_along_axis(level_probabilities(eta), codes[:, None], 1)
            return np.log(chosen).sum() - 0.25 * (value[1:] ** 2).sum()

        step = 1e-4
        for index in np.ndindex(*theta.shape):
            up, down = theta.copy(), theta.copy()
            up[index] += step
            down[index] -= step
            # The gradient at the optimum, against the curvature's size of about 60.
            assert abs(objective(up) - objective(down)) / (2 * step) < 60 * 1e-3

    @pytest.mark.parametrize(("levels", "rarer"), [(8, 1.5), (12, 0.5), (20, 0.5), (60, 0.1)])
    @pytest.mark.parametrize("seed", range(3))
    def test_rare_levels(self, levels, rarer, seed):
        """With an intercept and no prior on it, expected counts of levels are the observed ones."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 3))
        odds = -rarer * np.arange(1, levels) + x @ rng.normal(size=(3, levels - 1))
        p = level_probabilities(odds)
        codes = (rng.random((400, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, levels - 1)
        found = fit_softmax(x, codes, levels)
        expected = level_probabilities(np.column_stack([np.ones(400), x]) @ found).sum(axis=0)
        # The gradient in units of rows, and the tiny prior on the intercepts.
        np.testing.assert_allclose(expected, np.bincount(codes, minlength=levels), atol=0.02)

    def test_linear(self):
        rng = np.random.default_rng(2)
        x = rng.normal(size=(5000, 3))
        y = 1 + x @ [1, -2, 0] + 0.5 * rng.normal(size=5000)
        found, spread = fit_linear(x, y)
        np.testing.assert_allclose(found[:, 0], [1, 1, -2, 0], atol=4 * 0.5 / np.sqrt(5000))
        assert abs(spread - 0.5) < 4 * 0.5 / np.sqrt(2 * 5000)


class TestCovariateModel:
    def test_neighbours_of_an_autoregression(self):
        x = simulation2(n=4000, p=30, seed=3).data.iloc[:, 2:].to_numpy()
        rng = np.random.default_rng(3)
        variables = tuple(
            Variable(np.array([j]), None, rng.random(len(x)) < 0.1) for j in (0, 3, 14)
        )
        model = CovariateModel.select(
            variables, dataset(x), np.arange(len(x)), given={}, limit=1e6, threads=1
        )
        for variable, regression in zip(variables, model.regressions, strict=True):
            j = int(variable.columns[0])
            expected = {k for k in (j - 2, j - 1, j + 1, j + 2) if 0 <= k < 30}
            assert expected <= set(regression.features.tolist())
            # Conditional mean -Σ C_jk x_k, conditional variance 1.
            slopes = dict(
                zip(regression.features.tolist(), regression.coefficients[1:, 0], strict=True)
            )
            for k in expected:
                truth = -0.5 if abs(j - k) == 1 else -0.25
                assert abs(slopes[k] - truth) < 5 / np.sqrt(len(x))
            assert abs(regression.spread - 1) < 4 / np.sqrt(2 * len(x))

    def test_joint_draws_have_the_joint_distribution(self):
        """Two neighbours missing in the same row: Gibbs draws against the exact conditional."""
        rng = np.random.default_rng(4)
        n = 4000
        x = np.zeros((n, 3))
        x[:, 0] = rng.normal(size=n)
        x[:, 1] = 0.6 * x[:, 0] + 0.8 * rng.normal(size=n)
        x[:, 2] = 0.6 * x[:, 1] + 0.8 * rng.normal(size=n)
        missing = np.zeros(n, dtype=bool)
        missing[0] = True
        x[0] = [1.5, 0.0, 0.0]
        variables = tuple(Variable(np.array([j]), None, missing) for j in (1, 2))
        model = CovariateModel.select(
            variables, dataset(x), np.arange(1, n), given={0: (0, 2), 1: (1,)}, limit=1e6, threads=1
        )
        entries = Entries.of(variables, np.ones(n, dtype=bool))
        draws = model.draw(dataset(x), entries, 4000, FreshNoise(rng))
        # Given x0 = 1.5: x1 ~ N(0.9, 0.64), x2 ~ N(0.54, 0.8704), covariance 0.384. Errors of
        # moments of 4000 draws, of the estimated regressions, and what five sweeps leave
        # (correlation 0.38^5 of a start one and a half standard deviations away).
        tolerance = 4 / np.sqrt(4000) + 4 * 1.5 / np.sqrt(n)
        np.testing.assert_allclose(draws.mean(axis=1), [0.9, 0.54], atol=tolerance)
        np.testing.assert_allclose(
            np.cov(draws), [[0.64, 0.384], [0.384, 0.8704]], atol=1.5 * tolerance
        )

    def test_levels_are_drawn_in_their_proportions(self):
        rng = np.random.default_rng(5)
        n = 3000
        x = np.column_stack([rng.normal(size=n), np.zeros(n), np.zeros(n)])
        p = level_probabilities(np.column_stack([x[:, 0], -x[:, 0]]))
        codes = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        levels = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        x[:, 1:] = levels[codes]
        missing = np.arange(n) < 500
        variable = Variable(np.array([1, 2]), levels, missing)
        model = CovariateModel.select(
            (variable,), dataset(x), np.arange(500, n), given={0: (0,)}, limit=1e6, threads=1
        )
        entries = Entries.of((variable,), np.ones(n, dtype=bool))
        draws = model.draw(dataset(x), entries, 200, FreshNoise(rng))
        shares = draws.reshape(500, 2, 200).mean(axis=2)
        # Shares of 200 draws, and probabilities from slopes with standard errors near 0.07.
        assert np.abs(shares - p[:500, 1:]).mean() < 0.03 + 0.07 / 4
        assert set(np.unique(draws)) == {0.0, 1.0}


def test_choice_by_weight():
    rng = np.random.default_rng(6)
    log_weight = np.log(np.tile([0.1, 0.2, 0.7], (2000, 1)))
    chosen = choose(log_weight, 5, rng)
    shares = np.bincount(chosen.ravel(), minlength=3) / chosen.size
    # Five even draws of a row vary less than independent ones.
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7], atol=4 * np.sqrt(0.25 / chosen.size))


def test_missingness_model_finds_a_slope_on_the_missing_value():
    """Y ⟂ R | A, X identifies the slope: EM with the true likelihood of the outcome."""
    rng = np.random.default_rng(7)
    n, draws = 6000, 40
    x = rng.normal(size=(n, 2))
    treatment = rng.integers(0, 2, size=(n, 1)).astype(float)
    y = 2 * x[:, 0] + treatment[:, 0] + rng.normal(size=n)
    missing = rng.random(n) < expit(-2 + treatment[:, 0] - 1.0 * x[:, 0])
    variable = Variable(np.array([0]), None, missing)
    rows, entries = np.arange(n), Entries.of((variable,), np.ones(n, dtype=bool))
    current = x.copy()
    current[missing, 0] = 0.0
    data = dataset(current)
    model = MissingnessModel.start((variable,), treatment, data, rows)
    drawn = rng.normal(size=(len(entries.rows), draws)).astype(np.float32)
    g = entries.rows
    likelihood = -0.5 * (y[g, None] - 2 * drawn - treatment[g]) ** 2
    for _ in range(25):
        weight = likelihood + model.log_probability(data, entries, drawn)
        index = choose(weight, 5, rng)
        model = model.refit(data, rows, entries, np.take_along_axis(drawn, index, axis=1))
    slopes = model.regressions[0].coefficients[:, 0]
    # Standard errors near 0.05 with complete data, at most half as large again without.
    np.testing.assert_allclose(slopes, [-2, 1, -1], atol=4 * 0.08)


def test_rubins_rules_cover_with_true_nuisances():
    """Imputation from the true posterior: no bias, and intervals that cover, over 60 data sets."""
    repeats, n, draws, m = 60, 1000, 40, 10
    errors, covered = [], []
    for seed in range(repeats):
        sim = simulation2(n=n, p=5, seed=2000 + seed)
        x = sim.data.iloc[:, 2:].to_numpy()
        a, y = sim.data["treat"].to_numpy(), sim.data["y"].to_numpy()
        rng = np.random.default_rng(seed)
        # More gaps in x1 where the outcome is large: complete cases would be biased.
        missing = rng.random(n) < expit(-2 + 1.5 * (y > 2))
        rows = np.flatnonzero(missing)
        mean = -(0.5 * x[rows, 1] + 0.25 * x[rows, 2])
        pool = np.repeat(x[rows][:, None], draws, axis=1)
        pool[:, :, 0] = mean[:, None] + rng.normal(size=(len(rows), draws))
        flat = pool.reshape(-1, 5)
        mu = np.column_stack([mean_outcome(flat, level) for level in (0, 1)])
        p1 = treatment_probability(flat)
        propensity = np.column_stack([1 - p1, p1])
        code = np.repeat(a[rows], draws)
        own = np.arange(len(flat))
        log_weight = (
            np.log(propensity[own, code]) - 0.5 * (np.repeat(y[rows], draws) - mu[own, code]) ** 2
        )
        index = choose(log_weight.reshape(-1, draws), m, rng)
        pick = np.arange(len(rows))[:, None] * draws + index
        imputations = Imputations(
            rows, mu[pick.T], propensity[pick.T], np.empty((0, m), np.float32)
        )
        nuisances = Nuisances(
            y=y,
            treatment=a,
            mu=np.column_stack([sim.mu0, sim.mu1]),
            propensity=np.column_stack([1 - sim.propensity, sim.propensity]),
            weights=None,
            fold=np.zeros(n, np.int64),
        )

        def estimate(nuisances):
            return estimate_effects(nuisances, levels=(0, 1), clip=0.0, variance="influence")

        effects = pooled_effects(estimate, nuisances, imputations)
        errors.append(effects.estimates[0] - sim.ate)
        covered.append(abs(errors[-1]) < 1.96 * effects.standard_errors[0])
    errors = np.array(errors)
    assert abs(errors.mean()) < 3.5 * errors.std() / np.sqrt(repeats)
    # 95 % less three and a half standard errors of a share of 60.
    assert np.mean(covered) > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / repeats)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["mar", "mnar"])
def test_fits_with_holes_are_near_the_truth(missing):
    sim = simulation2(n=3000, p=20, seed=41)
    holes = punch_holes(sim) if missing == "mar" else paper_holes(sim)
    results = cs.fit(sim.formula, holes.data, missing=missing, seed=1)
    assert abs(results.params["ATE"] - sim.sample_ate) < 4 * results.bse["ATE"]
    complete = cs.fit(sim.formula, sim.data, seed=1)
    # What a tenth of two covariates can tell, and another run of the search.
    assert abs(results.params["ATE"] - complete.params["ATE"]) < complete.bse["ATE"]
    assert results.bse["ATE"] > 0.9 * complete.bse["ATE"]


@pytest.mark.slow
def test_many_incomplete_columns_with_levels():
    _, holes = many_holes(n=2000, p=30, seed=42)
    results = cs.fit(holes.formula, holes.data, missing="mar", seed=1)
    assert len(results.design.gaps.variables) == 20
    assert abs(results.params["ATE"] - holes.sample_ate) < 4 * results.bse["ATE"]


@pytest.mark.slow
def test_columns_that_are_missing_together():
    """x2 is no cause, but stands in for x1 and is missing with it: the two are drawn jointly."""
    errors, ses, sets = [], [], 8
    for seed in range(sets):
        rng = np.random.default_rng(100 + seed)
        x1 = rng.normal(size=800)
        x2 = 0.9 * x1 + np.sqrt(1 - 0.9**2) * rng.normal(size=800)
        treat = (x1 + rng.logistic(size=800) > 0).astype(int)
        y = treat + 2 * x1 + rng.normal(size=800)
        data = pd.DataFrame({"y": y, "treat": treat, "x1": x1, "x2": x2})
        data.loc[rng.random(800) < 0.3, ["x1", "x2"]] = np.nan
        data["x3"] = rng.normal(size=800)  # rows of which nothing is known are refused
        fit = cs.fit("y ~ treat | .", data, missing="mar", seed=seed, folds=2, repeats=1, starts=1)
        errors.append(fit.params["ATE"] - 1)
        ses.append(fit.bse["ATE"])
    assert abs(np.mean(errors)) < 4 * np.sqrt(np.mean(np.square(ses)) / sets)
