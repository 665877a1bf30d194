"""Default fits where least squares, or a few treated units, say what is to be expected."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import cstonet as cs
from cstonet.settings.estimator_plan import SHARE_CLIP

EFFECT = {"ATE": 1.0}


def linear_outcome(seed: int, n: int = 500, p: int = 22) -> pd.DataFrame:
    """Every covariate moves the outcome, two the treatment; R² is 0.95 without the treatment."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    slopes = np.linspace(0.3, 1.5, p) * np.where(np.arange(p) % 2, 1, -1)
    treat = rng.random(n) < 1 / (1 + np.exp(-0.5 * (x[:, 0] + x[:, 1])))
    noise = np.sqrt(slopes @ slopes * 0.05 / 0.95) * rng.normal(size=n)
    frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(p)])
    return frame.assign(treat=treat.astype(int), y=EFFECT["ATE"] * treat + x @ slopes + noise)


def trial_of_nine(seed: int, n: int = 1000, treated: int = 9) -> pd.DataFrame:
    """A randomised trial with hardly a treated unit."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    treat = np.isin(np.arange(n), rng.choice(n, treated, replace=False))
    frame = pd.DataFrame(x, columns=list("abcde"))
    y = EFFECT["ATE"] * treat + x[:, 0] + rng.normal(size=n)
    return frame.assign(treat=treat.astype(int), y=y)


def least_squares(data: pd.DataFrame) -> tuple[float, float]:
    """Coefficient of the treatment beside all covariates, and its HC2 error."""
    from statsmodels.formula.api import ols

    columns = " + ".join(data.columns.drop("y"))
    fitted = ols(f"y ~ {columns}", data).fit(cov_type="HC2")
    return fitted.params["treat"], fitted.bse["treat"]


def test_a_linear_outcome_costs_little_more_than_least_squares():
    """The best there is if all is linear: nothing is lost by not knowing it but some error."""
    data = linear_outcome(seed=0)
    results = cs.fit("y ~ treat | .", data, seed=0, n_jobs=1)
    estimate, error = least_squares(data)
    found = results.effect("ATE")
    # Inverse weights of two confounders cost about 8 % beyond the equal ones of least squares.
    assert 0.9 < found.se / error < 1.25
    assert abs(found.estimate - estimate) < error
    assert results.estimable


def test_nine_treated_units_have_bounds_and_quantiles_of_their_own():
    results = cs.fit("y ~ treat | .", trial_of_nine(seed=0), seed=0, n_jobs=1)
    share = 9 / 1000
    assert results.plan.clip == pytest.approx((SHARE_CLIP * (1 - share), SHARE_CLIP * share))
    assert results.plan.clip[1] < share
    assert results.effects.n_clipped == 0
    assert results.estimable
    freedom = results.effects.freedom[0]
    assert 1 <= freedom < 20
    assert results.use_t
    found = results.effect("ATE")
    half = stats.t.ppf(0.975, freedom) * found.se
    assert found.upper - found.estimate == pytest.approx(half, rel=1e-9)
    assert half > 2.1 * found.se
    # Nobody learns the noise of nine outcomes to within less than a mean of nine.
    assert found.se > 0.5 / np.sqrt(9)
    assert "  t " in results.summary().as_text()


@pytest.mark.slow
def test_intervals_of_a_linear_outcome_cover(coverage):
    ratios = []
    for seed in range(20):
        data = linear_outcome(seed=100 + seed)
        results = cs.fit("y ~ treat | .", data, seed=seed)
        coverage.add(results, EFFECT)
        ratios.append(results.effect("ATE").se / least_squares(data)[1])
    coverage.check()
    assert max(ratios) < 1.25
    assert np.mean(ratios) < 1.15


@pytest.mark.slow
def test_intervals_of_nine_treated_cover(coverage):
    for seed in range(20):
        results = cs.fit("y ~ treat | .", trial_of_nine(seed=100 + seed), seed=seed)
        coverage.add(results, EFFECT)
    coverage.check()
