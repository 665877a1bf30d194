"""New rows with gaps: each by itself, and what being missing tells about a value."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from cstonet import _core
from cstonet.imputation.candidates import ImputationModel
from cstonet.imputation.conditionals import CovariateModel, Variable
from cstonet.imputation.missingness import MissingnessModel
from cstonet.imputation.new_rows import CompletedRows
from cstonet.imputation.noise import SharedNoise
from cstonet.imputation.regressions import Regression


@pytest.fixture(scope="module")
def frame():
    """Numbers and levels that explain each other, missing alone and together."""
    rng = np.random.default_rng(0)
    n = 300
    x = rng.normal(size=(n, 3)) + rng.normal(size=(n, 1))
    group = np.array(["a", "b", "c"])[np.digitize(x[:, 0] + rng.normal(size=n), [-0.5, 0.5])]
    treat = (x[:, 0] + rng.normal(size=n) > 0).astype(int)
    y = treat * x[:, 0] + x[:, 1] + (group == "b") + rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2]})
    frame["group"] = pd.Categorical(group)
    for name in ("x1", "x2", "group"):
        frame.loc[rng.random(n) < 0.3, name] = np.nan
    return frame


@pytest.mark.parametrize("missing", ["mar", "mnar"])
def test_a_row_does_not_depend_on_the_others(frame, missing, fit_gaps):
    results = fit_gaps(frame, missing, candidates=10)
    new = frame.head(16)
    assert new[["x1", "x2", "group"]].isna().value_counts().size > 4  # patterns of gaps
    for method in (results.cate, results.propensity, results.predict):
        together = method(new)
        alone = pd.concat([method(new.iloc[[i]]) for i in range(len(new))])
        # Sums in another order, in float32.
        pd.testing.assert_series_equal(together, alone, rtol=1e-5)
        pd.testing.assert_series_equal(together, method(new.iloc[::-1])[::-1], rtol=1e-5)


def one_number(missingness):
    """X ~ N(0, 1) without neighbours, and a second covariate that is complete."""
    variable = Variable(np.array([0]), None, np.zeros(1, dtype=bool))
    regression = Regression(np.empty(0, dtype=np.int64), np.zeros((1, 1)), 1.0)
    covariates = CovariateModel((variable,), (regression,), 1e6)
    model = None
    if missingness is not None:
        given = Regression(np.array([0]), np.array(missingness)[:, None], None)
        model = MissingnessModel((variable,), np.zeros((1, 1)), (given,))
    return ImputationModel(covariates, model)


@pytest.mark.parametrize("missingness", [None, (-1.0, 0.8, -1.5)])
def test_weights_against_the_exact_conditional(missingness):
    """Mean of X given that it is missing, for a treatment that depends on X too."""
    draws = 40_000
    data = _core.Dataset(np.zeros((3, 2)), np.zeros(2), np.ones(2), 1e6, 0)
    missing = np.array([[True], [False], [True]])
    rows = CompletedRows.draw(one_number(missingness), data, missing, draws, (1, 0))
    np.testing.assert_array_equal(rows.entries.rows, [0, 2])
    p = expit(2 * rows.values.T)
    weights = rows.weights(np.stack([1 - p, p], axis=2))
    assert weights.shape == (2, draws)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-(grid**2) / 2)
    if missingness is not None:
        intercept, of_treatment, of_x = missingness
        untreated, treated = (expit(intercept + a * of_treatment + of_x * grid) for a in (0, 1))
        density *= (1 - expit(2 * grid)) * untreated + expit(2 * grid) * treated
    exact = np.average(grid, weights=density)
    # A weighted mean of numbers of variance near one.
    error = np.sqrt((weights**2).sum(axis=1).max())
    found = (weights * rows.values).sum(axis=1)
    np.testing.assert_allclose(found, exact, atol=4 * error)
    assert missingness is None or abs(exact) > 20 * error


def test_what_is_missing_not_at_random_is_told_by_being_missing(fit_gaps):
    """Large values are missing, and raise the outcome: so do rows without a value."""
    rng = np.random.default_rng(1)
    n = 1500
    x = rng.normal(size=(n, 2))
    treat = rng.integers(2, size=n)
    y = treat + 2 * x[:, 0] + 0.5 * rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "treat": treat, "x1": x[:, 0], "x2": x[:, 1]})
    frame.loc[rng.random(n) < expit(3 * x[:, 0] - 2), "x1"] = np.nan
    gap = frame["x1"].isna()
    results = fit_gaps(frame, "mnar")
    # The untreated among the rows with gaps have a mean outcome near two; the untreated in general,
    # whose values they would be given by the observed covariates alone, of zero.
    expected = y[gap & (treat == 0)].mean()
    found = results.potential_outcomes(frame[gap])[0].mean()
    assert abs(found - expected) < abs(found - y[treat == 0].mean()) / 2


def test_shared_numbers_are_spread_evenly():
    """Their common error would not average out over rows: one number in every twentieth."""
    noise = SharedNoise((3,), sweeps=30, draws=20)
    for left in range(30):
        numbers = noise.at(1, left, slice(0, 20)).uniform((20, 4))
        np.testing.assert_array_equal(np.sort(np.floor(20 * numbers[:, 0])), np.arange(20))
        np.testing.assert_array_equal(numbers, numbers[:, :1] * np.ones(4))
    again = SharedNoise((3,), sweeps=30, draws=20).at(1, 4, slice(5, 9)).uniform((4, 1))
    np.testing.assert_array_equal(again, noise.at(1, 4, slice(0, 20)).uniform((20, 1))[5:9])
